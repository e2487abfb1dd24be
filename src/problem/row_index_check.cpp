// row_index_check.cpp: the checks of rows by index and B by index (struct Grouping).
#include <utility>

#include "problem/data_type.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/fields.hpp"
#include "problem/row_index.hpp"

namespace vkgemm {
namespace {

constexpr std::uint64_t most_rows = (std::uint64_t{1} << 31) - 1;
constexpr std::uint64_t most_indices = (std::uint64_t{1} << 32) - 1;

// Rows, and indices that share one of them or are added up to one.
MaybeError check_rows(std::string_view rows_name, std::uint64_t rows, std::string_view terms_name,
                      std::uint64_t terms) {
  if (rows > most_rows) {
    return invalid_argument(
        concat("grouping.", rows_name, " is ", rows, ": at most ", most_rows, " are supported"));
  }
  if (terms == 0) return invalid_argument(concat("grouping.", terms_name, " is 0: at least 1"));
  if (rows == 0 && terms != 1) {
    return invalid_argument(concat("grouping.", terms_name, " is ", terms, " and grouping.",
                                   rows_name, " is 0: there are no rows by index"));
  }
  if (rows * terms <= most_indices) return std::nullopt;
  return invalid_argument(concat("grouping.", rows_name, " is ", rows, " and grouping.", terms_name,
                                 " is ", terms, ": at most ", most_indices,
                                 " indices are supported"));
}

// Refuses fields that groups along K don't have.
MaybeError check_along_k(const Grouping& g) {
  const std::pair<std::string_view, std::uint64_t> fields[] = {
      {"a_rows", g.a_rows}, {"d_rows", g.d_rows}, {"b_matrices", g.b_matrices}};
  for (const auto& [name, value] : fields) {
    if (value == 0) continue;
    return unsupported(
        concat("grouping.", name, " is ", value, " and grouping.along is k: it must be m"));
  }
  return std::nullopt;
}

}  // namespace

MaybeError FieldsOf<Grouping>::check_indices(const Grouping& g, const Problem& problem) {
  if (auto error = check_rows("a_rows", g.a_rows, "a_terms", g.a_terms)) return error;
  if (auto error = check_rows("d_rows", g.d_rows, "d_terms", g.d_terms)) return error;
  if (g.row_weights && g.d_rows == 0) {
    return invalid_argument(
        "grouping.row_weights is true and grouping.d_rows is 0: no rows are added up");
  }
  if (g.along == GroupAlong::k) {
    if (auto error = check_along_k(g)) return error;
  }
  if (g.b_matrices != 0 && g.b == GroupedB::shared) {
    return invalid_argument(concat("grouping.b_matrices is ", g.b_matrices,
                                   " and grouping.b is shared: it must be per_group"));
  }
  if (g.b_matrices > most_rows) {
    return invalid_argument(
        concat("grouping.b_matrices is ", g.b_matrices, ": at most ", most_rows, " are supported"));
  }
  if (g.a_rows != 0 && problem.a.layout == Layout::col_major) {
    return unsupported(
        concat("a.layout is col_major and grouping.a_rows is ", g.a_rows, ": A must be row_major"));
  }
  if (adds_rows(g) && !is_element(problem.d.type)) {
    return unsupported(concat("d.type is ", to_string(problem.d.type),
                              " and rows are added up (grouping.d_rows): sums are in f32"));
  }
  const auto summed = summed_tensor(problem.epilogue);
  if (!summed || (g.a_rows == 0 && g.d_rows == 0 && g.b_matrices == 0)) return std::nullopt;
  return unsupported(concat("a step sums columns to ", tensor_names[*summed],
                            " and grouping has rows or matrices by index"));
}

}  // namespace vkgemm
