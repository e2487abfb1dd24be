// self_test.hpp: the self-test of a device, each kind of kernel in a process of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headless/devices.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm::tool {

struct SelfTestOptions {
  bool wanted = false;
  bool fresh = false;
  std::string cache;
  std::string only;
  std::optional<std::uint32_t> jobs;  // processes at the same time
  std::uint32_t timeout_s = 60;
  std::optional<std::uint32_t> kind;  // of the child: the one that it tries

  // Adds --self-test and what goes with it.
  void add(CLI::App& app);
};

struct DeviceSelfTest {
  struct Entry {
    Verdict verdict;
    bool from_cache = false;
    std::string denied;  // why it is denied; empty if it isn't
  };
  std::vector<Entry> entries;
  std::filesystem::path file;  // that verdicts were written to; empty: none

  bool failed() const;
};

// Throws a Failure if a process that only lists the devices doesn't survive it.
void check_that_listing_is_safe(const SelfTestOptions& options);

// Throws a Failure if --only is part of no kind's name on any of the devices.
void check_only(const SelfTestOptions& options,
                const std::vector<headless::DeviceListing>& devices);

// Tries what the cache doesn't tell; verdicts are saved after each. `tell` is called with each.
DeviceSelfTest run_self_test(const headless::DeviceListing& device, const SelfTestOptions& options,
                             const std::function<void(const DeviceSelfTest::Entry&)>& tell);

// The child: tries options.kind on the device and prints the verdict for its parent.
void try_kind(const std::string& device, const SelfTestOptions& options);

}  // namespace vkgemm::tool
