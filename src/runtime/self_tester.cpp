#include "runtime/self_tester.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "base/environment.hpp"
#include "base/errors.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "device/known_drivers.hpp"
#include "kernels/verdicts.hpp"
#include "self_test/self_test.hpp"

namespace vkgemm {
namespace {

// Adds the verdicts of the file that are not there yet.
void add_kept(std::vector<Verdict>& verdicts, const std::filesystem::path& path, bool is_asked_for,
              const DeviceCaps& caps, const Log& log) {
  const auto not_used = [&](const std::string& why) {
    log.write(is_asked_for ? LogLevel::warning : LogLevel::info,
              "verdicts of another self-test are not used: " + why);
  };
  const Result<VerdictFile> file = VerdictStore(path, caps).read();
  if (!file) return not_used(file.error().message);
  if (!file->other.empty()) return not_used(concat(utf8(path), ": ", file->other));
  for (const Verdict& verdict : file->verdicts) {
    if (has_verdict(verdicts, verdict.kind)) continue;
    verdicts.push_back(verdict);
    if (!verdict.failed()) continue;
    log.write(LogLevel::warning, concat(why_failed(verdict, caps), " (says ", utf8(path),
                                        "; `vkgemm info --self-test --fresh` tries again)"));
  }
}

void tell(const Verdict& verdict, const DeviceCaps& caps, const Log& log) {
  const auto write = [&](LogLevel level, std::string_view outcome) {
    log.write(level,
              concat("self-test, ", to_string(verdict.kind), ": ", outcome, ": ", verdict.detail));
  };
  if (verdict.failed()) log.write(LogLevel::warning, why_failed(verdict, caps));
  if (verdict.outcome == Outcome::unusable) write(LogLevel::info, "not usable here");
  if (verdict.outcome == Outcome::untested) write(LogLevel::warning, "untested");
}

}  // namespace

std::vector<Verdict> known_verdicts(const SelfTest& options, const DeviceCaps& caps,
                                    const Log& log) {
  // Without VKGEMM_VERDICTS=0 in the environment.
  const bool knows = options.only.empty() && environment_variable("VKGEMM_VERDICTS") != "0";
  const bool is_default = options.file.empty() && options.read_default_file && knows;
  const std::filesystem::path file = is_default ? default_verdict_file(caps) : options.file;
  std::vector<Verdict> verdicts(options.verdicts.begin(), options.verdicts.end());
  if (!file.empty()) add_kept(verdicts, file, !is_default, caps, log);
  if (options.use_trusted_list && knows) {
    for (Verdict& verdict : trusted_verdicts(known_drivers(), caps)) {
      if (!has_verdict(verdicts, verdict.kind)) verdicts.push_back(std::move(verdict));
    }
  }
  return verdicts;
}

Result<void> check_queue(const LentQueue& lent, std::span<const VkQueueFamilyProperties> families,
                         std::string_view prefix) {
  if (lent.family >= families.size()) {
    return invalid_argument(concat(prefix, "queue_family is ", lent.family, ", the device has ",
                                   families.size(), " families"));
  }
  if ((families[lent.family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
    return invalid_argument(
        concat(prefix, "queue_family is ", lent.family, ", whose queues cannot compute"));
  }
  return {};
}

SelfTester::SelfTester(const SelfTest& options, MakeTest make_test, const DeviceCaps& caps,
                       const Log& log)
    : make_test_(std::move(make_test)), caps_(caps), log_(log) {
  if (!options.file.empty()) store_.emplace(options.file, caps);
}

bool SelfTester::saved(const Result<void>& result) {
  if (result) return true;
  log_.write(LogLevel::warning, "verdicts not saved: " + result.error().message);
  store_.reset();
  return false;
}

Examination SelfTester::examine(KindTest& test, const KernelKind& kind) {
  std::uint32_t attempts = 1;
  Examination result = test.examine(kind, caps_, [&] {
    if (!store_) return;
    const Result<std::uint32_t> begun = store_->begin_attempt(kind);
    if (!saved(begun ? Result<void>() : begun.error())) return;
    attempts = *begun;
    if (attempts == 1) return;
    log_.write(LogLevel::warning,
               concat("self-test, ", to_string(kind),
                      ": a process ended, or gave up waiting, while this was on the device; "
                      "trying again"));
  });
  const Verdict& verdict = result.verdict;
  // The machine may have been busy: the attempt stays, and the next one decides.
  const bool keeps = verdict.outcome != Outcome::timed_out || attempts >= attempts_of_a_verdict;
  if (store_ && keeps) saved(store_->add(std::span(&verdict, 1)));
  tell(verdict, caps_, log_);
  return result;
}

Result<std::vector<Verdict>> SelfTester::test(std::span<const KernelKind> kinds) {
  std::vector<Verdict> verdicts;
  if (!may_go_on_) return verdicts;
  const Result<std::unique_ptr<KindTest>> test = make_test_();
  if (!test) return test.error();
  for (const KernelKind& kind : kinds) {
    if (!may_go_on_) break;
    Examination result = examine(**test, kind);
    verdicts.push_back(std::move(result.verdict));
    if (result.fatal) return *result.fatal;
    if (result.may_go_on) continue;
    may_go_on_ = false;
    log_.write(LogLevel::warning, "self-test: what follows is not tried: the queue is busy");
  }
  return verdicts;
}

}  // namespace vkgemm
