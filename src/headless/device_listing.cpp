#include "headless/device_listing.hpp"

#include <utility>

#include "headless/devices.hpp"
#include "headless/instance.hpp"

namespace vkgemm::headless {

std::vector<DeviceListing> list_devices(std::string* error) {
  const auto fail = [error](const Error& why) {
    if (error != nullptr) *error = why.message;
    return std::vector<DeviceListing>();
  };
  auto instance = Instance::create(false);
  if (!instance) return fail(instance.error());
  auto devices = find_devices(**instance);
  if (!devices) return fail(devices.error());
  if (devices->empty() && error != nullptr) *error = "the Vulkan loader shows no device";
  std::vector<DeviceListing> listing;
  for (FoundDevice& device : *devices) {
    DeviceListing entry;
    entry.index = device.index;
    entry.name = device.name;
    if (device.requirements) entry.caps = device.requirements->caps();
    entry.reason = device.reason;
    listing.push_back(std::move(entry));
  }
  return listing;
}

}  // namespace vkgemm::headless
