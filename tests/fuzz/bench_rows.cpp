// Lines of benchmarks, as `vkgemm bench --from`, --baseline and `vkgemm tune --report` read them:
// refused with file and line, or compared.
#include "fuzz.hpp"
#include "report/compare.hpp"
#include "report/loss.hpp"

namespace {

using namespace vkgemm;

void read_losses(std::string_view text) {
  std::vector<report::LossRow> losses;
  if (const auto read = report::add_loss_rows(losses, text, "rows.jsonl"); !read) {
    fuzz::require_message(read.error().message, "rows.jsonl:");
  }
  for (const report::LossSummary& summary : report::summarize(losses)) {
    fuzz::require(!report::to_string(summary).empty(), "every list is summed up");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_losses(fuzz::as_text(data, size));
  const auto rows = report::parse_rows(fuzz::as_text(data, size), "rows.jsonl");
  if (!rows) {
    fuzz::require_message(rows.error().message, "rows.jsonl:");
    return 0;
  }
  ++fuzz::accepted;
  const report::Comparison same = report::compare(*rows, *rows, 1.0);
  fuzz::require(same.regressions == 0, "rows are as fast as they are");
  return 0;
}
