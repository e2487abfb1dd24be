// trial_operands.hpp: the operands of a trial: their values, and their copies on a device.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "harness.hpp"
#include "headless/runner.hpp"
#include "host_buffer.hpp"
#include "oracle/quantised.hpp"
#include "problem/operands.hpp"
#include "trial.hpp"
#include "vkgemm/vkgemm.hpp"

namespace vkgemm::test {

// Calls function(matrix, i, j) for every element.
template <class Function>
void each_element(const OperandShape& shape, const Function& function) {
  for (std::uint64_t b = 0; b < shape.count; ++b) {
    for (std::uint64_t i = 0; i < shape.rows; ++i) {
      for (std::uint64_t j = 0; j < shape.cols; ++j) function(b, i, j);
    }
  }
}

// The values of an operand that the problem has. Padding stays as it is.
void fill_operand(OperandId id, const Problem& problem, Fill fill, std::uint64_t seed,
                  HostBuffer& buffer);

// The largest unit of ld, batch_stride and K of codes.
std::uint64_t code_unit(const Quantisation& quantisation);

// B before it is packed: codes with padding behind each line and matrix.
Problem code_problem(const Problem& problem, const Quantisation& quantisation);

void fill_codes(oracle::CodeMatrix& codes, const Problem& problem, const Quantisation& q, Fill fill,
                std::uint64_t seed);

// A copy of host memory on the device.
class DeviceCopy {
 public:
  testing::AssertionResult upload(headless::Runner& device, const HostBuffer& host) {
    auto made = device.allocate(host.bytes.size());
    if (!made) return succeeds(made);
    buffer_ = std::move(*made);
    span_ = buffer_.span(host.begin, host.size);
    return succeeds(device.upload(buffer_, 0, host.bytes.data(), host.bytes.size()));
  }
  testing::AssertionResult download(headless::Runner& device, HostBuffer& host) const {
    return succeeds(device.download(buffer_, 0, host.bytes.data(), host.bytes.size()));
  }
  DeviceSpan span() const { return span_; }

 private:
  headless::Buffer buffer_;
  DeviceSpan span_;
};

// An operand in the form that plan_pack() gives it.
class PackedCopy {
 public:
  testing::AssertionResult pack_codes(headless::Runner& device, const Problem& problem,
                                      const oracle::CodeMatrix& codes);
  testing::AssertionResult pack(headless::Runner& device, const Problem& problem,
                                PackedOperand operand, Operands source);
  DeviceSpan span() const { return buffer_.span(0, layout_.bytes); }
  const Fingerprint& fingerprint() const { return layout_.fingerprint; }

 private:
  headless::Buffer buffer_;
  PackedLayout layout_;
};

}  // namespace vkgemm::test
