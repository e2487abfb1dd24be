#include "tuning/tuned_problem.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "base/enum_names.hpp"
#include "base/text.hpp"
#include "kernels/part.hpp"
#include "problem/epilogue_steps.hpp"

namespace vkgemm {
namespace {

constexpr std::string_view product_names[] = {"gemm", "grouped_m_shared_b", "grouped_m",
                                              "grouped_k"};
constexpr std::array<std::string_view, 8> epilogue_names{
    "none", "c", "aux", "c_aux", "sums", "c_sums", "aux_sums", "c_aux_sums"};
constexpr std::array<std::string_view, 4> packed_names{"none", "a", "b", "ab"};

// A matrix that a step reads takes the time of C, one that a step stores that of aux. A mask counts
// as a matrix: no table has rows of masks.
EpilogueWork epilogue_work(const ResolvedProblem& problem) {
  bool reads = problem.has_c(), writes = problem.has_aux();
  for (std::size_t i = 0; i < most_tensors; ++i) {
    if (!has_elements(problem.epilogue.tensors[i])) continue;
    (is_stored(problem.epilogue, i) ? writes : reads) = true;
  }
  const int sums = sums_columns(problem.epilogue) ? 4 : 0;
  return static_cast<EpilogueWork>((reads ? 1 : 0) + (writes ? 2 : 0) + sums);
}

}  // namespace

std::string_view to_string(EpilogueWork work) noexcept { return name_of(epilogue_names, work); }
std::string_view to_string(PackedOperands operands) noexcept {
  return name_of(packed_names, operands);
}

std::optional<EpilogueWork> parse_epilogue_work(std::string_view text) noexcept {
  return find_name<EpilogueWork>(epilogue_names, text);
}
std::optional<PackedOperands> parse_packed_operands(std::string_view text) noexcept {
  return find_name<PackedOperands>(packed_names, text);
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
  out.input_type = problem.input_type();
  out.f32_arithmetic = problem.input->arithmetic;
  out.a_layout = problem.a.layout;
  out.b_layout = problem.b.layout;
  out.aligned = problem.a_allows_vectors() && problem.b_allows_vectors();
  const bool a_packed = problem.a.form == Form::given_packed;
  const bool b_packed = problem.b.form == Form::given_packed;
  out.packed = static_cast<PackedOperands>((a_packed ? 1 : 0) + (b_packed ? 2 : 0));
  out.converted = static_cast<PackedOperands>((problem.converts(problem.a) ? 1 : 0) +
                                              (problem.converts(problem.b) ? 2 : 0));
  out.epilogue = epilogue_work(problem);
  out.d_type = problem.d.type;
  out.d_col_major = problem.d.layout == Layout::col_major;
  out.m = problem.typical_m();
  out.n = problem.product_n();
  out.summed = problem.summed > 1;
  out.indexed = problem.has_row_index();
  out.k = checked_multiply(problem.typical_k(), problem.summed).value_or(largest_size);
  out.count = problem.grouping ? problem.grouping->groups : problem.batch * problem.repeats;
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
