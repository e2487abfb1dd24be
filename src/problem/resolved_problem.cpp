// resolved_problem.cpp: the checks that need no device, and the defaults.
#include "problem/resolved_problem.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/arithmetic.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"
#include "problem/data_type.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/field_checks.hpp"
#include "problem/inputs/codes.hpp"
#include "problem/row_op.hpp"

namespace vkgemm {
namespace {

// Of packed operands, in bytes.
constexpr std::uint32_t packed_alignment = 256;

MaybeError check_packing(const Problem& problem) {
  const std::pair<std::string_view, const Matrix*> results[] = {
      {"c", &problem.c}, {"d", &problem.d}, {"aux", &problem.aux}};
  for (const auto& [name, matrix] : results) {
    if (matrix->packing == Packing::plain) continue;
    return invalid_argument(concat(name, ".packing is packed: only A and B are"));
  }
  const std::pair<std::string_view, const Matrix*> inputs[] = {{"a", &problem.a},
                                                               {"b", &problem.b}};
  for (const auto& [name, matrix] : inputs) {
    if (matrix->packing == Packing::plain) continue;
    const Input* const input = find_input(problem, *matrix);
    const bool codes = matrix == &problem.b && problem.quantised_b;
    if (!codes && input != nullptr && input->group_sums) {
      return unsupported(concat(name, ".packing is packed and quantised_b.type is ",
                                to_string(problem.quantised_b->type), ", multiplied as ",
                                to_string(input->multiplied), " and a_group_k is ",
                                problem.a_group_k, ": A must be plain"));
    }
    if (!codes && (input == nullptr || !input->packed_in_fragments)) {
      return unsupported(concat(name, ".packing is packed and ", name, ".type is ",
                                to_string(matrix->type),
                                matrix->type == DataType::f32 ? " and f32_arithmetic is ieee" : "",
                                ": 16-bit types and s8 are packed, and f32 in parts"));
    }
    if (matrix->ld) {
      return invalid_argument(concat(name, ".ld is ", *matrix->ld, " and ", name,
                                     ".packing is packed: it has no leading dimension"));
    }
    if (problem.grouping && (name == "a" || problem.grouping->along == GroupAlong::k)) {
      return unsupported(concat(name, ".packing is packed and grouping.along is ",
                                to_string(problem.grouping->along),
                                ": groups begin anywhere in it, it can't be packed before"));
    }
  }
  return std::nullopt;
}

MaybeError check_number(std::string_view field, float value) {
  if (!std::isnan(value)) return std::nullopt;
  return invalid_argument(concat("epilogue.", field, " is nan: a number is needed"));
}

MaybeError check_epilogue(const Epilogue& epilogue) {
  if (takes_number(epilogue.activation)) {
    return invalid_argument(concat("epilogue.activation is ", to_string(epilogue.activation),
                                   ": it takes a number, so it must be a step"));
  }
  if (auto error = check_number("alpha", epilogue.alpha)) return error;
  if (auto error = check_number("beta", epilogue.beta)) return error;
  if (epilogue.clamp_min) {
    if (auto error = check_number("clamp_min", *epilogue.clamp_min)) return error;
  }
  if (epilogue.clamp_max) {
    if (auto error = check_number("clamp_max", *epilogue.clamp_max)) return error;
  }
  if (epilogue.clamp_min && epilogue.clamp_max && *epilogue.clamp_min > *epilogue.clamp_max) {
    return invalid_argument(concat("epilogue.clamp_min is ", *epilogue.clamp_min,
                                   ", which is more than epilogue.clamp_max, ",
                                   *epilogue.clamp_max));
  }
  return std::nullopt;
}

// A packed operand: `width` wide along M or N, K deep, in one piece or two halves. K is the outer
// direction. What is beyond fragments is added where their order is known.
Result<ResolvedMatrix> resolve_packed(const OperandInfo& info, const Matrix& matrix,
                                      const std::optional<Quantisation>& quantisation,
                                      const Input& input, bool is_a, std::uint64_t width,
                                      std::uint64_t k, std::uint64_t halves, std::uint64_t count,
                                      bool touched) {
  ResolvedMatrix out{.type = matrix.type,
                     .layout = is_a ? Layout::col_major : Layout::row_major,
                     .ld = rounded_up(width, packed_width),
                     .alignment = packed_alignment,
                     .form = Form::given_packed,
                     .packing = matrix.packing,
                     .halves_apart = halves == 2};
  set_input(out, input);
  if (quantisation && !is_a) out.quantisation = as_packed(*quantisation);
  const std::uint64_t depth = padded_depth(out.quantisation, k);
  (is_a ? out.rows : out.cols) = out.ld;
  (is_a ? out.cols : out.rows) = depth;
  const auto too_large = [&] {
    return invalid_argument(concat(info.name, " is packed, ", width, " by ", k,
                                   " elements: ", count, " do not fit 64 bits of bytes"));
  };
  const std::uint64_t elements = out.packed_elements();  // below 2^63, as sizes are below 2^31
  const auto stride = checked_multiply(elements, matrix.batch_stride.value_or(1));
  if (!stride) return too_large();
  out.batch_stride = count > 1 ? *stride : 0;
  if (!touched) return out;
  const auto extent = extent_in_bytes(count, out.batch_stride, elements, out.type);
  const auto bytes = extent ? checked_multiply(*extent, out.parts()) : std::nullopt;
  if (!bytes) return too_large();
  out.bytes = *bytes;
  return out;
}

// The same memory seen as the transposed matrix.
ResolvedMatrix transposed(ResolvedMatrix matrix) {
  std::swap(matrix.rows, matrix.cols);
  matrix.layout = matrix.layout == Layout::row_major ? Layout::col_major : Layout::row_major;
  return matrix;
}

void transpose(ResolvedProblem& problem) {
  std::swap(problem.m, problem.n);
  std::swap(problem.a, problem.b);
  for (ResolvedMatrix* matrix : {&problem.a, &problem.b, &problem.c, &problem.d, &problem.aux}) {
    *matrix = transposed(*matrix);
  }
  Bias& bias = problem.epilogue.bias;
  if (bias != Bias::none) bias = bias == Bias::along_n ? Bias::along_m : Bias::along_n;
  std::swap(problem.epilogue.row_scales, problem.epilogue.column_scales);
  for (std::size_t i = 0; i < most_tensors; ++i) {
    problem.tensors[i] = transposed(problem.tensors[i]);
    TensorShape& shape = problem.epilogue.tensors[i];
    if (shape == TensorShape::along_n)
      shape = TensorShape::along_m;
    else if (shape == TensorShape::along_m)
      shape = TensorShape::along_n;
  }
  problem.transposed = true;
}

MaybeError check_bias(const ResolvedProblem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  const std::uint64_t count = problem.bias_count();
  if (epilogue.bias == Bias::none || count <= 1) return std::nullopt;
  const std::uint64_t length = epilogue.bias == Bias::along_n ? problem.product_n() : problem.m;
  const auto bytes = extent_in_bytes(count, epilogue.bias_batch_stride, length, epilogue.bias_type);
  if (bytes) return std::nullopt;
  return invalid_argument(concat("epilogue.bias_batch_stride is ", epilogue.bias_batch_stride,
                                 ": a batch of ", count, " does not fit 64 bits of bytes"));
}

MaybeError resolve_tensor(const Problem& problem, std::size_t i, ResolvedProblem& out) {
  const Epilogue& epilogue = problem.epilogue;
  if (!has_tensor(epilogue, i)) return std::nullopt;
  const OperandShape all = tensor_shape(problem, i);
  const TensorShape shape = epilogue.tensors[i];
  const bool is_matrix = has_elements(shape);
  const OperandInfo info{.name = tensor_names[i],
                         .rows_name = all.is_mask                                  ? "bits of M"
                                      : is_matrix || shape == TensorShape::along_m ? "M"
                                                                                   : "1",
                         .cols_name = all.is_mask                                  ? "bits of N"
                                      : is_matrix || shape == TensorShape::along_n ? "N"
                                                                                   : "1",
                         .access = is_written(epilogue, i) ? Access::write : Access::read,
                         .collection = problem.grouping ? "groups" : "batch"};
  auto resolved = resolve_matrix(info, all.matrix, all.rows, all.cols, all.count, !out.is_empty());
  if (!resolved) return resolved.error();
  out.tensors[i] = *resolved;
  return std::nullopt;
}

MaybeError check_one_layout(std::string_view name, Layout layout, Layout layout_of_d) {
  if (layout == layout_of_d) return std::nullopt;
  return unsupported(concat(name, ".layout is ", to_string(layout), " and d.layout is ",
                            to_string(layout_of_d), ": C, D and aux must share one layout"));
}

}  // namespace

void set_input(ResolvedMatrix& packed, const Input& input) noexcept {
  packed.type = input.multiplied;
  packed.input = &input;
}

std::uint64_t ResolvedProblem::b_count() const noexcept {
  if (!grouping) return batch;
  return grouping->b == GroupedB::per_group ? matrices_of(*grouping) : 1;
}

std::uint64_t ResolvedProblem::bias_count() const noexcept {
  return grouping ? matrices_of(*grouping) : batch;
}

std::uint64_t ResolvedProblem::typical_m() const noexcept {
  return is_grouped(GroupAlong::m) ? divided_up(m, grouping->groups) : m;
}

std::uint64_t ResolvedProblem::typical_k() const noexcept {
  return is_grouped(GroupAlong::k) ? divided_up(k, grouping->groups) : k;
}

bool ResolvedProblem::a_allows_vectors() const noexcept {
  const bool cut = grouping && !a.by_slots &&
                   (a.layout == Layout::col_major) == (grouping->along == GroupAlong::m);
  return !cut && a.allows_vectors(load_bytes_of(a));
}

std::uint64_t ResolvedProblem::right_offset() const noexcept {
  if (b.halves_apart) return b.half_elements();
  const std::uint64_t column = is_gated(GatedB::interleaved) ? 1 : n;
  return b.layout == Layout::col_major ? column * b.ld : column;
}

bool ResolvedProblem::b_allows_vectors() const noexcept {
  const bool halves_cut = is_gated(GatedB::halves) && !b.halves_apart &&
                          right_offset() * b.element_bytes() % load_bytes_of(b) != 0;
  const bool groups_cut = is_grouped(GroupAlong::k) && !b.by_slots && b.layout == Layout::col_major;
  return !halves_cut && !groups_cut && b.allows_vectors(load_bytes_of(b));
}

Result<ResolvedProblem> resolve_one_batch(const Problem& problem) {
  const std::pair<std::string_view, std::uint64_t> sizes[] = {
      {"m", problem.m}, {"n", problem.n}, {"k", problem.k}, {"batch", problem.batch}};
  for (const auto& [field, value] : sizes) {
    if (auto error = check_size(field, value)) return *error;
  }
  if (auto error = check_enumerators(problem)) return *error;
  if (auto error = check_types(problem)) return *error;
  if (auto error = check_multiply_as(problem)) return *error;
  const Input* const input = find_input(problem, problem.a);
  if (input == nullptr) {
    return invalid_argument(concat("f32_arithmetic is ", to_string(problem.f32_arithmetic),
                                   " and a.type is ", to_string(problem.a.type),
                                   ": only f32 is multiplied in parts"));
  }
  if (input->check != nullptr) {
    if (auto error = input->check(problem)) return *error;
  }
  if (auto error = check_parts(problem)) return *error;
  if (auto error = check_packing(problem)) return *error;
  if (auto error = check_quantised(problem)) return *error;
  const bool b_is_empty = problem.n == 0 || problem.k == 0;  // there is nothing to pack
  if (problem.quantised_b && problem.b.packing == Packing::plain && !b_is_empty) {
    return unsupported(concat("quantised_b.type is ", to_string(problem.quantised_b->type),
                              " and b.packing is plain: products take it packed "
                              "(Context::plan_pack())"));
  }
  if (auto error = check_epilogue(problem.epilogue)) return *error;
  if (auto error = check_steps(problem)) return *error;
  if (!(problem.max_dispatch_ms >= 0.0) || !std::isfinite(problem.max_dispatch_ms)) {
    return invalid_argument(concat("max_dispatch_ms is ", problem.max_dispatch_ms,
                                   ": must be a number of milliseconds, or 0 for no limit"));
  }
  if (!(problem.estimate_scale > 0.0)) {
    return invalid_argument(concat("estimate_scale is ", problem.estimate_scale,
                                   ": must be a factor above 0, or infinity if it is not known"));
  }
  if (problem.split_k.slices > most_slices) {
    return invalid_argument(concat("split_k.slices is ", problem.split_k.slices, ": at most ",
                                   most_slices, " are supported"));
  }
  if (input != find_input(problem, problem.b)) {
    const std::string codes = problem.quantised_b
                                  ? concat("quantised_b.type is ",
                                           to_string(problem.quantised_b->type), ", multiplied as ")
                                  : std::string();
    return unsupported(concat("a.type is ", to_string(problem.a.type), " and ", codes, "b.type is ",
                              to_string(problem.b.type),
                              ": without multiply_as, A and B must share one type"));
  }

  ResolvedProblem out(problem, *input);
  if (out.is_grouped(GroupAlong::k)) out.batch = out.grouping->groups;
  if (out.rows) out.eps = out.rows->eps.value_or(row_of(out.rows->op).default_eps);
  const auto resolve_into = [&](ResolvedMatrix& target, OperandInfo info, const Matrix& matrix,
                                std::uint64_t rows, std::uint64_t cols,
                                std::uint64_t count) -> MaybeError {
    if (problem.grouping) info.collection = "groups";
    auto resolved = resolve_matrix(info, matrix, rows, cols, count, !out.is_empty());
    if (!resolved) return resolved.error();
    target = *resolved;
    return std::nullopt;
  };
  const std::uint64_t m = problem.m, n = problem.n, k = problem.k;
  const auto resolve_input = [&](ResolvedMatrix& target, const OperandInfo& info,
                                 const Matrix& matrix, std::uint64_t rows, std::uint64_t cols,
                                 std::uint64_t count) -> MaybeError {
    if (matrix.packing == Packing::plain) {
      return resolve_into(target, info, matrix, rows, cols, count);
    }
    const bool is_a = &target == &out.a;
    const std::uint64_t halves = !is_a && cols != n ? 2 : 1;
    auto resolved = resolve_packed(info, matrix, problem.quantised_b, *input, is_a, is_a ? rows : n,
                                   is_a ? cols : rows, halves, count, !out.is_empty());
    if (!resolved) return resolved.error();
    target = *resolved;
    return std::nullopt;
  };

  const std::uint64_t a_rows = out.gathers_rows() ? out.grouping->a_rows : m;
  if (auto error = resolve_input(out.a, {"a", out.gathers_rows() ? "grouping.a_rows" : "M", "K"},
                                 problem.a, a_rows, k, out.a_count())) {
    return *error;
  }
  const std::string_view doubled = out.gated ? "2N" : "N";
  const std::string_view b_columns = out.b_columns() != n ? doubled : "N";
  if (auto error = resolve_input(out.b, {"b", "K", b_columns}, problem.b, k, out.b_columns(),
                                 out.b_count())) {
    return *error;
  }
  const bool places = places_rows(out.grouping);
  if (auto error = resolve_into(out.d, {"d", places ? "grouping.d_rows" : "M", "N", Access::write},
                                problem.d, places ? out.grouping->d_rows : m, n, out.batch)) {
    return *error;
  }
  if (!out.has_d()) out.d.bytes = 0;
  if (out.has_c()) {
    if (auto error = check_one_layout("c", problem.c.layout, problem.d.layout)) return *error;
    if (auto error = resolve_into(out.c, {"c", "M", "N"}, problem.c, m, n, out.batch))
      return *error;
  }
  if (out.has_aux()) {
    if (auto error = check_one_layout("aux", problem.aux.layout, problem.d.layout)) return *error;
    if (auto error = resolve_into(out.aux, {"aux", "M", doubled, Access::write}, problem.aux, m,
                                  out.product_n(), out.batch)) {
      return *error;
    }
  }
  for (std::size_t i = 0; i < most_tensors; ++i) {
    if (auto error = resolve_tensor(problem, i, out)) return *error;
  }
  if (auto error = check_bias(out)) return *error;
  if (out.bias_count() <= 1) out.epilogue.bias_batch_stride = 0;
  // An empty sum has no factors, and one matrix no others.
  for (Scales* scales : {&out.epilogue.row_scales, &out.epilogue.column_scales}) {
    if (k == 0) *scales = Scales::none;
    if (*scales != Scales::none && out.bias_count() <= 1) *scales = Scales::shared;
  }
  if (out.is_grouped(GroupAlong::m) && out.epilogue.row_scales != Scales::none) {
    out.epilogue.row_scales = Scales::shared;
  }

  // Rows that are reduced stay rows, columns that are paired stay columns, codes are of B.
  const bool transposes =
      problem.d.layout == Layout::col_major && !out.rows && !out.gated && !problem.quantised_b;
  const auto mask = mask_tensor(problem.epilogue);
  if (mask && problem.d.layout == Layout::col_major && !transposes) {
    return unsupported(
        concat("d.layout is col_major and ", tensor_names[*mask],
               " is a mask: with a gate, a row reduction or a quantised B, D must be "
               "row_major"));
  }
  if (transposes) {
    if (const auto summed = summed_tensor(problem.epilogue)) {
      return unsupported(concat("d.layout is col_major and a step sums columns to ",
                                tensor_names[*summed], ": D must be row_major"));
    }
    transpose(out);
  }
  return out;
}

}  // namespace vkgemm
