// convert.hpp: element types on the host: f16 and bf16 bits, to and from double, rounding to
// nearest even, NaN and Inf kept. Used by tools and tests, not by the library.
#pragma once

#include <cstdint>
#include <cstring>

#include "vkgemm/problem.hpp"

namespace vkgemm::support {

double f16_to_double(std::uint16_t bits) noexcept;
double bf16_to_double(std::uint16_t bits) noexcept;
std::uint16_t double_to_f16(double value) noexcept;
std::uint16_t double_to_bf16(double value) noexcept;

// Element `index` of an array of `type`.
double load_element(const void* data, DataType type, std::uint64_t index) noexcept;
void store_element(void* data, DataType type, std::uint64_t index, double value) noexcept;

}  // namespace vkgemm::support
