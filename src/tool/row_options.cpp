#include "tool/row_options.hpp"

#include "problem/fields.hpp"
#include "tool/options.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

// Finds the option of the first field that was given.
struct FindOption {
  const FieldOptions<RowReduction>& options;
  const char* option = nullptr;

  void see(const Field& field) {
    if (option == nullptr && options.has(field.name)) option = field.option;
  }
  void number(const Field& field, auto&, auto&) { see(field); }
  void enumerator(const Field& field, auto&, auto&) { see(field); }
  void boolean(const Field& field, auto&, auto&) { see(field); }
  void real(const Field& field, auto&, auto&) { see(field); }
};

}  // namespace

std::optional<RowReduction> RowOptions::reduction() const {
  if (!has("op")) {
    if (given.empty()) return std::nullopt;
    FindOption find{*this};
    FieldsOf<RowReduction>::visit(find, values, values);
    throw Failure(usage_error,
                  std::string(find.option) + " needs --row-op: what is done with rows");
  }
  if (has("vector_type") && !values.gamma && !values.beta) {
    throw Failure(usage_error,
                  "--dtype-row-vectors needs --with-row-gamma or --with-row-beta: those from files "
                  "say their type themselves");
  }
  if (has("value_type") && !is_scalar(values.op)) {
    throw Failure(usage_error, "--dtype-row-values needs --row-op " + std::string(scalar_row_ops));
  }
  return values;
}

}  // namespace vkgemm::tool
