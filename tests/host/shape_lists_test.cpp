// The lists of bench/shapes: every problem is one, fits, and can be computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "embedded/embedded.hpp"
#include "oracle/reference.hpp"
#include "self_test/self_test.hpp"
#include "test_devices.hpp"
#include "tool/planning.hpp"
#include "tool/tune_problems.hpp"
#include "tuning/device_tables.hpp"
#include "tuning/nearest.hpp"

namespace vkgemm::tool {
namespace {

class ShapeLists : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("VKGEMM_SHAPE_LISTS");
    if (folder == nullptr) GTEST_SKIP() << "VKGEMM_SHAPE_LISTS is not set: ctest does that";
    file_ = std::string(folder) + "/" + GetParam() + ".txt";
    problems_ = problems_of_log(file_);
  }
  std::string file_;
  std::vector<TuneProblem> problems_;
};

struct Extent {
  std::size_t problems = 60;
  double most_flops = 2e12;
  std::uint64_t most_bytes = (1ULL << 31) - 1;  // of an operand
};

Extent extent_of(const std::string& list) {
  if (list == "random") return {.problems = 200};
  if (list != "packed") return {};
  return {.problems = 43, .most_flops = 0x1p41, .most_bytes = 1ULL << 31};
}

bool is_of_all_families(const std::string& list) {
  return list == "unseen" || list == "random" || list == "models" || list == "packed";
}

TEST_P(ShapeLists, HasAllProblemsOfAFairSize) {
  const Extent extent = extent_of(GetParam());
  ASSERT_EQ(problems_.size(), extent.problems);  // none was left out, and no two are the same
  std::set<std::string> seen;
  for (const TuneProblem& one : problems_) {
    const Problem& p = one.problem;
    EXPECT_EQ(one.list, GetParam());
    EXPECT_TRUE(seen.insert(one.arguments).second) << one.arguments;
    const PerOperand<std::uint64_t> bytes = operand_bytes(p);
    for (const std::uint64_t operand :
         {bytes[OperandId::a], bytes[OperandId::b], bytes[OperandId::b_right], bytes[OperandId::c],
          bytes[OperandId::d]}) {
      EXPECT_LE(operand, extent.most_bytes) << one.arguments;
    }
    EXPECT_LE(2.0 * multiply_adds(one.groups.worked(p)), extent.most_flops) << one.arguments;
    if (is_of_all_families(one.list)) continue;
    if (one.list != "gated") {  // experts have gates
      EXPECT_EQ(p.grouping.has_value(), one.list == "grouped") << one.arguments;
    }
    EXPECT_EQ(p.gated.has_value(), one.list == "gated") << one.arguments;
    EXPECT_EQ(p.row_reduction.has_value(), one.list == "rowred") << one.arguments;
  }
}

// Where a device cannot, the reason is one that a person can read.
TEST_P(ShapeLists, HaveAConfigurationOrAReason) {
  for (const DeviceCaps& caps :
       {test::h200(), trusting(test::h200()), test::navi31(), test::lavapipe()}) {
    const DeviceTables tables(caps);
    for (const TuneProblem& one : problems_) {
      ResolvedProblem problem = test::resolved(one.problem);
      if (const auto error = tables.set_orders(problem, caps)) {
        EXPECT_NE(caps.architecture, "nvidia_sm90") << one.arguments << ": " << error->message;
        continue;
      }
      if (tables.best(problem, caps)) continue;
      EXPECT_NE(caps.architecture, "nvidia_sm90") << one.arguments;
      EXPECT_FALSE(tables.why_nothing_is_legal(problem, caps).empty()) << one.arguments;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, ShapeLists,
                         testing::Values("dense", "epilogue", "splitk", "grouped", "rowred",
                                         "gated", "packed", "unseen", "random", "models"),
                         [](const auto& list) { return list.param; });

class UnseenShapes : public ShapeLists {};

// A table that is tuned to these shapes says nothing of others any more. (Nobody can see in a table
// that rates were not fitted to their timings.)
TEST_P(UnseenShapes, AreInNoTable) {
  EXPECT_FALSE(built_in_table("nvidia_sm90_h200").tuned.empty());
  for (const embedded::File& table : embedded::tables()) {
    for (const TunedShape& shape : built_in_table(table.name).tuned) {
      for (const TuneProblem& one : problems_) {
        EXPECT_GT(shape_distance(shape.problem, tuned_problem(test::resolved(one.problem))), 0.0)
            << table.name << ": " << one.arguments;
      }
    }
  }
}

TEST_P(UnseenShapes, AreOfAllFamilies) {
  const auto count = [&](auto member) {
    return std::ranges::count_if(
        problems_, [&](const TuneProblem& one) { return (one.problem.*member).has_value(); });
  };
  const auto least = std::ssize(problems_) / 6;
  EXPECT_GE(count(&Problem::grouping), least);
  EXPECT_GE(count(&Problem::gated), least);
  EXPECT_GE(count(&Problem::row_reduction), least);
}

INSTANTIATE_TEST_SUITE_P(, UnseenShapes, testing::Values("unseen", "random", "models"),
                         [](const auto& list) { return list.param; });

// Tuned problems must be told apart, and be the same again when it is read.
TEST(TuneProblems, SayTheSizesOfUnevenGroups) {
  const auto problem = [](const std::string& sizes, const std::string& count) {
    JobOptions options;
    CLI::App app;
    options.add_problem(app);
    std::string arguments = "--m 12 --n 8 --k 8 --b-per-group ";
    app.parse(arguments + (sizes.empty() ? "--group-count " + count : "--groups " + sizes));
    return problems_of(options, "").at(0).arguments;
  };
  EXPECT_TRUE(test::contains(problem("1,2,9", ""), " --groups 1,2,9 ")) << problem("1,2,9", "");
  EXPECT_TRUE(test::contains(problem("4,4,4", ""), " --group-count 3 "));
  EXPECT_EQ(problem("4,4,4", ""), problem("", "3"));
  EXPECT_TRUE(test::contains(problem("4,4,2", ""), " --groups 4,4,2 "));
}

TEST(TuneProblems, SayWhatIsPacked) {
  const auto problem = [](const std::string& arguments) {
    JobOptions options;
    CLI::App app;
    options.add_problem(app);
    app.parse(arguments);
    return problems_of(options, "").at(0);
  };
  const std::string sizes = "--m 12 --n 8 --k 8 ";
  const TuneProblem packed = problem(sizes + "--packed-b --layout-b col_major --ld-b 9");
  EXPECT_EQ(packed.problem.b, (Matrix{.packing = Packing::packed}));
  EXPECT_TRUE(test::contains(packed.arguments, "--packed-b")) << packed.arguments;
  EXPECT_EQ(problem(packed.arguments).problem, packed.problem);
  EXPECT_EQ(problem(packed.arguments).arguments, packed.arguments);
  EXPECT_NE(problem(sizes).arguments, packed.arguments);
  EXPECT_EQ(problem(sizes).problem.b, Matrix{});
}

}  // namespace
}  // namespace vkgemm::tool
