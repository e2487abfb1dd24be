// device_listing.hpp: the devices there are, for people to choose from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vkgemm/device.hpp"

namespace vkgemm::headless {

struct DeviceListing {
  std::uint32_t index = 0;
  std::string name;
  std::optional<DeviceCaps> caps;  // nothing if even fma cannot run
  std::string reason;              // why not
};

// All physical devices the loader shows. Empty with a reason in *error if there is no loader.
std::vector<DeviceListing> list_devices(std::string* error = nullptr);

}  // namespace vkgemm::headless
