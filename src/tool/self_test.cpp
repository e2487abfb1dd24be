#include "tool/self_test.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/json.hpp"
#include "base/parallel.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "headless/runner.hpp"
#include "headless/supervisor.hpp"
#include "self_test/self_test.hpp"
#include "self_test/verdict_store.hpp"
#include "tool/fault.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

// Lets tests see that a crash or a hang becomes a verdict, and that other output does not.
void meet_fault(std::uint32_t kind) {
  const std::string place = std::to_string(kind);
  if (has_fault(self_test_fault, "chatter", place)) std::printf("{\"a layer\": \"says\"}");
  if (has_fault(self_test_fault, "mute", place)) std::_Exit(success);
#ifdef SIGKILL
  if (has_fault(self_test_fault, "killed", place)) std::raise(SIGKILL);
#endif
  crash_or_hang(self_test_fault, place);
}

// A process of this program, and the last line that it said.
struct Child {
  headless::WorkerEnd end;
  std::string line;
};

Child run_child(const std::vector<std::string>& arguments, std::uint32_t timeout_s) {
  Child child;
  child.end = headless::supervise(arguments, {},
                                  {.on_line = [&](std::string_view line) { child.line = line; },
                                   .patience_s = static_cast<double>(timeout_s)});
  return child;
}

// The process to look for after one that timed out.
std::string left(const headless::WorkerEnd& end) {
  if (end.left_behind == 0) return {};
  return ", and being killed did not end it: process " + std::to_string(end.left_behind);
}

Verdict verdict_of(const KernelKind& kind, const Child& child, std::uint32_t timeout_s) {
  using How = headless::ProcessEnd::How;
  const headless::WorkerEnd& end = child.end;
  Verdict verdict{.kind = kind, .outcome = Outcome::crashed};
  if (end.ending == headless::Ending::hung) {
    verdict.outcome = Outcome::timed_out;
    verdict.detail =
        "its process did not end within " + std::to_string(timeout_s) + " s" + left(end);
    return verdict;
  }
  if (end.ending == headless::Ending::died) {
    const bool by_itself = end.how == How::bad;
    if (!by_itself && end.how != How::crashed) verdict.outcome = Outcome::untested;
    verdict.detail =
        (by_itself ? "its process ended with " : "its process was ended by ") + end.reason;
    return verdict;
  }
  try {
    return parse_verdict(Json::parse(child.line));
  } catch (const std::exception&) {
    verdict.outcome = Outcome::untested;
    verdict.detail = "its process ended without a verdict";
    return verdict;
  }
}

std::size_t jobs_of(const SelfTestOptions& options) {
  if (options.jobs) return *options.jobs;
  return std::clamp(std::thread::hardware_concurrency() / 4, 1u, 4u);
}

std::string why_denied(const KernelKind& kind, const DeviceCaps& caps) {
  for (const Denial& denial : caps.denials) {
    if (covers(denial, kind)) return denial.reason;
  }
  return {};
}

}  // namespace

void SelfTestOptions::add(CLI::App& app) {
  CLI::Option* const self_test = app.add_flag(
      "--self-test", wanted,
      "Multiply small matrices by each kind of kernel that the devices offer, each in a process of "
      "its own; exit with 1 if one fails, crashes or hangs");
  app.add_option("--cache", cache,
                 "File that verdicts are read from and written to, for the driver that they are of "
                 "(default: in the user's cache folder, one for each device and driver)")
      ->needs(self_test);
  app.add_flag("--fresh", fresh, "Test kinds again that have verdicts")->needs(self_test);
  app.add_option("--only", only,
                 "Only kinds whose name contains this, e.g. \"khr\" or \"16x16x16\"")
      ->needs(self_test);
  app.add_option(
         "--jobs", jobs,
         "Processes at the same time; a kind that fails next to others is tested again alone "
         "(default: one for every four processors, at most 4)")
      ->needs(self_test)
      ->check(CLI::Range(1u, 64u));
  app.add_option("--timeout", timeout_s, "Seconds that each may take")
      ->needs(self_test)
      ->check(CLI::Range(1u, 3600u))
      ->capture_default_str();
  app.add_option("--self-test-kind", kind)->group("");
}

bool DeviceSelfTest::failed() const {
  return std::any_of(entries.begin(), entries.end(),
                     [](const Entry& entry) { return entry.verdict.failed(); });
}

void check_that_listing_is_safe(const SelfTestOptions& options) {
  const headless::WorkerEnd end = run_child({"info", "--json"}, options.timeout_s).end;
  if (end.ending == headless::Ending::hung) {
    throw Failure(device_error, "a process that lists the devices hangs" + left(end));
  }
  if (end.ending == headless::Ending::died && end.how != headless::ProcessEnd::How::bad) {
    throw Failure(device_error, "a process that lists the devices was ended by " + end.reason);
  }
}

void check_only(const SelfTestOptions& options,
                const std::vector<headless::DeviceListing>& devices) {
  std::string names;
  for (const headless::DeviceListing& device : devices) {
    if (!device.caps) continue;
    for (const KernelKind& kind : kernel_kinds(*device.caps)) {
      const std::string name = to_string(kind);
      if (name.find(options.only) != std::string::npos) return;
      if (names.find(name) == std::string::npos) names += "\n  " + name;
    }
  }
  throw Failure(usage_error,
                "--only " + in_quotes(options.only) + ": no kind has this in its name:" + names);
}

DeviceSelfTest run_self_test(const headless::DeviceListing& device, const SelfTestOptions& options,
                             const std::function<void(const DeviceSelfTest::Entry&)>& tell) {
  const DeviceCaps& caps = *device.caps;
  DeviceSelfTest test;
  test.file = options.cache.empty() ? default_verdict_file(caps) : path_of(options.cache);
  std::optional<VerdictStore> store;
  std::vector<Verdict> known;  // before
  if (!test.file.empty()) {
    store.emplace(test.file, caps);
    auto read = store->read();
    if (!read) {
      std::fprintf(stderr, "not used: %s\n", read.error().message.c_str());
    } else if (!read->other.empty()) {
      std::fprintf(stderr, "not used: %s: %s\n", utf8(test.file).c_str(), read->other.c_str());
    } else {
      known = std::move(read->verdicts);
    }
  }
  const std::vector<KernelKind> kinds = kernel_kinds(caps);
  const auto attempt = [&](std::uint32_t kind) {
    return verdict_of(kinds[kind],
                      run_child({"info", "--self-test-kind", std::to_string(kind), "--device",
                                 std::to_string(device.index), "--self-test", "--timeout",
                                 std::to_string(options.timeout_s)},
                                options.timeout_s),
                      options.timeout_s);
  };
  const auto save = [&](const Verdict& verdict) {
    if (!store) return;
    if (auto saved = store->add(std::span(&verdict, 1)); !saved) {
      std::fprintf(stderr, "not saved: %s\n", saved.error().message.c_str());
      store.reset();
      test.file.clear();
    }
  };
  struct Tried {
    std::uint32_t kind;
    DeviceSelfTest::Entry entry;
  };
  const auto finish = [&](std::vector<Tried>& group) {
    on_threads(group.size(), [&](std::uint64_t i) {
      Tried& tried = group[i];
      if (!tried.entry.from_cache) tried.entry.verdict = attempt(tried.kind);
    });
    for (Tried& tried : group) {
      Verdict& verdict = tried.entry.verdict;
      // The machine may have been busy, or another kind to blame.
      const bool is_doubtful =
          verdict.outcome == Outcome::timed_out ||
          (group.size() > 1 && (verdict.failed() || verdict.outcome == Outcome::untested));
      if (!tried.entry.from_cache) {
        if (is_doubtful) verdict = attempt(tried.kind);
        save(verdict);
      }
      tell(tried.entry);
      test.entries.push_back(std::move(tried.entry));
    }
    group.clear();
  };
  std::vector<Tried> group;
  for (std::uint32_t i = 0; i < kinds.size(); ++i) {
    if (to_string(kinds[i]).find(options.only) == std::string::npos) continue;
    DeviceSelfTest::Entry entry{.denied = why_denied(kinds[i], caps)};
    const auto found = std::ranges::find(known, kinds[i], &Verdict::kind);
    entry.from_cache = found != known.end() && !options.fresh;
    if (entry.from_cache) entry.verdict = *found;
    // A driver that is known to be bad may harm what runs beside it.
    const bool alone = !entry.denied.empty();
    if (alone) finish(group);
    group.push_back({i, std::move(entry)});
    if (alone || group.size() == jobs_of(options)) finish(group);
  }
  finish(group);
  return test;
}

void try_kind(const std::string& device, const SelfTestOptions& options) {
  const os::File answers = headless::take_output();
  if (answers == nullptr) std::_Exit(device_error);
  const std::vector<headless::DeviceListing> devices = headless::list_devices();
  Verdict verdict{.detail = "no verdict"};
  std::uint32_t index = 0;
  for (const headless::DeviceListing& listed : devices) {
    if (std::to_string(listed.index) != device || !listed.caps) continue;
    const std::vector<KernelKind> kinds = kernel_kinds(*listed.caps);
    index = *options.kind;
    if (index < kinds.size()) verdict.kind = kinds[index];
  }
  meet_fault(index);
  headless::RunnerOptions runner_options;
  runner_options.device = device;
  runner_options.self_test = SelfTest{.timeout_ms = options.timeout_s * 500,
                                      .only = std::span<const KernelKind>(&verdict.kind, 1)};
  runner_options.runs_self_test = true;
  const auto runner = headless::Runner::create(runner_options);
  if (!runner) {
    // Harm to the device is an error, all else that a kind does a verdict.
    const Error& error = runner.error();
    verdict.outcome = error.status == Status::device_lost ? Outcome::device_lost
                      : error.vk_result == VK_TIMEOUT     ? Outcome::timed_out
                                                          : Outcome::untested;
    verdict.detail = error.message;
  } else if (!(*runner)->context().verdicts().empty()) {
    verdict = (*runner)->context().verdicts().back();
  }
  std::fprintf(answers.get(), "%s\n", json_text(to_json(verdict)).c_str());
  std::fflush(answers.get());
  // Taking a broken device down may take as long as it likes.
  if (verdict.failed()) std::_Exit(success);
}

}  // namespace vkgemm::tool
