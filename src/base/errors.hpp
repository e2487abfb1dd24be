// errors.hpp: how the effects layer makes Errors.
#pragma once

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "vkgemm/result.hpp"

namespace vkgemm {

using MaybeError = std::optional<Error>;

inline Error invalid_argument(std::string message) {
  return Error{Status::invalid_argument, std::move(message)};
}
inline Error unsupported(std::string message) {
  return Error{Status::unsupported, std::move(message)};
}

// No exception crosses the API: what the standard library throws (the allocator, a mutex or a path
// in trouble) becomes an Error.
template <class Function>
auto without_exceptions(Function&& function) noexcept -> decltype(function()) {
  try {
    return std::forward<Function>(function)();
  } catch (const std::bad_alloc&) {
    return Error{Status::out_of_host_memory, "no host memory"};  // short: must not allocate
  } catch (const std::exception& exception) {
    return Error{Status::io_error, exception.what()};
  }
}

}  // namespace vkgemm
