#include "runtime/kind_test.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/parallel.hpp"
#include "base/text.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/parts/quantised.hpp"
#include "kernels/steps.hpp"
#include "runtime/plan_internal.hpp"

namespace vkgemm {
namespace {

// The timeouts that compilers and a busy queue have before the first product.
constexpr std::uint64_t warm_up_timeouts = 10;

Outcome outcome_of(const Error& error, bool was_on_device) {
  // A kernel that was not on the device did not lose it.
  if (error.status == Status::device_lost) {
    return was_on_device ? Outcome::device_lost : Outcome::untested;
  }
  // Memory is a matter of what else runs.
  const bool no_memory =
      error.status == Status::out_of_host_memory || error.status == Status::out_of_device_memory;
  return no_memory ? Outcome::untested : Outcome::driver_error;
}

}  // namespace

// A product of the test.
struct KindTest::Product {
  ExactProduct numbers;
  Plan plan;
  std::optional<Plan> packing;  // of a quantised B
};

// Builds pipelines, and multiplies on the host, side by side: most of the test's time.
Result<std::vector<KindTest::Product>> KindTest::plan_products(std::span<const Trial> trials) {
  const auto plan_one = [&](const Trial& trial) -> Result<Product> {
    Result<Plan> plan = impl_->make_plan(impl_, trial.problem, &trial.config);
    if (!plan) return plan.error();
    const auto& codes = trial.problem.quantised_b;
    ExactProduct numbers(trial.problem,
                         codes && rounds_elements(plan->config(), *codes, input_of(trial.problem)));
    if (!codes) return Product{std::move(numbers), *std::move(plan), std::nullopt};
    Problem source = trial.problem;
    source.b = {.type = source.b.type, .packing = source.b.packing};
    Result<Plan> packing = impl_->make_pack_plan(impl_, source, PackedOperand::b);
    if (!packing) return packing.error();
    return Product{std::move(numbers), *std::move(plan), *std::move(packing)};
  };
  std::vector<std::optional<Result<Product>>> planned(trials.size());
  const std::uint64_t threads =
      std::clamp<std::uint64_t>(std::thread::hardware_concurrency(), 1, trials.size());
  on_threads(threads, [&](std::uint64_t thread) {
    for (std::size_t i = thread; i < trials.size(); i += threads) {
      planned[i] = without_exceptions([&] { return plan_one(trials[i]); });
    }
  });
  std::vector<Product> products;
  for (std::optional<Result<Product>>& product : planned) {
    if (!*product) return product->error();
    products.push_back(**std::move(product));
  }
  return products;
}

Examination KindTest::examine(const KernelKind& kind, const DeviceCaps& caps,
                              const std::function<void()>& on_device) {
  Examination out{.verdict = {.kind = kind}};
  const Result<void> done = examine(kind, caps, on_device, out);
  if (done) return out;
  out.verdict.outcome = outcome_of(done.error(), out.was_on_device);
  out.verdict.detail = done.error().message;
  if (left_in_flight_ || done.error().status == Status::device_lost) {
    out.fatal = done.error();
    out.fatal->message = concat("self-test, ", to_string(kind), ": ", out.fatal->message);
  }
  return out;
}

Result<void> KindTest::examine(const KernelKind& kind, const DeviceCaps& caps,
                               const std::function<void()>& on_device, Examination& out) {
  Verdict& verdict = out.verdict;
  const Result<std::vector<Trial>> trials = self_test_trials(kind, caps);
  if (!trials) {
    verdict.detail = trials.error().message;
    return {};
  }
  const Config* last = nullptr;
  for (const Trial& trial : *trials) {
    if (trial.problem.row_reduction || (last != nullptr && *last == trial.config)) continue;
    verdict.config += concat(verdict.config.empty() ? "" : " ", to_string(trial.config));
    last = &trial.config;
  }
  const Result<std::vector<Product>> products = plan_products(*trials);
  if (!products) return products.error();
  const Result<bool> ready = warm_up(*products, warm_up_timeouts * timeout_ms_);
  if (!ready) return ready.error();
  if (!*ready) {
    verdict.detail = concat("after ", warm_up_timeouts * timeout_ms_,
                            " ms the queue was still busy, or its driver still compiled");
    out.may_go_on = false;
    return {};
  }
  out.was_on_device = true;
  on_device();
  for (const Product& product : *products) {
    const Result<bool> done = multiply(product, verdict);
    if (!done) return done.error();
    if (!*done) {
      verdict.outcome = Outcome::timed_out;
      verdict.detail = concat("not done after ", timeout_ms_, " ms");
      out.may_go_on = false;
      return {};
    }
    if (verdict.outcome != Outcome::wrong_result) continue;
    if (descriptor(kind.loop).needs_verdict) verdict.outcome = Outcome::unusable;
    return {};
  }
  verdict.outcome = Outcome::passed;
  return {};
}

// Some drivers compile when a pipeline is first executed, and the queue may be busy: each kernel is
// dispatched without a workgroup, so that neither counts as time on the device.
Result<bool> KindTest::warm_up(const std::vector<Product>& products, std::uint64_t timeout_ms) {
  Submission submission(impl_->functions, queue_);
  Result<bool> done = submission.run(timeout_ms, [&](VkCommandBuffer commands) -> Result<void> {
    const DeviceFunctions& vk = impl_->functions;
    const std::array<std::byte, gpu::most_parameter_bytes> parameters{};
    vk.vkCmdPushConstants(commands, impl_->pipelines.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                          push_constant_bytes(impl_->caps().limits), parameters.data());
    for (const Product& product : products) {
      for (const VkPipeline pipeline : pipelines_of(product.plan)) {
        vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        vk.vkCmdDispatch(commands, 0, 1, 1);
      }
    }
    return {};
  });
  keep_if_in_flight(submission);
  return done;
}

// False if it is not done in time. What is wrong with the result stands in the verdict.
Result<bool> KindTest::multiply(const Product& tested, Verdict& verdict) {
  const Plan& plan = tested.plan;
  const ExactProduct& product = tested.numbers;
  const VkDeviceSize a_bytes = aligned_span(product.a().size());
  const VkDeviceSize b_bytes = aligned_span(product.b().size());
  const VkDeviceSize d_bytes = aligned_span(product.d_bytes());
  const VkDeviceSize packed_bytes =
      tested.packing ? aligned_span(tested.packing->layout().bytes) : 0;
  const VkDeviceSize packed_at = aligned_span(a_bytes + b_bytes + d_bytes + plan.workspace_bytes());
  Submission submission(impl_->functions, queue_);
  if (auto made = submission.allocate(memory_, packed_at + packed_bytes); !made) {
    return made.error();
  }
  std::byte* const memory = submission.mapped();
  std::memcpy(memory, product.a().data(), product.a().size());
  std::memcpy(memory + a_bytes, product.b().data(), product.b().size());
  std::byte* const d = memory + a_bytes + b_bytes;
  std::memset(d, std::to_integer<int>(ExactProduct::poison), d_bytes + plan.workspace_bytes());
  const VkDeviceAddress address = submission.address();
  Operands operands{.a = {address, product.a().size()},
                    .b = {address + a_bytes, product.b().size()},
                    .d = {address + a_bytes + b_bytes, product.row_values_offset()},
                    .row_values = {address + a_bytes + b_bytes + product.row_values_offset(),
                                   product.d_bytes() - product.row_values_offset()},
                    .workspace = {address + a_bytes + b_bytes + d_bytes, plan.workspace_bytes()}};
  Result<bool> done = submission.run(timeout_ms_, [&](VkCommandBuffer commands) {
    if (tested.packing) {
      const Plan& packing = *tested.packing;
      const std::size_t scales = product.scales_offset(), zeros = product.zeros_offset();
      const DeviceSpan b = operands.b;
      operands.b = {address + packed_at, packing.layout().bytes};
      operands.b_fingerprint = packing.layout().fingerprint;
      auto packed = packing.record(commands, {.codes = {b.address, scales},
                                              .scales = {b.address + scales, zeros - scales},
                                              .zeros = {b.address + zeros, b.bytes - zeros},
                                              .packed = operands.b});
      if (!packed) return packed;
      record_barrier(impl_->functions, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                     VK_ACCESS_SHADER_READ_BIT);
    }
    return plan.record(commands, operands);
  });
  keep_if_in_flight(submission);
  if (!done || !*done) return done;
  // Memory of the device may be slow to read but in one piece.
  const std::vector<std::byte> result(d, d + product.d_bytes());
  if (auto wrong = product.why_wrong(result)) {
    verdict.outcome = Outcome::wrong_result;
    verdict.detail = *wrong;
  }
  return true;
}

void KindTest::keep_if_in_flight(const Submission& submission) {
  if (!submission.in_flight() || left_in_flight_) return;
  left_in_flight_ = true;
  Context::Impl::keep(impl_);
}

}  // namespace vkgemm
