// self_test.hpp: the products of the self-test, and what verdicts mean for configurations. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/known_drivers.hpp"
#include "kernels/verdicts.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"
#include "vkgemm/problem.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm {

// The device as if every kind of kernel had passed, so that each can be tried.
DeviceCaps trusting(const DeviceCaps& caps);

// Verdicts without a test: the kinds that a list trusts on this device.
std::vector<Verdict> trusted_verdicts(const KnownDrivers& list, const DeviceCaps& caps);

// True if one of the verdicts is on this kind.
bool has_verdict(std::span<const Verdict> verdicts, const KernelKind& kind) noexcept;

// True if a main loop that needs a verdict has a kind without one.
bool lacks_verdicts(const DeviceCaps& caps);

// One product of the self-test.
struct Trial {
  Config config;
  Problem problem;
};

// The products that a kind is tried with, whatever is known of it; or why there is none. Each is of
// a configuration that is legal for all the layouts: the first one, of a kind that needs a verdict
// all. Those of one configuration are neighbours.
//
// - A and B in each layout, aligned and not, M, N and K different and no multiples of the tile,
//   several fragments along each. On a CPU, which compiles for long, in two of the four pairs of
//   layouts only. D is of f32.
// - With the first configuration: a D of 16-bit types where kernels store slices of 16 bits, and
//   the sums of a product's rows, in a tile if the main loop keeps tiles.
Result<std::vector<Trial>> self_test_trials(const KernelKind& kind, const DeviceCaps& caps);

// The operands of one product, and what must come out. Elements are integers from -15 to 15 but
// never 0, so that every one counts in all that it is multiplied with; most are positive, so that
// sums grow beyond what f16 keeps exactly, and stay where f32 does: a D of 16 bits takes K = 1.
// Between rows and behind matrices there are NaN, which D must still hold there.
class ExactProduct {
 public:
  // `rounds_elements`: those of a quantised B; else its scales multiply sums.
  explicit ExactProduct(const Problem& problem, bool rounds_elements = true);

  // A quantised B: b() begins with the codes. Scales and zero points follow at these offsets. Each
  // group has a scale of 1, 2 or 1025 and a zero point of 7 or 8. If elements are rounded, those
  // with the scale 1025 are.
  std::size_t scales_offset() const noexcept { return scales_offset_; }
  std::size_t zeros_offset() const noexcept { return zeros_offset_; }

  std::span<const std::byte> a() const noexcept { return a_; }
  std::span<const std::byte> b() const noexcept { return b_; }
  // D before the product, all NaN: the bytes that the product writes and a margin. The row values,
  // if the problem has them, follow at row_values_offset(), with a margin of their own.
  std::size_t d_bytes() const noexcept { return expected_.size(); }
  std::size_t row_values_offset() const noexcept { return row_values_offset_; }
  static constexpr std::byte poison{0xff};

  // The bytes that D must hold, padding and all.
  std::span<const std::byte> expected() const noexcept { return expected_; }

  // Nothing if it does, else "expected 12, got 13 at (3, 4), …".
  std::optional<std::string> why_wrong(std::span<const std::byte> d) const;

 private:
  Problem problem_;
  void expect_row_values(std::span<const std::int64_t> sums);
  std::optional<std::string> why_rows_are_wrong(std::span<const std::byte> d) const;

  std::vector<std::byte> a_, b_, expected_;
  std::size_t row_values_offset_ = 0;  // equals expected_.size() if there are no row values
  std::size_t scales_offset_ = 0, zeros_offset_ = 0;
};

// A note that a kind was on the device, made before and removed after. If it stays, the process
// ended meanwhile, or gave up waiting.
struct Attempt {
  KernelKind kind;
  std::uint64_t owner = 0;  // the byte of the lock file that its process holds (verdict_store.hpp)
  std::uint32_t count = 1;  // this one and those before it that gave no verdict
  std::int64_t time = 0;    // of its begin, in seconds since 1970
  bool operator==(const Attempt&) const = default;
};

// A file of verdicts.
struct VerdictFile {
  std::vector<Verdict> verdicts;
  std::vector<Attempt> attempts;
  std::string other;  // "driver_version is 8, expected 7": all of it is about something else
  bool operator==(const VerdictFile&) const = default;
};

// Anything may interrupt a process once, or delay it: only the second attempt without a verdict
// within a day speaks against the kind.
inline constexpr std::uint32_t attempts_of_a_verdict = 2;
inline constexpr std::int64_t attempts_last_s = 24 * 60 * 60;

// How attempts look at some time: which of their owners still run.
struct AttemptView {
  std::int64_t now = 0;
  std::function<bool(std::uint64_t owner)> is_running;
};

// Attempts that are over become verdicts where they say enough, and go where there is one, or where
// they are too long ago. Pure.
void settle(VerdictFile& file, const AttemptView& view);

// Notes an attempt, which takes the place of those of this kind that are over. Pure.
const Attempt& begin_attempt(VerdictFile& file, const KernelKind& kind, std::uint64_t owner,
                             const AttemptView& view);

// Adds what a process found to a file that others may have changed meanwhile. A verdict ends all
// attempts of its kind; an untested one that of this owner. Pure.
void merge(VerdictFile& file, std::span<const Verdict> found, std::uint64_t owner);

// As files, processes and `vkgemm info --json` have one. An exception says that it is none.
nlohmann::ordered_json to_json(const Verdict& verdict);
Verdict parse_verdict(const nlohmann::ordered_json& object);

// As it stands in a file: io_error if it is none. Untested kinds are not written. Pure.
Result<VerdictFile> parse_verdict_file(std::string_view text, const DeviceCaps& caps);
std::string verdict_file_text(const VerdictFile& content, const DeviceCaps& caps);

}  // namespace vkgemm
