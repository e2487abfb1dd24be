#include "tuning/tuned_problem.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "base/text.hpp"
#include "kernels/part.hpp"

namespace vkgemm {
namespace {

constexpr std::string_view product_names[] = {"gemm", "grouped_m_shared_b", "grouped_m",
                                              "grouped_k"};
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
  for (const Part* part : parts()) {
    if (part->family == nullptr) continue;
    const std::string_view name = part->family(problem);
    if (!name.empty()) out.family += concat('+', name);
  }
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

// Behind the first name stand those of parts, in their order.
std::optional<std::string> parse_tuned_family(std::string_view text) {
  const auto name_at = [text](std::size_t begin) {
    return text.substr(begin, text.find('+', begin) - begin);
  };
  std::string_view name = name_at(0);
  if (std::ranges::find(product_names, name) == std::end(product_names)) return std::nullopt;
  const auto all = parts();
  auto part = all.begin();
  for (std::size_t end = name.size(); end < text.size(); end += 1 + name.size()) {
    name = name_at(end + 1);
    part = std::find_if(part, all.end(), [name](const Part* one) {
      return one->is_family != nullptr && one->is_family(name);
    });
    if (part == all.end()) return std::nullopt;
    ++part;
  }
  return std::string(text);
}

}  // namespace vkgemm
