// functions.hpp: the functions that an application added to a context, for steps of epilogues.
#pragma once

#include <cstdint>
#include <deque>
#include <shared_mutex>

#include "kernels/kernel_words.hpp"
#include "vkgemm/epilogue.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// All members may be called from several threads at once. References stay valid.
class Functions {
 public:
  // Returns Epilogue::function. Errors: those of Context::add_function().
  Result<std::uint32_t> add(const EpilogueFunction& function);

  // Null for a number that add() has not returned, and for 0.
  const LinkedFunction* find(std::uint32_t number) const;
  std::uint32_t count() const;

 private:
  mutable std::shared_mutex guarding_;
  std::deque<LinkedFunction> all_;
};

}  // namespace vkgemm
