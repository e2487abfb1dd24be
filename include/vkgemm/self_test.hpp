// vkgemm/self_test.hpp: whether a device computes what it advertises.
//
// Some drivers advertise matrix shapes that give wrong results or lose the device. For each kind of
// kernel that a device offers, the self-test multiplies small matrices of integers, whose product
// is exact. A kind that fails is no longer legal (Context::candidates(), plan()), and explain()
// gives the reason. A verdict in a file holds for one device, driver and build of vkgemm.
//
// Two ways to run it:
//   - `vkgemm info --self-test` tests each kind in a process of its own, so that a crash or a hang
//     is a verdict. It writes default_verdict_file(), which contexts read.
//   - The application lends a queue (ContextCreateInfo::self_test). Then a plan tests the kinds
//   that
//     it would use, once each: about a second for a plan on an H100.
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
  crashed,   // its process ended during the test; in an application twice within a day
  unusable,  // it needs a property that no specification promises, and this driver lacks. Not a
             // fault of the driver: the kind is not legal, and there is no warning
  untested,  // no result: another cause ended the test, or no small configuration of this kind is
             // legal here. Not kept in files.
};

// The enumerator's name.
VKGEMM_API std::string_view to_string(Outcome outcome) noexcept;

// The inverse of to_string; nothing if the text names none of them.
VKGEMM_API std::optional<Outcome> parse_outcome(std::string_view text) noexcept;

// The self-test's verdict on a kind of kernel.
struct Verdict {
  KernelKind kind;
  Outcome outcome = Outcome::untested;
  std::string detail;  // "expected 12, got 13 at (3, 4), …"; of a trusted kind its source
  std::string config;  // what was run

  // True if the driver is at fault. The kind is not legal.
  bool failed() const noexcept {
    return outcome != Outcome::passed && outcome != Outcome::untested &&
           outcome != Outcome::unusable;
  }
  bool operator==(const Verdict&) const = default;
};

// A driver that is known to be bad (src/device/known_drivers.json). A configuration that matches is
// not legal, unless its kind passed the self-test. create() does not test denied kinds, since a bad
// driver may end the process; `vkgemm info --self-test` does. SelfTest::use_deny_list = false, or
// VKGEMM_DENY_LIST=0 in the environment, turns the list off.
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

// Member of ContextCreateInfo: where a context learns of verdicts. In this order, the first one for
// a kind counts: `verdicts`, a file, the list of trusted drivers, a test on `queue`. By default a
// context reads default_verdict_file(), trusts the list, and tests nothing. VKGEMM_VERDICTS=0 in
// the environment turns the default file and the list off.
struct SelfTest {
  // A queue of the device that can compute. Null: nothing is tested. These functions test the kinds
  // of kernel that they would use and that have no verdict, and return when that is done:
  // Context::plan(), plan_pack() and packed_layout(). create() tests those in `only`. Apart from
  // these, only Context::tune() submits or waits.
  //
  // The queue is externally synchronised: while one of these functions runs, no other thread may
  // use the queue outside of this context. Afterwards it is idle. `log` must not call these
  // functions of the same context.
  //
  // These are errors of the function: a lost device, and a wait that fails. A kind that fails is
  // not an error. Neither is a product that does not finish within timeout_ms. In that case the
  // context does not use the kind and tests no other one. The resources of the product leak, and
  // the queue may still be busy with it.
  //
  // timeout_ms limits the execution of each product. If the queue and the driver's compiler take
  // ten times as long before it begins, the kinds stay untested.
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  std::uint32_t timeout_ms = 10000;

  // create() reads verdicts from this file, and tests add those that they find. The log gets a
  // warning for each kind that failed.
  //
  // Before a kind runs on the device, the test writes it to the file. If the entry is still there
  // at the next test, because the process ended or gave up waiting, the log gets a warning, and the
  // kind is tried again. If that happens twice within a day, the kind has crashed or timed out, and
  // is not tried again. Only `vkgemm info --self-test` detects a driver that crashes while it
  // compiles.
  //
  // Processes, also in several containers, may share the file. "<file>.lock" says which of them
  // still run. On systems without locks on open files only one process may use the file at a time,
  // and tests write no entries before they begin.
  //
  // A test replaces a file of another device, driver or build of vkgemm: use one file for each, as
  // default_verdict_file() does. If the file can't be read or written, is a symbolic link, or is no
  // file of verdicts, it stays as it is, and the log gets a warning.
  std::filesystem::path file = {};

  // If `file` is empty, create() reads default_verdict_file(). The context does not
  // change that file.
  bool read_default_file = true;

  // Verdicts that the application kept. They must be of this device, driver and build of vkgemm:
  // kinds that passed on another one may give wrong results here.
  std::span<const Verdict> verdicts = {};

  // If not empty, create() tests these kinds on `queue`, denied ones too, and reads neither the
  // default file nor the list of trusted drivers. For a process that may crash.
  std::span<const KernelKind> only = {};

  // If true, vkgemm refuses drivers that are known to be bad (struct Denial).
  bool use_deny_list = true;

  // If true, kinds count as passed on drivers on which they passed in every run so far
  // (src/device/known_drivers.json, each driver with its source).
  bool use_trusted_list = true;
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

// Replaces the file atomically: readers see the old one or the new. Makes its folder, for its owner
// alone. Errors:
// - io_error: the file cannot be written, or is a symbolic link.
// - invalid_argument: load_verdicts() would refuse the file. It has more than 1 MiB, or a kind that
//   is never tried.
VKGEMM_API Result<void> save_verdicts(const std::filesystem::path& file, const DeviceCaps& caps,
                                      std::span<const Verdict> verdicts);

}  // namespace vkgemm
