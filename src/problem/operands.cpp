#include "problem/operands.hpp"

#include <iterator>
#include <optional>

#include "base/arithmetic.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"
#include "lib/abi.h"
#include "problem/epilogue_steps.hpp"
#include "problem/fields.hpp"
#include "problem/row_index.hpp"
#include "problem/row_op.hpp"
#include "problem/tensor_places.hpp"

namespace vkgemm {
namespace {

// The functions of vectors are written once, for problems as they are asked and as they are
// resolved.
std::uint64_t columns_of_product(const Problem& p) { return product_columns(p); }
std::uint64_t columns_of_product(const ResolvedProblem& p) { return p.product_n(); }
const std::optional<RowReduction>& reduction_of(const Problem& p) { return p.row_reduction; }
const std::optional<RowReduction>& reduction_of(const ResolvedProblem& p) { return p.rows; }

// The number of products: groups, or matrices of a batch.
std::uint64_t products(const auto& p) { return p.grouping ? p.grouping->groups : p.batch; }
// Vectors along N, of which products have one each: those of matrices B.
std::uint64_t vectors(const auto& p) { return p.grouping ? matrices_of(*p.grouping) : p.batch; }

bool is_grouped(const Problem& p, GroupAlong along) {
  return p.grouping && p.grouping->along == along;
}

// --- vectors ------------------------------------------------------------------------------------

constexpr auto has_bias = [](const auto& p) { return p.epilogue.bias != Bias::none; };
constexpr auto bias_shape = [](const auto& p) {
  const Epilogue& e = p.epilogue;
  return e.bias == Bias::along_m
             ? vector_along_m(e.bias_type, p.m, products(p), e.bias_batch_stride)
             : vector_along_n(e.bias_type, columns_of_product(p), vectors(p), e.bias_batch_stride);
};

constexpr auto has_row_scales = [](const auto& p) { return p.epilogue.row_scales != Scales::none; };
constexpr auto row_scales_shape = [](const auto& p) {
  // Rows of groups along M follow each other: one vector is for all.
  const bool by_rows = p.grouping && p.grouping->along == GroupAlong::m;
  const bool many = p.epilogue.row_scales == Scales::per_matrix && !by_rows;
  const std::uint64_t rows = gathers_rows(p.grouping) ? p.grouping->a_rows : p.m;
  if (p.a_group_k == 0) {
    return vector_along_m(DataType::f32, rows, many ? products(p) : 1, many ? p.m : 0);
  }
  const std::uint64_t groups = divided_up(p.k, std::uint64_t{p.a_group_k});
  return OperandShape{{.type = DataType::f32, .batch_stride = many ? p.m * groups : 0},
                      rows,
                      groups,
                      many ? products(p) : 1};
};

constexpr auto has_column_scales = [](const auto& p) {
  return p.epilogue.column_scales != Scales::none;
};
constexpr auto column_scales_shape = [](const auto& p) {
  const bool many = p.epilogue.column_scales == Scales::per_matrix;
  const std::uint64_t columns = columns_of_product(p);
  return vector_along_n(DataType::f32, columns, many ? vectors(p) : 1, many ? columns : 0);
};

constexpr auto has_gamma = [](const auto& p) { return reduction_of(p) && reduction_of(p)->gamma; };
constexpr auto has_beta = [](const auto& p) { return reduction_of(p) && reduction_of(p)->beta; };
constexpr auto row_vector_shape = [](const auto& p) {
  return vector_along_n(reduction_of(p).value_or(RowReduction{}).vector_type, p.n, 1, 0);
};

constexpr auto has_row_values = [](const auto& p) {
  return reduction_of(p) && gives_values(reduction_of(p)->op);
};
constexpr auto row_values_shape = [](const auto& p) {
  const DataType type = reduction_of(p).value_or(RowReduction{}).value_type;
  return vector_along_m(type, p.m, p.batch, p.m);
};

// Numbers of groups, which are integers.
OperandShape integers(std::uint64_t count, std::uint32_t bytes) {
  OperandShape out = vector_along_n(DataType::f32, count, 1, 0);
  out.element_bytes = bytes;
  return out;
}
constexpr auto has_offsets = [](const auto& p) {
  return p.grouping && p.grouping->bounds != GroupBounds::sizes;
};
constexpr auto offsets_shape = [](const auto& p) {
  const Grouping g = p.grouping.value_or(Grouping{});
  const bool ends = g.bounds == GroupBounds::offsets;
  return integers(std::uint64_t{g.groups} + (ends ? 1 : 0), size_in_bytes(g.offsets));
};
constexpr auto has_sizes = [](const auto& p) {
  return p.grouping && p.grouping->bounds != GroupBounds::offsets;
};
constexpr auto sizes_shape = [](const auto& p) {
  const Grouping g = p.grouping.value_or(Grouping{});
  return integers(g.groups, size_in_bytes(g.offsets));
};

constexpr auto indexes_rows = [](const auto& p) { return has_row_index(p.grouping); };
constexpr auto row_index_shape = [](const auto& p) {
  OperandShape out = vector_along_m(DataType::f32, p.m, 1, 0);
  out.element_bytes = sizeof(std::uint32_t);
  return out;
};
constexpr auto has_row_weights = [](const auto& p) {
  return p.grouping && p.grouping->row_weights;
};
constexpr auto row_weights_shape = [](const auto& p) {
  return vector_along_n(DataType::f32, places_of(p.grouping.value_or(Grouping{})), 1, 0);
};
constexpr auto indexes_b = [](const auto& p) { return has_b_index(p.grouping); };
constexpr auto b_index_shape = [](const auto& p) {
  return integers(p.grouping.value_or(Grouping{}).groups, sizeof(std::uint32_t));
};

void ask_for_bias(Problem& p, DataType type, bool several) {
  Epilogue& e = p.epilogue;
  if (e.bias == Bias::none) e.bias = Bias::along_n;
  e.bias_type = type;
  e.bias_batch_stride = several ? bias_shape(p).length() : 0;
}
template <Scales Epilogue::*scales>
void ask_for_scales(Problem& p, DataType, bool several) {
  p.epilogue.*scales = several ? Scales::per_matrix : Scales::shared;
}
template <bool RowReduction::*vector>
void ask_for_row_vector(Problem& p, DataType type, bool) {
  if (!p.row_reduction) return;
  RowReduction& rows = *p.row_reduction;
  if (!rows.gamma && !rows.beta) rows.vector_type = type;
  rows.*vector = true;
}

Operand vector_operand(const OperandShape& shape) {
  const std::uint64_t element = shape.element();
  return {.bytes = shape.bytes(),
          .alignment = shape.element(),
          .row_step = !shape.row_major() ? element
                      : shape.rows > 1   ? shape.ld() * element
                                         : 0,
          .batch_step = shape.batch_stride() * element};
}

// A row of a vector, but for its name.
template <auto exists, auto shape>
constexpr OperandRow vector_row(OperandRow row) {
  row.exists = [](const Problem& p) { return exists(p); };
  row.shape_of = [](const Problem& p) { return shape(p); };
  row.is_touched = [](const ResolvedProblem& p) { return exists(p); };
  row.operand = [](const ResolvedProblem& p) { return vector_operand(shape(p)); };
  return row;
}

// Kernels read the caller's offsets, or a table that one of them makes of the caller's numbers.
constexpr OperandRow offsets_row() {
  OperandRow row = vector_row<has_offsets, offsets_shape>({.id = OperandId::offsets,
                                                           .name = "offsets",
                                                           .span = &Operands::offsets,
                                                           .twin = OperandId::offsets,
                                                           .is_integer = true});
  row.operand = [](const ResolvedProblem& p) {
    Operand out = vector_operand(offsets_shape(p));
    out.address = p.grouping->bounds == GroupBounds::offsets ? &Addresses::offsets
                                                             : &Addresses::given_offsets;
    return out;
  };
  return row;
}

// --- operands of plans that prepare others ------------------------------------------------------

constexpr OperandRow prepared_row(OperandId id, std::string_view name, DeviceSpan Operands::*span,
                                  std::uint64_t Addresses::*address) {
  return {.id = id,
          .name = name,
          .span = span,
          .address = address,
          .twin = id,
          .exists = [](const Problem&) { return false; },
          .shape_of = [](const Problem&) { return OperandShape{}; },
          .is_touched = [](const ResolvedProblem&) { return false; },
          .operand = [](const ResolvedProblem&) { return Operand{}; }};
}

// --- matrices -----------------------------------------------------------------------------------

Operand matrix_operand(const ResolvedMatrix& matrix, std::uint64_t count) {
  const std::uint64_t element = matrix.element_bytes();
  Operand out{.bytes = matrix.bytes,
              .alignment = matrix.alignment,
              .batch_step = matrix.batch_stride * element};
  if (matrix.is_packed()) {
    // Fragments stand along M or N in steps of their depth.
    out.row_step = (matrix.fragments ? matrix.fragments->k : 1) * element;
    return out;
  }
  out.line_bytes = matrix.contiguous() * element;
  out.pitch = matrix.ld * element;
  out.matrix_pitch = count > 1 ? matrix.batch_stride * element : 0;
  out.row_step = (matrix.layout == Layout::row_major ? matrix.ld : 1) * element;
  if (out.matrix_pitch != 0 && out.matrix_pitch < out.pitch) {
    // The batch lies side by side within the lines, as attention heads do: one wider piece of line.
    out.line_bytes += (count - 1) * out.matrix_pitch;
    out.matrix_pitch = 0;
  }
  return out;
}

OperandShape b_shape(const Problem& p) {
  const bool own = p.grouping && p.grouping->b == GroupedB::per_group;
  return {p.b, p.k, columns_of_b(p), own ? matrices_of(*p.grouping) : p.batch};
}

// Every row of D has all of B.
Operand b_operand(const ResolvedProblem& p) {
  Operand out = matrix_operand(p.b, p.b_count() * p.summed);
  out.row_step = 0;
  return out;
}

// C, D and aux.
template <Matrix Problem::*matrix>
OperandShape result_shape(const Problem& p) {
  const bool placed = matrix == &Problem::d && places_rows(p.grouping);
  return {p.*matrix, placed ? p.grouping->d_rows : p.m,
          matrix == &Problem::aux ? product_columns(p) : p.n,
          is_grouped(p, GroupAlong::k) ? p.grouping->groups : p.batch};
}
template <ResolvedMatrix ResolvedProblem::*matrix>
Operand result_operand(const ResolvedProblem& p) {
  return matrix_operand(p.*matrix, p.batch);
}

// --- tensors of the epilogue's steps ------------------------------------------------------------

Operand tensor_operand(const ResolvedProblem& p, std::size_t tensor) {
  const ResolvedMatrix& matrix = p.tensors[tensor];
  const TensorShape shape = p.epilogue.tensors[tensor];
  Operand out;
  if (has_elements(shape)) {
    out = matrix_operand(matrix, p.batch);
  } else {
    const std::uint64_t element = matrix.element_bytes();
    out = {.bytes = matrix.bytes,
           .alignment = matrix.alignment,
           .row_step = shape == TensorShape::along_m ? element : 0,
           .batch_step = matrix.batch_stride * element};
  }
  // The product leaves the sums of tiles in the place of the tensor, for the kernel that adds them.
  out.address = is_summed(p.epilogue, tensor) ? &Addresses::column_sums
                                              : address_of_place(places_of(p)[tensor]);
  // reset.comp has the address of amax, too.
  if (has_step(p.epilogue, StepOp::amax, tensor)) out.also = &Addresses::amax;
  out.written = is_written(p.epilogue, tensor);
  return out;
}

template <std::size_t tensor>
constexpr OperandRow row_of_tensor(OperandId id, DeviceSpan Operands::*span, const char* option) {
  return {.id = id,
          .name = tensor_names[tensor],
          .span = span,
          .twin = id,
          .written_by = [](const Problem& p) { return is_written(p.epilogue, tensor); },
          .matrix = tensor_matrices[tensor],
          .exists = [](const Problem& p) { return has_tensor(p.epilogue, tensor); },
          .shape_of = [](const Problem& p) { return tensor_shape(p, tensor); },
          .is_touched = [](const ResolvedProblem& p) { return has_tensor(p.epilogue, tensor); },
          .operand = [](const ResolvedProblem& p) { return tensor_operand(p, tensor); },
          .option = option,
          .help = "A tensor of --steps; written if a step stores to it, sums columns or finds amax",
          .needs = "--steps and --tensors"};
}

constexpr OperandRow rows[] = {
    {.id = OperandId::a,
     .name = "a",
     .span = &Operands::a,
     .address = &Addresses::a,
     .twin = OperandId::b,
     .matrix = &Problem::a,
     .fingerprint = &Operands::a_fingerprint,
     .exists = [](const Problem&) { return true; },
     .shape_of =
         [](const Problem& p) {
           const std::uint64_t rows = gathers_rows(p.grouping) ? p.grouping->a_rows : p.m;
           return OperandShape{p.a, rows, p.k, p.batch};
         },
     .is_touched = [](const ResolvedProblem& p) { return p.k != 0; },
     .operand =
         [](const ResolvedProblem& p) { return matrix_operand(p.a, p.a_count() * p.summed); },
     .option = "--a",
     .help = "A, M x K; or .vkp, as `vkgemm pack` writes it"},
    {.id = OperandId::b,
     .name = "b",
     .span = &Operands::b,
     .address = &Addresses::b,
     .twin = OperandId::a,
     .matrix = &Problem::b,
     .fingerprint = &Operands::b_fingerprint,
     .exists = [](const Problem&) { return true; },
     .shape_of = b_shape,
     .is_touched = [](const ResolvedProblem& p) { return p.k != 0; },
     .operand = b_operand,
     .option = "--b",
     .help = "B, K x N; or .vkp"},
    {.id = OperandId::b_right,
     .name = "b_right",
     .span = &Operands::b_right,
     .address = &Addresses::b_right,
     .twin = OperandId::b_right,
     .matrix = &Problem::b,
     .fingerprint = &Operands::b_right_fingerprint,
     .exists = [](const Problem& p) { return p.gated && p.gated->b == GatedB::separate; },
     .shape_of = b_shape,
     .is_touched =
         [](const ResolvedProblem& p) { return p.k != 0 && p.is_gated(GatedB::separate); },
     .operand =
         [](const ResolvedProblem& p) {
           Operand out = b_operand(p);
           out.batch_step = 0;  // it lies as far from b everywhere
           return out;
         },
     .option = "--b-right",
     .help = "Right half of B, see --gated",
     .needs = "--gated …:separate"},
    {.id = OperandId::c,
     .name = "c",
     .span = &Operands::c,
     .address = &Addresses::c,
     .twin = OperandId::c,
     .matrix = &Problem::c,
     .exists = [](const Problem& p) { return p.epilogue.beta != 0.0f; },
     .shape_of = result_shape<&Problem::c>,
     .is_touched = [](const ResolvedProblem& p) { return p.has_c(); },
     .operand = result_operand<&ResolvedProblem::c>,
     .option = "--c",
     .help = "C, M x N",
     .needs = "--beta, the factor of C"},
    {.id = OperandId::d,
     .name = "d",
     .span = &Operands::d,
     .address = &Addresses::d,
     .twin = OperandId::d,
     .written = true,
     .matrix = &Problem::d,
     .exists =
         [](const Problem& p) {
           return !p.row_reduction || !is_scalar(p.row_reduction->op) || p.row_reduction->store_d;
         },
     .shape_of = result_shape<&Problem::d>,
     .is_touched = [](const ResolvedProblem& p) { return p.has_d(); },
     .operand = result_operand<&ResolvedProblem::d>,
     .option = "--out,--d",
     .help = "Write D",
     .needs = "a D, which --without-d leaves out"},
    vector_row<has_bias, bias_shape>({.id = OperandId::bias,
                                      .name = "bias",
                                      .span = &Operands::bias,
                                      .address = &Addresses::bias,
                                      .twin = OperandId::bias,
                                      .option = "--bias",
                                      .help = "Bias, N values (or M, see --bias-mode)",
                                      .needs = "--bias-mode along_n or along_m",
                                      .ask = ask_for_bias}),
    vector_row<has_row_scales, row_scales_shape>(
        {.id = OperandId::row_scales,
         .name = "row_scales",
         .span = &Operands::row_scales,
         .address = &Addresses::row_scales,
         .twin = OperandId::column_scales,
         .option = "--row-scales",
         .help = "Factors of the rows of A*B, f32: M values, or batch x M",
         .ask = ask_for_scales<&Epilogue::row_scales>}),
    vector_row<has_column_scales, column_scales_shape>(
        {.id = OperandId::column_scales,
         .name = "column_scales",
         .span = &Operands::column_scales,
         .address = &Addresses::column_scales,
         .twin = OperandId::row_scales,
         .option = "--column-scales",
         .help =
             "Factors of its columns, f32: N values, or batch x N; of groups along m groups x N",
         .ask = ask_for_scales<&Epilogue::column_scales>}),
    {.id = OperandId::aux,
     .name = "aux",
     .span = &Operands::aux,
     .address = &Addresses::aux,
     .twin = OperandId::aux,
     .written = true,
     .matrix = &Problem::aux,
     .exists = [](const Problem& p) { return p.epilogue.aux; },
     .shape_of = result_shape<&Problem::aux>,
     .is_touched = [](const ResolvedProblem& p) { return p.has_aux(); },
     .operand = result_operand<&ResolvedProblem::aux>,
     .option = "--aux",
     .help = "Write aux, the value before the activation",
     .ask = [](Problem& p, DataType, bool) { p.epilogue.aux = true; }},
    vector_row<has_gamma, row_vector_shape>(
        {.id = OperandId::gamma,
         .name = "gamma",
         .span = &Operands::gamma,
         .address = &Addresses::gamma,
         .twin = OperandId::gamma,
         .row_constant = SPEC_ROW_GAMMA,
         .option = "--row-gamma",
         .help = "gamma of --row-op rms_norm and layer_norm: factors, N values",
         .needs = "--row-op rms_norm or layer_norm",
         .ask = ask_for_row_vector<&RowReduction::gamma>}),
    vector_row<has_beta, row_vector_shape>({.id = OperandId::beta,
                                            .name = "beta",
                                            .span = &Operands::beta,
                                            .address = &Addresses::shift,
                                            .twin = OperandId::beta,
                                            .row_constant = SPEC_ROW_SHIFT,
                                            .option = "--row-beta",
                                            .help = "beta of the same, added: N values",
                                            .needs = "--row-op rms_norm or layer_norm",
                                            .ask = ask_for_row_vector<&RowReduction::beta>}),
    vector_row<has_row_values, row_values_shape>(
        {.id = OperandId::row_values,
         .name = "row_values",
         .span = &Operands::row_values,
         .address = &Addresses::row_values,
         .twin = OperandId::row_values,
         .written = true,
         .option = "--row-values",
         .help = "Write the rows' numbers that --row-op logsumexp … variance gives",
         .needs = scalar_row_ops}),
    offsets_row(),
    row_of_tensor<0>(OperandId::t0, &Operands::t0, "--t0"),
    row_of_tensor<1>(OperandId::t1, &Operands::t1, "--t1"),
    row_of_tensor<2>(OperandId::t2, &Operands::t2, "--t2"),
    row_of_tensor<3>(OperandId::t3, &Operands::t3, "--t3"),
    vector_row<has_sizes, sizes_shape>({.id = OperandId::group_sizes,
                                        .name = "group_sizes",
                                        .span = &Operands::group_sizes,
                                        .address = &Addresses::group_sizes,
                                        .twin = OperandId::group_sizes,
                                        .is_integer = true}),
    vector_row<indexes_rows, row_index_shape>({.id = OperandId::row_index,
                                               .name = "row_index",
                                               .span = &Operands::row_index,
                                               .address = &Addresses::row_index,
                                               .twin = OperandId::row_index,
                                               .is_integer = true}),
    vector_row<has_row_weights, row_weights_shape>(
        {.id = OperandId::row_weights,
         .name = "row_weights",
         .span = &Operands::row_weights,
         .address = &Addresses::row_weights,
         .twin = OperandId::row_weights,
         .option = "--row-weights",
         .help = "Factors of the rows that are added up to rows of D, f32: --d-rows x --d-terms",
         .needs = "--d-rows",
         .ask =
             [](Problem& p, DataType, bool) {
               if (p.grouping) p.grouping->row_weights = true;
             }}),
    vector_row<indexes_b, b_index_shape>({.id = OperandId::b_index,
                                          .name = "b_index",
                                          .span = &Operands::b_index,
                                          .address = &Addresses::b_index,
                                          .twin = OperandId::b_index,
                                          .is_integer = true}),
    prepared_row(OperandId::source, "source", &Operands::source, &Addresses::source),
    prepared_row(OperandId::codes, "codes", &Operands::codes, &Addresses::codes),
    prepared_row(OperandId::scales, "scales", &Operands::scales, &Addresses::scales),
    prepared_row(OperandId::zeros, "zeros", &Operands::zeros, &Addresses::zeros),
    prepared_row(OperandId::packed, "packed", &Operands::packed, &Addresses::copy),
};

static_assert(
    [] {
      for (std::size_t i = 0; i < std::size(rows); ++i) {
        if (static_cast<std::size_t>(rows[i].id) != i) return false;
        if (rows[static_cast<std::size_t>(rows[i].twin)].twin != rows[i].id) return false;
      }
      return std::size(rows) == operand_count;
    }(),
    "rows are in the order of the enumerators, and twins are each other's");

}  // namespace

std::span<const OperandRow, operand_count> operand_rows() noexcept { return rows; }

MaybeError check_row_vectors(const Problem& p) {
  const RowOp op = p.row_reduction->op;
  if (row_of(op).takes_vectors) return std::nullopt;
  for (const OperandRow& row : rows) {
    if (!row.row_constant || !row.exists(p)) continue;
    return unsupported(concat("row_reduction.", row.name, " is true and row_reduction.op is ",
                              to_string(op), ": rms_norm and layer_norm have them"));
  }
  return std::nullopt;
}

Operand prepared_operand(OperandId id, std::uint64_t bytes, std::uint64_t alignment, bool written) {
  const OperandRow& row = row_of(id);
  return {.id = id,
          .name = row.name,
          .span = row.span,
          .address = row.address,
          .bytes = bytes,
          .alignment = static_cast<std::uint32_t>(alignment),
          .written = written};
}

namespace {

bool is_tensor(OperandId id) { return id >= OperandId::t0 && id <= OperandId::t3; }
// The shape of a tensor of steps.
TensorShape tensor_shape_of(const Problem& problem, OperandId id) {
  return problem.epilogue
      .tensors[static_cast<std::size_t>(id) - static_cast<std::size_t>(OperandId::t0)];
}

}  // namespace

Problem one_sum(const Problem& problem) {
  Problem out = problem;
  out.batch = 1;
  out.sum_batch = false;
  return out;
}

OperandShape OperandRow::inner_shape(const Problem& problem) const {
  const bool is_summed = problem.sum_batch && !is_multiplied();
  return shape_of(is_summed ? one_sum(problem) : problem);
}

std::uint64_t OperandRow::outer_stride(const Problem& problem) const {
  if (id == OperandId::bias && problem.epilogue.bias_outer_batch_stride) {
    return *problem.epilogue.bias_outer_batch_stride;
  }
  const OperandShape one = inner_shape(problem);
  const std::uint64_t batch = is_multiplied() ? problem.batch : result_count(problem);
  if (matrix == nullptr) return batch * one.batch_stride();
  const Matrix& given = problem.*matrix;
  if (given.outer_batch_stride) return *given.outer_batch_stride;
  if (given.packing != Packing::plain) {
    const std::uint64_t stride = given.batch_stride.value_or(1);
    return stride == 0 ? 1 : batch * stride;
  }
  // Vectors of steps are shared unless a stride says otherwise.
  const bool is_vector = is_tensor(id) && !has_elements(tensor_shape_of(problem, id));
  const std::uint64_t stride = one.batch_stride();
  return stride == 0 && !is_vector ? one.lines() * one.ld() : batch * stride;
}

OperandShape OperandRow::shape(const Problem& problem) const {
  OperandShape out = inner_shape(problem);
  if (problem.outer_batch == 1) return out;
  out.outer_stride = outer_stride(problem);
  if (out.count == 1 && out.outer_stride == 0) return out;
  out.inner_count = out.count;
  out.count *= problem.outer_batch;
  return out;
}

bool is_empty(const Problem& p) noexcept {
  return p.m == 0 || p.n == 0 || (p.batch == 0 && !p.sum_batch) || p.outer_batch == 0 ||
         (p.grouping && p.grouping->groups == 0);
}

std::uint64_t product_columns(const Problem& p) noexcept { return p.gated ? 2 * p.n : p.n; }

std::uint64_t columns_of_b(const Problem& p) noexcept {
  return p.gated && p.gated->b == GatedB::separate ? p.n : product_columns(p);
}

PerOperand<std::uint64_t> operand_bytes(const Problem& problem) noexcept {
  PerOperand<std::uint64_t> out;
  if (is_empty(problem)) return out;
  for (const OperandRow& row : rows) {
    if (row.exists(problem)) out[row.id] = row.shape(problem).bytes();
  }
  return out;
}

OperandList operands_of(const ResolvedProblem& problem) noexcept {
  OperandList out;
  if (problem.is_empty()) return out;
  for (const OperandRow& row : rows) {
    if (!row.is_touched(problem)) continue;
    const OperandRow& given = problem.transposed ? row_of(row.twin) : row;
    Operand operand = row.operand(problem);
    operand.id = given.id;
    operand.name = given.name;
    operand.span = given.span;
    if (row.address != nullptr) operand.address = row.address;
    operand.written = operand.written || row.written;
    if (problem.repeats > 1) {
      operand.repeat_step = problem.repeat_steps[operand.id];
      operand.bytes += (problem.repeats - 1) * operand.repeat_step;
      if (operand.repeat_step < operand.pitch) {
        operand.line_bytes += (problem.repeats - 1) * operand.repeat_step;
      } else if (operand.pitch != 0 && operand.repeat_step % operand.pitch != 0) {
        operand.pitch = 0;
      }
    }
    out.add(operand);
  }
  return out;
}

}  // namespace vkgemm
