#include "tuning/table_text.hpp"

#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"

namespace vkgemm {
namespace {

Json to_object(const TunedShape& shape) {
  const TunedProblem& p = shape.problem;
  Json row = {{"family", p.family},
              {"input_type", to_string(p.input_type)},
              {"a_layout", to_string(p.a_layout)},
              {"b_layout", to_string(p.b_layout)},
              {"aligned", p.aligned},
              {"epilogue", to_string(p.epilogue)},
              {"d_type", to_string(p.d_type)},
              {"d_col_major", p.d_col_major},
              {"m", p.m},
              {"n", p.n},
              {"k", p.k},
              {"count", p.count},
              {"config", to_string(shape.row.config)},
              {"microseconds", shape.microseconds},
              {"problem", shape.arguments}};
  if (p.f32_arithmetic != F32Arithmetic::ieee) {
    row["f32_arithmetic"] = to_string(p.f32_arithmetic);
  }
  if (p.packed != PackedOperands::none) row["packed"] = to_string(p.packed);
  if (p.converted != PackedOperands::none) row["converted"] = to_string(p.converted);
  if (p.summed) row["summed"] = true;
  if (p.indexed) row["indexed"] = true;
  if (!shape.complete) row["complete"] = false;
  row["provenance"] = shape.row.provenance;
  return row;
}

Json to_object(const DeniedConfig& denied) {
  Json entry = {{"config", to_string(denied.config)}};
  if (denied.input_type) entry["input_type"] = to_string(*denied.input_type);
  entry["verdict"] = denied.wrong ? "wrong" : "failed";
  entry["reason"] = denied.reason;
  return entry;
}

// An object a line is easier to read and to compare.
template <class T>
std::string list(const std::vector<T>& items) {
  std::string out = "[";
  for (const T& item : items) {
    out += out.size() > 1 ? ",\n    " : "\n    ";
    out += json_text(to_object(item));
  }
  return out + (items.empty() ? "]" : "\n  ]");
}

}  // namespace

std::string table_text(const TuningTable& table) {
  const auto text = [](const std::string& value) { return json_text(value); };
  return concat("{\n  \"architecture\": ", text(table.architecture),
                ",\n  \"device\": ", text(table.device), ",\n  \"driver\": ", text(table.driver),
                ",\n  \"rows\": [],\n  \"tuned\": ", list(table.tuned),
                ",\n  \"denied\": ", list(table.denied), "\n}\n");
}

void add_tuned(TuningTable& table, TunedShape shape) {
  std::erase_if(table.tuned, [&](const TunedShape& other) {
    return other.arguments == shape.arguments || other.problem == shape.problem;
  });
  table.tuned.insert(table.tuned.begin(), std::move(shape));
}

}  // namespace vkgemm
