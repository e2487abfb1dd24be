#include "tool/row_options.hpp"

#include "tool/options.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {

void RowOptions::add(CLI::App& app) {
  add_named(app, "--row-op", op,
            "Reduce whole rows of D, after the epilogue: normalise them, or give one number each",
            "rms_norm|layer_norm|softmax|l2_normalize|logsumexp|sum|max|mean|variance",
            [](const std::string& text) { return parse_row_op(text); });
  app.add_option("--row-eps", eps, "eps of rms_norm, layer_norm and l2_normalize");
  app.add_flag("--with-row-gamma", gamma, "Scale normalised rows by a vector of N values");
  app.add_flag("--with-row-beta", beta, "Shift normalised rows by a vector of N values");
  add_type(app, "--dtype-row-vectors", vector_type, "Element type of generated gamma and beta");
  add_type(app, "--dtype-row-values", value_type, "Element type of the numbers of rows");
  app.add_flag("--without-d", without_d, "Of logsumexp … variance: only the numbers, no D");
}

std::optional<RowReduction> RowOptions::reduction() const {
  if (!op) {
    if (eps || gamma || beta || vector_type || value_type || without_d) {
      throw Failure(usage_error, "--row-op is missing: it says what is done with rows");
    }
    return std::nullopt;
  }
  return RowReduction{.op = *op,
                      .eps = eps,
                      .gamma = gamma,
                      .beta = beta,
                      .vector_type = vector_type.value_or(DataType::f32),
                      .value_type = value_type.value_or(DataType::f32),
                      .store_d = !without_d};
}

}  // namespace vkgemm::tool
