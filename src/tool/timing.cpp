#include "tool/timing.hpp"

#include <algorithm>

#include "tool/matrices.hpp"
#include "tool/planning.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {

using support::Buffer;
using support::Runner;

std::uint64_t flush_bytes(const DeviceCaps& caps) {
  return caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU ? 1 << 20 : 256 << 20;
}

TimedCase::TimedCase(Runner& runner, const Problem& problem, const Groups& groups)
    : runner_(runner), problem_(problem), groups_(groups), offsets_(groups.encoded()) {
  const support::OperandBytes bytes = support::operand_bytes(problem);
  a_ = fill(problem.a.type, bytes.a, 1, device_a_);
  b_ = fill(problem.b.type, bytes.b, 2, device_b_);
  b_right_ = fill(problem.b.type, bytes.b_right, 5, device_b_right_);
  c_ = fill(problem.c.type, bytes.c, 3, device_c_);
  const RowReduction rows = problem.row_reduction.value_or(RowReduction{});
  gamma_ = fill(rows.vector_type, bytes.row_vector, 5, device_gamma_);
  beta_ = fill(rows.vector_type, bytes.row_vector, 6, device_beta_);
  row_values_.resize(bytes.row_values);
  device_row_values_ = unwrap(runner.allocate(bytes.row_values));
  bias_ = fill(problem.epilogue.bias_type, bytes.bias, 4, device_bias_);
  device_offsets_ = unwrap(runner.allocate(bytes.offsets));
  unwrap(runner.upload(device_offsets_, 0, offsets_.data(), offsets_.size()));
  d_.resize(bytes.d);
  aux_.resize(bytes.aux);
  device_d_ = unwrap(runner.allocate(bytes.d));
  device_aux_ = unwrap(runner.allocate(bytes.aux));
}

std::vector<double> TimedCase::time(const Plan& plan, std::uint32_t repeats, double warm_up_ms,
                                    const Buffer* flush) {
  workspace_ = unwrap(runner_.allocate(plan.workspace_bytes()));
  unwrap(runner_.fill(device_d_, 0xffffffffU));
  unwrap(runner_.fill(device_aux_, 0xffffffffU));
  unwrap(runner_.fill(device_row_values_, 0xffffffffU));
  const Operands operands{.a = device_a_.span(),
                          .b = device_b_.span(),
                          .b_right = device_b_right_.span(),
                          .c = device_c_.span(),
                          .d = device_d_.span(),
                          .bias = device_bias_.span(),
                          .aux = device_aux_.span(),
                          .offsets = device_offsets_.span(),
                          .gamma = device_gamma_.span(),
                          .beta = device_beta_.span(),
                          .row_values = device_row_values_.span(),
                          .workspace = workspace_.span()};
  Runner::Commands before;
  if (flush != nullptr) {
    before = [flush](VkCommandBuffer commands) -> Result<void> {
      vkCmdFillBuffer(commands, flush->handle(), 0, VK_WHOLE_SIZE, 0);
      return {};
    };
  }
  const auto record = [&](VkCommandBuffer commands) { return plan.record(commands, operands); };
  unwrap(runner_.submit(record));  // some drivers finish compiling only now
  return unwrap(runner_.time(record, repeats, warm_up_ms, before));
}

support::VerifyReport TimedCase::verify(std::uint64_t seed, double work) {
  unwrap(runner_.download(device_d_, 0, d_.data(), d_.size()));
  unwrap(runner_.download(device_aux_, 0, aux_.data(), aux_.size()));
  unwrap(runner_.download(device_row_values_, 0, row_values_.data(), row_values_.size()));
  Problem row = problem_;
  row.m = row.batch = 1;
  const double per_row = multiply_adds(row);
  const double rows = std::clamp(work / per_row / groups_.sharing_rows(), 2.0, 64.0);
  return support::verify(problem_,
                         {a_.data(), b_.data(), c_.data(), bias_.data(), offsets_.data(),
                          gamma_.data(), beta_.data(), b_right_.data()},
                         d_.data(), aux_.data(),
                         {.mode = support::Verify::sampled,
                          .seed = seed,
                          .sampled_rows = static_cast<std::uint64_t>(rows)},
                         row_values_.data());
}

double TimedCase::bytes() const {
  std::size_t bytes = offsets_.size();
  for (const auto* operand :
       {&a_, &b_, &b_right_, &c_, &bias_, &d_, &aux_, &gamma_, &beta_, &row_values_}) {
    bytes += operand->size();
  }
  return static_cast<double>(bytes);
}

std::vector<std::byte> TimedCase::fill(DataType type, std::uint64_t bytes, std::uint64_t seed,
                                       Buffer& device) {
  std::vector<std::byte> data = generate(type, bytes, Fill::random, seed);
  device = unwrap(runner_.allocate(bytes));
  unwrap(runner_.upload(device, 0, data.data(), bytes));
  return data;
}

}  // namespace vkgemm::tool
