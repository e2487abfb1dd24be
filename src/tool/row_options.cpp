#include "tool/row_options.hpp"

#include "tool/options.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {

void RowOptions::add(CLI::App& app) {
  add_named(app, "--row-op", op,
            "What is done with every row of D, after the epilogue: rms_norm to l2_normalize change "
            "it, logsumexp to variance give one number beside it. Not with --gated or groups",
            names_of<RowOp>(), parse_row_op);
  app.add_option("--row-eps", eps,
                 "eps of rms_norm (default 1e-6), layer_norm (1e-5) and l2_normalize (1e-12)");
  app.add_flag("--with-row-gamma", gamma,
               "Generate gamma of rms_norm and layer_norm: factors, N values");
  app.add_flag("--with-row-beta", beta, "Generate beta of the same, added: N values");
  add_type(app, "--dtype-row-vectors", vector_type,
           "Element type of generated gamma and beta (default f32)");
  add_type(app, "--dtype-row-values", value_type,
           "Element type of the numbers of logsumexp … variance (default f32)");
  app.add_flag("--without-d", without_d, "logsumexp … variance: only their numbers, no D");
}

std::optional<RowReduction> RowOptions::reduction() const {
  if (!op) {
    const char* const given = eps           ? "--row-eps"
                              : gamma       ? "--with-row-gamma"
                              : beta        ? "--with-row-beta"
                              : vector_type ? "--dtype-row-vectors"
                              : value_type  ? "--dtype-row-values"
                              : without_d   ? "--without-d"
                                            : nullptr;
    if (given == nullptr) return std::nullopt;
    throw Failure(usage_error, std::string(given) + " needs --row-op: what is done with rows");
  }
  if (vector_type && !gamma && !beta) {
    throw Failure(usage_error,
                  "--dtype-row-vectors needs --with-row-gamma or --with-row-beta: those from files "
                  "say their type themselves");
  }
  if (value_type && !is_scalar(*op)) {
    throw Failure(usage_error, "--dtype-row-values needs --row-op " + std::string(scalar_row_ops));
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
