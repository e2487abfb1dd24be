// self_tester.hpp: verdicts that a context is given or reads, and those that it finds on a lent
// queue.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/kind_test.hpp"
#include "self_test/verdict_store.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

// The verdicts that SelfTest names without a test: its own, those of a file, trusted drivers'.
std::vector<Verdict> known_verdicts(const SelfTest& options, const DeviceCaps& caps,
                                    const Log& log);

// invalid_argument if the lent queue cannot compute. `prefix` stands before the names of fields.
Result<void> check_queue(const LentQueue& lent, std::span<const VkQueueFamilyProperties> families,
                         std::string_view prefix);

// Tests kinds on the lent queue, keeps the verdicts in the file, and tells the log of them. The
// caller synchronises the calls.
class SelfTester {
 public:
  // `make_test`: what a test needs exists only while it runs. `caps` and `log` must outlive the
  // tester.
  using MakeTest = std::function<Result<std::unique_ptr<KindTest>>()>;
  SelfTester(const SelfTest& options, MakeTest make_test, const DeviceCaps& caps, const Log& log);

  // Verdicts on the kinds, in their order; fewer if the queue is not known to be free. Errors: the
  // device is lost, or cannot be waited for.
  Result<std::vector<Verdict>> test(std::span<const KernelKind> kinds);

 private:
  bool saved(const Result<void>& result);
  Examination examine(KindTest& test, const KernelKind& kind);

  const MakeTest make_test_;
  const DeviceCaps& caps_;
  const Log& log_;
  std::optional<VerdictStore> store_;
  bool may_go_on_ = true;
};

}  // namespace vkgemm
