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
  nv,        // path nv: the whole tile is one matrix, which the driver loads and divides
  khr,       // path khr: one k-tile of A and B at a time is staged in shared memory
  khr_ring,  // path khr: three stages of half a k-tile each, so that loads, stores and products of
             // one workgroup overlap: for tiles so large that only one workgroup is resident
  khr_direct,  // path khr: fragments go straight from memory to registers, of a B (and an A, unless
               // it lies in aligned rows) in the order in which the driver's matrices hold them
  fma,         // path fma: k-tiles staged in shared memory, register tiles
  skinny,      // path fma: few rows of A; pieces of B go straight from memory to registers
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

// The order in which workgroups of a grouped product take its tiles. The library chooses the simple
// one: on the H200 the other one was slower, and once 2 % faster (bench/NOTES.md). The other one
// may be asked for, and a tuning table that is loaded may propose it.
enum class Schedule : std::uint8_t {
  simple,      // one workgroup a tile, enough for the worst case: those without a tile end at once
  persistent,  // as many as the device keeps resident, each takes tiles as far apart as there are
               // workgroups
};

// The way in which the slices of K are added (Config::slices): by whom, and when. The results have
// the same bits.
enum class ReductionMode : std::uint8_t {
  // A second dispatch, behind a pipeline barrier.
  two_dispatches,
  // The workgroup of a tile that is done last adds; nobody waits.
  last_arriver,
  // All workgroups, when all are done: a barrier inside the dispatch. Safe also where the device
  // lets workgroups starve: they wait only for those that have started, none waits for ever, and if
  // one gives up a dispatch that is recorded behind does the work (Context::barrier_aborts()).
  device_barrier,
};

// How a row reduction learns of whole rows. All give the same bits for the same values.
enum class RowStrategy : std::uint8_t {
  none,  // of problems without one
  // A tile is as wide as N.
  resident,
  // The workgroups of a panel, the tiles of the same rows, keep their values in registers, exchange
  // what they know of the rows through the workspace, and wait for each other: safe as
  // ReductionMode::device_barrier is. If one number is wanted of each row nobody waits: a second,
  // small dispatch merges.
  panel,
  // The product is computed twice: first for what is to be known of the rows, then to be stored.
  recompute,
  // The product leaves its values in memory, in f32: in D if that is of this type, else in the
  // workspace, as many rows at a time as Problem::max_workspace_bytes holds, at most 64 MiB; with
  // slices of K all at once. A second kernel reduces them.
  two_pass,
};

// How often a workgroup asks for the others before it gives up. A poll takes a GPU 0.5 to 1 us
// (derived: what an atomic in L2 takes; in panels of rows two in a row), so this is 0.1 to 0.2 s:
// longer than products that are worth splitting take, shorter than the watchdogs that reset a GPU
// (Windows: 2 s, i915: from 0.6 s).
inline constexpr std::uint32_t default_spin_limit = 1u << 17;

// The most that may be asked for.
inline constexpr std::uint32_t most_spin_limit = 1u << 24;

// Slices of K: more than any device has use for.
inline constexpr std::uint32_t most_slices = 512;

// Parameters of each main loop. All sizes are elements, invocations or counts, and at least 1.
// Fragments are what the device lists, tiles multiples of them: plan() says what it cannot take.

// The parameters of the nv loop.
struct NvLoop {
  std::uint32_t invocations = 0;  // of a workgroup: one that the device lists
  // Steps of tile_k that the loop takes per iteration, up to 64 (1: not unrolled).
  std::uint32_t unroll_k = 1;
  bool operator==(const NvLoop&) const = default;
};

// The parameters of the khr loop.
struct KhrLoop {
  // The shape of one cooperative matrix.
  std::uint32_t fragment_m = 0;
  std::uint32_t fragment_n = 0;
  std::uint32_t fragment_k = 0;

  // How many subgroups share the tile along M and N, and the subgroup size that the pipeline
  // requires.
  std::uint32_t subgroups_m = 0;
  std::uint32_t subgroups_n = 0;
  std::uint32_t subgroup_size = 0;

  // The epilogue runs on a copy of the accumulators in shared memory, in this many slices of
  // tile_m / subtiles rows, so that the copy fits where the main loop's k-tiles stood. Divides the
  // fragments that a subgroup holds along M.
  std::uint32_t subtiles = 1;

  // The last step of the main loop stands outside it (the loop of a ring is unrolled), and the
  // epilogue loads many elements of C before it uses the first. Faster on GPUs; without it the code
  // is half as long, which counts where compiling is slow (CPU implementations).
  bool peel = true;
  bool operator==(const KhrLoop&) const = default;
};

// The parameters of the khr_ring loop, as khr's; Config::tile_k is 2 * fragment_k.
struct KhrRingLoop : KhrLoop {
  bool operator==(const KhrRingLoop&) const = default;
};

// The parameters of the khr_direct loop: khr's, and its own. Inputs are of a 16-bit type. B, and A
// or not (pack=ab, pack=b), are packed in fragment order: as the device's matrices hold their
// elements. No specification promises that those of two pipelines hold them alike, so it takes a
// self-test that passed (vkgemm/self_test.hpp). A that isn't packed is row-major, begins at
// multiples of 16 bytes, and tile_k divides K; without interleave_k tile_m divides M, and there are
// no groups.
struct KhrDirectLoop : KhrLoop {
  // How far loads are ahead of products: 0, or 1: a step of fragment_k. 2, with a quantised B and
  // at most two fragments of a subgroup along M: those of A as far as those of codes, with which
  // they are waited for.
  std::uint32_t ahead = 1;
  // The middle two of the four words that an invocation holds of a fragment of A change places in
  // memory: faster where registers hold them so.
  bool swap_a = false;
  // K of packed operands is in another order, in which what an invocation holds of two steps is 16
  // neighbouring bytes of a row of A: it can load them from an A that isn't packed (16x16, by 32).
  bool interleave_k = false;
  // How many subgroups share K: the first takes k-tiles 0, subgroups_k, 2 * subgroups_k, and so on.
  // Their sums are added in order before the epilogue. For few rows, where the tiles of D are too
  // few to keep a device's memory busy.
  std::uint32_t subgroups_k = 1;
  // How many of the eight elements that an invocation holds of a fragment of a quantised B, one
  // after the other, are of one column and share its scale: 1, 2, 4 or 8. Other problems: 1.
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

// The skinny loop has no parameters of its own. Each invocation reads 8×8 pieces of B and keeps
// sums for all rows of the tile, at most 8; the tile_k / 8 invocations of the same columns then add
// theirs.
struct SkinnyLoop {
  bool operator==(const SkinnyLoop&) const = default;
};

// A configuration prints itself and can be parsed back from what it printed:
//   khr:tile=128x128x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4,swizzle=8
// The name of the main loop comes first, then the tile, the loop's own parameters and those that
// all loops share. Parameters at their default value are left out.
struct Config {
  // In the order of MainLoop's enumerators: the alternative that stands here names the main loop.
  std::variant<NvLoop, KhrLoop, KhrRingLoop, KhrDirectLoop, FmaLoop, SkinnyLoop> loop = FmaLoop{};

  // The part of D that one workgroup computes, and the depth of K it takes at a time. For a gated
  // product tile_n counts columns of both halves of B, so that the same configuration does the same
  // work: the part of D is tile_m × tile_n / 2. 1 to 1024 each.
  std::uint32_t tile_m = 0;
  std::uint32_t tile_n = 0;
  std::uint32_t tile_k = 0;

  // Tiles of D are visited in bands of this many tile rows, so that what one wave of workgroups
  // reads of A and B stays in the L2 cache. 1: plain row-major order of tiles; at most 65536.
  std::uint32_t swizzle = 8;

  // Split-K: as many workgroups share a tile, and each multiplies its slice of K. Their f32 results
  // stand in the workspace until they are added in the order of the slices and the epilogue runs.
  // For products with fewer tiles than the device has compute units. At most 512; 1: no.
  std::uint32_t slices = 1;

  // The way in which the slices are added.
  ReductionMode reduction_mode = ReductionMode::two_dispatches;

  // How many workgroups are launched. Reduction mode device_barrier, 0: one for each slice of each
  // tile. Schedule persistent, 0: as many as the device keeps resident, by an estimate. At most
  // 65535.
  std::uint32_t workgroups = 0;

  // Reduction mode device_barrier and rows=panel: how often a workgroup asks whether the others
  // have arrived before it gives up.
  std::uint32_t spin_limit = default_spin_limit;

  // Copies the operand into the workspace first, by a dispatch before the product, with K as the
  // outer direction and padded to cache lines, or as khr_direct wants it: for operands of 16-bit
  // types that are not aligned, or so large that a better main loop makes up for the copy. For a
  // product with a column-major D, `a` is the transposed problem's A, which is the caller's B.
  // Printed as pack=a, pack=b or pack=ab.
  bool pack_a = false;
  bool pack_b = false;

  // N, K and the leading dimensions are baked into the pipeline: one pipeline per shape. 1.035
  // times as fast at 1024x1024x1024 f16, no faster at 2048 and above (H200, driver 580.159.04,
  // 2026-11-23).
  bool static_shape = false;

  // Grouped products only; others have the simple one.
  Schedule schedule = Schedule::simple;

  // Row reductions only. resident, panel and recompute: paths khr and fma (not the skinny loop),
  // with tile_n a power of two from 32 to 1024, in one slice. two_pass: any configuration,
  // but copies for khr_direct only.
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
