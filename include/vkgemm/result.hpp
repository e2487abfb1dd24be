// vkgemm/result.hpp: how vkgemm reports failure. No exception crosses the API.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "vkgemm/export.h"

namespace vkgemm {

// Why a call failed. The caller's mistakes come first, up to `wrong_context`: a function finds them
// before it records anything.
enum class Status : std::uint8_t {
  invalid_argument,      // a field has a value that no device could accept
  unsupported,           // valid, but this device, path or version of vkgemm cannot compute it
  misaligned,            // an address or a stride is less aligned than the problem promised
  span_too_small,        // a DeviceSpan ends before the last element that the problem touches
  overlapping_operands,  // an operand that is written shares bytes with another one
  workspace_too_small,   // the workspace span is smaller than Plan::workspace_bytes()
  wrong_fingerprint,     // a packed operand was packed for another device, driver, order or matrix
  wrong_context,         // a plan was handed to a context that did not make it
  missing_feature,       // the device was created without an extension or a feature vkgemm needs
  io_error,              // a file could not be read or written
  out_of_host_memory,
  out_of_device_memory,
  device_lost,   // sticky: every later call on the context says so too; destruction still works
  driver_error,  // any other VkResult below zero
};

// The enumerator's name.
VKGEMM_API std::string_view to_string(Status status) noexcept;

// The message names the field and its value: "a.ld is 12: a row of K = 16 needs at least 16".
struct Error {
  Status status = Status::driver_error;
  std::string message;
  VkResult vk_result = VK_SUCCESS;  // what the driver said, where a driver call failed
};

// A value or an Error (what std::expected is to C++23). Dereferencing a failed Result asserts.
template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit, so that a function may return either.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  // True if there is a value.
  explicit operator bool() const noexcept { return state_.index() == 0; }
  bool has_value() const noexcept { return state_.index() == 0; }

  // The value. Asserts that there is one.
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // The same by its name.
  T& value() & {
    assert(has_value());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    assert(has_value());
    return *std::get_if<0>(&state_);
  }
  T&& value() && { return std::move(value()); }

  // Why there is none. Asserts that there is none.
  const Error& error() const {
    assert(!has_value());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  // Implicit, as above.
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  // True if it succeeded.
  explicit operator bool() const noexcept { return !error_; }
  bool has_value() const noexcept { return !error_; }

  // Why it failed. Asserts that it did.
  const Error& error() const {
    assert(error_);
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace vkgemm
