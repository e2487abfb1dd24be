#include "problem/resolve.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/field_checks.hpp"
#include "problem/inputs/input.hpp"
#include "problem/operands.hpp"

namespace vkgemm {
namespace {

constexpr std::uint64_t too_large = std::numeric_limits<std::uint64_t>::max();

std::uint64_t multiplied(std::uint64_t a, std::uint64_t b) {
  return checked_multiply(a, b).value_or(too_large);
}
std::uint64_t added(std::uint64_t a, std::uint64_t b) {
  return a > too_large - b ? too_large : a + b;
}

// Contradictions of a sum over the batch, of a problem whose enumerators are right.
MaybeError check_sum(const Problem& problem) {
  const auto refuse = [](const auto&... why) {
    return unsupported(concat(why..., " and sum_batch is true"));
  };
  if (problem.grouping) return refuse("grouping is set");
  if (problem.quantised_b) return refuse("quantised_b is set");
  if (problem.a.packing != Packing::plain) return refuse("a.packing is packed");
  if (problem.b.packing != Packing::plain) return refuse("b.packing is packed");
  for (const OperandRow& row : operand_rows()) {
    if (row.matrix == nullptr || row.is_multiplied() || !row.exists(problem)) continue;
    const auto stride = (problem.*row.matrix).batch_stride;
    if (stride.value_or(0) == 0) continue;
    return invalid_argument(concat(row.name, ".batch_stride is ", *stride,
                                   " and sum_batch is true: the batch has one ", row.name));
  }
  if (const Input* const input = find_input(problem, problem.a); input && input->check) {
    Problem longest = one_sum(problem);
    if (auto error = input->check(longest)) return error;
    longest.k = multiplied(problem.batch, problem.k);
    if (const auto error = input->check(longest)) {
      return Error{error->status, concat("sum_batch is true, and batch · ", error->message)};
    }
  }
  if (problem.epilogue.bias_batch_stride == 0) return std::nullopt;
  return invalid_argument(concat("epilogue.bias_batch_stride is ",
                                 problem.epilogue.bias_batch_stride,
                                 " and sum_batch is true: the batch has one bias"));
}

// True if the matrices of an operand follow each other along K.
bool extends_k(const OperandRow& row, const Problem& problem) {
  const OperandShape shape = row.inner_shape(problem);
  const bool k_in_lines = shape.row_major() == (row.id == OperandId::a);
  if (k_in_lines) {
    return shape.batch_stride() == problem.k && multiplied(problem.batch, problem.k) <= shape.ld();
  }
  return shape.batch_stride() == multiplied(problem.k, shape.ld());
}

// The same sum as one product with a longer K, if all of A and B permit it.
std::optional<Problem> with_longer_k(const Problem& problem) {
  const std::uint64_t k = multiplied(problem.batch, problem.k);
  if (k > largest_size) return std::nullopt;
  if (problem.batch > 1 && problem.k != 0) {
    for (const OperandRow& row : operand_rows()) {
      if (row.exists(problem) && row.is_multiplied() && !extends_k(row, problem))
        return std::nullopt;
    }
  }
  Problem out = one_sum(problem);
  out.k = k;
  for (Matrix* const matrix : {&out.a, &out.b}) {
    if (!matrix->outer_batch_stride && problem.outer_batch > 1) {
      const OperandRow& row = row_of(matrix == &out.a ? OperandId::a : OperandId::b);
      matrix->outer_batch_stride = row.outer_stride(problem);
    }
    matrix->batch_stride.reset();
  }
  return out;
}

// The problem at one outer batch index.
Result<ResolvedProblem> resolve_inner(const Problem& problem) {
  if (!problem.sum_batch) return resolve_one_batch(problem);
  if (auto error = check_size("batch", problem.batch)) return *error;
  Problem one = one_sum(problem);
  for (Matrix* const matrix : {&one.a, &one.b}) matrix->batch_stride.reset();
  Result<ResolvedProblem> out = resolve_one_batch(one);
  if (!out) return out;
  out->summed = problem.batch;
  const auto resolve_all = [&](OperandId id, const OperandInfo& info) -> MaybeError {
    const OperandShape shape = row_of(id).inner_shape(problem);
    const auto all =
        resolve_matrix(info, shape.matrix, shape.rows, shape.cols, problem.batch, !out->is_empty());
    if (!all) return all.error();
    ResolvedMatrix& matrix = (id == OperandId::a) != out->transposed ? out->a : out->b;
    matrix.batch_stride = all->batch_stride;
    matrix.bytes = all->bytes;
    return std::nullopt;
  };
  if (auto error = resolve_all(OperandId::a, {"a", "M", "K"})) return *error;
  if (auto error = resolve_all(OperandId::b, {"b", "K", "N"})) return *error;
  return out;
}

// A problem with one dimension of the batch, and how often it is computed.
struct Repeated {
  Problem part;
  std::uint64_t count = 1;
  PerOperand<std::uint64_t> steps;  // from a part's operand to the next part's, as outer_stride()
};

// A dimension of the batch, of an operand.
struct Dimension {
  std::string_view field;
  std::uint64_t count = 1;
  std::uint64_t stride = 0;

  // Elements from the first matrix to the last one.
  std::uint64_t reach() const { return multiplied(count - 1, stride); }
};

// Matrices of a result, apart or side by side within the rows of a larger one.
MaybeError check_result(const OperandRow& row, const Problem& problem) {
  const OperandShape shape = row.inner_shape(problem);
  Dimension nearer{"batch_stride", result_count(problem), shape.batch_stride()};
  Dimension farther{"outer_batch_stride", problem.outer_batch, row.outer_stride(problem)};
  if (nearer.count == 1) {
    nearer.stride = 0;
  } else if (farther.stride < nearer.stride) {
    std::swap(nearer, farther);
  }
  const std::uint64_t extent = (shape.lines() - 1) * shape.ld() + shape.length();
  const std::uint64_t needed = added(nearer.reach(), extent);
  const std::uint64_t side_by_side = added(nearer.reach(), shape.length());
  if (farther.stride >= needed) {
    const bool near_apart = nearer.stride >= extent || nearer.count == 1 ||
                            (nearer.stride >= shape.length() && side_by_side <= shape.ld());
    if (near_apart) return std::nullopt;
    return invalid_argument(concat(row.name, '.', nearer.field, " is ", nearer.stride,
                                   ": matrices would overlap, at least ", extent, " is needed"));
  }
  const bool near_fits = nearer.count == 1 || nearer.stride >= shape.length();
  if (near_fits && farther.stride >= side_by_side &&
      added(farther.reach(), side_by_side) <= shape.ld()) {
    return std::nullopt;
  }
  return invalid_argument(
      concat(row.name, '.', farther.field, " is ", farther.stride, ": the ", farther.count,
             " matrices of batch and outer_batch would overlap, at least ", needed, " is needed"));
}

// The matrices of a problem that have strides.
constexpr Matrix Problem::*all_matrices[] = {&Problem::a,  &Problem::b,   &Problem::c,
                                             &Problem::d,  &Problem::aux, &Problem::t0,
                                             &Problem::t1, &Problem::t2,  &Problem::t3};

void drop_outer_strides(Problem& problem) {
  problem.outer_batch = 1;
  problem.epilogue.bias_outer_batch_stride.reset();
  for (Matrix Problem::*const matrix : all_matrices) (problem.*matrix).outer_batch_stride.reset();
}

// The stride of the inner dimension, as outer_stride() counts.
std::uint64_t inner_stride(const OperandRow& row, const Problem& problem) {
  if (row.matrix != nullptr && (problem.*row.matrix).packing != Packing::plain) {
    return (problem.*row.matrix).batch_stride.value_or(1);
  }
  return row.inner_shape(problem).batch_stride();
}

// Kernels read scales of each matrix, and write row values, one matrix after the other.
bool needs_inner(const Problem& problem) {
  return problem.epilogue.row_scales == Scales::per_matrix ||
         problem.epilogue.column_scales == Scales::per_matrix ||
         row_of(OperandId::row_values).exists(problem);
}

// An address that is advanced by this step keeps as much of the promised alignment.
std::uint32_t kept_alignment(std::uint32_t alignment, std::uint64_t step) {
  if (step == 0) return alignment;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(alignment, step & (~step + 1)));
}

// Contradictions between the dimensions, of a problem that is right with the inner one.
MaybeError check_outer_batch(const Problem& problem) {
  if (is_empty(problem)) return std::nullopt;
  const auto amax = amax_tensor(problem.epilogue);
  for (const OperandRow& row : operand_rows()) {
    if (!row.exists(problem) || !row.is_written(problem) || row.matrix == nullptr) continue;
    if (amax && row.id == tensor_row(*amax).id) continue;  // one number is for all
    const OperandShape shape = row.inner_shape(problem);
    if (shape.rows == 0 || shape.cols == 0) continue;
    if (auto error = check_result(row, problem)) return error;
  }
  return std::nullopt;
}

// The bytes of a stride's unit: of an element, or a packed matrix.
std::uint64_t unit(const Problem& problem, const ResolvedProblem& resolved, const OperandRow& row) {
  if (row.matrix == nullptr || (problem.*row.matrix).packing == Packing::plain) {
    return row.inner_shape(problem).element();
  }
  const bool is_a = (row.id == OperandId::a) != resolved.transposed;
  const ResolvedMatrix& packed = is_a ? resolved.a : resolved.b;
  return packed.packed_elements() * packed.element_bytes();
}

// Strides that are too large for addresses. `inner`: the problem of the first outer index.
MaybeError check_reach(const Problem& problem, const ResolvedProblem& inner) {
  for (const Operand& operand : operands_of(inner)) {
    const OperandRow& row = row_of(operand.id);
    const std::uint64_t stride = row.outer_stride(problem);
    const std::uint64_t reach =
        multiplied(multiplied(problem.outer_batch - 1, stride), unit(problem, inner, row));
    if (added(reach, operand.bytes) != too_large) continue;
    return invalid_argument(concat(row.name, ".outer_batch_stride is ", stride,
                                   ": an outer batch of ", problem.outer_batch,
                                   " does not fit 64 bits of bytes"));
  }
  return std::nullopt;
}

// Takes the problem apart. Both dimensions become one if all operands permit it. Otherwise kernels
// get the larger one, but scales of each matrix and row values need the inner one.
Repeated repeated(const Problem& problem) {
  const auto rows = operand_rows();
  const auto merges = [&](const OperandRow& row) {
    return !row.exists(problem) ||
           row.outer_stride(problem) == multiplied(problem.batch, inner_stride(row, problem));
  };
  const std::uint64_t all = multiplied(problem.batch, problem.outer_batch);
  const bool sums = problem.sum_batch;
  const bool is_one = !sums && all <= largest_size && std::ranges::all_of(rows, merges);
  const bool larger = !needs_inner(problem) && problem.outer_batch > problem.batch;
  const bool takes_outer = !is_one && !sums && (problem.batch == 1 || larger);
  Repeated out{.part = problem,
               .count = is_one        ? 1
                        : takes_outer ? problem.batch
                                      : problem.outer_batch};
  if (is_one) {
    out.part.batch = all;
    drop_outer_strides(out.part);
    return out;
  }
  for (const OperandRow& row : rows) {
    if (!row.exists(problem)) continue;
    const std::uint64_t inner = inner_stride(row, problem), outer = row.outer_stride(problem);
    out.steps[row.id] = takes_outer ? inner : outer;
    if (row.id == OperandId::bias && takes_outer) out.part.epilogue.bias_batch_stride = outer;
    if (row.matrix == nullptr) continue;
    Matrix& matrix = out.part.*row.matrix;
    if (takes_outer) matrix.batch_stride = outer;
    if (matrix.packing != Packing::plain || out.count == 1) continue;
    matrix.alignment =
        kept_alignment(matrix.alignment, out.steps[row.id] * row.inner_shape(problem).element());
  }
  if (takes_outer) out.part.batch = problem.outer_batch;
  drop_outer_strides(out.part);
  return out;
}

}  // namespace

Problem inner_part(const Problem& problem) {
  Problem part = problem;
  drop_outer_strides(part);
  return part;
}

Result<ResolvedProblem> resolve(const Problem& problem) {
  if (problem.sum_batch) {
    if (auto error = check_enumerators(problem)) return *error;
    if (auto error = check_sum(problem)) return *error;
    Result<ResolvedProblem> checked = resolve_inner(inner_part(problem));
    if (!checked) return checked;
    if (const auto longer = with_longer_k(problem)) return resolve(*longer);
    if (problem.split_k.slices > 1) {
      return unsupported(concat("split_k.slices is ", problem.split_k.slices,
                                " and sum_batch is true: only one long product has slices"));
    }
    if (problem.outer_batch == 1) return checked;
  }
  if (problem.outer_batch == 1) return resolve_one_batch(problem);
  if (auto error = check_size("outer_batch", problem.outer_batch)) return *error;
  Problem inner = inner_part(problem);
  if (problem.outer_batch == 0) {
    inner.batch = 0;
    inner.sum_batch = false;
    return resolve_inner(inner);
  }
  if (problem.grouping) {
    if (auto error = check_parts(problem)) return *error;
  }
  Result<ResolvedProblem> checked = resolve_inner(inner);
  if (!checked) return checked;
  if (auto error = check_steps(problem)) return *error;  // their outer strides
  if (auto error = check_outer_batch(problem)) return *error;
  if (auto error = check_reach(problem, *checked)) return *error;
  const Repeated parts = repeated(problem);
  Result<ResolvedProblem> out = resolve_inner(parts.part);
  if (!out || parts.count == 1) return out;
  out->repeats = parts.count;
  for (const OperandRow& row : operand_rows()) {
    if (row.exists(problem))
      out->repeat_steps[row.id] = parts.steps[row.id] * unit(problem, *out, row);
  }
  return out;
}

}  // namespace vkgemm
