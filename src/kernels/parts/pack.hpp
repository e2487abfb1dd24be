// pack.hpp: operands that are copied into the workspace before they are multiplied, in the form
// that the main loops load best: K is the outer direction, rows begin at cache lines, and the
// padding may be read; or in fragment order (shaders/lib/fragment_words.glsl).
#pragma once

#include <optional>

#include "kernels/part.hpp"

namespace vkgemm {

// The problem as the kernel of this configuration sees it: the same if nothing is packed.
ResolvedProblem packed(const ResolvedProblem& problem, const Config& config);

// The same, and no copy if nothing is packed. Points at both.
class PackedView {
 public:
  PackedView(const ResolvedProblem& problem, const Config& config) : problem_(&problem) {
    if (config.pack_a || config.pack_b) problem_ = &copy_.emplace(packed(problem, config));
  }
  PackedView(const PackedView&) = delete;
  PackedView& operator=(const PackedView&) = delete;
  const ResolvedProblem& operator*() const noexcept { return *problem_; }

 private:
  std::optional<ResolvedProblem> copy_;
  const ResolvedProblem* problem_;
};

}  // namespace vkgemm
