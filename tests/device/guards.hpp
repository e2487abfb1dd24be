// guards.hpp: places operands between inaccessible pages, so that a kernel that touches a byte
// outside its operands' spans ends the process. On a CPU, device addresses are host addresses: the
// operands are in imported host memory. Other devices skip these tests.
#pragma once

#if __has_include(<sys/mman.h>)
#include <signal.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness.hpp"

namespace vkgemm::test {

enum class Guard : bool { before, behind };  // which of them the operand touches

// Memory of the host that the device uses, between two guards.
class Guarded {
 public:
  static constexpr std::uint64_t capacity = std::uint64_t{1} << 20;
  static constexpr std::uint64_t guard = std::uint64_t{1} << 24;  // more than any stride here

  explicit Guarded(headless::Runner& owner);
  ~Guarded();
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  // True if device and host see the same bytes at the same address.
  bool works() const;

  DeviceSpan place(std::uint64_t bytes, std::uint64_t alignment, Guard touched);
  std::byte* data() const { return memory_ + begin_; }
  std::uint64_t bytes() const { return bytes_; }

  // The distance of an address from the start of the span; nothing outside this memory.
  std::optional<std::int64_t> offset(const void* address) const;

 private:
  void import();

  VkDevice device_;
  std::byte* memory_ = nullptr;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory imported_ = VK_NULL_HANDLE;
  VkDeviceAddress address_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t bytes_ = 0;
};

class Guards : public EachPath {
 protected:
  static void SetUpTestSuite() { begin(true); }
  static void TearDownTestSuite();
  void SetUp() override;
  void TearDown() override;

  // `trusts`: the loops that need a self-test that passed.
  static void begin(bool trusts);
  static std::string why_not();

  // Every element of the span, those between rows too: what is read has a value of its own, what is
  // written is NaN.
  static void fill(const Guarded& memory, const Problem& problem, DeviceSpan Operands::*operand,
                   std::uint64_t seed);

  // Every span of the least size that record() accepts. Offsets of groups may be bad, but what they
  // are to compute must be certain, or isn't compared.
  static void expect_inside(const Config& config, const Problem& problem,
                            std::span<const std::int64_t> offsets = {}, bool certain = true);
  static void expect_inside(const std::vector<Config>& configs, DataType input, bool aligned);
  static void expect_rows_inside(DataType type);

  static void* host(const DeviceSpan& span) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(span.address));
  }

  // The case that runs at the moment: a fault is reported with it.
  struct Running {
    std::array<std::string_view, 9> names;  // of the operands, by their memories
    std::string text;
  };
  static inline Running running_;
  static inline std::unique_ptr<headless::Runner> own_runner_;
  static inline std::array<std::unique_ptr<Guarded>, 9> memories_;

 private:
  static void on_fault(int number, siginfo_t* fault, void*);
  struct sigaction before_ {};
};

}  // namespace vkgemm::test

#endif
