#include "tool/cases.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "oracle/heavy_epilogue.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/fields.hpp"
#include "problem/inputs/input.hpp"
#include "tool/options.hpp"
#include "tool/planning.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

// A step, whose tensor is a matrix; or a mask, column sums, or amax.
bool add_step(const std::string& part, Epilogue& epilogue) {
  constexpr std::string_view mask = "mask:";
  const bool is_mask = part.starts_with(mask);
  const std::size_t count = steps_of(epilogue).size();
  const auto step = parse_epilogue_step(is_mask ? part.substr(mask.size()) : part);
  if (!step || count == most_steps) return false;
  epilogue.steps[count] = *step;
  if (const auto tensor = tensor_of(*step)) {
    epilogue.tensors[*tensor] = step->op == StepOp::sum_columns ? TensorShape::along_n
                                : step->op == StepOp::amax      ? TensorShape::scalar
                                : is_mask                       ? TensorShape::mask
                                                                : TensorShape::matrix;
  }
  return true;
}

// One part of an epilogue's name.
bool add_part(const std::string& part, Epilogue& epilogue) {
  if (part == "bias") {
    epilogue.bias = Bias::along_n;
  } else if (part == "bias_m") {
    epilogue.bias = Bias::along_m;
  } else if (part == "row_scales") {
    epilogue.row_scales = Scales::shared;
  } else if (part == "column_scales") {
    epilogue.column_scales = Scales::shared;
  } else if (part == "residual") {
    epilogue.beta = 1.0f;
  } else if (part == "aux") {
    epilogue.aux = true;
  } else {
    const auto activation = parse_activation(part);
    if (!activation) return add_step(part, epilogue);
    if (*activation == Activation::none || takes_number(*activation)) return false;
    epilogue.activation = *activation;
  }
  return true;
}

std::optional<Epilogue> parse_epilogue(const std::string& text) {
  if (text == "plain") return Epilogue{};
  if (text == "heavy") return oracle::heavy_epilogue();
  Epilogue epilogue;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    if (!add_part(text.substr(begin, end - begin), epilogue)) return std::nullopt;
    begin = end + 1;
  }
  return epilogue;
}

// The parts of a case's name that say what is done with rows. The last word of an option is a
// field's name: "--with-row-gamma" is gamma.
class RowNames {
 public:
  explicit RowNames(std::vector<std::string>& names) : names_(names) {}

  void enumerator(const Field&, const RowOp& op, const RowOp&) {
    names_.emplace_back(to_string(op));
  }
  void enumerator(const Field& field, const DataType& type, const DataType& usual) {
    if (type != usual) names_.push_back(concat(last_word(field), ':', to_string(type)));
  }
  void boolean(const Field& field, bool value, bool) {
    if (value && field.used) names_.emplace_back(last_word(field));
  }
  void real(const Field&, const auto&, const auto&) {}

 private:
  static std::string_view last_word(const Field& field) {
    const std::string_view option = field.option;
    return option.substr(option.rfind('-') + 1);
  }
  std::vector<std::string>& names_;
};

// The name that tells a row of results from others: its parts, joined by +, with what is not as
// most have it.
std::string name_epilogue(const CaseOptions& options) {
  std::vector<std::string> parts;
  if (options.epilogue != "plain") parts.push_back(options.epilogue);
  const Problem& product = options.product.values;
  if (product.gated) parts.push_back(text_of(*product.gated));
  if (const auto rows = row_reduction(options.rows)) {
    const RowReduction usual;
    RowNames names(parts);
    FieldsOf<RowReduction>::visit(names, *rows, usual);
  }
  if (product.f32_arithmetic != F32Arithmetic::ieee) {
    parts.emplace_back(to_string(product.f32_arithmetic));
  }
  if (product.multiply_as) parts.push_back(concat("as:", to_string(*product.multiply_as)));
  if (options.type_b) parts.push_back(concat("b:", to_string(*options.type_b)));
  if (options.type_d) parts.push_back(concat("d:", to_string(*options.type_d)));
  if (product.batch != 1) parts.push_back(concat("batch:", product.batch));
  if (product.sum_batch) parts.emplace_back("sum_batch");
  if (product.outer_batch != 1) parts.push_back(concat("outer_batch:", product.outer_batch));
  if (product.split_k != SplitK{}) parts.push_back("split_k:" + text_of(product.split_k));
  if (product.a_group_k != 0) parts.push_back(concat("a_group:", product.a_group_k));
  if (product.max_dispatch_ms > 0.0) {
    parts.push_back(concat("max_dispatch_ms:", product.max_dispatch_ms));
  }
  std::string name;
  for (const std::string& part : parts) name += (name.empty() ? "" : "+") + part;
  return name.empty() ? "plain" : name;
}

}  // namespace

void CaseOptions::add(CLI::App& app) {
  app.add_option("--shapes", shapes,
                 "MxNxK or N, separated by commas; with groups NxK, or MxN with --group-along k");
  app.add_option("--dtype", types, names_of(is_element) + "; may be repeated")
      ->capture_default_str();
  add_type(app, "--dtype-b", type_b, "Element type of B (default: that of A)", is_element);
  add_type(app, "--dtype-d", type_d,
           "Element type of D (default: that of A; of s8 s32 or f16, of other bytes f16)",
           [](DataType) { return true; });
  add_named(app, "--layout-a", layout_a, "Layout of A");
  add_named(app, "--layout-b", layout_b, "Layout of B");
  app.add_option(
         "--epilogue", epilogue,
         "plain: nothing; heavy: alpha, residual, bias, gelu and aux; or parts joined by +: "
         "bias, bias_m, row_scales, column_scales, residual, aux, an activation, steps like "
         "multiply:t0, whose tensors are matrices, mask:store:t0 with a mask, sum_columns:t1, "
         "amax:t2")
      ->check([](const std::string& text) {
        return parse_epilogue(text)
                   ? std::string()
                   : "is '" + text + "': plain, heavy, or parts like bias+gelu_erf are needed";
      })
      ->capture_default_str();
  groups.add(app);
  tool::add(app, rows);
  packs.add(app);
  tool::add(app, product,
            {"batch", "outer_batch", "sum_batch", "f32_arithmetic", "multiply_as", "a_group_k",
             "gated", "split_k", "max_dispatch_ms", "estimate_scale"});
}

std::vector<BenchCase> CaseOptions::cases() const {
  std::vector<BenchCase> cases;
  for (const std::string& text : types) {
    const auto type = parse_type(text, is_element);
    if (!type) {
      throw Failure(usage_error,
                    "--dtype is '" + text + "': one of " + names_of(is_element) + " is needed");
    }
    for (Shape shape : groups.shapes(shapes)) {
      if (shape.m == 0U || shape.n == 0 || shape.k == 0U || product.values.batch == 0) {
        throw Failure(usage_error, "--shapes: '" + shapes + "' has no work to time");
      }
      BenchCase one{.problem = product.values, .epilogue = name_epilogue(*this)};
      one.groups = groups.groups(shape.m, shape.k);
      Problem& problem = one.problem;
      problem.m = shape.m.value();
      problem.n = shape.n;
      problem.k = shape.k.value();
      problem.a.type = *type;
      problem.b.type = type_b.value_or(*type);
      problem.a.layout = layout_a.value_or(Layout::row_major);
      problem.b.layout = layout_b.value_or(Layout::row_major);
      problem.row_reduction = row_reduction(rows);
      problem.epilogue = parse_epilogue(epilogue).value();
      problem.grouping = one.groups.grouping;
      for (Matrix* matrix : {&problem.c, &problem.d, &problem.aux}) {
        matrix->type = default_result(problem, packs.codes.has_value());
      }
      for (std::size_t i = 0; i < most_tensors; ++i) {
        (problem.*tensor_matrices[i]).type =
            usual_type(problem.epilogue, i, default_result(problem, packs.codes.has_value()));
      }
      if (type_d) problem.d.type = *type_d;
      problem = packs.packed(problem);
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

}  // namespace vkgemm::tool
