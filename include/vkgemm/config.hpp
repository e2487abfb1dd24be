// vkgemm/config.hpp: how a problem is computed: one kernel with one set of tuning parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vkgemm/export.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// Which matrix instructions a kernel is built on. All three are one source (shaders/lib/).
enum class Path : std::uint8_t {
  nv,   // VK_NV_cooperative_matrix2: workgroup-scope matrices and tensor addressing
  khr,  // VK_KHR_cooperative_matrix: subgroup matrices, tiles staged through shared memory
  fma,  // vectorised register tiles on plain Vulkan 1.3; also the true-f32 path everywhere
};

// Which workgroup of a grouped product computes which tile. The library chooses the simple one: on
// the H200 the other one was slower, and once 2 % faster (bench/NOTES.md). That may be asked for,
// and a tuning table that is loaded may propose it.
enum class Schedule : std::uint8_t {
  simple,      // one workgroup a tile, enough for the worst case: those without a tile end at once
  persistent,  // as many as the device keeps resident, each takes tiles as far apart as there are
               // workgroups
};

// Who adds the slices of K, and when (Config::slices). The results have the same bits.
enum class SplitTier : std::uint8_t {
  // A second dispatch, behind a pipeline barrier.
  two_dispatches,
  // Of the workgroups of a tile the one that is done last; nobody waits.
  last_arriver,
  // All workgroups, when all are done: a barrier inside the dispatch. Safe also where the device
  // lets workgroups starve: they wait only for those that have started, none waits for ever, and if
  // one gives up a dispatch that is recorded behind does the work (Context::barrier_aborts()).
  device_barrier,
};

// How a row reduction learns of whole rows. Of the same values all give the same bits.
enum class RowStrategy : std::uint8_t {
  none,  // of problems without one
  // A tile is as wide as N.
  resident,
  // The workgroups of a panel, the tiles of the same rows, keep their values in registers, exchange
  // what they know of the rows through the workspace, and wait for each other: safe as
  // SplitTier::device_barrier is. If one number is wanted of each row nobody waits: a second, small
  // dispatch merges.
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

// A configuration prints itself and can be parsed back from what it printed:
//   khr:tile=128x128x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4,swizzle=8
// Parts at their default value are left out. All sizes are elements, invocations or counts.
struct Config {
  Path path = Path::fma;

  // The part of D that one workgroup computes, and the depth of K it takes at a time. Of a gated
  // product tile_n counts columns of both halves of B, so that the same configuration does the same
  // work: the part of D is tile_m × tile_n / 2.
  std::uint32_t tile_m = 0;
  std::uint32_t tile_n = 0;
  std::uint32_t tile_k = 0;

  // khr: shape of one cooperative matrix. nv: all zero, the driver divides the tile.
  // fma: the register tile of one invocation is fragment_m × fragment_n. fragment_k is 1, or 8 for
  // the kernel for few rows: there an invocation reads pieces of 8×8 elements of B straight from
  // memory, all rows of the tile are its own (fragment_m is tile_m, at most 8; fragment_n is 8),
  // and invocations share columns: tile_k / 8 of them add up their sums.
  std::uint32_t fragment_m = 0;
  std::uint32_t fragment_n = 0;
  std::uint32_t fragment_k = 0;

  // khr: how many subgroups share the tile along M and N. nv, fma: zero.
  std::uint32_t subgroups_m = 0;
  std::uint32_t subgroups_n = 0;

  // khr: the subgroup size that the pipeline requires. nv, fma: zero, any.
  std::uint32_t subgroup_size = 0;

  // Invocations of a workgroup. khr: subgroups_m * subgroups_n * subgroup_size.
  // fma: (tile_m / fragment_m) * (tile_n / fragment_n), for few rows times tile_k / fragment_k.
  // nv: free.
  std::uint32_t invocations = 0;

  // khr: the epilogue runs on a copy of the accumulators in shared memory, in this many slices of
  // tile_m / subtiles rows, so that the copy fits where the main loop's tiles stood. Divides the
  // fragments that a subgroup holds along M. Other paths: 1.
  std::uint32_t subtiles = 1;

  // khr: stages of shared memory. 1: what is multiplied stands there once, tile_k deep. 3: a ring
  // of halves of it (tile_k is 2 * fragment_k), so that loads, stores and products of one workgroup
  // overlap: for tiles so large that only one workgroup is resident. Other paths: 1.
  std::uint32_t stages = 1;

  // Tiles of D are visited in bands of this many tile rows, so that what one wave of workgroups
  // reads of A and B stays in the L2 cache. 1: plain row-major order of tiles.
  std::uint32_t swizzle = 8;

  // nv: how many steps of tile_k the main loop takes per iteration (1: not unrolled).
  std::uint32_t unroll_k = 1;

  // khr, fma: the last step of the main loop stands outside it, the loop of a ring is unrolled, and
  // the epilogue loads many elements of C before it uses the first.
  // Faster on GPUs; without it the code is half as long, which counts where compiling is slow (CPU
  // implementations).
  bool peel = true;

  // Split-K: as many workgroups share a tile, and each multiplies its slice of K. Their f32 results
  // stand in the workspace until they are added in the order of the slices and the epilogue runs.
  // For products with fewer tiles than the device has compute units. At most 512; 1: no.
  std::uint32_t slices = 1;

  // Who adds them.
  SplitTier tier = SplitTier::two_dispatches;

  // How many workgroups are launched. Tier device_barrier, 0: one for each slice of each tile.
  // Schedule persistent, 0: as many as the device keeps resident, by an estimate.
  std::uint32_t workgroups = 0;

  // Tier device_barrier and rows=panel: how often a workgroup asks whether the others have arrived
  // before it gives up.
  std::uint32_t spin_limit = default_spin_limit;

  // Copies the operand into the workspace first, by a dispatch before the product, with K as the
  // outer direction and padded to cache lines: for operands of 16-bit types that are not aligned,
  // or so large that a better main loop makes up for the copy. Of a product with a column-major D,
  // `a` is the transposed problem's A, which is the caller's B. Printed as pack=a, pack=b or
  // pack=ab.
  bool pack_a = false;
  bool pack_b = false;

  // N, K and the leading dimensions are baked into the pipeline: faster on some drivers
  // (immediate address offsets), and one pipeline per shape.
  bool static_shape = false;

  // Grouped products only; others have the simple one.
  Schedule schedule = Schedule::simple;

  // Row reductions only. resident, panel and recompute: paths khr and fma (not for few rows), with
  // tile_n a power of two from 32 to 1024, in one slice. two_pass: any configuration, but nothing
  // packed.
  RowStrategy rows = RowStrategy::none;

  bool operator==(const Config&) const = default;
};

// The enumerator's name, as configurations hold it.
VKGEMM_API std::string_view to_string(Path path) noexcept;
VKGEMM_API std::string_view to_string(Schedule schedule) noexcept;
VKGEMM_API std::string_view to_string(SplitTier tier) noexcept;
VKGEMM_API std::string_view to_string(RowStrategy strategy) noexcept;

// The inverse of to_string; nothing if the text names none of them.
VKGEMM_API std::optional<Path> parse_path(std::string_view text) noexcept;
VKGEMM_API std::optional<RowStrategy> parse_row_strategy(std::string_view text) noexcept;
VKGEMM_API std::optional<SplitTier> parse_split_tier(std::string_view text) noexcept;

// One line without spaces, as struct Config shows it.
VKGEMM_API std::string to_string(const Config& config);

// Parses what to_string(Config) prints. The error names the part that is wrong.
VKGEMM_API Result<Config> parse_config(std::string_view text);

}  // namespace vkgemm
