// handles.hpp: what stands behind the handles of the C API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "c/fields.hpp"
#include "vkgemm/context.hpp"
#include "vkgemm/vkgemm.h"

namespace vkgemm::c {

// The eight letters that a handle of some kind begins with.
constexpr std::uint64_t magic(const char (&letters)[9]) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < 8; ++i) word = word << 8 | static_cast<unsigned char>(letters[i]);
  return word;
}

inline constexpr std::uint64_t destroyed = magic("vkg:dead");

// The beginning of each handle.
template <std::uint64_t letters>
struct Handle {
  static constexpr std::uint64_t alive = letters;

  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  // Volatile, since no one who follows the rules reads it again.
  ~Handle() { *const_cast<volatile std::uint64_t*>(&word) = destroyed; }

  std::uint64_t word = letters;
};

// True for a handle of this kind that is alive. Looks at no more than eight bytes.
template <class T>
bool is_alive(const T* handle) noexcept {
  // So the base, and with it the word, stands first in it.
  static_assert(std::is_base_of_v<Handle<T::alive>, T> && !std::is_polymorphic_v<T>);
  if (reinterpret_cast<std::uintptr_t>(handle) % alignof(T) != 0) return false;
  std::uint64_t word = 0;
  std::memcpy(&word, static_cast<const void*>(handle), sizeof word);
  return word == T::alive;
}

}  // namespace vkgemm::c

struct VkgemmError : vkgemm::c::Handle<vkgemm::c::magic("vkg:erro")> {
  VkgemmStatus status = VKGEMM_SUCCESS;
  VkResult vk_result = VK_SUCCESS;
  std::string message;
  const char* text = "";  // the message, or a literal
};

struct VkgemmCaps : vkgemm::c::Handle<vkgemm::c::magic("vkg:caps")> {
  explicit VkgemmCaps(const vkgemm::DeviceCaps& of) : caps(of), kinds(vkgemm::kernel_kinds(of)) {}
  const vkgemm::DeviceCaps& caps;
  std::vector<vkgemm::KernelKind> kinds;
};

struct VkgemmRequirements : vkgemm::c::Handle<vkgemm::c::magic("vkg:reqs")> {
  explicit VkgemmRequirements(vkgemm::Requirements&& from)
      : requirements(std::move(from)), caps(requirements.caps()) {}
  vkgemm::Requirements requirements;
  VkgemmCaps caps;
};

struct VkgemmVerdicts : vkgemm::c::Handle<vkgemm::c::magic("vkg:verd")> {
  explicit VkgemmVerdicts(std::vector<vkgemm::Verdict> from = {}) : verdicts(std::move(from)) {}
  std::vector<vkgemm::Verdict> verdicts;
};

struct VkgemmContext : vkgemm::c::Handle<vkgemm::c::magic("vkg:cont")> {
  explicit VkgemmContext(vkgemm::Context&& from) : context(std::move(from)), caps(context.caps()) {}
  vkgemm::Context context;
  VkgemmCaps caps;

  // A copy of the text that lives as long as the context. One for all texts that are equal.
  const char* keep(std::string text) const {
    const std::scoped_lock lock(guarding_texts);
    return texts.insert(std::move(text)).first->c_str();
  }
  mutable std::mutex guarding_texts;
  mutable std::set<std::string> texts;
};

struct VkgemmCandidates : vkgemm::c::Handle<vkgemm::c::magic("vkg:cand")> {
  struct Candidate {
    std::string config;
    std::string provenance;
  };
  std::vector<Candidate> candidates;
};

struct VkgemmPlan : vkgemm::c::Handle<vkgemm::c::magic("vkg:plan")> {
  explicit VkgemmPlan(vkgemm::Plan&& from);
  vkgemm::Plan plan;
  std::string config;
  vkgemm::c::Parts parts;  // of the problem
  VkgemmProblem problem;
};
