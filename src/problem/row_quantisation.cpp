#include "problem/row_quantisation.hpp"

#include <string_view>
#include <utility>

#include "base/arithmetic.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"
#include "problem/data_type.hpp"
#include "problem/field_checks.hpp"

namespace vkgemm {
namespace {

// Forms that are valid elsewhere, and not built here.
MaybeError check_form(std::string_view name, const Matrix& matrix, bool has_type,
                      std::string_view types) {
  const auto refuse = [&](std::string_view field, std::string_view value, std::string_view wanted) {
    return Error{Status::unsupported,
                 concat(name, '.', field, " is ", value, ": it must be ", wanted)};
  };
  if (!has_type) return refuse("type", to_string(matrix.type), types);
  if (matrix.layout != Layout::row_major) {
    return refuse("layout", to_string(matrix.layout), "row_major, since rows are quantised");
  }
  if (matrix.packing == Packing::plain) return std::nullopt;
  return refuse("packing", to_string(matrix.packing), "plain");
}

}  // namespace

Result<ResolvedRowQuantisation> resolve(const RowQuantisation& q) {
  const std::pair<std::string_view, std::uint64_t> sizes[] = {
      {"rows", q.rows}, {"columns", q.columns}, {"batch", q.batch}};
  for (const auto& [field, value] : sizes) {
    if (auto error = check_size(field, value)) return *error;
  }
  if (auto error = check_enumerators(q)) return *error;
  if (!groups_rows(q.group_k)) {
    return unsupported(concat("group_k is ", q.group_k, row_group_sizes));
  }
  const bool has_number = is_wide_float(q.source.type);
  if (auto error = check_form("source", q.source, has_number, wide_float_types)) return *error;
  const DataType only = RowQuantisation{}.codes.type;
  if (auto error = check_form("codes", q.codes, q.codes.type == only, to_string(only))) {
    return *error;
  }

  ResolvedRowQuantisation out{.rows = q.rows, .columns = q.columns, .batch = q.batch};
  const auto resolve_into = [&](ResolvedMatrix& target, std::string_view name, Access access,
                                const Matrix& matrix) -> MaybeError {
    const OperandInfo info{
        .name = name, .rows_name = "rows", .cols_name = "columns", .access = access};
    auto resolved = resolve_matrix(info, matrix, q.rows, q.columns, q.batch, true);
    if (!resolved) return resolved.error();
    target = *std::move(resolved);
    return std::nullopt;
  };
  if (auto error = resolve_into(out.source, "source", Access::read, q.source)) return *error;
  if (auto error = resolve_into(out.codes, "codes", Access::write, q.codes)) return *error;
  out.group_k = q.group_k;
  if (q.group_k != 0) out.groups = divided_up(q.columns, std::uint64_t{q.group_k});
  if (out.groups != 0 && q.rows > largest_size / out.groups) {
    return invalid_argument(concat("rows is ", q.rows, " and columns have ", out.groups,
                                   " groups of ", q.group_k, ": at most ", largest_size,
                                   " groups are supported"));
  }
  out.scales_bytes = q.batch * q.rows * out.groups * sizeof(float);  // below 2^64
  return out;
}

}  // namespace vkgemm
