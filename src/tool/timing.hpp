// timing.hpp: one problem with random operands on a device: what `bench` and `tune` time and
// verify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "headless/runner.hpp"
#include "oracle/reference.hpp"
#include "tool/groups.hpp"
#include "tool/packing.hpp"

namespace vkgemm::tool {

// Random operands on the host and on the device, kept for the problems that come after: an
// element's value depends on its place and the seed alone, so that smaller problems use the front
// of what there is.
class OperandPool {
 public:
  explicit OperandPool(headless::Runner& runner) : runner_(runner) {}

  struct Operand {
    const std::byte* values = nullptr;
    DeviceSpan device;
  };
  // Until the next one of the same type and seed that is larger, or make_room().
  Operand get(DataType type, std::uint64_t bytes, std::uint64_t seed);

  // Gives all back if it is much.
  void make_room();

 private:
  struct Kept {
    std::vector<std::byte> values;
    headless::Buffer buffer;
  };
  headless::Runner& runner_;
  std::map<std::pair<DataType, std::uint64_t>, Kept> kept_;
};

// The operands of one problem, on the host and on the device. Packed ones are packed here, once: no
// time counts it.
class TimedCase {
 public:
  // All of them must outlive it. One at a time for a pool.
  TimedCase(headless::Runner& runner, OperandPool& pool, const Problem& problem,
            const Groups& groups);

  struct Timing {
    std::uint32_t repeats = 1;
    double warm_up_ms = 0.0;
    const headless::Buffer* flush = nullptr;  // written before each execution, if there is one
    std::function<void()> before_warm_up = {};
  };
  // Milliseconds of executions after a warm-up. D holds what the plan computed, and NaN where it
  // wrote nothing.
  std::vector<double> time(const Plan& plan, const Timing& timing);

  // Verifies rows of D on other threads, while the device goes on. `work` is the number of
  // multiply-adds of the reference, and gives the number of rows; the seed chooses them. Wait for
  // the report before this case ends.
  std::future<oracle::VerifyReport> start_verification(std::uint64_t seed, double work);
  oracle::VerifyReport verify() { return start_verification(1, 0x1p31).get(); }

  // The bytes of all operands and results, each once: of codes packed ones, else plain.
  double bytes() const;

  // The bytes of D and what is written beside it: so much may a verification hold on the host.
  std::uint64_t result_bytes() const;

 private:
  // Results on the host. Pages that nothing is downloaded to are never touched.
  using Results = PerOperand<std::unique_ptr<std::byte[]>>;
  oracle::VerifyOptions options(std::uint64_t seed, double work) const;
  Results download(const oracle::VerifyOptions& options);
  std::unique_ptr<std::byte[]> download(const headless::Buffer& from, std::uint64_t bytes,
                                        const std::vector<oracle::ByteRange>& parts);

  headless::Runner& runner_;
  const Problem problem_;  // with plain operands
  const Groups& groups_;
  const PerOperand<std::uint64_t> bytes_;
  PerOperand<std::vector<std::byte>> integers_;
  PerOperand<OperandPool::Operand> inputs_;
  DeviceOperands device_;  // offsets, results, and what is packed
  // The elements that codes stand for: rounded to B's type, and, once a kernel multiplies them,
  // not.
  PerOperand<std::vector<std::byte>> elements_;
  PerOperand<std::vector<float>> exact_;
  PerOperand<std::optional<oracle::CodeMatrix>> codes_;
  // The problem that the oracle computes, with the B that the last plan multiplied.
  Problem multiplied_;
  oracle::HostOperands host_;
  headless::Buffer staging_;
};

}  // namespace vkgemm::tool
