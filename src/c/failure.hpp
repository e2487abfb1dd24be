// failure.hpp: why a call of the C API fails.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "c/enums.hpp"
#include "vkgemm/result.hpp"
#include "vkgemm/vkgemm.h"

namespace vkgemm::c {

struct Failure {
  VkgemmStatus status = VKGEMM_ERROR_INTERNAL;
  std::string message;
  VkResult vk_result = VK_SUCCESS;
};

// Nothing if all is well.
using MaybeFailure = std::optional<Failure>;

inline Failure invalid(std::string message) {
  return {VKGEMM_ERROR_INVALID_ARGUMENT, std::move(message)};
}

inline Failure failure_of(const Error& error) {
  return {to_c(error.status).value_or(VKGEMM_ERROR_INTERNAL), error.message, error.vk_result};
}

inline MaybeFailure failure_of(const Result<void>& result) {
  return result ? MaybeFailure{} : failure_of(result.error());
}

}  // namespace vkgemm::c
