// self_test.hpp: the products of the self-test, and what verdicts mean for configurations. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/verdicts.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"
#include "vkgemm/problem.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm {

// A small configuration of the kind that is legal for all its problems, whatever is known of the
// kind; or why there is none.
Result<Config> self_test_config(const KernelKind& kind, const DeviceCaps& caps);

// The problems that are computed with it: A and B in each layout, aligned and not, M, N and K
// different and no multiples of the tile, several fragments along each. On a CPU, which compiles
// for long, in two of the four pairs of layouts only.
std::vector<Problem> self_test_problems(const KernelKind& kind, const Config& config,
                                        const DeviceCaps& caps);

// The operands of one product, and what must come out. Elements are integers from -15 to 15 but
// never 0, so that every one counts in all that it is multiplied with; most are positive, so that
// sums grow beyond what f16 keeps exactly, and stay where f32 does. Between rows and behind
// matrices there are NaN, which D must still hold there.
class ExactProduct {
 public:
  explicit ExactProduct(const Problem& problem);

  std::span<const std::byte> a() const noexcept { return a_; }
  std::span<const std::byte> b() const noexcept { return b_; }
  // D before the product: as many bytes as it writes and some behind, all NaN.
  std::size_t d_bytes() const noexcept { return expected_.size(); }
  static constexpr std::byte poison{0xff};

  // The bytes that D must hold, padding and all.
  std::span<const std::byte> expected() const noexcept { return expected_; }

  // Nothing if it does, else "expected 12, got 13 at (3, 4), …".
  std::optional<std::string> why_wrong(std::span<const std::byte> d) const;

 private:
  Problem problem_;
  std::vector<std::byte> a_, b_, expected_;
};

// A note that somebody is trying a kind, or was when their process ended.
struct Attempt {
  KernelKind kind;
  std::uint32_t process = 0;
  std::uint32_t count = 1;  // how often it was tried without a verdict
  bool operator==(const Attempt&) const = default;
};

// A file of verdicts.
struct VerdictFile {
  std::vector<Verdict> verdicts;
  std::vector<Attempt> attempts;
  bool operator==(const VerdictFile&) const = default;
};

// A process that ended while it tried a kind may have been interrupted: only the second one makes
// it crashed.
inline constexpr std::uint32_t attempts_of_a_crash = 2;

// Attempts that are over become verdicts where they say enough, and go where there is one.
void settle(VerdictFile& file, const std::function<bool(std::uint32_t process)>& is_alive);

// Adds a process's part to a file that others may have changed meanwhile: all verdicts that it
// found, and the attempt that takes the place of those that they ended. An attempt that is left
// under its number is of a process before it, as containers give each the same.
void merge(VerdictFile& file, std::span<const Verdict> found, std::uint32_t process,
           const std::optional<Attempt>& attempt);

// As files, processes and `vkgemm info --json` have one. An exception says that it is none.
nlohmann::ordered_json to_json(const Verdict& verdict);
Verdict parse_verdict(const nlohmann::ordered_json& object);

// As it stands in a file: io_error if it is none, or another device's. Untested kinds are not
// written. Pure.
Result<VerdictFile> parse_verdict_file(std::string_view text, const DeviceCaps& caps);
std::string verdict_file_text(const VerdictFile& content, const DeviceCaps& caps);

// is_running is true if a process runs: none does where the system is not asked. A process with
// this one's number is it, or one before it: containers give each the same.
std::uint32_t own_process() noexcept;
bool is_running(std::uint32_t process) noexcept;
bool another_is_running(std::uint32_t process) noexcept;

// As load_verdicts() and save_verdicts() do it, with the attempts, settled when they are read.
Result<VerdictFile> read_verdict_file(const std::filesystem::path& file, const DeviceCaps& caps,
                                      bool is_alive(std::uint32_t process) = another_is_running);
Result<void> write_verdict_file(const std::filesystem::path& file, const DeviceCaps& caps,
                                const VerdictFile& content);

}  // namespace vkgemm
