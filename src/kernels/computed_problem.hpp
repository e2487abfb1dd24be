// computed_problem.hpp: a problem as kernels see it, and the chunks that it is computed in. Pure.
#pragma once

#include <cstdint>

#include "base/arithmetic.hpp"
#include "problem/addresses.hpp"
#include "problem/resolved_problem.hpp"

namespace vkgemm {

// A product computed in chunks, since what it wants to have in the workspace doesn't fit there: the
// values of a row reduction in two passes, or a copy of A. Each chunk has `rows` rows of `batches`
// matrices. Pitches: bytes from a row, or a matrix, of an operand to the next.
struct RowChunks {
  std::uint64_t rows = 0;
  std::uint64_t batches = 0;
  std::uint64_t all_rows = 0;
  std::uint64_t all_batches = 0;
  Addresses row_pitch;
  Addresses batch_pitch;
  bool with_copies = false;  // DispatchPlan::before belongs to each chunk, too

  bool is_whole() const noexcept { return rows >= all_rows && batches >= all_batches; }
  std::uint64_t count() const noexcept {
    return divided_up(all_rows, rows) * divided_up(all_batches, batches);
  }
};

// A problem as kernels see it. Points at a Computation, which makes it.
class ComputedProblem {
 public:
  const ResolvedProblem& operator*() const noexcept { return *problem_; }
  const ResolvedProblem* operator->() const noexcept { return problem_; }

 private:
  friend class Computation;
  explicit ComputedProblem(const ResolvedProblem& problem) noexcept : problem_(&problem) {}
  const ResolvedProblem* problem_;
};

}  // namespace vkgemm
