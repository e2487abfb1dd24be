// structures.hpp: structures of the C API across versions, by the size that they begin with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/text.hpp"
#include "c/failure.hpp"

namespace vkgemm::c {

// How much larger than known a structure may be: beyond that nobody set the size.
inline constexpr std::size_t most_unknown_bytes = 4096;

// A caller who knows fewer fields has a smaller structure, and one who knows more has a larger one.
template <class C>
MaybeFailure check_size(std::size_t size, std::string_view name) {
  // Then a size ends between two fields: there is no padding (tests/c/abi.cmake).
  const bool is_possible = size >= alignof(C) && size % alignof(C) == 0;
  if (is_possible && size >= sizeof(std::uint32_t) && size <= sizeof(C) + most_unknown_bytes) {
    return {};
  }
  return invalid(concat(name, ".struct_size is ", size, ": no version of this structure has ",
                        "this size; this version's has ", sizeof(C)));
}

// Reads a structure from the caller; `out` holds the defaults before. Fields that the caller
// doesn't know keep them; those that vkgemm doesn't know must be zero.
template <class C>
MaybeFailure read_structure(const C& given, std::string_view name, C& out) {
  std::uint32_t size = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&given);
  std::memcpy(&size, bytes, sizeof size);
  if (auto failure = check_size<C>(size, name)) return failure;
  for (std::size_t i = sizeof(C); i < size; ++i) {
    if (bytes[i] == 0) continue;
    return Failure{VKGEMM_ERROR_UNSUPPORTED,
                   concat(name, ".struct_size is ", size, ", and byte ", i, " is ",
                          static_cast<unsigned>(bytes[i]), ": of a field that this version of ",
                          "vkgemm, which knows ", sizeof(C), " bytes, can't honour")};
  }
  std::memcpy(static_cast<void*>(&out), bytes, std::min<std::size_t>(size, sizeof(C)));
  out.struct_size = sizeof(C);
  return {};
}

// Writes a structure of `size` bytes to the caller: what he doesn't know is left out, what vkgemm
// doesn't know is zero.
template <class C>
MaybeFailure write_structure(const C& from, C* to, std::size_t size, std::string_view name) {
  if (auto failure = check_size<C>(size, name)) return failure;
  auto* const bytes = reinterpret_cast<unsigned char*>(to);
  std::memcpy(bytes, &from, std::min(size, sizeof(C)));
  if (size > sizeof(C)) std::memset(bytes + sizeof(C), 0, size - sizeof(C));
  const auto struct_size = static_cast<std::uint32_t>(size);
  std::memcpy(bytes, &struct_size, sizeof struct_size);
  return {};
}

// The same of a structure that says its size itself.
template <class C>
MaybeFailure write_structure(const C& from, C* to, std::string_view name) {
  std::uint32_t size = 0;
  std::memcpy(&size, to, sizeof size);
  return write_structure(from, to, size, name);
}

}  // namespace vkgemm::c
