#include "tool/timing.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/caps.hpp"
#include "oracle/quantised.hpp"
#include "tool/matrices.hpp"
#include "tool/planning.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {

using headless::Buffer;
using headless::Runner;

std::uint64_t flush_bytes(const DeviceCaps& caps) { return is_cpu(caps) ? 1 << 20 : 256 << 20; }

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
      bytes_(oracle::operand_bytes(problem_)),
      offsets_(groups.encoded()),
      multiplied_(problem_) {
  pool.make_room();
  a_ = pool.get(problem.a.type, bytes_.a, 1);
  b_ = pool.get(problem.b.type, bytes_.b, 2);
  b_right_ = pool.get(problem.b.type, bytes_.b_right, 5);
  c_ = pool.get(problem.c.type, bytes_.c, 3);
  const RowReduction rows = problem.row_reduction.value_or(RowReduction{});
  gamma_ = pool.get(rows.vector_type, bytes_.row_vector, 7);
  beta_ = pool.get(rows.vector_type, bytes_.row_vector, 6);
  bias_ = pool.get(problem.epilogue.bias_type, bytes_.bias, 4);
  row_scales_ = pool.get(DataType::f32, bytes_.row_scales, 8);
  column_scales_ = pool.get(DataType::f32, bytes_.column_scales, 9);
  host_ = {a_.values,     b_.values,    c_.values,       bias_.values,       offsets_.data(),
           gamma_.values, beta_.values, b_right_.values, row_scales_.values, column_scales_.values};
  const auto packed = [&](PackedOperand operand, const OperandPool::Operand& from) {
    std::optional<PackedBuffer> to(prepare_packing(runner, problem_, operand));
    pack(runner, from.device, *to);
    return to;
  };
  if (problem.a.packing == Packing::packed) packed_a_ = packed(PackedOperand::a, a_);
  if (problem.b.packing == Packing::packed) {
    const auto packed_b = [&](const OperandPool::Operand& from, std::uint64_t bytes,
                              std::vector<std::byte>& elements,
                              std::optional<oracle::CodeMatrix>& codes) {
      if (!problem.quantised_b) return packed(PackedOperand::b, from);
      Problem source = problem_;
      source.quantised_b = problem.quantised_b;
      elements.assign(from.values, from.values + bytes);
      QuantisedB result = quantise(runner, source, elements);
      codes = std::move(result.codes);
      return std::optional(std::move(result.packed));
    };
    packed_b_ = packed_b(b_, bytes_.b, elements_b_, codes_b_);
    if (bytes_.b_right != 0) {
      packed_right_ = packed_b(b_right_, bytes_.b_right, elements_right_, codes_right_);
    }
  }
  device_row_values_ = unwrap(runner.allocate(bytes_.row_values));
  device_offsets_ = unwrap(runner.allocate(bytes_.offsets));
  unwrap(runner.upload(device_offsets_, 0, offsets_.data(), offsets_.size()));
  device_d_ = unwrap(runner.allocate(bytes_.d));
  device_aux_ = unwrap(runner.allocate(bytes_.aux));
}

std::vector<double> TimedCase::time(const Plan& plan, const Timing& timing) {
  if (plan.problem().quantised_b) {
    const bool rounds = oracle::rounds_b(plan.problem(), plan.config());
    if (!rounds && codes_b_ && exact_b_.empty()) {
      exact_b_ = codes_b_->elements(problem_);
      if (codes_right_) exact_right_ = codes_right_->elements(problem_);
    }
    multiplied_.b.type = rounds ? problem_.b.type : DataType::f32;
    host_.b = rounds ? static_cast<const void*>(elements_b_.data()) : exact_b_.data();
    host_.b_right = rounds ? static_cast<const void*>(elements_right_.data()) : exact_right_.data();
  }
  if (workspace_.bytes() < std::max<std::uint64_t>(plan.workspace_bytes(), 1)) {
    workspace_ = Buffer();  // its memory first
    workspace_ = unwrap(runner_.allocate(plan.workspace_bytes()));
  }
  unwrap(runner_.fill(device_d_, 0xffffffffU));
  unwrap(runner_.fill(device_aux_, 0xffffffffU));
  unwrap(runner_.fill(device_row_values_, 0xffffffffU));
  const auto span = [](const OperandPool::Operand& plain,
                       const std::optional<PackedBuffer>& packed) {
    return packed ? packed->span() : plain.device;
  };
  const Fingerprint none;
  const Operands operands{
      .a = span(a_, packed_a_),
      .b = span(b_, packed_b_),
      .b_right = span(b_right_, packed_right_),
      .c = c_.device,
      .d = device_d_.span(),
      .bias = bias_.device,
      .row_scales = row_scales_.device,
      .column_scales = column_scales_.device,
      .aux = device_aux_.span(),
      .offsets = device_offsets_.span(),
      .gamma = gamma_.device,
      .beta = beta_.device,
      .row_values = device_row_values_.span(),
      .workspace = workspace_.span(),
      .a_fingerprint = packed_a_ ? packed_a_->layout.fingerprint : none,
      .b_fingerprint = packed_b_ ? packed_b_->layout.fingerprint : none,
      .b_right_fingerprint = packed_right_ ? packed_right_->layout.fingerprint : none};
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
  row.m = row.batch = 1;
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
  return {download(device_d_, bytes_.d, parts.d), download(device_aux_, bytes_.aux, parts.aux),
          download(device_row_values_, bytes_.row_values, {{0, bytes_.row_values}})};
}

oracle::VerifyReport TimedCase::verify(std::uint64_t seed, double work) {
  const oracle::VerifyOptions how = options(seed, work);
  const Results results = download(how);
  return oracle::verify(multiplied_, host_, results.d.get(), results.aux.get(), how,
                        results.row_values.get());
}

std::future<oracle::VerifyReport> TimedCase::start_verification(std::uint64_t seed, double work) {
  const oracle::VerifyOptions how = options(seed, work);
  return std::async(std::launch::async,
                    [problem = multiplied_, how, host = host_, results = download(how)] {
                      return oracle::verify(problem, host, results.d.get(), results.aux.get(), how,
                                            results.row_values.get());
                    });
}

double TimedCase::bytes() const {
  std::uint64_t b = bytes_.b + bytes_.b_right;
  if (!elements_b_.empty()) {
    b = packed_b_->layout.bytes + (packed_right_ ? packed_right_->layout.bytes : 0);
  }
  return static_cast<double>(offsets_.size() + bytes_.a + b + bytes_.c + bytes_.bias +
                             bytes_.row_scales + bytes_.column_scales + bytes_.d + bytes_.aux +
                             2 * bytes_.row_vector + bytes_.row_values);
}

}  // namespace vkgemm::tool
