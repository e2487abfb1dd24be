// computation.hpp: the forms of a problem on its way to kernels, each made once. Pure.
//
//   ResolvedProblem   the problem as asked, checked
//   ComputedProblem   as kernels see it: operands packed as the configuration says
//     whole()         all of it
//     chunk()         the rows and matrices whose copies fit the workspace at once
//     product()       what the product of a chunk stores: D, or values for a second pass over rows
#pragma once

#include <optional>

#include "kernels/computed_problem.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"

namespace vkgemm {

// A problem with a configuration whose ranges are legal. Points at both. Copies the problem only if
// the configuration changes it.
class Computation {
 public:
  Computation(const ResolvedProblem& asked, const Config& config);
  Computation(const Computation&) = delete;
  Computation& operator=(const Computation&) = delete;

  const Config& config() const noexcept { return config_; }
  const ResolvedProblem& asked() const noexcept { return asked_; }
  ComputedProblem whole() const noexcept { return view(whole_, asked_); }
  ComputedProblem chunk() const noexcept { return view(chunk_, *whole()); }
  ComputedProblem product() const noexcept { return view(values_, *chunk()); }
  // The same of the last chunk, which may have fewer rows or matrices.
  ComputedProblem last_product() const noexcept { return view(last_, *product()); }

  // Nothing: all is computed at once.
  const std::optional<RowChunks>& chunks() const noexcept { return chunks_; }

 private:
  void cut_copies();
  void cut_values();
  static ComputedProblem view(const std::optional<ResolvedProblem>& own,
                              const ResolvedProblem& other) noexcept {
    return ComputedProblem(own ? *own : other);
  }

  const ResolvedProblem& asked_;
  const Config& config_;
  std::optional<RowChunks> chunks_;
  std::optional<ResolvedProblem> whole_, chunk_, values_, last_;
};

}  // namespace vkgemm
