// legality_grouping.cpp: what goes with groups, and what only they have.
#include <limits>

#include "kernel.hpp"
#include "legality_case.hpp"

namespace vkgemm {

bool check_grouping(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = s.problem;
  const bool persistent = c.schedule == Schedule::persistent;
  if (to_string(c.schedule) == "?") {
    return s.refuse("schedule is ", static_cast<unsigned>(c.schedule), ": no such enumerator");
  }
  if (!p.grouping) {
    return !persistent || s.refuse("schedule is persistent: only grouped problems have it");
  }
  if (c.slices > 1) return s.refuse("slices is ", c.slices, ": not built for grouped problems");
  if (c.pack_a || c.pack_b) return s.refuse("pack: not built for grouped problems");
  // Tiles of all groups are numbered together.
  constexpr std::uint64_t most_tiles = std::numeric_limits<std::int32_t>::max();
  if (persistent && tile_count(c, p) > most_tiles / p.batch) {
    return s.refuse("schedule is persistent: ", tile_count(c, p), " tiles in each of ", p.batch,
                    " groups, at most ", most_tiles, " can be numbered");
  }
  return true;
}

}  // namespace vkgemm
