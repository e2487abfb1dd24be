#include "tuning/tuned_problem.hpp"

#include <cstddef>
#include <iterator>

#include "base/text.hpp"

namespace vkgemm {
namespace {

constexpr std::string_view epilogue_names[] = {"none", "c", "aux", "c_aux"};

}  // namespace

std::string_view to_string(EpilogueMatrices matrices) noexcept {
  const auto index = static_cast<std::size_t>(matrices);
  return index < std::size(epilogue_names) ? epilogue_names[index] : "?";
}

std::optional<EpilogueMatrices> parse_epilogue_matrices(std::string_view text) noexcept {
  for (std::size_t i = 0; i < std::size(epilogue_names); ++i) {
    if (epilogue_names[i] == text) return static_cast<EpilogueMatrices>(i);
  }
  return std::nullopt;
}

TunedProblem tuned_problem(const ResolvedProblem& problem) {
  TunedProblem out;
  if (problem.grouping) {
    const bool shared = problem.grouping->b == GroupedB::shared;
    out.family = problem.grouping->along == GroupAlong::k ? "grouped_k"
                 : shared                                 ? "grouped_m_shared_b"
                                                          : "grouped_m";
  }
  if (problem.gated) out.family += "+gated";
  if (problem.rows) out.family += concat('+', to_string(problem.rows->op));
  out.input_type = problem.a.type;
  out.a_layout = problem.a.layout;
  out.b_layout = problem.b.layout;
  out.aligned = problem.a_allows_vectors() && problem.b_allows_vectors();
  out.epilogue = problem.has_c() ? problem.has_aux() ? EpilogueMatrices::c_aux : EpilogueMatrices::c
                 : problem.has_aux() ? EpilogueMatrices::aux
                                     : EpilogueMatrices::none;
  out.d_type = problem.d.type;
  out.d_col_major = problem.d.layout == Layout::col_major;
  out.m = problem.typical_m();
  out.n = problem.product_n();
  out.k = problem.typical_k();
  out.count = problem.grouping ? problem.grouping->groups : problem.batch;
  return out;
}

std::optional<std::string> parse_tuned_family(std::string_view text) {
  std::string_view rest = text;
  const auto take = [&rest](std::string_view name) {
    if (!rest.starts_with(name)) return false;
    rest.remove_prefix(name.size());
    return true;
  };
  if (!take("gemm") && !take("grouped_m_shared_b") && !take("grouped_m") && !take("grouped_k")) {
    return std::nullopt;
  }
  take("+gated");
  if (rest.empty() || (take("+") && parse_row_op(rest))) return std::string(text);
  return std::nullopt;
}

}  // namespace vkgemm
