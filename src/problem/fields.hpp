// fields.hpp: a problem's structures. Each has its fields, with their names and options of the
// command line, and what a structure contradicts. The C API, the checks and the tool walk these
// lists.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "problem/data_type.hpp"
#include "problem/enumerators.hpp"
#include "problem/row_op.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm {

// A field. Without an option of its own it is part of another's text.
struct Field {
  std::string_view name;
  // The names of its option, of which the first is printed. In a matrix % stands for its name.
  const char* option = nullptr;
  const char* help = "";
  bool always = false;                // printed even at its default
  bool used = true;                   // false: the other fields give it no meaning
  const char* needs = "";             // the options that give it one
  bool generated = false;             // a file of the operand says it itself
  Matrix Problem::*matrix = nullptr;  // the matrix that it asks for

  constexpr operator std::string_view() const noexcept { return name; }
};

// visit() passes each field to a visitor, with its values in two structures. The two may be the
// same structure. One of them may be a C structure. A visitor has six functions: number (integers
// and floats), enumerator (maybe optional), boolean, size (optional), real (optional) and part (a
// nested structure); a visitor of an Epilogue also has list (of its tensors and of its steps).
//
// A part that a problem may have also has check(): the error if it contradicts itself or the rest
// of the problem.
template <class T>
struct FieldsOf;

inline constexpr std::uint32_t largest_group_count = 65535;

inline constexpr Field matrix_type{"type", "--dtype-%", "Element type of %"};

template <>
struct FieldsOf<Matrix> {
  static void visit(auto& visitor, auto& x, auto& y) {
    visitor.enumerator(matrix_type, x.type, y.type);
    visitor.enumerator(Field{"packing", "--packed-%"}, x.packing, y.packing);
    visitor.enumerator(Field{"layout", "--layout-%", "Layout of %"}, x.layout, y.layout);
    visitor.size(Field{"ld", "--ld-%,--ld%", "Leading dimension of %, in elements"}, x.ld, y.ld);
    visitor.size(Field{"batch_stride", "--batch-stride-%",
                       "Elements from one matrix of the batch to the next of %"},
                 x.batch_stride, y.batch_stride);
    visitor.size(Field{"outer_batch_stride", "--outer-batch-stride-%",
                       "Elements from one outer batch index to the next of %"},
                 x.outer_batch_stride, y.outer_batch_stride);
    visitor.number(Field{"alignment", "--alignment-%", "Promised alignment of %, in bytes"},
                   x.alignment, y.alignment);
  }
};

template <>
struct FieldsOf<EpilogueStep> {
  static void visit(auto& visitor, auto& x, auto& y) {
    visitor.enumerator(Field{"op"}, x.op, y.op);
    visitor.enumerator(Field{"activation"}, x.activation, y.activation);
    visitor.enumerator(Field{"operand"}, x.operand, y.operand);
    visitor.number(Field{"number"}, x.number, y.number);
  }
};

template <>
struct FieldsOf<Epilogue> {
  static void visit(auto& visitor, auto& x, auto& y) {
    visitor.number(Field{"alpha", "--alpha", "Factor of A*B"}, x.alpha, y.alpha);
    visitor.number(Field{.name = "beta",
                         .option = "--beta",
                         .help = "Factor of C; 0: there is no C",
                         .matrix = &Problem::c},
                   x.beta, y.beta);
    visitor.enumerator(Field{.name = "row_scales",
                             .option = "--row-scales-mode",
                             .help = "Generated factors of the rows of A*B, f32: shared by the "
                                     "batch, or per_matrix",
                             .generated = true},
                       x.row_scales, y.row_scales);
    visitor.enumerator(Field{.name = "column_scales",
                             .option = "--column-scales-mode",
                             .help = "The same of its columns",
                             .generated = true},
                       x.column_scales, y.column_scales);
    visitor.enumerator(Field{"bias", "--bias-mode",
                             "What the bias is added to: along_n: N values, one a column; along_m: "
                             "M values, one a row"},
                       x.bias, y.bias);
    const bool has_bias = static_cast<unsigned>(x.bias) != 0;
    visitor.enumerator(Field{.name = "bias_type",
                             .option = "--dtype-bias",
                             .help = "Element type of a generated bias",
                             .always = true,
                             .used = has_bias,
                             .generated = true},
                       x.bias_type, y.bias_type);
    visitor.number(Field{.name = "bias_batch_stride",
                         .option = "--batch-stride-bias",
                         .help = "Elements from one bias of the batch to the next; 0: one for all",
                         .used = has_bias,
                         .generated = true},
                   x.bias_batch_stride, y.bias_batch_stride);
    visitor.size(Field{.name = "bias_outer_batch_stride",
                       .option = "--outer-batch-stride-bias",
                       .help = "Elements between the biases of consecutive outer batch indices",
                       .used = has_bias,
                       .generated = true},
                 x.bias_outer_batch_stride, y.bias_outer_batch_stride);
    visitor.enumerator(Field{"activation", "--activation", "Function applied before the cast"},
                       x.activation, y.activation);
    visitor.real(Field{"clamp_min", "--clamp-min", "Lower bound of D"}, x.clamp_min, y.clamp_min);
    visitor.real(Field{"clamp_max", "--clamp-max", "Upper bound of D"}, x.clamp_max, y.clamp_max);
    visitor.number(Field{"zero_point", "--zero-point",
                         "Added to the rounded numbers of D in s8 or u8, which then saturate"},
                   x.zero_point, y.zero_point);
    visitor.boolean(Field{.name = "aux",
                          .option = "--with-aux",
                          .help = "Also compute aux, the value before the activation",
                          .matrix = &Problem::aux},
                    x.aux, y.aux);
    visitor.number(Field{"function"}, x.function, y.function);
    visitor.list(Field{"tensors", "--tensors", "Shapes of the tensors t0 to t3 of --steps"},
                 x.tensors, y.tensors);
    visitor.list(
        Field{"steps", "--steps",
              "Steps after the activation or the gate, up to 8: OP:t0 or OP:NUMBER with add, "
              "subtract, multiply, divide, maximum, minimum; activate:ACTIVATION; "
              "derivative:ACTIVATION:t0; store:t0; sum_columns:t0; amax:t0"},
        x.steps, y.steps);
  }
};

template <>
struct FieldsOf<Gated> {
  static void visit(auto& visitor, auto& x, auto& y) {
    visitor.enumerator(Field{"gate"}, x.gate, y.gate);
    visitor.enumerator(Field{"b"}, x.b, y.b);
    visitor.boolean(Field{"swapped"}, x.swapped, y.swapped);
    visitor.number(Field{"limit"}, x.limit, y.limit);
    visitor.number(Field{"slope"}, x.slope, y.slope);
    visitor.number(Field{"offset"}, x.offset, y.offset);
  }

  static MaybeError check_parameters(const Gated& gated) {
    const auto wrong = [&](std::string_view field, float value, std::string_view why) {
      return invalid_argument(concat("gated.", field, " is ", value, ": ", why));
    };
    const auto none = [&](std::string_view field, float value) {
      return wrong(field, value, concat(to_string(gated.gate), " has none"));
    };
    if (!(gated.limit >= 0.0f) || std::isinf(gated.limit)) {
      return wrong("limit", gated.limit, "a number above 0 is needed, or 0 for none");
    }
    if (!(gated.slope > 0.0f) || std::isinf(gated.slope)) {
      return wrong("slope", gated.slope, "a number above 0 is needed");
    }
    if (!std::isfinite(gated.offset)) return wrong("offset", gated.offset, "a number is needed");
    if (gated.gate == Gate::sigmoid_tanh) {
      if (gated.limit != 0.0f) return none("limit", gated.limit);
      if (gated.offset != 0.0f) return none("offset", gated.offset);
      return std::nullopt;
    }
    const bool has_sigmoid = gated.gate == Gate::swiglu || gated.gate == Gate::glu;
    return has_sigmoid || gated.slope == 1.0f ? MaybeError() : none("slope", gated.slope);
  }

  static MaybeError check(const Gated& gated, const Problem& problem) {
    const auto with_gate = [&](const auto&... other) {
      return unsupported(
          concat(other..., " and gated.gate is ", to_string(gated.gate), ": not built together"));
    };
    if (problem.epilogue.beta != 0.0f) return with_gate("epilogue.beta is ", problem.epilogue.beta);
    if (problem.epilogue.activation != Activation::none) {
      return with_gate("epilogue.activation is ", to_string(problem.epilogue.activation));
    }
    if (problem.row_reduction) {
      return with_gate("row_reduction.op is ", to_string(problem.row_reduction->op));
    }
    if (auto error = check_parameters(gated)) return error;
    if (problem.n <= largest_size / 2) return std::nullopt;
    return invalid_argument(
        concat("n is ", problem.n, ": with a gate at most ", largest_size / 2, " is supported"));
  }
};

template <>
struct FieldsOf<Grouping> {
  static void visit(auto& visitor, auto& x, auto& y) {
    visitor.number(Field{.name = "groups", .option = "--group-count", .always = true}, x.groups,
                   y.groups);
    visitor.enumerator(Field{.name = "along", .option = "--group-along", .always = true}, x.along,
                       y.along);
    visitor.enumerator(Field{"offsets", "--offset-type"}, x.offsets, y.offsets);
    visitor.enumerator(Field{"b", "--b-per-group"}, x.b, y.b);
    visitor.enumerator(
        Field{"bounds", "--group-bounds", "The numbers of where groups begin and end"}, x.bounds,
        y.bounds);
    visitor.number(Field{"a_rows", "--a-rows",
                         "Rows of A, which are gathered by generated indices (0: in order)"},
                   x.a_rows, y.a_rows);
    visitor.number(Field{"a_terms", "--a-terms", "Indices that share a row of A"}, x.a_terms,
                   y.a_terms);
    visitor.number(
        Field{"d_rows", "--d-rows",
              "Rows of D, to which rows are scattered by generated indices (0: in order)"},
        x.d_rows, y.d_rows);
    visitor.number(Field{"d_terms", "--d-terms", "Rows that are added up to a row of D"}, x.d_terms,
                   y.d_terms);
    visitor.boolean(Field{"row_weights", "--with-row-weights",
                          "Generate factors of the rows that are added up"},
                    x.row_weights, y.row_weights);
    visitor.number(
        Field{"b_matrices", "--b-matrices",
              "Matrices of B, of which groups have one each by generated indices (0: in order)"},
        x.b_matrices, y.b_matrices);
  }

  static MaybeError check(const Grouping& grouping, const Problem& problem) {
    if (grouping.groups > largest_group_count) {
      return invalid_argument(concat("grouping.groups is ", grouping.groups, ": at most ",
                                     largest_group_count, " are supported"));
    }
    if (problem.batch != 1) {
      return unsupported(concat("batch is ", problem.batch, ": with grouping it must be 1"));
    }
    if (problem.outer_batch != 1) {
      return unsupported(
          concat("outer_batch is ", problem.outer_batch, ": with grouping it must be 1"));
    }
    if (problem.split_k.slices > 1) {
      return unsupported(concat("split_k.slices is ", problem.split_k.slices,
                                ": with grouping it must be 0 or 1"));
    }
    if (auto error = check_indices(grouping, problem)) return error;
    if (grouping.along == GroupAlong::k) {
      if (grouping.b == GroupedB::shared) return std::nullopt;
      return unsupported(
          "grouping.b is per_group and grouping.along is k: groups of K share the matrix B, each "
          "has "
          "rows of it");
    }
    if (problem.d.layout == Layout::col_major) {
      return unsupported("d.layout is col_major and grouping.along is m: D must be row_major");
    }
    const Epilogue& epilogue = problem.epilogue;
    if (epilogue.bias != Bias::along_m || epilogue.bias_batch_stride == 0) return std::nullopt;
    return invalid_argument(concat("epilogue.bias_batch_stride is ", epilogue.bias_batch_stride,
                                   ": with grouping.along m, a bias along_m is one for all rows"));
  }

 private:
  // Rows by index and B by index.
  static MaybeError check_indices(const Grouping& grouping, const Problem& problem);
};

// The operations of is_scalar(), on the command line.
inline constexpr const char* scalar_row_ops =
    "--row-op logsumexp, sum, max, mean, variance or amax";
inline constexpr const char* value_row_ops =
    "--row-op logsumexp, sum, max, mean, variance, amax or quantise";

template <>
struct FieldsOf<RowReduction> {
  static void visit(auto& visitor, auto& x, auto& y) {
    const bool scalar = is_scalar(static_cast<RowOp>(x.op));
    visitor.enumerator(
        Field{
            .name = "op",
            .option = "--row-op",
            .help =
                "What is done with every row of D, after the epilogue: rms_norm to "
                "l2_normalize change it, logsumexp to variance and amax give one number beside it, "
                "quantise makes s8 codes of it and gives their scales. "
                "Not with --gated or groups",
            .always = true},
        x.op, y.op);
    visitor.real(Field{"eps", "--row-eps",
                       "eps of rms_norm (default 1e-6), layer_norm (1e-5) and l2_normalize "
                       "(1e-12)"},
                 x.eps, y.eps);
    visitor.boolean(Field{.name = "gamma",
                          .option = "--with-row-gamma",
                          .help = "Generate gamma of rms_norm and layer_norm: factors, N values",
                          .generated = true},
                    x.gamma, y.gamma);
    visitor.boolean(Field{.name = "beta",
                          .option = "--with-row-beta",
                          .help = "Generate beta of the same, added: N values",
                          .generated = true},
                    x.beta, y.beta);
    visitor.enumerator(Field{.name = "vector_type",
                             .option = "--dtype-row-vectors",
                             .help = "Element type of generated gamma and beta (default f32)",
                             .always = true,
                             .used = x.gamma || x.beta,
                             .needs = "--with-row-gamma or --with-row-beta",
                             .generated = true},
                       x.vector_type, y.vector_type);
    visitor.enumerator(
        Field{.name = "value_type",
              .option = "--dtype-row-values",
              .help = "Element type of the numbers of logsumexp … variance, amax (default "
                      "f32); quantise has f32",
              .always = true,
              .used = gives_values(static_cast<RowOp>(x.op)),
              .needs = value_row_ops},
        x.value_type, y.value_type);
    visitor.boolean(Field{.name = "store_d",
                          .option = "--without-d",
                          .help = "logsumexp … variance, amax: only their numbers, no D",
                          .used = scalar,
                          .needs = scalar_row_ops},
                    x.store_d, y.store_d);
  }

  static MaybeError check(const RowReduction& rows, const Problem& problem) {
    const std::string_view op = to_string(rows.op);
    if (problem.grouping) {
      return unsupported(concat("row_reduction.op is ", op, " and there is a grouping: not built"));
    }
    if (rows.eps) {
      if (!(*rows.eps >= 0.0f) || std::isinf(*rows.eps)) {
        return invalid_argument(concat("row_reduction.eps is ", *rows.eps,
                                       ": a number is needed that is finite and not below 0"));
      }
      if (row_of(rows.op).default_eps == 0.0f) {
        return invalid_argument(concat("row_reduction.eps is ", *rows.eps, ": ", op, " has none"));
      }
    }
    if (auto error = check_row_vectors(problem)) return error;
    if (!is_scalar(rows.op) && !rows.store_d) {
      return invalid_argument(
          concat("row_reduction.store_d is false: D is all that ", op, " gives"));
    }
    return std::nullopt;
  }
};

template <>
struct FieldsOf<SplitK> {
  static void visit(auto& visitor, auto& x, auto& y) {
    visitor.number(Field{"slices"}, x.slices, y.slices);
    visitor.enumerator(Field{"reduction_mode"}, x.reduction_mode, y.reduction_mode);
  }
};

template <>
struct FieldsOf<Quantisation> {
  static void visit(auto& visitor, auto& x, auto& y) {
    visitor.enumerator(Field{"type"}, x.type, y.type);
    visitor.number(Field{"group_k"}, x.group_k, y.group_k);
    visitor.number(Field{"group_n"}, x.group_n, y.group_n);
    visitor.enumerator(Field{"scale_type"}, x.scale_type, y.scale_type);
    visitor.boolean(Field{"zeros"}, x.zeros, y.zeros);
    visitor.boolean(Field{"float_zeros"}, x.float_zeros, y.float_zeros);
    visitor.enumerator(Field{"layout"}, x.layout, y.layout);
  }
};

template <>
struct FieldsOf<Problem> {
  static void visit(auto& visitor, auto& x, auto& y) {
    visitor.number(Field{.name = "m", .option = "--m", .help = "Rows of A and D", .always = true},
                   x.m, y.m);
    visitor.number(
        Field{.name = "n", .option = "--n", .help = "Columns of B and D", .always = true}, x.n,
        y.n);
    visitor.number(
        Field{.name = "k", .option = "--k", .help = "Columns of A, rows of B", .always = true}, x.k,
        y.k);
    visitor.number(Field{"batch", "--batch", "Number of products, or of packed matrices"}, x.batch,
                   y.batch);
    visitor.number(Field{"outer_batch", "--outer-batch",
                         "A second dimension of the batch: outer batch times batch products"},
                   x.outer_batch, y.outer_batch);
    visitor.boolean(Field{"sum_batch", "--sum-batch",
                          "Add the products of --batch up: D has one matrix for all of them"},
                    x.sum_batch, y.sum_batch);
    visitor.part(Field{"quantised_b", "--quantised-b"}, x.quantised_b, y.quantised_b);
    visitor.part(
        Field{"gated", "--gated",
              "D = gate(l, r) of two products with one A: sigmoid(l)*tanh(r), l*gelu(r) "
              "(geglu_erf, geglu_tanh), silu(l)*r (swiglu), l*relu(r) (reglu), l*sigmoid(r) "
              "(glu). N is the number of columns of D, and B has 2N, those of l first; or l and r "
              "are two matrices (:separate), or neighbouring columns (:interleaved). "
              "Parameters: the other half is activated (:swapped), the activated half is at most "
              "limit and the other within it (:limit), sigmoid(slope*x) (:slope), a summand of the "
              "half that is not activated (:offset). Not with beta, an activation, --row-op"},
        x.gated, y.gated);
    visitor.part(Field{"grouping"}, x.grouping, y.grouping);
    // The option of a matrix is that of its type.
    visitor.part(Field{.name = "a", .option = "--dtype", .always = true}, x.a, y.a);
    visitor.part(Field{"b", "--dtype-b"}, x.b, y.b);
    visitor.part(Field{.name = "d", .option = "--dtype-d", .always = true}, x.d, y.d);
    visitor.enumerator(Field{"f32_arithmetic", "--f32",
                             "How f32 is multiplied: in f32 (ieee), or in 16-bit parts on matrix "
                             "units, by 9, 6 or 3 "
                             "products of parts (bf16x9, bf16x6, f16x3)"},
                       x.f32_arithmetic, y.f32_arithmetic);
    visitor.enumerator(
        Field{"multiply_as", "--multiply-as",
              "The type in which A and B are multiplied, if theirs differ, or are f32 or 8 bits"},
        x.multiply_as, y.multiply_as);
    visitor.number(Field{"a_group_k", "--a-group",
                         "s8 or 8-bit floats times a quantised B: elements along K of A that share "
                         "a scale of a row "
                         "(0: all)"},
                   x.a_group_k, y.a_group_k);
    visitor.part(Field{"epilogue"}, x.epilogue, y.epilogue);
    visitor.part(Field{"c"}, x.c, y.c);
    visitor.part(Field{"aux"}, x.aux, y.aux);
    visitor.part(Field{"t0"}, x.t0, y.t0);
    visitor.part(Field{"t1"}, x.t1, y.t1);
    visitor.part(Field{"t2"}, x.t2, y.t2);
    visitor.part(Field{"t3"}, x.t3, y.t3);
    visitor.part(Field{"row_reduction"}, x.row_reduction, y.row_reduction);
    visitor.part(
        Field{"split_k", "--split-k",
              "Split-K: how many slices of K, up to 512, or auto, and who adds them: "
              "two_dispatches, last_arriver or device_barrier (default: the library chooses)"},
        x.split_k, y.split_k);
    visitor.number(Field{"max_workspace_bytes"}, x.max_workspace_bytes, y.max_workspace_bytes);
    visitor.number(Field{"max_dispatch_ms", "--max-dispatch-ms",
                         "Cut dispatches that would take longer (`run` submits each by itself)"},
                   x.max_dispatch_ms, y.max_dispatch_ms);
    visitor.number(
        Field{"estimate_scale", "--estimate-scale",
              "Measured time divided by estimated time on this device, for --max-dispatch-ms; inf: "
              "unknown, so every dispatch is as short as possible (default: `run` measures it)"},
        x.estimate_scale, y.estimate_scale);
  }
};

template <>
struct FieldsOf<RowQuantisation> {
  static void visit(auto& visitor, auto& x, auto& y) {
    visitor.number(Field{"rows"}, x.rows, y.rows);
    visitor.number(Field{"columns"}, x.columns, y.columns);
    visitor.number(Field{"batch"}, x.batch, y.batch);
    visitor.part(Field{"source"}, x.source, y.source);
    visitor.part(Field{"codes"}, x.codes, y.codes);
    visitor.number(Field{"group_k"}, x.group_k, y.group_k);
  }
};

// The structures that are handed over the C API: Matrix is VkgemmMatrix there. X(type, name): the
// name is that in functions.
#define VKGEMM_STRUCTURES(X)     \
  X(Matrix, matrix)              \
  X(Epilogue, epilogue)          \
  X(Gated, gated)                \
  X(Grouping, grouping)          \
  X(RowReduction, row_reduction) \
  X(SplitK, split_k)             \
  X(Quantisation, quantisation)  \
  X(Problem, problem)            \
  X(RowQuantisation, row_quantisation)

// The first of an option's names, with the matrix's name for %.
std::string option_name(std::string_view names, std::string_view matrix = {});

// The text of a part that is one option: "swiglu:interleaved:limit=7", "4:last_arriver".
std::string text_of(const Gated& gated);
std::string text_of(const SplitK& split);

// "activate:silu,multiply:t0"; "matrix,none,along_n".
std::string text_of(std::span<const EpilogueStep> steps);
std::string text_of(std::span<const TensorShape> tensors);

}  // namespace vkgemm
