#include "headless/instance.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/environment.hpp"
#include "device/vk.hpp"

namespace vkgemm::headless {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

#ifdef _WIN32
constexpr const char* kLoader = "vulkan-1.dll";
#else
constexpr const char* kLoader = "libvulkan.so.1";
#endif

bool has_extension(const char* layer, const char* wanted) {
  std::uint32_t count = 0;
  vkEnumerateInstanceExtensionProperties(layer, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  vkEnumerateInstanceExtensionProperties(layer, &count, all.data());
  return std::any_of(all.begin(), all.end(), [&](const VkExtensionProperties& extension) {
    return std::strcmp(extension.extensionName, wanted) == 0;
  });
}

bool has_validation_layer() {
  std::uint32_t count = 0;
  vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> all(count);
  vkEnumerateInstanceLayerProperties(&count, all.data());
  return std::any_of(all.begin(), all.end(), [](const VkLayerProperties& layer) {
    return std::strcmp(layer.layerName, kValidationLayer) == 0;
  });
}

bool is_set(const char* variable) {
  const std::string value = environment_variable(variable);
  return !value.empty() && value != "0";
}

// Synchronization validation is off by default. Newer layers take a setting, older ones a feature.
struct SynchronizationValidation {
  SynchronizationValidation() {
    setting.pLayerName = kValidationLayer;
    setting.pSettingName = "validate_sync";
    setting.type = VK_LAYER_SETTING_TYPE_BOOL32_EXT;
    setting.valueCount = 1;
    setting.pValues = &yes;
    settings.settingCount = 1;
    settings.pSettings = &setting;
    features.enabledValidationFeatureCount = 1;
    features.pEnabledValidationFeatures = &feature;
  }
  SynchronizationValidation(const SynchronizationValidation&) = delete;
  SynchronizationValidation& operator=(const SynchronizationValidation&) = delete;

  VkBool32 yes = VK_TRUE;
  VkLayerSettingEXT setting{};
  VkLayerSettingsCreateInfoEXT settings =
      make_struct<VkLayerSettingsCreateInfoEXT>(VK_STRUCTURE_TYPE_LAYER_SETTINGS_CREATE_INFO_EXT);
  VkValidationFeatureEnableEXT feature =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features =
      make_struct<VkValidationFeaturesEXT>(VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT);
};

}  // namespace

void (*&on_functions_loaded() noexcept)() {
  static void (*callback)() = nullptr;
  return callback;
}

Result<std::unique_ptr<Instance>> Instance::create(
    bool validation, std::function<void(std::string_view)> on_validation_message) {
  validation = validation || is_set("VKGEMM_VALIDATION");
  if (volkInitialize() != VK_SUCCESS) {
    return Error{Status::missing_feature, std::string("no Vulkan loader (") + kLoader +
                                              "): install the package that has it, "
                                              "e.g. libvulkan1, and a Vulkan driver"};
  }
  if (volkGetInstanceVersion() < VK_API_VERSION_1_3) {
    return Error{Status::missing_feature, "the Vulkan loader is older than Vulkan 1.3"};
  }
  if (validation && !has_validation_layer()) {
    return Error{Status::missing_feature,
                 std::string("validation is wanted, but there is no ") + kValidationLayer +
                     ": install it, e.g. the package vulkan-validationlayers"};
  }

  std::unique_ptr<Instance> self(new Instance());
  self->validated_ = validation;
  self->on_validation_message_ = std::move(on_validation_message);

  auto application = make_struct<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pApplicationName = "vkgemm";
  application.apiVersion = VK_API_VERSION_1_3;
  auto info = make_struct<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;

  auto messenger = make_struct<VkDebugUtilsMessengerCreateInfoEXT>(
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                              VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  // Not GENERAL: there the loader complains about other vendors' drivers.
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                          VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  messenger.pfnUserCallback = on_message;
  messenger.pUserData = self.get();
  SynchronizationValidation synchronization;
  std::vector<const char*> extensions;
  if (validation) {
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kValidationLayer;
    if (has_extension(kValidationLayer, VK_EXT_LAYER_SETTINGS_EXTENSION_NAME)) {
      extensions.push_back(VK_EXT_LAYER_SETTINGS_EXTENSION_NAME);
      messenger.pNext = &synchronization.settings;
    } else {
      extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
      messenger.pNext = &synchronization.features;
    }
    info.pNext = &messenger;  // also hears what happens while the instance is made and destroyed
  }
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();

  const VkResult result = vkCreateInstance(&info, nullptr, &self->instance_);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    return Error{Status::missing_feature, "the Vulkan loader finds no driver", result};
  }
  if (result != VK_SUCCESS) return driver_error("vkCreateInstance", result);

  // All functions go through the loader, so that one set of pointers serves any number of devices.
  volkLoadInstance(self->instance_);
  if (on_functions_loaded() != nullptr) on_functions_loaded()();
  if (validation) {
    messenger.pNext = nullptr;
    const VkResult created =
        vkCreateDebugUtilsMessengerEXT(self->instance_, &messenger, nullptr, &self->messenger_);
    if (created != VK_SUCCESS) return driver_error("vkCreateDebugUtilsMessengerEXT", created);
  }
  return self;
}

Instance::~Instance() {
  if (messenger_ != VK_NULL_HANDLE) {
    vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  }
  if (instance_ != VK_NULL_HANDLE) vkDestroyInstance(instance_, nullptr);
}

Result<std::vector<VkPhysicalDevice>> Instance::physical_devices() const {
  std::uint32_t count = 0;
  VkResult result = vkEnumeratePhysicalDevices(instance_, &count, nullptr);
  if (result != VK_SUCCESS) return driver_error("vkEnumeratePhysicalDevices", result);
  std::vector<VkPhysicalDevice> devices(count);
  result = vkEnumeratePhysicalDevices(instance_, &count, devices.data());
  if (result < 0) return driver_error("vkEnumeratePhysicalDevices", result);
  devices.resize(count);
  return devices;
}

void Instance::message(std::string_view text) {
  ++messages_;
  if (on_validation_message_) {
    on_validation_message_(text);
  } else {
    std::fprintf(stderr, "validation: %.*s\n", static_cast<int>(text.size()), text.data());
  }
}

VkBool32 Instance::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                              VkDebugUtilsMessageTypeFlagsEXT,
                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* self) {
  static_cast<Instance*>(self)->message(data->pMessage != nullptr ? data->pMessage : "?");
  return VK_FALSE;
}

}  // namespace vkgemm::headless
