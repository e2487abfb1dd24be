// Tests of what the search of `vkgemm tune` begins with.
#include "tool/tune_proposal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "test_devices.hpp"

namespace vkgemm::tool {
namespace {

using test::gemm;
using test::resolved;

std::set<Path> paths_of(const std::vector<Config>& configs) {
  std::set<Path> paths;
  for (const Config& config : configs) paths.insert(config.path());
  return paths;
}

// The estimate may be wrong about a whole path: each that can compute a problem is timed, however
// few configurations the search begins with.
TEST(Proposal, EveryPathIsTimed) {
  for (const DeviceCaps& caps : test::tabled_devices()) {
    const DeviceTables tables(caps);
    for (const Problem& problem : {gemm(64, 64, 64), gemm(1, 4096, 4096), gemm(4096, 4096, 4096)}) {
      const ResolvedProblem p = resolved(problem);
      for (const bool from_generic : {false, true}) {
        const std::vector<ScoredRow> rows =
            from_generic ? rank(built_in_table("generic"), p, tables.target(caps))
                         : tables.rank(p, caps);
        std::set<Path> legal;
        for (const ScoredRow& row : rows) legal.insert(row.config.path());
        EXPECT_TRUE(legal.size() > 1 || from_generic) << caps.name;
        for (const std::size_t most : {1u, 2u, 48u}) {
          TuneTask task;
          task.limits.per_problem = most;
          task.from_generic = from_generic;
          const Proposal proposal = propose(task, p, tables, caps);
          const std::string what =
              caps.name + ", " + std::to_string(most) + ": " + to_command_line(problem);
          EXPECT_TRUE(std::ranges::includes(paths_of(configs_of(proposal)), legal)) << what;
          EXPECT_TRUE(std::ranges::includes(paths_of(proposal.first_of_paths), legal)) << what;
          EXPECT_LE(proposal.first_of_paths.size(), 3u);
        }
      }
    }
  }
}

TEST(Proposal, HasOnePathIfThatIsAskedFor) {
  const DeviceCaps caps = test::h200();
  TuneTask task;
  task.limits.path = Path::fma;
  task.limits.per_problem = 2;
  const Proposal proposal = propose(task, resolved(gemm(512, 512, 512)), DeviceTables(caps), caps);
  EXPECT_EQ(proposal.space.size(), 2u);
  EXPECT_EQ(paths_of(proposal.first_of_paths), std::set{Path::fma});
}

}  // namespace
}  // namespace vkgemm::tool
