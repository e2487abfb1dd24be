// resolved_problem.hpp: a Problem that was checked, with nothing left to default. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "problem/data_type.hpp"
#include "problem/operand_id.hpp"
#include "problem/resolved_matrix.hpp"
#include "problem/row_index.hpp"
#include "vkgemm/problem.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// D, C and aux are row-major here, but for row reductions, gates and codes: a column-major problem
// is turned into the product of the transposes, D^T = B^T · A^T, which swaps A with B, M with N,
// and the direction of vectors. Groups of K are a batch of products here that share A and B.
struct ResolvedProblem {
  ResolvedProblem() = default;
  // With the caller's values. Nothing is resolved yet.
  ResolvedProblem(const Problem& problem, const Input& of_operands)
      : m(problem.m),
        n(problem.n),
        k(problem.k),
        batch(problem.batch),
        epilogue(problem.epilogue),
        gated(problem.gated),
        grouping(problem.grouping),
        rows(problem.row_reduction),
        input(&of_operands),
        a_group_k(problem.a_group_k),
        split_k(problem.split_k),
        max_workspace_bytes(problem.max_workspace_bytes),
        max_dispatch_us(1000.0 * problem.max_dispatch_ms),
        estimate_scale(problem.estimate_scale) {}

  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::uint64_t batch = 1;

  // The second dimension of a batch (resolve.hpp): how many times the problem is computed, and the
  // bytes from an operand of one repetition to the next.
  std::uint64_t repeats = 1;
  PerOperand<std::uint64_t> repeat_steps = {};

  // Sums over a batch (Problem::sum_batch): the products that are added up. a.batch_stride and
  // b.batch_stride lead from one to the next.
  std::uint64_t summed = 1;

  double function_cost = 0.0;  // EpilogueFunction::cost of the function that steps call

  // m and batch of the whole problem if this is a chunk; otherwise 0.
  std::uint64_t whole_m = 0;
  std::uint64_t whole_batch = 0;

  ResolvedMatrix a = {};
  ResolvedMatrix b = {};
  ResolvedMatrix c = {};
  ResolvedMatrix d = {};
  ResolvedMatrix aux = {};
  ResolvedMatrix tensors[most_tensors] = {};  // a vector is a matrix of one row or one column
  Epilogue epilogue = {};
  std::optional<Gated> gated = std::nullopt;
  std::optional<Grouping> grouping = std::nullopt;
  std::optional<RowReduction> rows = std::nullopt;
  float eps = 0.0f;              // of rows
  const Input* input = nullptr;  // never null after resolve()
  std::uint32_t a_group_k = 0;   // Problem::a_group_k
  SplitK split_k = {};
  std::uint64_t max_workspace_bytes = 0;
  double max_dispatch_us = 0.0;  // 0: any
  double estimate_scale = 1.0;   // of what is held against it
  bool transposed = false;       // the caller's A is `b` here and the caller's B is `a`

  // The type of what is multiplied, and of A and B where they are packed.
  DataType input_type() const noexcept { return input->multiplied; }

  // True if an operand has elements of another type, to which loads or copies convert them.
  bool converts(const ResolvedMatrix& operand) const noexcept {
    return !operand.is_packed() && !input->is_converted() && operand.type != input_type();
  }
  // True if these are elements of 8 bits.
  bool converts_bytes(const ResolvedMatrix& operand) const noexcept {
    return converts(operand) && size_in_bytes(operand.type) == 1;
  }
  // Bytes in memory of the elements that fill 16 bytes of what is multiplied.
  std::uint32_t load_bytes_of(const ResolvedMatrix& operand) const noexcept {
    if (!converts(operand)) return load_bytes;
    return load_bytes / size_in_bytes(input_type()) * size_in_bytes(operand.type);
  }

  bool has_copies() const noexcept {
    return a.form == Form::copied_packed || b.form == Form::copied_packed;
  }
  bool has_c() const noexcept { return epilogue.beta != 0.0f; }
  bool has_aux() const noexcept { return epilogue.aux; }
  bool has_d() const noexcept { return !rows || !is_scalar(rows->op) || rows->store_d; }
  bool has_bias() const noexcept { return epilogue.bias != Bias::none; }
  bool has_steps() const noexcept { return epilogue.steps[0].op != StepOp::none; }
  bool is_empty() const noexcept {
    return m == 0 || n == 0 || batch == 0 || (grouping && grouping->groups == 0);
  }
  bool is_grouped(GroupAlong along) const noexcept { return grouping && grouping->along == along; }

  // Slots of `slot` rows, or steps of K, that hold groups of all sizes of `capacity` ones
  // (shaders/lib/schedule/group_map.glsl). Before ranges are known to be legal a slot may be 0.
  std::uint64_t group_slots(std::uint64_t capacity, std::uint32_t slot) const noexcept {
    return capacity / std::max(slot, 1u) + grouping->groups;
  }

  // Columns of what is multiplied: N, of a gated product 2N. b_columns: those of the matrix B,
  // where a half of it may be another operand.
  std::uint64_t product_n() const noexcept { return gated ? 2 * n : n; }
  std::uint64_t b_columns() const noexcept { return is_gated(GatedB::separate) ? n : product_n(); }
  bool is_gated(GatedB columns) const noexcept { return gated && gated->b == columns; }
  // True if kernels load neighbours along K: codes always are.
  bool b_in_columns() const noexcept { return b.layout == Layout::col_major || b.quantisation; }

  // Elements from the left half of B to the right one, where both are of one matrix, and from line
  // to line of each half: columns of a column-major B that are l and r by turns are two halves.
  std::uint64_t right_offset() const noexcept;
  std::uint64_t ld_b() const noexcept {
    return is_gated(GatedB::interleaved) && b.layout == Layout::col_major ? 2 * b.ld : b.ld;
  }

  // Rows that are found by index.
  bool gathers_rows() const noexcept { return vkgemm::gathers_rows(grouping); }
  bool adds_rows() const noexcept { return vkgemm::adds_rows(grouping); }
  bool scatters_rows() const noexcept { return places_rows(grouping) && !adds_rows(); }
  bool has_row_index() const noexcept { return vkgemm::has_row_index(grouping); }

  // How many matrices A and B have, and how many biases there are.
  std::uint64_t a_count() const noexcept { return is_grouped(GroupAlong::k) ? 1 : batch; }
  std::uint64_t b_count() const noexcept;
  std::uint64_t bias_count() const noexcept;

  // Rows and depth of a product: of an average group, else of all.
  std::uint64_t typical_m() const noexcept;
  std::uint64_t typical_k() const noexcept;

  // True if A or B can be loaded 16 bytes at a time. Groups that begin at any element of what
  // stands next to each other forbid it, and so does a right half that begins at any element.
  bool a_allows_vectors() const noexcept;
  bool b_allows_vectors() const noexcept;

  bool has_scales() const noexcept {
    return epilogue.row_scales != Scales::none || epilogue.column_scales != Scales::none;
  }
};

// Says of a packed matrix which input it holds.
void set_input(ResolvedMatrix& packed, const Input& input) noexcept;

// resolve() of a problem whose batch has one dimension: outer_batch is not read.
Result<ResolvedProblem> resolve_one_batch(const Problem& problem);

}  // namespace vkgemm
