#include "kernels/loops/khr_fragments.hpp"

#include <cassert>
#include <concepts>
#include <numeric>
#include <utility>
#include <variant>

#include "kernels/parts/quantised.hpp"
#include "kernels/parts/rows.hpp"
#include "problem/epilogue_steps.hpp"

namespace vkgemm {
namespace {

bool check_subgroups(const Case& s) {
  const KhrLoop& l = khr(s.config);
  const Limits& limits = s.caps.limits;
  const std::uint32_t size = l.subgroup_size;
  if (size < limits.min_subgroup_size || size > limits.max_subgroup_size ||
      (size & (size - 1)) != 0) {
    return s.refuse("subgroup_size is ", size, ", the device has ", limits.min_subgroup_size,
                    " to ", limits.max_subgroup_size);
  }
  if (!limits.subgroup_size_control && limits.min_subgroup_size != limits.max_subgroup_size) {
    return s.refuse("subgroup_size ", size, " cannot be required: the device varies it from ",
                    limits.min_subgroup_size, " to ", limits.max_subgroup_size,
                    " and lacks subgroup size control");
  }
  const std::uint64_t subgroups = std::uint64_t{l.subgroups_m} * l.subgroups_n;
  if (subgroups > limits.max_subgroups_per_workgroup) {
    return s.refuse("subgroups ", Size2{l.subgroups_m, l.subgroups_n}, " are ", subgroups,
                    ", the device has at most ", limits.max_subgroups_per_workgroup,
                    " in a workgroup");
  }
  return true;
}

bool check_fragment(const Case& s) {
  const KhrLoop& l = khr(s.config);
  const Size3 fragment{l.fragment_m, l.fragment_n, l.fragment_k};
  const DataType input = s.problem->input_type();
  const FragmentShape wanted{input, s.problem->input->sums(), fragment.m, fragment.n, fragment.k};
  if (std::ranges::find(s.caps.fragment_shapes, wanted) != s.caps.fragment_shapes.end()) {
    return true;
  }
  if (!is_flexible(fragment, input, s.caps)) {
    return s.refuse("fragment ", fragment, " with ", to_string(input), " inputs and ",
                    to_string(wanted.accumulator), " accumulators is not listed by the device");
  }
  const std::uint32_t most = s.caps.limits.nv_max_dimension;
  if (std::max({fragment.m, fragment.n, fragment.k}) > most) {
    return s.refuse("fragment ", fragment, ": matrices of flexible dimensions have at most ", most,
                    " rows or columns");
  }
  return true;
}

// Checks SUMS of shaders/lib/loops/khr_slices.glsl: the x4s of columns that an invocation sums.
bool check_column_sums(const Case& s) {
  const Config& c = s.config;
  if (!sums_columns(s.problem->epilogue)) return true;
  const auto* const direct = std::get_if<KhrDirectLoop>(&c.loop);
  const std::uint32_t apart =
      direct == nullptr ? 0 : direct->subgroups_k * (s.problem->gated ? direct->subgroups_n : 1);
  const bool by_subgroup = apart == 1 && !keeps_tiles(c.rows);
  const std::uint32_t row = d_tile_n(c, *s.problem) / x4 / (by_subgroup ? khr(c).subgroups_n : 1);
  const std::uint32_t dealers = by_subgroup ? khr(c).subgroup_size : invocations(c);
  const std::uint32_t sums = row / std::max(std::gcd(row, dealers), 1u);
  if (sums <= KHR_MOST_SUMS) return true;
  return s.refuse("a step sums columns: tile_n is ", c.tile_n, ", so that each of ", dealers,
                  " invocations has values of ", sums, " columns, at most ", KHR_MOST_SUMS);
}

// Fragments of a subgroup along M.
std::uint32_t fragment_rows(const Config& c) {
  const KhrLoop& l = khr(c);
  return c.tile_m / (l.subgroups_m * l.fragment_m);
}

bool arrange_subgroups(Config& c) {
  const std::uint32_t subgroups = khr(c).subgroups_m * khr(c).subgroups_n;
  bool found = false;
  double best = 0.0;
  Config out = c;
  for (std::uint32_t along_n = 1; along_n <= subgroups; along_n *= 2) {
    if (subgroups % along_n != 0) continue;
    Config tried = c;
    KhrLoop& l = khr(tried);
    l.subgroups_n = along_n;
    l.subgroups_m = subgroups / along_n;
    if (c.tile_m % (l.subgroups_m * l.fragment_m) != 0 ||
        c.tile_n % (along_n * l.fragment_n) != 0) {
      continue;
    }
    const double cost = perimeter(tried);
    if (found && cost >= best) continue;
    found = true;
    best = cost;
    out = tried;
  }
  c = out;
  return found;
}

}  // namespace

const KhrLoop& khr(const Config& c) {
  const KhrLoop* const found = std::visit(
      []<class Loop>([[maybe_unused]] const Loop& loop) -> const KhrLoop* {
        if constexpr (std::derived_from<Loop, KhrLoop>) return &loop;
        return nullptr;
      },
      c.loop);
  assert(found != nullptr);
  return *found;
}
KhrLoop& khr(Config& c) { return const_cast<KhrLoop&>(khr(std::as_const(c))); }

std::uint32_t khr_invocations(const Config& c) {
  const KhrLoop& l = khr(c);
  return saturated_product(saturated_product(l.subgroups_m, l.subgroups_n), l.subgroup_size);
}

std::uint32_t khr_accumulators(const Config& c) { return c.tile_m * c.tile_n / khr_invocations(c); }

TilePart khr_part(const Config& c) {
  return {c.tile_m / khr(c).subgroups_m, c.tile_n / khr(c).subgroups_n};
}

bool is_flexible(const Size3& fragment, DataType input, const DeviceCaps& caps) {
  return std::ranges::any_of(caps.flexible_shapes, [&](const FlexibleShape& shape) {
    return shape.scope == MatrixScope::subgroup && is_multiple(fragment, input, shape);
  });
}

bool check_khr(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = *s.problem;
  const KhrLoop& l = khr(c);
  const Size3 fragment{l.fragment_m, l.fragment_n, l.fragment_k};
  if (!check_fragment(s) || !check_subgroups(s)) return false;
  if (c.tile_m % (l.fragment_m * l.subgroups_m) != 0 ||
      c.tile_n % (l.fragment_n * l.subgroups_n) != 0 || c.tile_k % l.fragment_k != 0) {
    return s.refuse("tile ", tile_of(c), " does not divide into subgroups ",
                    Size2{l.subgroups_m, l.subgroups_n}, " of ", "fragment ", fragment);
  }
  if (l.rotate && (c.main_loop() != MainLoop::khr || !l.peel)) {
    return s.refuse("rotate is 1: only khr with peel=1 rotates its loop");
  }
  const std::uint32_t rows = fragment_rows(c);
  if (rows % l.subtiles != 0) {
    return s.refuse("subtiles is ", l.subtiles, ": does not divide the ", rows,
                    " fragments that a subgroup holds along M");
  }
  // Fragments are addressed in shared memory by loads, or, where they are packed, by eight
  // elements, and rows of the epilogue's slices by x4.
  const std::uint32_t width = descriptor(c).takes_fragments() ? 8 : group_width(p);
  const bool a_fits = (p.a.layout == Layout::row_major ? l.fragment_k : l.fragment_m) % width == 0;
  const bool b_fits = (is_k_inner_b(p) ? l.fragment_k : l.fragment_n) % width == 0;
  if (!a_fits || !b_fits || l.fragment_n % x4 != 0) {
    return s.refuse("fragment ", fragment, " does not divide into groups of ", width,
                    " elements of ", a_fits ? "B" : "A");
  }
  if (p.input->group_sums && p.b.quantisation && scaled_sum_depth(c, p) % l.fragment_k != 0) {
    return s.refuse("fragment is ", l.fragment_k, " deep: scales of sums are for ",
                    scaled_sum_depth(c, p), " of K");
  }
  return check_column_sums(s);
}

void specialize_khr(Constants& constants, const Config& c) {
  const KhrLoop& l = khr(c);
  constants.set(SPEC_FRAGMENT_M, l.fragment_m);
  constants.set(SPEC_FRAGMENT_N, l.fragment_n);
  constants.set(SPEC_FRAGMENT_K, l.fragment_k);
  constants.set(SPEC_SUBGROUPS_M, l.subgroups_m);
  constants.set(SPEC_SUBGROUPS_N, l.subgroups_n);
  constants.set(SPEC_SUBTILES, l.subtiles);
  constants.set(SPEC_PEEL, l.peel);
}

std::uint64_t khr_shared_memory_bytes(const Config& c, std::uint64_t main_loop) {
  const std::uint64_t epilogue = KHR_SLICE(c.tile_m, c.tile_n, khr(c).subtiles);
  return std::max(main_loop, epilogue) * UNIT_BYTES;
}

void cut_epilogue(Config& c, const ResolvedProblem& problem, const DeviceCaps& caps) {
  const std::uint32_t fragments = fragment_rows(c);
  std::uint64_t least = UINT64_MAX;
  for (std::uint32_t subtiles = 1; subtiles <= fragments; ++subtiles) {
    if (fragments % subtiles != 0) continue;
    Config tried = c;
    khr(tried).subtiles = subtiles;
    const std::uint64_t bytes = descriptor(c).shared_memory_bytes(tried, problem, caps.limits);
    if (bytes >= least) continue;
    least = bytes;
    khr(c).subtiles = subtiles;
  }
}

std::optional<Config> reshape_khr(const Config& config, const TilePart& tile,
                                  const ResolvedProblem& problem, const DeviceCaps& caps) {
  Config c = config;
  c.tile_m = tile.m;
  c.tile_n = tile.n;
  if (!arrange_subgroups(c)) return std::nullopt;
  cut_epilogue(c, problem, caps);
  return c;
}

void propose_khr(std::vector<Config>& out, const ResolvedProblem& problem, const DeviceCaps& caps,
                 std::span<const std::uint32_t> depths, Config (*make)(const KhrLoop&)) {
  constexpr std::pair<std::uint32_t, std::uint32_t> arrangements[] = {
      {1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 4}, {4, 1}, {2, 4}, {4, 2}, {4, 4}};
  for (const FragmentShape& shape : caps.fragment_shapes) {
    if (shape.input != problem.input_type() || !is_used(shape)) continue;
    for (std::uint32_t size = std::max(caps.limits.min_subgroup_size, 1u);
         size <= caps.limits.max_subgroup_size; size *= 2) {
      for (const auto& [along_m, along_n] : arrangements) {
        for (const std::uint32_t rows : {1u, 2u, 4u, 8u}) {
          for (const std::uint32_t columns : {1u, 2u, 4u, 8u}) {
            for (const std::uint32_t depth : depths) {
              Config c = make({.fragment_m = shape.m,
                               .fragment_n = shape.n,
                               .fragment_k = shape.k,
                               .subgroups_m = along_m,
                               .subgroups_n = along_n,
                               .subgroup_size = size,
                               .peel = !is_cpu(caps)});
              c.tile_m = shape.m * along_m * rows;
              c.tile_n = shape.n * along_n * columns;
              c.tile_k = shape.k * depth;
              cut_epilogue(c, problem, caps);
              out.push_back(c);
            }
          }
        }
      }
    }
  }
}

void add_fragment_kinds(std::vector<KernelKind>& kinds, MainLoop loop, const FragmentShape& shape,
                        const DeviceCaps& caps) {
  const Limits& limits = caps.limits;
  const bool fixed = limits.min_subgroup_size == limits.max_subgroup_size;
  if (!fixed && !limits.subgroup_size_control) return;
  for (std::uint64_t size = limits.min_subgroup_size; size != 0 && size <= limits.max_subgroup_size;
       size *= 2) {
    const FragmentKind kind{.m = shape.m,
                            .n = shape.n,
                            .k = shape.k,
                            .subgroup_size = static_cast<std::uint32_t>(size)};
    add_kind(kinds, make_kind(loop, shape.input, kind));
  }
}

std::vector<Config> khr_trials(const KernelKind& of, const DeviceCaps& caps) {
  const FragmentKind kind = fragment_of(of);
  // Tiles of four fragments of 16x16x16 took a CPU's driver more than a minute (lavapipe 26.2.6 on
  // two busy cores).
  const bool compiles_for_long = is_cpu(caps) && kind.m * kind.n * kind.k > 512;
  std::vector<Config> configs;
  // Two subgroups that hold two fragments each, if there is room.
  for (const auto& [subgroups, fragments] : {std::pair{2u, 2u}, {2u, 1u}, {1u, 1u}}) {
    if (compiles_for_long && subgroups * fragments > 1) continue;
    configs.push_back({.loop = KhrLoop{.fragment_m = kind.m,
                                       .fragment_n = kind.n,
                                       .fragment_k = kind.k,
                                       .subgroups_m = subgroups,
                                       .subgroups_n = 1,
                                       .subgroup_size = kind.subgroup_size,
                                       .peel = !is_cpu(caps)},
                       .tile_m = kind.m * subgroups,
                       .tile_n = kind.n * fragments,
                       .tile_k = kind.k * fragments,
                       .swizzle = 2});
  }
  return configs;
}

std::string khr_kind_text(const KernelKind& of) {
  const FragmentKind kind = fragment_of(of);
  return concat("fragment ", Size3{kind.m, kind.n, kind.k}, ' ', to_string(of.input),
                ", subgroups of ", kind.subgroup_size, kind.a_in_rows != 0 ? ", A in rows" : "",
                kind.code_run != 0 ? concat(", codes in runs of ", kind.code_run) : std::string());
}

bool khr_denied(const Denial& denial, const Config& c) {
  const KhrLoop& l = khr(c);
  return is_any_or(denial.m, l.fragment_m) && is_any_or(denial.n, l.fragment_n) &&
         is_any_or(denial.k, l.fragment_k);
}

bool khr_covers(const KernelKind& of, const Config& c) {
  const FragmentKind kind = fragment_of(of);
  const KhrLoop& l = khr(c);
  return kind.m == l.fragment_m && kind.n == l.fragment_n && kind.k == l.fragment_k &&
         kind.subgroup_size == l.subgroup_size;
}

}  // namespace vkgemm
