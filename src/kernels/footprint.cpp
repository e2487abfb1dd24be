#include "kernels/footprint.hpp"

#include "kernels/main_loop.hpp"
#include "kernels/parts/rows.hpp"
#include "lib/footprint.h"

namespace vkgemm {

std::uint64_t shared_memory_bytes(const Config& c, const ResolvedProblem& problem,
                                  const DeviceCaps& caps) {
  return descriptor(c).shared_memory_bytes(c, problem, caps.limits) + SINGLE_WORDS_BYTES +
         (keeps_tiles(c.rows) ? row_part_bytes(c, problem) : 0);
}

}  // namespace vkgemm
