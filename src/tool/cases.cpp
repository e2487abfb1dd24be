#include "tool/cases.hpp"

#include <algorithm>
#include <cstdio>

#include "oracle/heavy_epilogue.hpp"
#include "tool/gated.hpp"
#include "tool/options.hpp"
#include "tool/planning.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

// M or K not set: what the groups hold.
struct Shape {
  std::optional<std::uint64_t> m;
  std::uint64_t n;
  std::optional<std::uint64_t> k;
};

std::vector<Shape> parse_shapes(const std::string& text, const GroupOptions& groups) {
  std::vector<Shape> shapes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    const std::vector<std::uint64_t> sizes = parse_sizes("--shapes", one);
    const bool two = sizes.size() == 2 && groups.given();
    if (sizes.size() != 1 && sizes.size() != 3 && !two) {
      throw Failure(usage_error, "--shapes: '" + one + "' is neither N nor MxNxK");
    }
    for (const std::uint64_t size : sizes) {
      if (size == 0) throw Failure(usage_error, "--shapes: '" + one + "' has no work to time");
    }
    if (sizes.size() == 1) {
      shapes.push_back({sizes[0], sizes[0], sizes[0]});
    } else if (sizes.size() == 3) {
      shapes.push_back({sizes[0], sizes[1], sizes[2]});
    } else if (groups.along == GroupAlong::m) {
      shapes.push_back({std::nullopt, sizes[0], sizes[1]});
    } else {
      shapes.push_back({sizes[0], sizes[1], std::nullopt});
    }
    begin = end + 1;
  }
  return shapes;
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
    if (!activation || *activation == Activation::none) return false;
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

// The name that tells a row of results from others: its parts, joined by +, with what is not as
// most have it.
std::string name_epilogue(const CaseOptions& options) {
  std::string name = options.epilogue;
  const auto add = [&name](const std::string& part) {
    name = name == "plain" ? part : name + '+' + part;
  };
  if (options.gated) {
    std::string gate(to_string(options.gated->gate));
    if (options.gated->b != GatedB::halves) gate += ':' + std::string(to_string(options.gated->b));
    add(gate);
  }
  if (options.rows.has("op")) {
    add(std::string(to_string(options.rows.values.op)));
    if (options.rows.values.gamma) add("gamma");
    if (options.rows.values.beta) add("beta");
    if (is_scalar(options.rows.values.op) && options.rows.values.store_d) add("d");
    const auto add_type = [&](const char* what, DataType type) {
      if (type != DataType::f32) add(what + (':' + std::string(to_string(type))));
    };
    add_type("values", options.rows.values.value_type);
    add_type("vectors", options.rows.values.vector_type);
  }
  if (options.f32_arithmetic != F32Arithmetic::ieee) {
    add(std::string(to_string(options.f32_arithmetic)));
  }
  if (options.batch != 1) add("batch:" + std::to_string(options.batch));
  if (const SplitK& split = options.wishes.split_k; split != SplitK{}) {
    std::string slices = split.slices == 0 ? "auto" : std::to_string(split.slices);
    if (split.reduction_mode) slices += ':' + std::string(to_string(*split.reduction_mode));
    add("split_k:" + slices);
  }
  if (options.wishes.max_dispatch_ms > 0.0) {
    char text[64];
    std::snprintf(text, sizeof text, "max_dispatch_ms:%g", options.wishes.max_dispatch_ms);
    add(text);
  }
  return name;
}

}  // namespace

void CaseOptions::add(CLI::App& app) {
  app.add_option("--shapes", shapes,
                 "MxNxK or N, separated by commas; with groups NxK, or MxN with --group-along k");
  add_size(app, "--batch", batch, "Number of products of each shape")
      ->check(CLI::Range(std::uint64_t{1}, kMaxSize));
  app.add_option("--dtype", types, names_of<DataType>() + "; may be repeated")
      ->capture_default_str();
  add_f32_arithmetic(app, f32_arithmetic);
  add_layout(app, "--layout-a", layout_a, "Layout of A");
  add_layout(app, "--layout-b", layout_b, "Layout of B");
  app.add_option(
         "--epilogue", epilogue,
         "plain: nothing; heavy: alpha, residual, bias, gelu and aux; or parts joined by +: "
         "bias, bias_m, row_scales, column_scales, residual, aux, an activation")
      ->check([](const std::string& text) {
        return parse_epilogue(text)
                   ? std::string()
                   : "is '" + text + "': plain, heavy, or parts like bias+gelu_erf are needed";
      })
      ->capture_default_str();
  add_gated(app, gated);
  groups.add(app);
  tool::add(app, rows);
  packs.add(app);
  wishes.add(app);
}

std::vector<BenchCase> CaseOptions::cases() const {
  std::vector<BenchCase> cases;
  for (const std::string& text : types) {
    const auto type = parse_data_type(text);
    if (!type) {
      throw Failure(usage_error,
                    "--dtype is '" + text + "': one of " + names_of<DataType>() + " is needed");
    }
    for (Shape shape : parse_shapes(shapes, groups)) {
      BenchCase one{.epilogue = name_epilogue(*this)};
      one.groups = groups.groups(shape.m, shape.k);
      Problem& problem = one.problem;
      problem.m = shape.m.value();
      problem.n = shape.n;
      problem.k = shape.k.value();
      problem.batch = batch;
      problem.a.type = problem.b.type = *type;
      problem.f32_arithmetic = f32_arithmetic;
      problem.a.layout = layout_a.value_or(Layout::row_major);
      problem.b.layout = layout_b.value_or(Layout::row_major);
      wishes.apply_to(problem);
      problem.gated = gated;
      problem.row_reduction = rows.reduction();
      problem.epilogue = parse_epilogue(epilogue).value();
      problem.grouping = one.groups.grouping;
      for (Matrix* matrix : {&problem.c, &problem.d, &problem.aux}) {
        matrix->type = default_result(problem);
      }
      problem = packs.packed(problem);
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

}  // namespace vkgemm::tool
