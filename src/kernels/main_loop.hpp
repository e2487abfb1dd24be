// main_loop.hpp: what is to be known of a main loop, as data. Legality, lowering, estimates, the
// tuner, the self-test and the printing of configurations fold over these descriptors; each stands
// in a file of its own in loops/. ../RECIPES.md says how to add one. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/constants.hpp"
#include "kernels/parameter.hpp"
#include "kernels/timing.hpp"
#include "problem/data_type.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm {

// Elements of A or B that are loaded at once, in 16 bytes.
inline std::uint32_t load_width(const ResolvedMatrix& matrix) {
  return load_bytes / size_in_bytes(matrix.type);
}
// Elements that are multiplied in 16 bytes.
inline std::uint32_t group_width(const ResolvedProblem& problem) {
  return load_bytes / size_in_bytes(problem.input_type());
}

// A part of the tile, in elements.
struct TilePart {
  std::uint32_t m = 0;
  std::uint32_t n = 0;
};

// Factors of a time where A, or B, is loaded element by element.
struct SingleLoads {
  double a = 1.0;
  double b_in_rows = 1.0;
  double b_in_columns = 1.0;
};

// How a loop's times differ from what its row's rate and the table's timing say.
struct LoopCost {
  // Products take so many times as long where A or B is loaded element by element.
  double misaligned = 1.0;
  // Both factors where it matters which of them is: of products, and of the latency of loads.
  SingleLoads single_products;
  SingleLoads single_latency;
  // Products take so many times as long where a loop that takes fragments has A in rows.
  double a_in_rows = 1.0;
  // So many times the fixed time of a tile.
  double tile = 1.0;
  // A factor of the latency of loads; null: 1.
  double TimingModel::*latency = nullptr;
  // Bound by memory, which workgroups share evenly, rather than by products.
  bool bound_by_memory = false;
};

struct Case;

// The operands with which the self-test tries a kind.
enum class KindOperands : std::uint8_t {
  any,        // A and B in each layout
  a_in_rows,  // A in rows, B packed
  codes,      // B quantised
};

struct LoopDescriptor {
  MainLoop loop = {};
  std::string_view name;  // in configurations and in the names of shader modules
  std::span<const Parameter> parameters;

  // The parts that it can be combined with.
  bool shows_stores = false;      // to other workgroups of the same dispatch: ReductionMode
  bool keeps_values = false;      // until whole rows are known: RowStrategy
  bool multiplies_pairs = false;  // gated products
  bool stores_x4 = true;          // four elements at once; else whole matrices
  bool finds_rows = true;         // of A and D by index: Grouping
  // D of a plain product may be stored from slices of its own 16 bits; null: never.
  bool (*narrows_slices)(const Config&, DataType input, const DeviceCaps&) = nullptr;
  // SCALES_OF_* of shaders/lib/quantised.h: what scales of codes multiply; null: codes.
  std::uint32_t (*scales_of)(const Config&, const Quantisation&, DataType input) = nullptr;

  // Converts plain operands of another type while it loads them
  // (shaders/lib/inputs/converted.glsl).
  bool converts = false;

  // Takes operands in fragment order (shaders/lib/inputs/fragment_words.glsl): that of A or B, and
  // how many steps of fragment_k beyond their end it reads. Null: takes rows and columns.
  FragmentOrder (*fragment_order)(const Config&, bool of_a) = nullptr;
  std::uint32_t (*steps_beyond)(const Config&) = nullptr;
  constexpr bool takes_fragments() const noexcept { return fragment_order != nullptr; }
  // Fits the parameters that say how packed operands are loaded to what is packed. Null: none do.
  void (*fit_packed)(Config&, const ResolvedProblem&, const DeviceCaps&) = nullptr;
  // Takes the order in which the caller packed operands; null: it has no choice.
  void (*take_order)(Config&, const ResolvedProblem&) = nullptr;

  // It rests on what no specification promises: legal only where its kind passed the self-test.
  bool needs_verdict = false;

  // Loops whose rates are of one scale, and whose instructions one self-test proves, name the same.
  MainLoop kin = {};
  // The loop whose kinds of this input cover it; null: `kin`.
  MainLoop (*tried_as)(DataType input) = nullptr;

  // The invocations of a workgroup. The configuration's ranges need not be legal.
  std::uint32_t (*invocations)(const Config&) = nullptr;

  // From here on ranges are legal.

  // f32 accumulators of one invocation, and how many stay in registers.
  std::uint32_t (*accumulators)(const Config&) = nullptr;
  std::uint32_t most_accumulators = 0;

  // The part of the tile whose A and B are loaded for itself: of a subgroup, or an invocation.
  TilePart (*part)(const Config&) = nullptr;

  // The check for all else that makes a configuration of it illegal.
  bool (*check)(const Case&) = nullptr;

  // Shared memory that its shader declares, or the driver reserves, but for the words and the row
  // states that kernels have beside it.
  std::uint64_t (*shared_memory_bytes)(const Config&, const ResolvedProblem&,
                                       const Limits&) = nullptr;

  // Elements that A or B is loaded by, if it allows for 16 bytes at a time.
  std::uint32_t (*load_vector)(const ResolvedMatrix&) = nullptr;
  // The k-tiles that a workgroup multiplies side by side; null: 1.
  std::uint32_t (*k_tiles_at_once)(const Config&) = nullptr;
  // Steps of tile_k in an iteration, if A and B are loaded so; null: 1.
  std::uint32_t (*unroll_k)(const Config&) = nullptr;
  // Sets the constants of its parameters; null: it has none.
  void (*specialize)(Constants&, const Config&) = nullptr;
  // The pipeline requires it; null: any.
  std::uint32_t (*subgroup_size)(const Config&) = nullptr;

  LoopCost cost;

  // The same loop with a tile of another form, and what follows from it; nothing if it can't.
  std::optional<Config> (*reshaped)(const Config&, const TilePart& tile, const ResolvedProblem&,
                                    const DeviceCaps&) = nullptr;
  // A configuration that takes less shared memory with the same tile of D; nothing, or null, if
  // there is none.
  std::optional<Config> (*smaller)(const Config&) = nullptr;

  // Configurations that a tuner begins with; what it changes at once beside single parameters; and
  // what follows from another tile (null: nothing).
  void (*propose)(std::vector<Config>&, const ResolvedProblem&, const DeviceCaps&) = nullptr;
  std::span<void (*const)(Config&)> steps;
  // Makes a configuration of another loop that has this function one of this loop. Null: its
  // parameters are unlike those of any other.
  void (*enter)(Config&) = nullptr;
  void (*refit)(Config&, const ResolvedProblem&, const DeviceCaps&) = nullptr;

  // The self-test: kinds of kernels that the device offers (`proposed`: what tables propose), small
  // configurations of a kind, what a kind and a denial speak for, and the kind in words. Null for
  // those that another loop's kinds speak for. kind_numbers: the names of KernelKind::numbers in
  // files of verdicts and in C; m, n and k are sizes of matrices, which denials name, too.
  void (*kinds)(std::vector<KernelKind>&, const DeviceCaps&,
                std::span<const Config> proposed) = nullptr;
  std::vector<Config> (*trials)(const KernelKind&, const DeviceCaps&) = nullptr;
  bool (*covers)(const KernelKind&, const Config&) = nullptr;
  bool (*denied)(const Denial&, const Config&) = nullptr;
  std::string (*kind_text)(const KernelKind&) = nullptr;
  std::span<const std::string_view> kind_numbers;
  KindOperands (*kind_operands)(const KernelKind&) = nullptr;  // null: any
};

// In the order of the enumerators.
std::span<const LoopDescriptor* const> main_loops() noexcept;
const LoopDescriptor& descriptor(MainLoop loop) noexcept;
inline const LoopDescriptor& descriptor(const Config& config) noexcept {
  return descriptor(config.main_loop());
}

// A number of a kind by its name; null: its main loop has none of this name.
const std::uint32_t* find_number(const KernelKind& kind, std::string_view name) noexcept;
std::uint32_t* find_number(KernelKind& kind, std::string_view name) noexcept;

inline KindOperands operands_of(const KernelKind& kind) {
  const auto operands = descriptor(kind.loop).kind_operands;
  return operands != nullptr ? operands(kind) : KindOperands::any;
}

// True if a loop widens inputs to their accumulators, and multiplies them by multiply-adds.
inline bool takes_every_input(MainLoop loop) { return path_of(loop) == Path::fma; }

// True if a loop that loads rows and columns gains by operands whose outer direction is K.
inline bool gains_by_packing(const LoopDescriptor& loop) {
  return !loop.takes_fragments() && !takes_every_input(loop.loop);
}

// A configuration of the loop whose parameters have no values yet.
Config without_values(MainLoop loop);

// The invocations of a workgroup; saturates at 2^32 - 1.
inline std::uint32_t invocations(const Config& config) {
  return descriptor(config).invocations(config);
}

// f32 accumulators of one invocation.
inline std::uint32_t accumulator_count(const Config& config) {
  return descriptor(config).accumulators(config);
}

// Loads of a tile for each product, by its perimeter and those of its parts: the port to shared
// memory is what binds most main loops (bench/NOTES.md).
double perimeter(const Config& config);

}  // namespace vkgemm
