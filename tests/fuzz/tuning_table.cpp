// A tuning table may come from anywhere. It is refused with its source and the place, or it can
// only choose what is legal, whatever its rates and timings are.
#include "tuning/table.hpp"

#include <cmath>

#include "../host/test_devices.hpp"
#include "base/text.hpp"
#include "fuzz.hpp"
#include "kernels/legality.hpp"
#include "tuning/device_tables.hpp"
#include "tuning/rank.hpp"

namespace vkgemm {
namespace {

using fuzz::require;

std::vector<ResolvedProblem> problems() {
  std::vector<Problem> out = {test::gemm(512, 512, 512), test::gemm(4096, 4096, 64, DataType::bf16),
                              test::gemm(1, 12288, 4096), test::gemm(33, 17, 19, DataType::f32)};
  Problem in_parts = test::gemm(512, 512, 512, DataType::f32);
  in_parts.f32_arithmetic = F32Arithmetic::bf16x6;
  out.push_back(in_parts);
  Problem split = test::gemm(16, 16, 65536);
  split.max_workspace_bytes = 64U << 20;
  out.push_back(split);
  Problem grouped = test::gemm(640, 128, 256, DataType::bf16);
  grouped.grouping = {.groups = 4};
  out.push_back(grouped);
  Problem rows = test::gemm(300, 256, 64);
  rows.row_reduction = RowReduction{.op = RowOp::softmax};
  rows.max_workspace_bytes = 1U << 20;
  out.push_back(rows);
  Problem gated = test::gemm(128, 256, 512);
  gated.gated = Gated{.gate = Gate::swiglu};
  out.push_back(gated);
  std::vector<ResolvedProblem> resolved;
  for (const Problem& problem : out) resolved.push_back(test::resolved(problem));
  return resolved;
}

void use(const TuningTable& table) {
  static const std::vector<ResolvedProblem> all = problems();
  static const std::vector<DeviceCaps> devices = test::all_devices();
  for (const DeviceCaps& caps : devices) {
    std::optional<DeviceTables> tables;  // whose tuned shapes and denials speak for others
    const bool speaks = !table.tuned.empty() || !table.denied.empty() || !table.refused.empty();
    if (speaks) tables.emplace(caps.architecture, std::vector{table});
    for (const ResolvedProblem& problem : all) {
      const auto best = tables ? tables->best(problem, caps) : std::nullopt;
      require(!best || is_legal(best->config, problem, caps), "what is chosen is legal");
      require(best || !tables || !DeviceTables(caps).best(problem, caps),
              "a table takes nothing away");
      const std::vector<ScoredRow> ranked = rank(table, problem, caps);
      for (const ScoredRow& scored : ranked) {
        const auto reason = why_illegal(scored.config, problem, caps);
        require(!reason && is_legal(scored.config, problem, caps),
                to_string(scored.config) + " on " + caps.name +
                    " is legal: " + reason.value_or("is_legal() says no"));
        require(!std::isnan(scored.cost), to_string(scored) + " has a cost");
      }
      if (ranked.empty()) static_cast<void>(objections(table, problem, caps));
    }
  }
}

}  // namespace
}  // namespace vkgemm

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vkgemm;
  if (size != 0 && data[0] != '{') {
    if (const auto config = parse_config(fuzz::as_text(data, size))) {
      const auto table = parse_tuning_table(
          concat(R"({"architecture":"x","rows":[{"config":")", to_string(*config),
                 R"(","rate":1,"provenance":"derived: x"}]})"),
          "row.json");
      if (table) use(*table);
    }
  }
  const auto table = parse_tuning_table(fuzz::as_text(data, size), "table.json");
  if (table) {
    ++fuzz::accepted;
    use(*table);
  } else {
    fuzz::require_message(table.error().message, "table.json: ");
  }
  return 0;
}
