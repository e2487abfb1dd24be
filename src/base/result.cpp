#include "vkgemm/result.hpp"

namespace vkgemm {

std::string_view to_string(Status status) noexcept {
  switch (status) {
    case Status::invalid_argument:
      return "invalid_argument";
    case Status::unsupported:
      return "unsupported";
    case Status::misaligned:
      return "misaligned";
    case Status::span_too_small:
      return "span_too_small";
    case Status::overlapping_operands:
      return "overlapping_operands";
    case Status::workspace_too_small:
      return "workspace_too_small";
    case Status::wrong_fingerprint:
      return "wrong_fingerprint";
    case Status::wrong_context:
      return "wrong_context";
    case Status::missing_feature:
      return "missing_feature";
    case Status::io_error:
      return "io_error";
    case Status::out_of_host_memory:
      return "out_of_host_memory";
    case Status::out_of_device_memory:
      return "out_of_device_memory";
    case Status::device_lost:
      return "device_lost";
    case Status::driver_error:
      return "driver_error";
  }
  return "?";
}

}  // namespace vkgemm
