// constants.hpp: the values of specialization constants, by their ids (lib/abi.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/abi.h"

namespace vkgemm {

class Constants {
 public:
  explicit Constants(std::array<std::uint32_t, SPEC_COUNT>& values) : values_(values) {}
  void set(std::size_t id, std::uint32_t value) { values_[id] = value; }
  void set(std::size_t id, std::uint64_t value) { values_[id] = static_cast<std::uint32_t>(value); }
  void set(std::size_t id, bool value) { values_[id] = value ? 1 : 0; }

 private:
  std::array<std::uint32_t, SPEC_COUNT>& values_;
};

}  // namespace vkgemm
