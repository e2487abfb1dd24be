// operand_id.hpp: the operands' numbers, and values for each of them. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <utility>

#include "lib/abi.h"

namespace vkgemm {

#define VKGEMM_OPERAND_ID(name) name,
enum class OperandId : std::uint8_t { VKGEMM_OPERANDS(VKGEMM_OPERAND_ID) };
#undef VKGEMM_OPERAND_ID
#define VKGEMM_OPERAND_NAME(name) #name,
inline constexpr std::string_view operand_names[] = {VKGEMM_OPERANDS(VKGEMM_OPERAND_NAME)};
#undef VKGEMM_OPERAND_NAME
inline constexpr std::size_t operand_count = std::size(operand_names);

// A value for each operand.
template <class T>
class PerOperand {
 public:
  PerOperand() = default;
  PerOperand(std::initializer_list<std::pair<OperandId, T>> values) {
    for (const auto& [id, value] : values) (*this)[id] = value;
  }
  // A copy in which these values replace the old ones.
  PerOperand with(std::initializer_list<std::pair<OperandId, T>> values) const {
    PerOperand out = *this;
    for (const auto& [id, value] : values) out[id] = value;
    return out;
  }

  T& operator[](OperandId id) noexcept { return values_[static_cast<std::size_t>(id)]; }
  const T& operator[](OperandId id) const noexcept { return values_[static_cast<std::size_t>(id)]; }
  auto begin() noexcept { return values_.begin(); }
  auto end() noexcept { return values_.end(); }
  auto begin() const noexcept { return values_.begin(); }
  auto end() const noexcept { return values_.end(); }

 private:
  std::array<T, operand_count> values_{};
};

}  // namespace vkgemm
