// kind_test.hpp: the products of one kind of kernel on a lent queue, and the verdict on the kind.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/context_impl.hpp"
#include "runtime/submission.hpp"
#include "self_test/self_test.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm {

// How the test of a kind ended.
struct Examination {
  Verdict verdict;
  bool was_on_device = false;
  bool may_go_on = true;       // false: the queue is not known to be free
  std::optional<Error> fatal;  // the device is lost, or cannot be waited for
};

// Tests kinds, one at a time.
class KindTest {
 public:
  // `tested`: a context of the test's own, on which every kind counts as passed, so that nothing of
  // the test stays in the application's.
  KindTest(std::shared_ptr<Context::Impl> tested, const VkPhysicalDeviceMemoryProperties& memory,
           const LentQueue& queue, std::uint64_t timeout_ms)
      : impl_(std::move(tested)), memory_(memory), queue_(queue), timeout_ms_(timeout_ms) {}

  // `caps`: the application's, with its denials. Calls `on_device()` when all pipelines are built
  // and the products are about to be submitted.
  Examination examine(const KernelKind& kind, const DeviceCaps& caps,
                      const std::function<void()>& on_device);

 private:
  struct Product;
  Result<std::vector<Product>> plan_products(std::span<const Trial> trials);
  Result<void> examine(const KernelKind& kind, const DeviceCaps& caps,
                       const std::function<void()>& on_device, Examination& out);
  Result<bool> warm_up(const std::vector<Product>& products, std::uint64_t timeout_ms);
  Result<bool> multiply(const Product& product, Verdict& verdict);
  void keep_if_in_flight(const Submission& submission);

  std::shared_ptr<Context::Impl> impl_;
  const VkPhysicalDeviceMemoryProperties memory_;
  const LentQueue queue_;
  const std::uint64_t timeout_ms_;
  bool left_in_flight_ = false;
};

}  // namespace vkgemm
