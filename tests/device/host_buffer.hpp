// host_buffer.hpp: memory of the host that is copied to the device and back, with margins.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "vkgemm/problem.hpp"

namespace vkgemm::test {

// A byte of NaN in every type. Results are full of it before every run, and so is all padding.
inline constexpr std::byte nan_byte{0xff};

// Bytes on both sides of an operand, at least.
inline constexpr std::uint64_t margin = 256;

// One operand in host memory, with a margin of foreign bytes on both sides.
struct HostBuffer {
  std::vector<std::byte> bytes;
  std::uint64_t begin = 0;  // of the span, in bytes
  std::uint64_t size = 0;   // of the span

  std::byte* data() { return bytes.data() + begin; }
  const std::byte* data() const { return bytes.data() + begin; }
};

// A buffer of NaN, whose span begins `shift` bytes behind the margin.
HostBuffer make_buffer(std::uint64_t size, std::uint64_t shift);

// Every byte, margins included; else the first that differs, as the element that stands there.
testing::AssertionResult same_bytes(std::string_view name, const HostBuffer& got,
                                    const HostBuffer& expected, DataType type);

}  // namespace vkgemm::test
