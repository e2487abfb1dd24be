// khr_direct.cpp: the main loop that loads fragments straight from memory, of operands in fragment
// order (shaders/lib/inputs/fragment_words.glsl), and of A in rows.
#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <string_view>

#include "base/arithmetic.hpp"
#include "kernels/loops/khr_fragments.hpp"
#include "kernels/tiling.hpp"
#include "kernels/verdicts.hpp"
#include "problem/inputs/codes.hpp"

namespace vkgemm {
namespace {

// With loads that are ahead the words of two steps stand beside the accumulators: 235 registers of
// 128 accumulators (H200, driver 580.159.04).
constexpr std::uint32_t most_accumulators = 128;

// With f32 in parts more words and sums of steps stand beside them. 32 accumulators are faster
// (H100, driver 580.159.04).
constexpr std::uint32_t most_accumulators_of_parts = 64;

// Accumulators that may have others beside them, of sums over a group of K.
constexpr std::uint32_t most_summed_accumulators = most_accumulators / 2;

// Fragments of a subgroup along M whose words of whole units stay in registers.
constexpr std::uint32_t most_rows_ahead = 2;

constexpr std::uint32_t proposed_depths[] = {2, 4};

// Nothing is staged before the first product. Fitted with nvidia_sm90's timing.
constexpr double tile_time = 0.56;

// Loads of A in rows touch half a cache line each (4096x4096x4096 on the H200, driver 580.159.04,
// 128x128x32: 423 us instead of 355).
constexpr double a_in_rows_time = 1.19;

constexpr auto parameters = [] {
  constexpr auto& shared = khr_parameters<KhrDirectLoop>;
  std::array<Parameter, std::size(shared) + 5> all{};
  std::ranges::copy(shared, all.begin());
  all[std::size(shared)] = of_loop<KhrDirectLoop, &KhrDirectLoop::ahead>(
      {.name = "ahead", .fields = {"ahead"}, .max = 2, .left_out = 1});
  all[std::size(shared) + 1] = of_loop<KhrDirectLoop, &KhrDirectLoop::swap_a>(
      {.name = "swap_a", .fields = {"swap_a"}, .max = 1, .left_out = 0});
  all[std::size(shared) + 2] = of_loop<KhrDirectLoop, &KhrDirectLoop::interleave_k>(
      {.name = "interleave_k", .fields = {"interleave_k"}, .max = 1, .left_out = 0});
  all[std::size(shared) + 3] =
      of_loop<KhrDirectLoop, &KhrDirectLoop::subgroups_k>({.name = "subgroups_k",
                                                           .fields = {"subgroups_k"},
                                                           .min = 1,
                                                           .max = largest_tile,
                                                           .left_out = 1,
                                                           .forms_tile = true,
                                                           .scales = true});
  all[std::size(shared) + 4] = of_loop<KhrDirectLoop, &KhrDirectLoop::code_run>(
      {.name = "code_run", .fields = {"code_run"}, .min = 1, .max = 8, .left_out = 1});
  return all;
}();

const KhrDirectLoop& direct(const Config& c) { return std::get<KhrDirectLoop>(c.loop); }
KhrDirectLoop& direct(Config& c) { return std::get<KhrDirectLoop>(c.loop); }

// The rows for which a tuner tries subgroups that share K.
constexpr std::uint64_t few_rows = 128;

void enter(Config& c) {
  c.loop = KhrDirectLoop{khr(c)};
  khr(c).rotate = false;
  c.pack_a = c.pack_b = true;
}

std::uint32_t direct_invocations(const Config& c) {
  return saturated_product(khr_invocations(c), direct(c).subgroups_k);
}

// An invocation holds 16 bytes of a fragment, and fragments divide the tiles of the kernel that
// packs.
bool fits_fragment_order(const Size3& fragment, DataType input, std::uint32_t subgroup_size) {
  const auto& [m, n, k] = fragment;
  const std::uint32_t bytes = k * size_in_bytes(input);
  return m == n && m * bytes == 16 * subgroup_size && m % 8 == 0 && bytes % 16 == 0 &&
         PACK_TILE % m == 0 && PACK_TILE % k == 0;
}

// Elements along K that change places with each other.
std::uint32_t interleaved_depth(DataType input) { return INTERLEAVED_BYTES / size_in_bytes(input); }

// The depth of the codes that an invocation loads at once, in 16 bytes.
std::uint32_t code_depth(std::uint32_t fragment_k, CodeType type) {
  return fragment_k * (32 / (2 * bits_of(type)));
}
bool fits_code_units(std::uint32_t fragment_k, CodeType type) {
  return CODE_PIECE % code_depth(fragment_k, type) == 0;
}

// With K interleaved four invocations share a row of A, and each has two rows of a fragment.
bool fits_interleaved_rows(std::uint32_t m, std::uint32_t k, DataType input,
                           std::uint32_t subgroup_size) {
  return m == 16 && k * size_in_bytes(input) == 32 && subgroup_size == 32;
}

// True if groups of codes don't end within what changes places, or in the middle of it.
bool fits_interleaved_groups(const KhrDirectLoop& l, const Quantisation& codes, DataType input) {
  const std::uint32_t group = with_group(codes).group_k, depth = interleaved_depth(input);
  if (!l.interleave_k || group == 0 || group >= depth) return true;
  return 2 * group == depth && l.code_run == 4 && l.fragment_n <= 16 &&
         fits_interleaved_rows(l.fragment_m, l.fragment_k, input, l.subgroup_size);
}

// A that isn't packed is loaded as it lies. The caller may call it B.
bool check_rows_of_a(const Case& s) {
  const Config& c = s.config;
  const KhrDirectLoop& l = direct(c);
  const ResolvedProblem& p = *s.problem;
  const auto refuse = [&](const auto&... why) {
    return s.refuse("pack is b: main loop khr_direct takes ", p.transposed ? "b" : "a",
                    " as it lies ", why...);
  };
  if (l.swap_a) return s.refuse("swap_a is 1: A is not packed");
  if (p.a.layout != Layout::row_major) {
    return refuse("only with K as the inner direction: its layout is ",
                  p.transposed ? "row_major" : "col_major");
  }
  if (!p.a_allows_vectors()) {
    return refuse("only if all begins at multiples of 16 bytes: K is ", p.k, ", ld ", p.a.ld,
                  ", batch_stride ", p.a.batch_stride, ", alignment ", p.a.alignment);
  }
  if (p.is_grouped(GroupAlong::k)) return refuse("only where groups are not along K");
  if (p.k % c.tile_k != 0) {
    return refuse("only where tile_k divides K: ", c.tile_k, " does not divide ", p.k);
  }
  if (p.gathers_rows()) return refuse("only where its rows are in order: pack a gathers them");
  if (c.tile_m * p.a.ld * size_in_bytes(p.a.type) > UINT32_MAX) {
    return refuse("only where tile_m rows take no more than 4 GiB: ", c.tile_m, " rows of ",
                  p.a.ld);
  }
  if (l.interleave_k) {
    if (fits_interleaved_rows(l.fragment_m, l.fragment_k, p.input_type(), l.subgroup_size))
      return true;
    return refuse("with interleave_k only in fragments of 16 rows of 32 bytes for subgroups of 32");
  }
  // Fragments end nowhere else. Rows in two passes are cut into parts that end anywhere.
  if (p.is_grouped(GroupAlong::m) || c.rows == RowStrategy::two_pass) {
    return refuse("without interleave_k neither in groups nor for rows in two passes");
  }
  if (p.m % c.tile_m != 0) {
    return refuse("without interleave_k only where tile_m divides its rows: ", c.tile_m,
                  " does not divide ", p.m);
  }
  return true;
}

// The feature that the device lacks for inputs of this type, or null.
const char* missing_feature(DataType input, bool in_parts, const DeviceCaps& caps) {
  if (!caps.limits.subgroup_shuffles) return "subgroup shuffles";
  if (in_parts && !caps.limits.subgroup_votes) return "subgroup votes for f32 in parts";
  if (input == DataType::bf16 && !caps.int16_arithmetic) {
    return "shaderInt16 for inputs of type bf16";
  }
  return nullptr;
}

bool check(const Case& s) {
  const Config& c = s.config;
  const KhrDirectLoop& l = direct(c);
  if (!c.pack_b) {
    return s.refuse("pack is ", c.pack_a ? "a" : "none", ": main loop khr_direct takes B packed");
  }
  if (!check_khr(s) || (!c.pack_a && !check_rows_of_a(s))) return false;
  const Size3 fragment{l.fragment_m, l.fragment_n, l.fragment_k};
  const DataType input = s.problem->input_type();
  if (const char* const missing = missing_feature(input, s.problem->input->parts != 1, s.caps)) {
    return s.refuse("main loop khr_direct needs ", missing);
  }
  if (!fits_fragment_order(fragment, input, l.subgroup_size)) {
    return s.refuse("fragment ", fragment, " is not 16 bytes of A and of B for each of ",
                    l.subgroup_size, " invocations");
  }
  // Halves of a gated product's B are matrices of their own.
  const std::uint32_t columns = c.tile_n / l.subgroups_n;
  if (s.problem->gated &&
      ((c.tile_n / 2) % fragment.n != 0 || (l.subgroups_n != 1 && (c.tile_n / 2) % columns != 0))) {
    return s.refuse("gated: tile_n is ", c.tile_n, ", its halves don't divide into ", l.subgroups_n,
                    " subgroups along N of fragments ", fragment.n, " wide");
  }
  const std::uint32_t steps = c.tile_k / fragment.k;
  if (l.ahead != 0 && steps % 2 != 0) {
    return s.refuse("tile_k is ", c.tile_k, ": with loads ahead an even number of steps of ",
                    fragment.k, " is taken at once");
  }
  if (l.interleave_k && c.tile_k % interleaved_depth(input) != 0) {
    return s.refuse("tile_k is ", c.tile_k, ": K is interleaved in ", interleaved_depth(input),
                    "s");
  }
  if (s.problem->input->parts != 1 && accumulator_count(c) > most_accumulators_of_parts) {
    return s.refuse("tile ", tile_of(c), " needs ", accumulator_count(c),
                    " accumulators in each invocation, at most ", most_accumulators_of_parts,
                    " stay in registers with f32 in parts");
  }
  if (l.ahead == 2 &&
      (!s.problem->b.quantisation || c.tile_m / l.subgroups_m > most_rows_ahead * l.fragment_m)) {
    return s.refuse("ahead is 2: only with a quantised B, and subgroups of at most ",
                    most_rows_ahead * l.fragment_m, " rows");
  }
  if (!std::has_single_bit(l.code_run) || (l.code_run != 1 && !s.problem->b.quantisation)) {
    return s.refuse("code_run is ", l.code_run, ": 1, or of a quantised B 2, 4 or 8");
  }
  if (const auto& codes = s.problem->b.quantisation) {
    const std::uint32_t depth = code_depth(fragment.k, codes->type);
    if (const std::uint32_t group = with_group(*codes).group_k; group % fragment.k != 0) {
      return s.refuse("fragment is ", fragment.k, " deep: ", group, " codes share a scale");
    }
    if (!fits_interleaved_groups(l, *codes, input)) {
      return s.refuse("interleave_k is 1: ", with_group(*codes).group_k,
                      " codes share a scale, which only code_run 4 and fragments of 16 rows of 32 "
                      "bytes for subgroups of 32 allow");
    }
    if (!fits_code_units(fragment.k, codes->type) || c.tile_k % depth != 0) {
      return s.refuse("tile_k is ", c.tile_k, ": codes of ", bits_of(codes->type),
                      " bits are loaded ", depth, " deep at once, which must divide it and ",
                      CODE_PIECE);
    }
  }
  const Limits& limits = s.caps.limits;
  const std::uint64_t sharing = std::uint64_t{l.subgroups_m} * l.subgroups_n * l.subgroups_k;
  if (sharing > limits.max_subgroups_per_workgroup) {
    return s.refuse("subgroups_k is ", l.subgroups_k, ": ", sharing,
                    " subgroups in a workgroup, the device has at most ",
                    limits.max_subgroups_per_workgroup);
  }
  const std::uint32_t subgroups = PACK_LOCAL_SIZE / l.subgroup_size;
  const ResolvedMatrix& b = s.problem->b;
  const std::uint32_t shared = PACK_FRAGMENTS_BYTES(b.element_bytes(), b.line_scales());
  if (limits.max_shared_memory_bytes < shared || limits.max_subgroups_per_workgroup < subgroups) {
    return s.refuse("the kernel that packs fragments takes ", subgroups, " subgroups and ", shared,
                    " bytes of shared memory, the device has ", limits.max_subgroups_per_workgroup,
                    " and ", limits.max_shared_memory_bytes);
  }
  return true;
}

void specialize(Constants& constants, const Config& c) {
  specialize_khr(constants, c);
  constants.set(SPEC_AHEAD, direct(c).ahead);
  constants.set(SPEC_SWAP_A, direct(c).swap_a);
  constants.set(SPEC_INTERLEAVE_K, direct(c).interleave_k);
  constants.set(SPEC_SUBGROUPS_K, direct(c).subgroups_k);
  constants.set(SPEC_CODE_RUN, direct(c).code_run);
}

// Where all of K shares a scale, the sum is multiplied by it. Codes are, as long as that takes one
// instruction a pair: of f16 by f16. Rounding anything else takes longer than sums of groups do, if
// their accumulators stay in registers beside the others.
std::uint32_t scales_of(const Config& c, const Quantisation& q, DataType input) {
  if (scales_codes_alone(q)) return SCALES_OF_CODES;
  if (with_group(q).group_k == 0) return SCALES_OF_ALL;
  if (direct(c).interleave_k && with_group(q).group_k < interleaved_depth(input)) {
    return SCALES_OF_CODES;
  }
  const bool is_f16 = input == DataType::f16 && packed_scale_type(q) == DataType::f16;
  return is_f16 || accumulator_count(c) > most_summed_accumulators ? SCALES_OF_CODES
                                                                   : SCALES_OF_GROUPS;
}

// Longer runs of one column are fewer loads of scales.
void lengthen_code_run(Config& config, const ResolvedProblem& problem, const DeviceCaps& caps) {
  const Inputs inputs = inputs_of(problem);
  for (const Verdict& verdict : caps.verdicts) {
    if (verdict.kind.loop != MainLoop::khr_direct) continue;
    const std::uint32_t run = fragment_of(verdict.kind).code_run;
    if (run <= direct(config).code_run) continue;
    Config longer = config;
    direct(longer).code_run = run;
    if (has_passed(longer, inputs, caps)) config = longer;
  }
}

void fit_packed(Config& config, const ResolvedProblem& problem, const DeviceCaps& caps) {
  KhrDirectLoop& l = direct(config);
  l.swap_a = l.swap_a && config.pack_a;  // a plain A has no packed words
  const auto& codes = problem.b.quantisation;
  if (!codes) {
    l.code_run = 1;
    l.ahead = std::min(l.ahead, 1u);
    return;
  }
  lengthen_code_run(config, problem, caps);
  l.interleave_k = l.interleave_k && fits_interleaved_groups(l, *codes, problem.input_type());
  // Loads of codes are deeper than those of elements.
  const std::uint32_t whole = std::max(code_depth(direct(config).fragment_k, codes->type), 1u);
  config.tile_k = narrow(rounded_up(config.tile_k, whole));
}

void take_order(Config& config, const ResolvedProblem& problem) {
  const auto &a = problem.a.fragments, &b = problem.b.fragments;
  if (a) direct(config).swap_a = a->swapped;
  if (a || b) direct(config).interleave_k = (a ? a : b)->interleaved;
}

// Devices list matrices of results by the product that they come from.
bool narrows_slices(const Config& c, DataType input, const DeviceCaps& caps) {
  if (input_of(input).accumulator != DataType::f32) return false;
  const KhrDirectLoop& l = direct(c);
  const auto has_results = [&](const FragmentShape& shape) {
    return shape.accumulator == DataType::f16 && shape.m == l.fragment_m && shape.n == l.fragment_n;
  };
  const std::uint32_t values = l.fragment_m * l.fragment_n / l.subgroup_size;
  return l.subgroups_k == 1 && l.fragment_n % 8 == 0 && values % 4 == 0 &&
         std::ranges::any_of(caps.fragment_shapes, has_results);
}

void kinds(std::vector<KernelKind>& out, const DeviceCaps& caps, std::span<const Config> proposed) {
  std::vector<KernelKind> all;
  for (const FragmentShape& shape : caps.fragment_shapes) {
    if (!is_used(shape) || missing_feature(shape.input, false, caps) != nullptr) continue;
    add_fragment_kinds(all, MainLoop::khr_direct, shape, caps);
    // Deeper fragments of small elements fill 16 bytes.
    FragmentShape deeper = shape;
    deeper.k *= 2;
    if (is_flexible({deeper.m, deeper.n, deeper.k}, deeper.input, caps))
      add_fragment_kinds(all, MainLoop::khr_direct, deeper, caps);
  }
  for (const KernelKind& kind : all) {
    const FragmentKind fragment = fragment_of(kind);
    if (!fits_fragment_order({fragment.m, fragment.n, fragment.k}, kind.input,
                             fragment.subgroup_size)) {
      continue;
    }
    const auto add = [&](const FragmentKind& numbers) {
      add_kind(out, make_kind(kind.loop, kind.input, numbers));
    };
    add(fragment);
    FragmentKind rows = fragment;
    rows.a_in_rows = 1;
    add(rows);
    if (input_of(kind.input).accumulator != DataType::f32)
      continue;  // codes are multiplied as floats
    // Codes are packed in the order that a table proposes.
    for (const Config& c : proposed) {
      if (c.main_loop() != MainLoop::khr_direct || !khr_covers(kind, c) ||
          !fits_code_units(fragment.k, CodeType::int4)) {
        continue;
      }
      FragmentKind codes = fragment;
      for (const std::uint32_t run : {1u, direct(c).code_run}) {
        codes.code_run = run;
        add(codes);
      }
    }
  }
}

// Several pipelines, since it is their agreement that counts: loads ahead and not, either order of
// A's words and of K, slices of K, and on GPUs the tile that tables propose most. A in rows is
// tried in both ways, where it can be.
std::vector<Config> trials(const KernelKind& of, const DeviceCaps& caps) {
  const FragmentKind kind = fragment_of(of);
  std::vector<Config> configs = khr_trials(of, caps);
  Config large = configs.front();
  khr(large).subgroups_n = 2;
  khr(large).subtiles = 4;
  large.tile_m = large.tile_n = 8 * kind.m;
  if (!is_cpu(caps)) configs.push_back(large);
  for (Config& c : configs) {
    enter(c);
    c.tile_k = std::max<std::uint32_t>(
        2 * kind.k, kind.code_run != 0 ? CODE_PIECE : interleaved_depth(of.input));
    c.pack_a = kind.a_in_rows == 0;
    direct(c).code_run = std::max(kind.code_run, 1u);
    direct(c).swap_a = c.pack_a && c.tile_n > kind.n;
    direct(c).interleave_k =
        c.tile_n > kind.n &&
        (c.pack_a || fits_interleaved_rows(kind.m, kind.k, of.input, kind.subgroup_size));
  }
  Config sliced = configs.back();
  direct(sliced).ahead = 0;
  sliced.slices = 2;
  sliced.reduction_mode = ReductionMode::last_arriver;
  configs.push_back(sliced);
  Config shared = configs.front();
  direct(shared).subgroups_k = 2;
  configs.push_back(shared);
  if (kind.code_run != 0) {
    Config units = configs.front();
    direct(units).ahead = 2;
    configs.push_back(units);
  }
  return configs;
}

bool covers(const KernelKind& of, const Config& c) {
  const FragmentKind kind = fragment_of(of);
  if (kind.code_run != 0 && kind.code_run != direct(c).code_run) return false;
  return khr_covers(of, c) && (kind.code_run != 0 || (kind.a_in_rows != 0) == !c.pack_a);
}

KindOperands kind_operands(const KernelKind& of) {
  const FragmentKind kind = fragment_of(of);
  return kind.code_run != 0    ? KindOperands::codes
         : kind.a_in_rows != 0 ? KindOperands::a_in_rows
                               : KindOperands::any;
}

}  // namespace

extern constexpr LoopDescriptor khr_direct_loop = [] {
  LoopDescriptor loop = khr_fragments_loop;
  loop.loop = MainLoop::khr_direct;
  loop.name = "khr_direct";
  loop.parameters = parameters;
  loop.kin = MainLoop::khr_direct;
  loop.scales_of = scales_of;
  loop.invocations = direct_invocations;
  loop.most_accumulators = most_accumulators;
  loop.check = check;
  loop.cost.latency = &TimingModel::direct_latency;
  loop.cost.tile = tile_time;
  loop.cost.a_in_rows = a_in_rows_time;
  loop.shared_memory_bytes = [](const Config& c, const ResolvedProblem&, const Limits&) {
    return direct(c).subgroups_k * khr_shared_memory_bytes(c, 0);
  };
  loop.needs_verdict = true;
  loop.narrows_slices = narrows_slices;
  loop.fragment_order = [](const Config& c, bool of_a) {
    const KhrDirectLoop& l = direct(c);
    return FragmentOrder{.mn = of_a ? l.fragment_m : l.fragment_n,
                         .k = l.fragment_k,
                         .subgroup_size = l.subgroup_size,
                         .swapped = of_a && l.swap_a,
                         .interleaved = l.interleave_k};
  };
  loop.fit_packed = fit_packed;
  loop.take_order = take_order;
  loop.steps_beyond = [](const Config& c) {
    return direct(c).subgroups_k == 1 && direct(c).ahead == 1 ? 1u : 0u;
  };
  loop.k_tiles_at_once = [](const Config& c) { return direct(c).subgroups_k; };
  loop.specialize = specialize;
  loop.propose = [](std::vector<Config>& out, const ResolvedProblem& problem,
                    const DeviceCaps& caps) {
    const std::size_t begin = out.size();
    propose_khr(out, problem, caps, proposed_depths, [](const KhrLoop& l) {
      return Config{.loop = KhrDirectLoop{l}, .pack_a = true, .pack_b = true};
    });
    for (std::size_t i = begin; i < out.size(); ++i) {
      const KhrLoop& l = khr(out[i]);
      direct(out[i]).interleave_k =
          out[i].tile_k % interleaved_depth(problem.input_type()) == 0 &&
          fits_interleaved_rows(l.fragment_m, l.fragment_k, problem.input_type(), l.subgroup_size);
    }
    if (problem.typical_m() > few_rows) return;
    for (std::size_t i = begin, end = out.size(); i < end; ++i) {
      const std::uint32_t subgroups = khr(out[i]).subgroups_m * khr(out[i]).subgroups_n;
      for (const std::uint32_t all : {4u, 8u}) {
        if (all <= subgroups) continue;
        Config c = out[i];
        direct(c).subgroups_k = all / subgroups;
        cut_epilogue(c, problem, caps);
        out.push_back(c);
        if (!problem.b.quantisation ||
            c.tile_m / khr(c).subgroups_m > most_rows_ahead * khr(c).fragment_m) {
          continue;
        }
        direct(c).ahead = 2;
        out.push_back(c);
      }
    }
  };
  loop.enter = enter;
  loop.kinds = kinds;
  loop.trials = trials;
  loop.covers = covers;
  loop.kind_numbers = fragment_numbers;
  loop.kind_operands = kind_operands;
  return loop;
}();

}  // namespace vkgemm
