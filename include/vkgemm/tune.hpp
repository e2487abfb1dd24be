// vkgemm/tune.hpp: the options and the result of Context::tune().
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"
#include "vkgemm/export.h"

namespace vkgemm {

// The state of a tuning run. Times are medians in microseconds, 0 as long as there is none.
struct TuneProgress {
  std::uint32_t timed = 0;       // configurations
  std::uint32_t candidates = 0;  // the most that the run times, with the one that plan() takes
  double elapsed_ms = 0.0;
  double best_us = 0.0;    // of the fastest configuration so far
  double chosen_us = 0.0;  // of the configuration that plan() takes without the run
};

// Options of Context::tune().
struct TuneInfo {
  // A queue of the device that can compute and has timestamps. Null: SelfTest::queue, and its
  // family. The queue is externally synchronised: while tune() runs, no other thread may use it
  // outside of this context. Afterwards it is idle.
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;

  // The time for the whole run, compilation included; more than 0. The run may exceed it by one
  // configuration's compilation and first execution.
  double budget_ms = 1000.0;

  // The most configurations that the run times beside the one that plan() takes, the best estimates
  // first. At least 1.
  std::uint32_t max_candidates = 48;

  // Threads that compile pipelines while the device executes. 0: one less than the processors.
  std::uint32_t threads = 0;

  // If false, each execution begins with a cold L2 cache: 256 MiB are written before (CPUs: 1 MiB).
  bool warm_l2 = false;

  // If true, tune() times nothing for a problem that a table has timed on this device. The result
  // then has the table's configuration and time, and `timed` is 0.
  bool skip_timed = false;

  // The groups of a grouped problem: groups + 1 values, as the offsets operand has them. Empty:
  // groups of equal size. The result is kept for the shape, whatever
  // the offsets: give those that you expect. skip_timed ignores them.
  std::span<const std::uint64_t> offsets = {};

  // The table that gets the result, as `vkgemm tune` writes one. It is made if it does not exist.
  // Empty: none. default_tuning_file() names the one that every context reads.
  std::filesystem::path file = {};

  // Called from the thread that called tune(), after each timing. Returns false to end the run: the
  // fastest configuration so far is kept. Must not throw, nor call this context.
  std::function<bool(const TuneProgress&)> progress = {};
};

// The result of Context::tune().
struct TuneResult {
  Config config;                 // plan() takes it from now on
  double microseconds = 0;       // the median of its executions
  Config chosen;                 // the configuration that plan() took before
  double chosen_us = 0;          // its median in the same run
  std::uint32_t timed = 0;       // configurations
  std::uint32_t candidates = 0;  // as TuneProgress has them
  bool is_complete = false;      // true: all candidates were tried; those that fail are not timed
};

// $XDG_CACHE_HOME/vkgemm/tuned-<vendor>-<device>-<hash>.json, where the hash is of the driver; or
// in ~/.cache, or %LOCALAPPDATA%. Empty if the environment names none of them.
VKGEMM_API std::filesystem::path default_tuning_file(const DeviceCaps& caps);

}  // namespace vkgemm
