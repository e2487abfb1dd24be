// span_check.hpp: the spans of plans that are no products.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

inline Result<void> check_span(std::string_view name, const DeviceSpan& span, std::uint64_t bytes,
                               std::uint64_t alignment) {
  if (span.bytes < bytes) {
    return Error{Status::span_too_small,
                 concat(name, ".bytes is ", span.bytes, ", the plan wants ", bytes)};
  }
  if (span.address == 0) return invalid_argument(concat(name, ".address is 0"));
  if (span.address > UINT64_MAX - bytes) {
    return invalid_argument(concat(name, " span of ", bytes, " bytes ends beyond 2^64"));
  }
  if (span.address % alignment == 0) return {};
  return Error{Status::misaligned, concat(name, ".address is ", span.address,
                                          ": the plan wants a multiple of ", alignment, " bytes")};
}

}  // namespace vkgemm
