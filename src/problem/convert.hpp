// convert.hpp: elements of arrays on the host, from and to double.
#pragma once

#include <cstdint>

#include "lib/types.h"
#include "problem/data_type.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm {

// Calls function.operator()<type>().
template <class Function>
auto visit_type(DataType type, Function&& function) {
  switch (type) {
#define VKGEMM_VISIT(name, NAME, bytes) \
  case DataType::name:                  \
    return function.template operator()<DataType::name>();
    VKGEMM_TYPES(VKGEMM_VISIT)
#undef VKGEMM_VISIT
  }
  return function.template operator()<DataType{}>();
}

// Element `index` of an array of `type`.
inline double load_element(const void* data, DataType type, std::uint64_t index) noexcept {
  return row_of(type).number.load(static_cast<const unsigned char*>(data) +
                                  index * size_in_bytes(type));
}
inline void store_element(void* data, DataType type, std::uint64_t index, double value) noexcept {
  row_of(type).number.store(static_cast<unsigned char*>(data) + index * size_in_bytes(type), value);
}

}  // namespace vkgemm
