// create_info.hpp: what a context is created with. Unlike other structures it refers to memory and
// functions of the caller, so each direction is written by itself.
#pragma once

#include <filesystem>
#include <vector>

#include "base/paths.hpp"
#include "c/fields.hpp"
#include "c/handles.hpp"

namespace vkgemm::c {

// Its other members refer to memory of the caller.
template <>
struct Fields<VkgemmSelfTest> {
  using Cpp = SelfTest;
  static void map(auto& map, auto& c, auto& cpp) {
    map.reserved(c.reserved);
    map.number("queue_family", c.queue_family, cpp.queue_family);
    map.number("timeout_ms", c.timeout_ms, cpp.timeout_ms);
    map.boolean("use_deny_list", c.use_deny_list, cpp.use_deny_list);
    map.boolean("read_default_file", c.read_default_file, cpp.read_default_file);
    map.boolean("use_trusted_list", c.use_trusted_list, cpp.use_trusted_list);
  }
};

// Its other members, too.
template <>
struct Fields<VkgemmContextCreateInfo> {
  using Cpp = ContextCreateInfo;
  static void map(auto& map, auto& c, auto& cpp) {
    map.boolean("read_default_tuning_file", c.read_default_tuning_file,
                cpp.read_default_tuning_file);
    map.reserved(c.reserved);
  }
};

// The name of a file, which is UTF-8; none if it is null.
inline std::filesystem::path path_of(const char* file) {
  return file != nullptr ? vkgemm::path_of(file) : std::filesystem::path();
}

// A ContextCreateInfo with what it points at.
struct CreateInfo {
  CreateInfo() = default;
  CreateInfo(const CreateInfo&) = delete;
  CreateInfo& operator=(const CreateInfo&) = delete;

  // Reads the caller's.
  MaybeFailure read(const VkgemmContextCreateInfo& given);

  ContextCreateInfo cpp;

 private:
  MaybeFailure read_self_test(const VkgemmSelfTest& given);

  std::vector<KernelKind> only_;
};

}  // namespace vkgemm::c
