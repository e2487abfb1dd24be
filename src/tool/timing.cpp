#include "tool/timing.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "oracle/quantised.hpp"
#include "problem/row_index.hpp"
#include "tool/matrices.hpp"
#include "tool/planning.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {

using headless::Buffer;
using headless::Runner;

OperandPool::Operand OperandPool::get(DataType type, std::uint64_t bytes, std::uint64_t seed) {
  Kept& kept = kept_[{type, seed}];
  if (kept.buffer.bytes() == 0 || kept.values.size() < bytes) {
    kept = Kept();  // its memory first
    // A device that has no room says so before anything is made.
    Buffer buffer = unwrap(runner_.allocate(bytes));
    Kept made{generate(type, bytes, Fill::random, seed), std::move(buffer)};
    unwrap(runner_.upload(made.buffer, 0, made.values.data(), bytes));
    kept = std::move(made);
  }
  return {kept.values.data(), kept.buffer.span(0, std::max<std::uint64_t>(bytes, 16))};
}

void OperandPool::make_room() {
  constexpr std::uint64_t much = std::uint64_t{4} << 30;
  std::uint64_t bytes = 0;
  for (const auto& [key, kept] : kept_) bytes += kept.buffer.bytes();
  if (bytes > much) kept_.clear();
}

TimedCase::TimedCase(Runner& runner, OperandPool& pool, const Problem& problem,
                     const Groups& groups)
    : runner_(runner),
      problem_(plain(problem)),
      groups_(groups),
      bytes_(operand_bytes(problem_)),
      multiplied_(problem_) {
  pool.make_room();
  const Problem source = to_be_packed(problem_, problem);
  for (const OperandRow& row : operand_rows()) {
    const std::uint64_t bytes = bytes_[row.id];
    Buffer& plain = device_.plain[row.id];
    if (row.is_written(problem_)) {
      plain = unwrap(runner.allocate(bytes));
    } else if (row.is_integer && bytes != 0) {
      std::vector<std::byte>& numbers = integers_[row.id];
      numbers = integers_of(row.id, problem_, groups.offsets);
      plain = unwrap(runner.allocate(bytes));
      unwrap(runner.upload(plain, 0, numbers.data(), numbers.size()));
      host_[row.id] = numbers.data();
    } else if (bytes != 0) {
      const std::uint64_t seed = 1 + static_cast<std::uint64_t>(row.id);
      inputs_[row.id] = pool.get(row.shape(problem_).matrix.type, bytes, seed);
      host_[row.id] = inputs_[row.id].values;
      if (!is_packed(problem, row)) continue;
      const OperandPool::Operand& from = inputs_[row.id];
      if (is_quantised(problem, row)) {
        elements_[row.id].assign(from.values, from.values + bytes);
      }
      Packed packed = pack(runner, source, packed_as(row), elements_[row.id], from.device);
      device_.packed[row.id] = std::move(packed.form);
      codes_[row.id] = std::move(packed.codes);
    }
  }
}

std::vector<double> TimedCase::time(const Plan& plan, const Timing& timing) {
  const bool rounds = oracle::rounds_b(plan.problem(), plan.config());
  multiplied_.b.type = rounds ? problem_.b.type : DataType::f32;
  multiplied_.quantised_b = rounds ? std::nullopt : plan.problem().quantised_b;
  if (device_.workspace.bytes() < std::max<std::uint64_t>(plan.workspace_bytes(), 1)) {
    device_.workspace = Buffer();  // its memory first
    device_.workspace = unwrap(runner_.allocate(plan.workspace_bytes()));
  }
  Operands operands = device_.operands();
  for (const OperandRow& row : operand_rows()) {
    if (row.is_written(problem_)) unwrap(runner_.fill(device_.plain[row.id], 0xffffffffU));
    if (inputs_[row.id].values != nullptr && !device_.packed[row.id]) {
      operands.*row.span = inputs_[row.id].device;
    }
    if (!codes_[row.id]) continue;
    std::vector<float>& exact = exact_[row.id];
    if (!rounds && exact.empty()) exact = codes_[row.id]->elements(problem_);
    host_[row.id] = rounds ? static_cast<const void*>(elements_[row.id].data()) : exact.data();
  }
  Runner::Commands before;
  if (timing.flush != nullptr) {
    before = [flush = timing.flush](VkCommandBuffer commands) -> Result<void> {
      vkCmdFillBuffer(commands, flush->handle(), 0, VK_WHOLE_SIZE, 0);
      return {};
    };
  }
  const auto record = [&](VkCommandBuffer commands) { return plan.record(commands, operands); };
  unwrap(runner_.submit(record));  // some drivers finish compiling only now
  if (timing.before_warm_up) timing.before_warm_up();
  return unwrap(runner_.time(record, timing.repeats, timing.warm_up_ms, before));
}

oracle::VerifyOptions TimedCase::options(std::uint64_t seed, double work) const {
  Problem row = problem_;
  row.m = row.batch = row.outer_batch = 1;
  // Two rows at least: of many groups only some are looked at then.
  const double most = work / multiply_adds(row);
  return {.mode = oracle::Verify::sampled,
          .seed = seed,
          .sampled_rows =
              static_cast<std::uint64_t>(std::clamp(most / groups_.sharing_rows(), 2.0, 64.0)),
          .sampled_groups = static_cast<std::uint64_t>(std::clamp(most / 2.0, 2.0, 1e6))};
}

std::unique_ptr<std::byte[]> TimedCase::download(const Buffer& from, std::uint64_t bytes,
                                                 const std::vector<oracle::ByteRange>& parts) {
  auto to = std::make_unique_for_overwrite<std::byte[]>(bytes);
  constexpr std::uint64_t most = 16 << 20;
  std::uint64_t all = 0;
  std::vector<VkBufferCopy> copies;
  for (const oracle::ByteRange& part : parts) {
    copies.push_back({part.begin, all, part.bytes});
    all += part.bytes;
  }
  if (all == 0) return to;
  if (all > most) {
    unwrap(runner_.download(from, 0, to.get(), bytes));
    return to;
  }
  if (staging_.bytes() == 0) staging_ = unwrap(runner_.allocate(most, headless::Memory::readback));
  unwrap(runner_.submit([&](VkCommandBuffer commands) -> Result<void> {
    vkCmdCopyBuffer(commands, from.handle(), staging_.handle(),
                    static_cast<std::uint32_t>(copies.size()), copies.data());
    return {};
  }));
  const auto* const staged = static_cast<const std::byte*>(staging_.mapped());
  for (const VkBufferCopy& copy : copies) {
    std::memcpy(to.get() + copy.srcOffset, staged + copy.dstOffset, copy.size);
  }
  return to;
}

TimedCase::Results TimedCase::download(const oracle::VerifyOptions& options) {
  const oracle::VerifiedParts parts = oracle::verified_parts(multiplied_, host_, options);
  Results results;
  for (const OperandRow& row : operand_rows()) {
    if (!row.is_written(problem_)) continue;
    results[row.id] = download(device_.plain[row.id], bytes_[row.id], parts[row.id]);
  }
  return results;
}

std::future<oracle::VerifyReport> TimedCase::start_verification(std::uint64_t seed, double work) {
  const oracle::VerifyOptions how = options(seed, work);
  Results results = download(how);
  oracle::HostOperands host = host_;
  for (const OperandRow& row : operand_rows()) {
    if (row.is_written(problem_)) host[row.id] = results[row.id].get();
  }
  return std::async(std::launch::async,
                    [problem = multiplied_, how, host, results = std::move(results)] {
                      return oracle::verify(problem, host, how);
                    });
}

double TimedCase::bytes() const {
  std::uint64_t all = 0;
  for (const OperandRow& row : operand_rows()) {
    all += codes_[row.id] ? device_.packed[row.id]->layout.bytes : bytes_[row.id];
  }
  return static_cast<double>(all);
}

std::uint64_t TimedCase::result_bytes() const {
  std::uint64_t all = 0;
  for (const OperandRow& row : operand_rows()) all += row.is_written(problem_) ? bytes_[row.id] : 0;
  return all;
}

}  // namespace vkgemm::tool
