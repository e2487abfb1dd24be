// vkgemm/config.hpp: how a problem is computed: one kernel with one set of tuning parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "vkgemm/export.h"
#include "vkgemm/result.hpp"

namespace vkgemm {

// The matrix instructions that a kernel is built on.
enum class Path : std::uint8_t {
  nv,   // VK_NV_cooperative_matrix2: workgroup-scope matrices and tensor addressing
  khr,  // VK_KHR_cooperative_matrix: subgroup-scope matrices
  fma,  // multiply-adds of plain Vulkan 1.3; also the true-f32 path everywhere
};

// The main loop of a kernel: how A and B reach the units that multiply them. Each has a file of its
// own in src/kernels/loops/ and in shaders/lib/loops/.
enum class MainLoop : std::uint8_t {
  nv,          // path nv: the whole tile is one matrix, which the driver loads and divides
  khr,         // path khr: stages one k-tile of A and B at a time in shared memory
  khr_ring,    // path khr: three stages of half a k-tile each, so that loads, stores and products
               // overlap. For tiles so large that a compute unit holds one workgroup
  khr_direct,  // path khr: loads fragments from memory to registers. B is in fragment order, as the
               // driver's matrices hold their elements; so is A, unless its rows are aligned
  fma,         // path fma: stages k-tiles in shared memory, and multiplies register tiles
  skinny,      // path fma: for few rows of A; loads pieces of B from memory to registers
};

// The path that a main loop belongs to.
constexpr Path path_of(MainLoop loop) noexcept {
  switch (loop) {
    case MainLoop::nv:
      return Path::nv;
    case MainLoop::khr:
    case MainLoop::khr_ring:
    case MainLoop::khr_direct:
      return Path::khr;
    case MainLoop::fma:
    case MainLoop::skinny:
      return Path::fma;
  }
  return Path::fma;
}

// The order in which workgroups of a grouped product take its tiles. vkgemm chooses `simple`, the
// faster one on the H200 (bench/NOTES.md). A caller or a loaded tuning table may ask for
// `persistent`.
enum class Schedule : std::uint8_t {
  simple,      // one workgroup per tile, for the largest number of tiles; those without a tile exit
  persistent,  // as many workgroups as are resident; each takes every n-th tile, n being their
               // number
};

// The workgroups that add the slices of K (Config::slices). All modes give the same bits.
enum class ReductionMode : std::uint8_t {
  // A second dispatch adds, after a pipeline barrier.
  two_dispatches,
  // The last workgroup to finish a tile adds its slices. No workgroup waits.
  last_arriver,
  // All workgroups add, after a barrier inside the dispatch. It is safe on devices that let
  // workgroups starve: workgroups wait only for those that have started, and for a limited time. If
  // one gives up, a fallback dispatch does the work (Context::barrier_aborts()).
  device_barrier,
};

// How a row reduction combines the tiles of a row. All give the same bits for the same values.
enum class RowStrategy : std::uint8_t {
  none,  // for problems without a row reduction
  // A tile is as wide as N.
  resident,
  // The workgroups of the same rows, a panel, keep their values in registers and exchange row
  // statistics through the workspace. They wait for each other, as safely as in
  // ReductionMode::device_barrier. For one number per row no workgroup waits: a second, small
  // dispatch merges the statistics.
  panel,
  // The product is computed twice: first for the row statistics, then for D.
  recompute,
  // The product stores its values in f32, and a second kernel reduces them. The values are in D, if
  // D is f32, row-major and stored, otherwise in the workspace. The workspace holds as many rows as
  // fit Problem::max_workspace_bytes, at most 64 MiB; with slices of K all rows.
  two_pass,
};

// The number of polls after which a workgroup gives up waiting. They take 0.07 to 0.13 s, derived
// from 0.5 to 1 us per poll, the latency of an atomic in L2. That is longer than any product that
// is worth splitting, and shorter than watchdogs (Windows: 2 s, i915: from 0.6 s).
inline constexpr std::uint32_t default_spin_limit = 1u << 17;

// The largest Config::spin_limit.
inline constexpr std::uint32_t most_spin_limit = 1u << 24;

// The largest Config::slices.
inline constexpr std::uint32_t most_slices = 512;

// Parameters of each main loop. Sizes are elements, invocations or counts, and at least 1.
// Fragments must be ones that the device lists, and tiles multiples of them. plan() names a
// parameter that is not legal.

// The parameters of the nv loop.
struct NvLoop {
  std::uint32_t invocations = 0;  // per workgroup: a number that the device lists
  // Steps of tile_k per iteration, up to 64 (1: not unrolled).
  std::uint32_t unroll_k = 1;
  bool operator==(const NvLoop&) const = default;
};

// The parameters of the khr loop.
struct KhrLoop {
  // The shape of one cooperative matrix.
  std::uint32_t fragment_m = 0;
  std::uint32_t fragment_n = 0;
  std::uint32_t fragment_k = 0;

  // The number of subgroups that share the tile along M and N, and the subgroup size that the
  // pipeline requires.
  std::uint32_t subgroups_m = 0;
  std::uint32_t subgroups_n = 0;
  std::uint32_t subgroup_size = 0;

  // The epilogue runs on a copy of the accumulators in shared memory, which reuses the memory of
  // the k-tiles. The copy comes in this many slices of tile_m / subtiles rows. Divides the number
  // of fragments that a subgroup holds along M.
  std::uint32_t subtiles = 1;

  // Peels the last step of the main loop (khr_ring: unrolls the loop), and loads many elements of C
  // before the epilogue uses the first. This is faster on GPUs. Without it the code is half as
  // long, and compiles faster on CPU implementations.
  bool peel = true;

  // Only khr with `peel` has it. An iteration of the main loop loads a k-tile, multiplies, waits at
  // a barrier, stores, and waits at a barrier. A rotated loop begins its iterations with the last
  // barrier. The steps are the same, but compilers schedule them differently (bench/NOTES.md).
  bool rotate = false;
  bool operator==(const KhrLoop&) const = default;
};

// The parameters of the khr_ring loop, as khr's; Config::tile_k is 2 * fragment_k.
struct KhrRingLoop : KhrLoop {
  bool operator==(const KhrRingLoop&) const = default;
};

// The parameters of the khr_direct loop: khr's, and its own. B (pack=b), or A and B (pack=ab), are
// packed in fragment order, in which the device's matrices hold their elements. No specification
// promises that two pipelines hold them alike, so this loop needs a self-test that passed
// (vkgemm/self_test.hpp). An A that is not packed must be row-major, with multiples of
// 16 bytes as its address, ld and batch_stride. tile_k must divide K, and groups must not be along
// K. Without interleave_k, tile_m must also divide M, and there must be no groups and no
// rows=two_pass.
struct KhrDirectLoop : KhrLoop {
  // How many steps of fragment_k loads are ahead of products: 0 or 1. With a quantised B and at
  // most two fragments of a subgroup along M also 2: A is loaded as early as the codes, because a
  // wait for codes waits for A, too.
  std::uint32_t ahead = 1;
  // Swaps, in memory, the middle two of the four words that an invocation holds of a fragment of A.
  // This is faster if registers hold them in this order.
  bool swap_a = false;
  // Reorders K of packed operands, so that an invocation holds 16 contiguous bytes of a row of A
  // for two steps. It can then load them from an A that is not packed. For 16x16 fragments and
  // subgroups of 32.
  bool interleave_k = false;
  // The number of subgroups that share K: the first takes k-tiles 0, subgroups_k, 2 * subgroups_k,
  // and so on. Their sums are added in order before the epilogue. For few rows, when D has too few
  // tiles to keep a device's memory busy.
  std::uint32_t subgroups_k = 1;
  // An invocation holds eight elements of a fragment of a quantised B. This many of them in a row
  // are in one column and share its scale: 1, 2, 4 or 8. Other problems: 1.
  std::uint32_t code_run = 1;
  bool operator==(const KhrDirectLoop&) const = default;
};

// The parameters of the fma loop.
struct FmaLoop {
  // The register tile of one invocation: multiples of 4.
  std::uint32_t fragment_m = 0;
  std::uint32_t fragment_n = 0;
  bool peel = true;  // as KhrLoop's
  bool operator==(const FmaLoop&) const = default;
};

// The skinny loop has no parameters of its own. Each invocation reads 8×8 pieces of B, or 16 deep
// pieces of 4 columns if B holds codes of s8. It keeps sums for all rows of the tile, at most 8.
// The invocations of the same columns then add their sums.
struct SkinnyLoop {
  bool operator==(const SkinnyLoop&) const = default;
};

// A configuration prints itself and can be parsed back from what it printed:
//   khr:tile=128x128x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4
// The name of the main loop comes first, then the tile, the loop's own parameters and those that
// all loops share. Parameters at their default value are left out.
struct Config {
  // In the order of MainLoop's enumerators: the alternative that stands here names the main loop.
  std::variant<NvLoop, KhrLoop, KhrRingLoop, KhrDirectLoop, FmaLoop, SkinnyLoop> loop = FmaLoop{};

  // The part of D that one workgroup computes, and the depth of its steps along K. 1 to 1024 each.
  // For a gated product tile_n counts columns of both halves of B, and the part of D is
  // tile_m × tile_n / 2: the same configuration does the same work.
  std::uint32_t tile_m = 0;
  std::uint32_t tile_n = 0;
  std::uint32_t tile_k = 0;

  // Tiles of D are visited in bands of this many tile rows. The parts of A and B that one wave of
  // workgroups reads then stay in the L2 cache. 1: row-major order of tiles; at most 65536.
  std::uint32_t swizzle = 8;

  // Split-K: this many workgroups share a tile, and each multiplies its slice of K. The workspace
  // holds their f32 results until they are added in order and the epilogue runs. For products with
  // fewer tiles than the device has compute units. At most 512; 1: no split-K.
  std::uint32_t slices = 1;

  // The way in which the slices are added.
  ReductionMode reduction_mode = ReductionMode::two_dispatches;

  // The number of workgroups, at most 65535. 0 means, with reduction mode device_barrier, one for
  // each slice of each tile. With schedule persistent, 0 means as many as are resident, by an
  // estimate.
  std::uint32_t workgroups = 0;

  // Reduction mode device_barrier and rows=panel: how often a workgroup polls for the others before
  // it gives up.
  std::uint32_t spin_limit = default_spin_limit;

  // A dispatch before the product copies the operand into the workspace. The copy has K as the
  // outer direction and is padded to cache lines; for khr_direct it is in fragment order. For
  // 16-bit and s8 operands that are not aligned, or so large that a faster main loop makes up for
  // the copy. If D is column-major, `a` is the transposed problem's A, which is the caller's B.
  // Printed as pack=a, pack=b or pack=ab.
  bool pack_a = false;
  bool pack_b = false;

  // Compiles N, K and the leading dimensions into the pipeline: one pipeline per shape.
  // Performance: 1.035 times as fast at 1024x1024x1024 f16 on an H200, no faster at 2048 and above
  // (bench/NOTES.md).
  bool static_shape = false;

  // Grouped products only; others have the simple one.
  Schedule schedule = Schedule::simple;

  // Row reductions only. The strategies resident, panel and recompute need path khr or fma (not the
  // skinny loop), one slice, and a tile_n that is a power of two from 32 to 1024. two_pass takes
  // any configuration, but copies only for khr_direct.
  RowStrategy rows = RowStrategy::none;

  // The main loop whose parameters `loop` holds.
  MainLoop main_loop() const noexcept { return static_cast<MainLoop>(loop.index()); }
  // The path of the main loop.
  Path path() const noexcept { return path_of(main_loop()); }

  bool operator==(const Config&) const = default;
};

// The enumerator's name, as configurations hold it.
VKGEMM_API std::string_view to_string(Path path) noexcept;
VKGEMM_API std::string_view to_string(MainLoop loop) noexcept;
VKGEMM_API std::string_view to_string(Schedule schedule) noexcept;
VKGEMM_API std::string_view to_string(ReductionMode mode) noexcept;
VKGEMM_API std::string_view to_string(RowStrategy strategy) noexcept;

// The inverse of to_string; nothing if the text names none of them.
VKGEMM_API std::optional<Path> parse_path(std::string_view text) noexcept;
VKGEMM_API std::optional<MainLoop> parse_main_loop(std::string_view text) noexcept;
VKGEMM_API std::optional<RowStrategy> parse_row_strategy(std::string_view text) noexcept;
VKGEMM_API std::optional<ReductionMode> parse_reduction_mode(std::string_view text) noexcept;

// One line without spaces, as struct Config shows it.
VKGEMM_API std::string to_string(const Config& config);

// Parses what to_string(Config) prints. The error names the part that is wrong.
VKGEMM_API Result<Config> parse_config(std::string_view text);

}  // namespace vkgemm
