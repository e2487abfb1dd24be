#include "kernels/steps.hpp"

#include <algorithm>
#include <string>

#include "base/text.hpp"
#include "embedded.hpp"
#include "kernels/main_loop.hpp"
#include "problem/data_type.hpp"

namespace vkgemm {
namespace {

std::uint32_t bias_constant(Bias bias) {
  switch (bias) {
    case Bias::none:
      return BIAS_NONE;
    case Bias::along_n:
      return BIAS_ALONG_N;
    case Bias::along_m:
      return BIAS_ALONG_M;
  }
  return BIAS_NONE;
}

std::uint32_t activation_constant(Activation activation) {
  switch (activation) {
    case Activation::none:
      return ACTIVATION_NONE;
    case Activation::relu:
      return ACTIVATION_RELU;
    case Activation::gelu_erf:
      return ACTIVATION_GELU_ERF;
    case Activation::gelu_tanh:
      return ACTIVATION_GELU_TANH;
    case Activation::silu:
      return ACTIVATION_SILU;
    case Activation::sigmoid:
      return ACTIVATION_SIGMOID;
    case Activation::tanh:
      return ACTIVATION_TANH;
  }
  return ACTIVATION_NONE;
}

bool allows_aux_vectors(const ResolvedProblem& p) {
  const bool right_half = p.gated && p.gated->b != GatedB::interleaved;
  return allows_epilogue_vectors(p.aux) && !(right_half && p.n % 4 != 0);
}

}  // namespace

void set_epilogue(Constants& constants, const ResolvedProblem& p, bool x4) {
  const Epilogue& e = p.epilogue;
  constants.set(SPEC_C_VECTOR, x4 && p.has_c() && allows_epilogue_vectors(p.c));
  constants.set(SPEC_D_VECTOR, x4 && p.has_d() && allows_epilogue_vectors(p.d));
  constants.set(SPEC_AUX_VECTOR, x4 && p.has_aux() && allows_aux_vectors(p));
  constants.set(SPEC_C_TYPE, p.has_c() ? row_of(p.c.type).constant : std::uint32_t{TYPE_NONE});
  constants.set(SPEC_D_TYPE, p.has_d() ? row_of(p.d.type).constant : std::uint32_t{TYPE_NONE});
  constants.set(SPEC_AUX_TYPE,
                p.has_aux() ? row_of(p.aux.type).constant : std::uint32_t{TYPE_NONE});
  constants.set(SPEC_BIAS_TYPE,
                p.has_bias() ? row_of(e.bias_type).constant : std::uint32_t{TYPE_NONE});
  const auto stands_in_columns = [](const ResolvedMatrix& matrix) {
    return matrix.layout == Layout::col_major;
  };
  constants.set(SPEC_C_COL_MAJOR,
                (p.has_c() && stands_in_columns(p.c)) || (p.has_aux() && stands_in_columns(p.aux)));
  constants.set(SPEC_D_COL_MAJOR, p.has_d() && stands_in_columns(p.d));
  constants.set(SPEC_BIAS, bias_constant(e.bias));
  constants.set(SPEC_ACTIVATION, activation_constant(e.activation));
  constants.set(SPEC_CLAMP, e.clamp_min.has_value() || e.clamp_max.has_value());
}

std::string_view module_name(std::string_view kernel, MainLoop loop, DataType input) {
  const std::string name = concat(kernel, '_', descriptor(loop).name, '_', row_of(input).name);
  const auto modules = embedded::modules();
  const auto found = std::ranges::find(modules, name, &embedded::Module::name);
  // Legality keeps it from those that there are not.
  return found != modules.end() ? found->name : std::string_view();
}

Step reset_step(std::uint64_t words, std::uint64_t state_bytes, const Limits& limits) {
  constexpr std::uint64_t piece_bytes = 16;
  Step step;
  step.key.module = "reset";
  Constants(step.key.constants).set(SPEC_LOCAL_SIZE, std::uint32_t{RESET_LOCAL_SIZE});
  gpu::ResetParams params{};
  params.control_words = narrow(words);
  params.row_state_pairs = narrow(divided_up(state_bytes, piece_bytes));
  step.params = params;
  const std::uint64_t most = std::max(params.control_words, params.row_state_pairs);
  step.dispatches = cut_grid(divided_up(most, RESET_LOCAL_SIZE), 1, limits);
  return step;
}

}  // namespace vkgemm
