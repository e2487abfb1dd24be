#include "oracle/epilogue_reference.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "oracle/activations.hpp"
#include "oracle/step_reference.hpp"
#include "problem/convert.hpp"
#include "problem/data_type.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/inputs/input.hpp"

namespace vkgemm::oracle {

Expected EpilogueOracle::operator()(std::uint64_t batch, std::uint64_t i, std::uint64_t j,
                                    const Sums* sums, std::uint64_t at) const {
  Expected expected =
      pre(batch, i, product_column(problem_, 0, j), sums[0].dot[at], sums[0].magnitude[at]);
  Bounded result{expected.pre[0], expected.pre_bound[0]};
  if (problem_.gated) {
    const Expected r =
        pre(batch, i, product_column(problem_, 1, j), sums[1].dot[at], sums[1].magnitude[at]);
    expected.pre[1] = r.pre[0];
    expected.pre_bound[1] = r.pre_bound[0];
    expected.unpredictable = expected.unpredictable || r.unpredictable;
    result = apply_gate(*problem_.gated, result, {r.pre[0], r.pre_bound[0]});
    expected.ambiguous = is_ambiguous(*problem_.gated, expected.pre[0], r.pre[0]);
  } else {
    result = activate(epilogue_.activation, result);
    expected.ambiguous = is_ambiguous(epilogue_.activation, expected.pre[0]);
  }
  expected.d = result.value;
  expected.d_bound = result.bound;
  apply_steps(expected, batch, i, j);
  expected.d = clamp(expected.d);
  return expected;
}

void EpilogueOracle::apply_steps(Expected& expected, std::uint64_t batch, std::uint64_t i,
                                 std::uint64_t j) const {
  for (const EpilogueStep& step : steps_of(epilogue_)) {
    double x = static_cast<double>(step.number);
    if (const auto tensor = tensor_of(step)) {
      if (is_written(epilogue_, *tensor)) {
        expected.stored[*tensor] = expected.d;
        expected.stored_bound[*tensor] = expected.d_bound;
        continue;
      }
      const OperandId id = tensor_row(*tensor).id;
      const TensorShape shape = epilogue_.tensors[*tensor];
      const bool has_rows = shape == TensorShape::along_m || has_elements(shape);
      const bool has_columns = shape == TensorShape::along_n || has_elements(shape);
      x = views_[id].get(operands_[id], batch, has_rows ? i : 0, has_columns ? j : 0);
    }
    const Stepped result = apply_step(step, {expected.d, expected.d_bound}, x);
    expected.d = result.v.value;
    expected.d_bound = result.v.bound;
    // Zero is right no longer, once a step has used it.
    expected.unpredictable = expected.unpredictable || expected.ambiguous || result.unpredictable;
  }
}

Expected EpilogueOracle::pre(std::uint64_t batch, std::uint64_t i, std::uint64_t j, double dot,
                             double magnitude) const {
  const double alpha = static_cast<double>(epilogue_.alpha);
  const double beta = static_cast<double>(epilogue_.beta);
  // K = 0 is defined as epilogue(beta * C), whatever alpha is.
  const auto scale = [&](Scales scales, const void* factors, std::uint64_t length,
                         std::uint64_t at) {
    if (scales == Scales::none) return 1.0;
    const std::uint64_t first = scales == Scales::per_matrix ? batch * length : 0;
    return load_element(factors, DataType::f32, first + at);
  };
  // Groups of K have scales of rows that are A's (tile_reference.cpp).
  const Scales of_rows = problem_.a_group_k == 0 ? epilogue_.row_scales : Scales::none;
  const double row_scale = scale(of_rows, operands_[OperandId::row_scales], problem_.m, i);
  const double scales =
      row_scale * scale(epilogue_.column_scales, operands_[OperandId::column_scales],
                        product_columns(problem_), j);
  const double product = problem_.k == 0 ? 0.0 : alpha * (scales * dot);
  const double product_size = problem_.k == 0 ? 0.0 : std::fabs(alpha * scales) * magnitude;
  Expected expected;
  double& value = expected.pre[0];
  value = product;
  double size = product_size;
  if (epilogue_.beta != 0.0f) {
    const double residual = beta * load_element(operands_[OperandId::c], views_[OperandId::c].type,
                                                views_[OperandId::c].index(batch, i, j));
    value += residual;
    size += std::fabs(residual);
  }
  if (epilogue_.bias != Bias::none) {
    const std::uint64_t at = epilogue_.bias == Bias::along_n ? j : i;
    const double bias = load_element(operands_[OperandId::bias], epilogue_.bias_type,
                                     batch * epilogue_.bias_batch_stride + at);
    value += bias;
    size += std::fabs(bias);
  }
  const double scaled = magnitude * std::max(std::fabs(row_scale), std::fabs(scales));
  bound(expected, product_size, std::max(magnitude, scaled), scales, size);
  return expected;
}

double EpilogueOracle::clamp(double x) const {
  if (epilogue_.clamp_min && x < static_cast<double>(*epilogue_.clamp_min)) {
    x = static_cast<double>(*epilogue_.clamp_min);
  }
  if (epilogue_.clamp_max && x > static_cast<double>(*epilogue_.clamp_max)) {
    x = static_cast<double>(*epilogue_.clamp_max);
  }
  return x;
}

void EpilogueOracle::bound(Expected& expected, double product_size, double magnitude, double scales,
                           double size) const {
  const double summed = problem_.sum_batch ? static_cast<double>(problem_.batch) : 1.0;
  const double k = static_cast<double>(problem_.k) * summed;
  const double alpha = std::fabs(static_cast<double>(epilogue_.alpha));
  if (!is_element(problem_.d.type)) return;  // sums of integers are exact
  // The accumulation, which is one rounding if it is exact, and two of factors; then four roundings
  // of the epilogue; then results below f32's smallest normal number, which a device may flush to
  // zero.
  const bool exact = is_integer(input_of(problem_).accumulator);
  const double sums = exact ? 1.0 : 2.0 * k + 2.0;
  const double factors = has_scales() ? 2.0 : 0.0;
  const double products = find_input(problem_.f32_arithmetic)->product_error;
  expected.pre_bound[0] = ((sums + factors) * 0x1p-23 + products) * product_size +
                          4.0 * 0x1p-23 * size +
                          (k + 4.0) * 0x1p-126 * std::max({1.0, alpha, std::fabs(alpha * scales)});
  const double largest = static_cast<double>(FLT_MAX);
  expected.unpredictable = std::isfinite(size) && (size > largest || magnitude > largest);
}

}  // namespace vkgemm::oracle
