// A file of verdicts, which others may have written: refused with a short reason, or what was read
// is what is written. Inputs are files, and the verdicts and attempts of files of the right device
// and build.
#include <algorithm>

#include "../host/test_devices.hpp"
#include "fuzz.hpp"
#include "self_test/self_test.hpp"

namespace vkgemm {
namespace {

using fuzz::require;

void check(std::string_view text, const DeviceCaps& caps) {
  auto file = parse_verdict_file(text, caps);
  if (!file) {
    require(file.error().status == Status::io_error, "it is the file that is wrong");
    require(file.error().message.size() <= 300, "the reason is a short one");
    return;
  }
  require(file->other.size() <= 300, "the reason is a short one");
  if (!file->verdicts.empty() || !file->attempts.empty()) ++fuzz::accepted;
  std::erase_if(file->verdicts,
                [](const Verdict& verdict) { return verdict.outcome == Outcome::untested; });
  if (!file->other.empty()) return;
  const auto again = parse_verdict_file(verdict_file_text(*file, caps), caps);
  require(again && *again == *file, "what is written is read");
  const AttemptView view{.now = 1'000'000,
                         .is_running = [](std::uint64_t owner) { return owner % 2 == 0; }};
  settle(*file, view);
  VerdictFile settled = *file;
  settle(settled, view);
  require(settled == *file, "what is settled stays so");
  for (const Attempt& attempt : settled.attempts) {
    require(attempt.count < attempts_of_a_verdict || attempt.owner % 2 == 0,
            "an attempt that stays says too little, or goes on");
  }
}

}  // namespace
}  // namespace vkgemm

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vkgemm;
  static const DeviceCaps caps = test::h200();
  const std::string_view text = fuzz::as_text(data, size);
  check(text, caps);
  // No file of a corpus has the fingerprint of every build.
  static const std::string good = verdict_file_text({}, caps);
  constexpr std::string_view verdicts = "\"verdicts\": []";
  const std::size_t at = good.find(verdicts);
  require(at != std::string::npos, "a file lists its verdicts");
  for (const std::string_view list : {"\"verdicts\": ", "\"verdicts\": [], \"trying\": "}) {
    std::string file = good;
    check(file.replace(at, verdicts.size(), std::string(list).append(text)), caps);
  }
  return 0;
}
