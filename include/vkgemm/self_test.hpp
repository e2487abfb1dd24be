// vkgemm/self_test.hpp: whether a device computes what it advertises.
//
// Drivers have listed matrix shapes that they multiply wrongly, or lose the device on. The
// self-test multiplies small matrices of integers, whose product is exact, once for each kind of
// kernel that a device offers; a kind that fails is taken out of every choice from then on
// (Context::candidates(), plan()), and why is said wherever a reason is. It takes some seconds
// where pipelines compile slowly, so verdicts are kept in a file and hold for that device, driver
// and build of vkgemm only.
//
// Two ways to run it:
//   - `vkgemm info --self-test`: each kind in a process of its own, so that a crash or a hang is a
//     verdict. It writes default_verdict_file(), which contexts may read.
//   - at Context::create(), on a queue that the application lends (ContextCreateInfo::self_test).
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vkgemm/config.hpp"
#include "vkgemm/export.h"
#include "vkgemm/problem.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

struct DeviceCaps;

// Kernels that use the device in one way, accumulating in f32, of s8 in s32. kernel_kinds() makes
// them, to_string() describes them.
struct KernelKind {
  MainLoop loop = Config{}.main_loop();  // that is tried; one may speak for others
  DataType input = DataType::f32;
  std::array<std::uint32_t, 6> numbers = {};  // opaque: the main loop's
  bool operator==(const KernelKind&) const = default;
};

// "main loop khr, fragment 16x16x16 f16, subgroups of 32"
VKGEMM_API std::string to_string(const KernelKind& kind);

// How the test of a kind of kernel ended.
enum class Outcome : std::uint8_t {
  passed,
  wrong_result,  // it computed something else
  driver_error,  // a pipeline was not built, or a call failed
  device_lost,
  timed_out,
  crashed,   // the process that tried it ended: twice, where nobody saw how
  unusable,  // what it rests on, and no specification promises, is not so here: no fault of the
             // driver, and the kind is taken out of every choice without a warning
  untested,  // neither good nor bad: what went wrong says nothing of it, or no small configuration
             // of this kind is legal here. Not kept in files.
};

// The enumerator's name.
VKGEMM_API std::string_view to_string(Outcome outcome) noexcept;

// The inverse of to_string; nothing if the text names none of them.
VKGEMM_API std::optional<Outcome> parse_outcome(std::string_view text) noexcept;

// The self-test's verdict on a kind of kernel.
struct Verdict {
  KernelKind kind;
  Outcome outcome = Outcome::untested;
  std::string detail;  // "expected 12, got 13 at (3, 4), …"; empty if passed
  std::string config;  // what was run

  // True if the driver is at fault. The kind is taken out of every choice.
  bool failed() const noexcept {
    return outcome != Outcome::passed && outcome != Outcome::untested &&
           outcome != Outcome::unusable;
  }
  bool operator==(const Verdict&) const = default;
};

// An entry of the list of drivers that are known to be bad (src/device/known_drivers.json), which a
// device must not be asked for. A configuration that matches is refused like a kind that failed,
// unless the self-test passed for it. As a bad driver may take the application down, create()
// doesn't try it; `vkgemm info --self-test` does. The list is ignored with SelfTest::use_deny_list
// = false, or VKGEMM_DENY_LIST=0 in the environment.
struct Denial {
  Path path = Path::khr;
  std::optional<DataType> input = {};  // any
  std::uint32_t m = 0;                 // of the fragment or the granularity; 0: any
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  bool shapes_unknown = false;  // asking the driver for its shapes is what is bad: it was not
  std::string reason;           // with the driver's versions, the source and its date
  bool operator==(const Denial&) const = default;
};

// Member of ContextCreateInfo. By default nothing is run or read.
struct SelfTest {
  // A queue of the device that can compute: every kind without a verdict is tried on it, before
  // create() returns. This is the only time that vkgemm submits or waits. The queue is
  // externally synchronised: nobody else may use it meanwhile. Afterwards it is idle as far as the
  // self-test is concerned, and all that was made for it is gone.
  //
  // A kind that fails is no error of create(), but a lost device is, and so is a wait that fails. A
  // product that does not end within timeout_ms is none: the context goes without this kind, what
  // follows is not tried, what was made for it is never freed, and the queue may still be busy
  // with it. The time that the queue needs to become free and the driver to compile does not count;
  // after ten times timeout_ms of it kinds are untested.
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  std::uint32_t timeout_ms = 10000;

  // Verdicts are read from it and, if there is a queue, what is found is added to it. Failed ones
  // that stand there are warned of in the log.
  //
  // A process may be interrupted, and a machine busy. So while a kind is on the device the file
  // says so; if that stays there, because the process ended or gave up waiting, the next create()
  // warns and tries again. If it happens a second time within a day, the kind has crashed or timed
  // out, and is left alone from then on. A driver that crashes while it compiles is not found out
  // in this way, but by `vkgemm info --self-test`.
  //
  // Processes may share the file, also from several containers; "<file>.lock" beside it says who is
  // alive. On systems without locks on open files attempts are not noted, and one process at a time
  // may use the file. A file of another device, driver or build of vkgemm is replaced: use one for
  // each, as default_verdict_file() does. What cannot be read, is a symbolic link or no file of
  // verdicts, or cannot be written stays as it is, with a warning in the log.
  std::filesystem::path file = {};

  // Verdicts that the application kept itself; they come before the file's. They must be of this
  // device, driver and build of vkgemm: kinds that passed on another may compute something else
  // here.
  std::span<const Verdict> verdicts = {};

  // If not empty, only these are tried, denied ones too: for a process that nobody will miss.
  std::span<const KernelKind> only = {};

  // If true, drivers that are known to be bad are refused (struct Denial).
  bool use_deny_list = true;
};

// The kinds of kernel that the self-test tries on a device, in an order that depends on the
// capabilities alone.
VKGEMM_API std::vector<KernelKind> kernel_kinds(const DeviceCaps& caps);

// $XDG_CACHE_HOME/vkgemm/self-test-<vendor>-<device>-<hash>.json, where the hash is of the driver
// and of the kernels in this build; or in ~/.cache, or %LOCALAPPDATA%. Empty if the environment
// names none of them.
VKGEMM_API std::filesystem::path default_verdict_file(const DeviceCaps& caps);

// Empty if there is no file; io_error, saying why, if it cannot be read or belongs to another
// device, driver or build of vkgemm.
VKGEMM_API Result<std::vector<Verdict>> load_verdicts(const std::filesystem::path& file,
                                                      const DeviceCaps& caps);

// Replaces the file at once: readers see the old one or the new. Makes its folder, for its owner
// alone. io_error if it cannot be written, or is a symbolic link; invalid_argument if
// load_verdicts() would refuse what it holds: more than 1 MiB, or a kind that is never tried.
VKGEMM_API Result<void> save_verdicts(const std::filesystem::path& file, const DeviceCaps& caps,
                                      std::span<const Verdict> verdicts);

}  // namespace vkgemm
