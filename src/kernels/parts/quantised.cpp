#include "kernels/parts/quantised.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "kernels/check.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/part.hpp"
#include "kernels/parts/pack.hpp"
#include "kernels/steps.hpp"
#include "kernels/tiling.hpp"
#include "lib/footprint.h"
#include "lib/quantised.h"
#include "problem/data_type.hpp"
#include "problem/enumerators.hpp"

namespace vkgemm {
namespace {

void set_codes(Constants& constants, const Quantisation& q) {
  constants.set(SPEC_CODES, form_of(q.type).codes);
  constants.set(SPEC_CODE_GROUP_K, with_group(q).group_k);
  constants.set(SPEC_SCALE_TYPE, scale_constant(q));
  constants.set(SPEC_CODE_ZEROS, zeros_of(q));
}

// An empty sum reads no codes.
void lower(Lowering& l) {
  const ResolvedProblem& p = *l.problem;
  if (!p.b.quantisation || p.k == 0) return;
  set_codes(l.constants, *p.b.quantisation);
  l.constants.set(SPEC_SCALES_OF, scales_of(l.config, *p.b.quantisation, *p.input));
  if (p.a_group_k != 0) set_group_scales(l.constants, p);
}

// The depth of K that one scaled sum covers.
std::uint64_t summed_depth(const Config& c, const ResolvedProblem& p) {
  if (!keeps_sums(c, p)) return scaled_sum_depth(c, p);
  const std::uint32_t group = std::gcd(p.a_group_k, with_group(*p.b.quantisation).group_k);
  const std::uint64_t most = group != 0 ? group : std::uint32_t{KEPT_DEPTH_MOST};
  return std::clamp<std::uint64_t>(divided_up(p.k, std::uint64_t{c.slices}), 1, most);
}

std::string describe(const Config& c, const ResolvedProblem& p, const DispatchPlan&) {
  if (!p.b.quantisation) return {};
  const bool rounds = rounds_elements(c, *p.b.quantisation, *p.input);
  std::string text =
      concat("quantised: b is ", to_string(*p.b.quantisation), ", multiplied as ",
             to_string(p.b.type), rounds ? ", scales multiply codes" : ", scales multiply sums");
  if (!p.input->group_sums) return text;
  text +=
      concat(is_integer(p.input->sums()) ? ", exact over " : " over ", summed_depth(c, p), " of K");
  if (is_integer(p.a.type)) text += "; an element of A is off by at most half a scale";
  return p.a_group_k == 0 ? text : concat(text, ", one for ", p.a_group_k, " of K");
}

// Scaling an s32 sum takes main loop khr as long as this depth of products. For groups of 128 the
// estimate then prefers 128 deep k-tiles, which were faster (bench/NOTES.md, "8-bit activations").
constexpr double depth_of_integer_sum = 50.0;
// The time to scale f32 sums, relative to the products (bench/NOTES.md, "8-bit floats").
constexpr double time_of_float_sums = 1.5;
// Main loop fma converts and multiplies a sum: two instructions, each as long as a step (derived).
constexpr double steps_of_fma_sum = 2.0;

double cost(const Config& c, const Computation& computation, const TimingModel&,
            const ProductCost& product) {
  const ResolvedProblem& p = computation.asked();
  if (!p.b.quantisation || !p.input->group_sums || p.k == 0) return 0.0;
  if (c.main_loop() == MainLoop::skinny) return 0.0;  // in the rates of its rows
  const auto depth = static_cast<double>(summed_depth(c, p));
  if (c.main_loop() == MainLoop::fma) {
    const double step = FMA_STEP(size_in_bytes(p.input_type()));
    return product.microseconds * steps_of_fma_sum * step / depth;
  }
  if (is_floating(p.input->sums())) return product.microseconds * time_of_float_sums;
  return product.microseconds * depth_of_integer_sum / depth;
}

// Kinds of codes with tuned shapes of their own: others, those with elements computed in f32, which
// takes longer, and those with scales of groups of A's rows.
constexpr std::string_view kinds[] = {"", ":scales=f32", ":row_groups"};

// The first type whose codes stand for the same numbers.
CodeType first_alike(CodeType type) {
  for (unsigned i = 0; is_enumerator(static_cast<CodeType>(i)); ++i) {
    const auto first = static_cast<CodeType>(i);
    if (form_of(first).codes == form_of(type).codes) return first;
  }
  return type;
}

std::string_view family(const ResolvedProblem& p) {
  if (!p.b.quantisation) return {};
  const Quantisation& q = *p.b.quantisation;
  const bool is_wide = packed_scale_type(q) == DataType::f32 || scales_codes_alone(q);
  static const auto names = [] {
    std::map<std::pair<CodeType, std::string_view>, std::string> out;
    for (unsigned i = 0; is_enumerator(static_cast<CodeType>(i)); ++i) {
      const auto each = static_cast<CodeType>(i);
      for (const std::string_view kind : kinds)
        out.emplace(std::pair(each, kind), concat(to_string(each), kind));
    }
    return out;
  }();
  return names.at({first_alike(q.type), kinds[p.a_group_k != 0 ? 2 : is_wide ? 1 : 0]});
}

bool is_family(std::string_view name) {
  for (const std::string_view kind : kinds) {
    if (name.ends_with(kind) && parse_code_type(name.substr(0, name.size() - kind.size())))
      return true;
  }
  return false;
}

}  // namespace

std::uint32_t staged_scales_units(const Config& c, const ResolvedProblem& p) {
  if (!p.input->group_sums || !p.b.quantisation) return 0;
  return STAGED_SCALES(c.tile_m, c.tile_n, c.tile_k, p.a_group_k,
                       with_group(*p.b.quantisation).group_k);
}

std::uint32_t scaled_sum_depth(const Config& c, const ResolvedProblem& p) {
  if (c.main_loop() == MainLoop::skinny) return SKINNY_PIECE_K(size_in_bytes(p.input_type()));
  return SCALED_SUM_DEPTH(c.tile_k, p.a_group_k, with_group(*p.b.quantisation).group_k);
}

bool keeps_sums(const Config& c, const ResolvedProblem& p) {
  if (!p.input->group_sums || !p.b.quantisation || c.main_loop() != MainLoop::khr) return false;
  return KEEPS_SUMS(c.tile_m, c.tile_n, c.tile_k, invocations(c), p.a_group_k,
                    with_group(*p.b.quantisation).group_k) != 0;
}

std::uint32_t scales_of(const Config& config, const Quantisation& q, const Input& input) {
  if (input.group_sums) return SCALES_OF_GROUPS;
  const auto of_loop = descriptor(config).scales_of;
  return of_loop == nullptr ? SCALES_OF_CODES : of_loop(config, q, input.multiplied);
}

bool rounds_elements(const Config& config, const Quantisation& q, const Input& input) {
  return scales_of(config, q, input) == SCALES_OF_CODES;
}

Step pack_codes_step(const Problem& problem, const CodeSource& source, const ResolvedMatrix& copy,
                     std::uint64_t matrices, const Limits& limits) {
  const Quantisation& q = *problem.quantised_b;
  Step step;
  step.key.module = "pack_codes";
  Constants constants(step.key.constants);
  if (copy.fragments) pack_fragments(step, constants, copy, limits);
  set_codes(constants, as_packed(q));
  constants.set(SPEC_LOCAL_SIZE, std::uint32_t{PACK_LOCAL_SIZE});
  if (multiplies_integers(copy.type)) constants.set(SPEC_B_TYPE, row_of(copy.type).constant);
  constants.set(SPEC_CODE_GROUP_N, q.group_n);
  constants.set(SPEC_CODE_SOURCE, source_of(q));
  constants.set(SPEC_A_COL_MAJOR, problem.b.layout == Layout::row_major);
  constants.set(SPEC_PACK_HALVES, copy.halves_apart);
  constants.set(SPEC_GATE_INTERLEAVED, problem.gated && problem.gated->b == GatedB::interleaved);
  gpu::PackCodesParams params{};
  params.source_batch = source.codes.matrix;
  params.copy_batch = copy.packed_elements() * size_in_bytes(copy.type);
  params.scales_batch = source.scales.matrix;
  params.zeros_batch = source.zeros.matrix;
  params.width = narrow(problem.n);
  params.depth = narrow(problem.k);
  params.source_ld = narrow(source.codes.line);
  params.scales_ld = narrow(source.scales.line);
  params.copy_ld = narrow(copy.ld);
  params.copy_depth = narrow(copy.lines());
  step.params = params;
  step.dispatches = cut_grid(pack_tiles(copy), matrices, limits);
  return step;
}

extern constexpr Part quantised_part{
    .check =
        [](const Case&) { return true; },  // each loop's check refuses codes that it can't load
    .lower = lower,
    .describe = describe,
    .cost = cost,
    .family = family,
    .is_family = is_family,
};

}  // namespace vkgemm
