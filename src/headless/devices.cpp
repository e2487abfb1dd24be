#include "headless/devices.hpp"

#include <cctype>
#include <charconv>
#include <string_view>

namespace vkgemm::headless {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

}  // namespace

std::pair<int, int> FoundDevice::rank() const noexcept {
  if (!caps) return {5, 0};
  const int kind = caps->type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU     ? 0
                   : caps->type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? 1
                   : caps->type == VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU    ? 2
                   : caps->type == VK_PHYSICAL_DEVICE_TYPE_CPU            ? 3
                                                                          : 4;
  return {kind, caps->nv.available ? 0 : caps->khr.available ? 1 : 2};
}

Result<std::vector<FoundDevice>> find_devices(const Instance& instance) {
  auto handles = instance.physical_devices();
  if (!handles) return handles.error();
  std::vector<FoundDevice> devices;
  for (VkPhysicalDevice handle : *handles) {
    FoundDevice device;
    device.index = static_cast<std::uint32_t>(devices.size());
    device.handle = handle;
    VkPhysicalDeviceProperties properties{};
    vkGetPhysicalDeviceProperties(handle, &properties);
    device.name = properties.deviceName;
    auto requirements = query_requirements(instance.handle(), handle, vkGetInstanceProcAddr);
    if (requirements) {
      device.caps = requirements->caps();
      device.requirements = std::move(*requirements);
    } else {
      device.reason = requirements.error().message;
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<DeviceListing> list_devices(std::string* error) {
  const auto fail = [error](const std::string& why) {
    if (error != nullptr) *error = why;
    return std::vector<DeviceListing>();
  };
  auto instance = Instance::create(false);
  if (!instance) return fail(instance.error().message);
  auto devices = find_devices(**instance);
  if (!devices) return fail(devices.error().message);
  if (devices->empty()) return fail("the Vulkan loader shows no device");
  std::vector<DeviceListing> listing;
  for (DeviceListing& device : *devices) listing.push_back(std::move(device));
  return listing;
}

Result<FoundDevice*> choose_device(std::vector<FoundDevice>& devices, const std::string& wanted) {
  if (devices.empty()) {
    return Error{Status::missing_feature, "the Vulkan loader shows no device"};
  }
  std::string names;
  for (const FoundDevice& device : devices) {
    names += "\n  " + std::to_string(device.index) + ": " + device.name;
  }
  std::uint32_t index = 0;
  const auto [end, code] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), index);
  if (!wanted.empty() && code == std::errc() && end == wanted.data() + wanted.size()) {
    if (index >= devices.size()) {
      return Error{Status::invalid_argument,
                   "device is " + wanted + ", but there are only:" + names};
    }
    return &devices[index];
  }
  FoundDevice* best = nullptr;
  for (FoundDevice& device : devices) {
    if (lower_case(device.name).find(lower_case(wanted)) == std::string::npos) continue;
    if (best == nullptr || device.rank() < best->rank()) best = &device;
  }
  if (best == nullptr) {
    return Error{Status::invalid_argument, "device '" + wanted + "' is none of:" + names};
  }
  return best;
}

}  // namespace vkgemm::headless
