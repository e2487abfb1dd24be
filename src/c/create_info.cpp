#include "c/create_info.hpp"

#include <new>
#include <string>

#include "base/text.hpp"

namespace vkgemm::c {
namespace {

// A callback of C gets a text that ends with a zero byte.
LogCallback callback_of(VkgemmLogCallback log, void* user_data) {
  if (log == nullptr) return {};
  return [log, user_data](LogLevel level, std::string_view message) {
    const VkgemmLogLevel c_level = to_c(level).value_or(VKGEMM_LOG_LEVEL_ERROR);
    std::string text;
    try {
      text = message;
    } catch (const std::bad_alloc&) {
      return log(c_level, "a message for which there is no host memory", user_data);
    }
    log(c_level, text.c_str(), user_data);
  };
}

}  // namespace

MaybeFailure CreateInfo::read(const VkgemmContextCreateInfo& given) {
  auto c = defaults<VkgemmContextCreateInfo>();
  if (auto failure = read_structure(given, "info", c)) return failure;
  if (auto failure = ToCpp::read(c, "info", cpp)) return failure;
  if (auto failure = check_array(c.enabled_extensions, "enabled_extensions",
                                 c.enabled_extension_count, "enabled_extension_count")) {
    return failure;
  }
  cpp.instance = c.instance;
  cpp.physical_device = c.physical_device;
  cpp.device = c.device;
  cpp.get_instance_proc_addr = c.get_instance_proc_addr;
  cpp.enabled_extensions = {c.enabled_extensions, c.enabled_extension_count};
  cpp.enabled_features = c.enabled_features;
  cpp.pipeline_cache = c.pipeline_cache;
  cpp.pipeline_cache_file = path_of(c.pipeline_cache_file);
  cpp.tuning_file = path_of(c.tuning_file);
  cpp.log = callback_of(c.log, c.log_user_data);
  return c.self_test != nullptr ? read_self_test(*c.self_test) : MaybeFailure{};
}

MaybeFailure CreateInfo::read_self_test(const VkgemmSelfTest& given) {
  auto c = defaults<VkgemmSelfTest>();
  if (auto failure = read_structure(given, "self_test", c)) return failure;
  if (auto failure = ToCpp::read(c, "self_test", cpp.self_test)) return failure;
  if (auto failure = check_array(c.only, "self_test.only", c.only_count, "self_test.only_count")) {
    return failure;
  }
  if (c.verdicts != nullptr && !is_alive(c.verdicts)) {
    return Failure{VKGEMM_ERROR_INVALID_HANDLE, "self_test.verdicts is no VkgemmVerdicts"};
  }
  for (std::uint32_t i = 0; i < c.only_count; ++i) {
    const std::string name = concat("self_test.only[", i, "]");
    if (c.only[i] == nullptr) return invalid(name + " is null");
    if (auto failure = ToCpp::read(*c.only[i], name, only_.emplace_back())) return failure;
  }
  cpp.self_test.queue = c.queue;
  cpp.self_test.file = path_of(c.file);
  if (c.verdicts != nullptr) cpp.self_test.verdicts = c.verdicts->verdicts;
  cpp.self_test.only = only_;
  return {};
}

}  // namespace vkgemm::c
