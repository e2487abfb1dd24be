// instance.hpp: a VkInstance, with the validation layers where they are wanted. Internal to the
// runner.
#pragma once

#include <volk.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "vkgemm/result.hpp"

namespace vkgemm::headless {

// A structure with its sType set, all else zero.
template <class Struct>
Struct make_struct(VkStructureType type) {
  Struct value{};
  value.sType = type;
  return value;
}

// Called whenever volk's pointers have been loaded, which an instance does; null: nobody is. For
// whoever stands in for some of the functions.
void (*&on_functions_loaded() noexcept)();

class Instance {
 public:
  // missing_feature if there is no loader, no driver, or no validation layer where one is wanted.
  static Result<std::unique_ptr<Instance>> create(
      bool validation, std::function<void(std::string_view)> on_validation_message = {});
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  VkInstance handle() const noexcept { return instance_; }
  bool is_validated() const noexcept { return validated_; }
  std::uint64_t validation_messages() const noexcept { return messages_; }

  Result<std::vector<VkPhysicalDevice>> physical_devices() const;

 private:
  Instance() = default;
  void message(std::string_view text);
  static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                                   const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                   void* self);

  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  bool validated_ = false;
  std::atomic<std::uint64_t> messages_ = 0;
  std::function<void(std::string_view)> on_validation_message_;
};

}  // namespace vkgemm::headless
