// Tests of what `vkgemm tune --report` makes of the output of --compare --json.
#include "report/loss.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "test_devices.hpp"
#include "tool/tune_session.hpp"

namespace vkgemm::report {
namespace {

using test::contains;
using tool::TuneSession;
namespace says = tool::says;

const Config config_a = test::config("fma:tile=32x32x16,fragment=4x4");
const Config config_b = test::config("fma:tile=64x64x16,fragment=4x4");
const Config config_c = test::config("fma:tile=32x64x16,fragment=4x4");

// As a tuner prints one problem.
std::string line(const Problem& problem, const std::string& list, double built_in, double best,
                 double estimate = 0.0) {
  TuneSession session;
  session.device = "a \"GPU\"";
  session.driver = "driver 1";
  tool::TuneCase tuned;
  tuned.arguments = to_command_line(problem);
  tuned.list = list;
  tuned.problem = tuned_problem(test::resolved(problem));
  tuned.multiply_adds = 1e6;
  session.cases.push_back(tuned);
  const auto found = [&](const Config& config, double us) {
    take_in(session, says::found(0, {.config = config, .microseconds = {us}, .round = 1}));
  };
  std::vector<tool::NamedConfig> choices = {{"built_in", config_a}};
  if (estimate > 0.0) choices.push_back({"estimate", config_c});
  take_in(session, says::searches(0, choices, 5, 90));
  if (built_in > 0.0) found(config_a, built_in);
  found(config_b, best);
  if (estimate > 0.0) found(config_c, estimate);
  return to_json(session, session.cases[0], "abc1234", "2026-11-22") + "\n";
}

std::vector<LossRow> read(const std::string& text) {
  std::vector<LossRow> rows;
  const auto added = add_loss_rows(rows, text, "t.jsonl");
  EXPECT_TRUE(added) << added.error().message;
  return rows;
}

const std::string some_lines = "{\"event\":\"start\"}\n" +
                               line(test::gemm(64, 64, 64), "dense", 11.0, 10.0) +
                               line(test::gemm(128, 64, 64), "dense", 10.0, 10.0) +
                               line(test::gemm(256, 64, 64), "dense", 0.0, 10.0) +
                               line(test::gemm(64, 64, 64), "splitk", 20.0, 10.0);

TEST(Loss, HoldsAllThatAReportNeeds) {
  const std::vector<LossRow> rows = read(some_lines);
  ASSERT_EQ(rows.size(), 4u);
  const LossRow& row = rows[0];
  EXPECT_EQ(row.list, "dense");
  EXPECT_EQ(row.label, "64x64x64 f16");
  EXPECT_EQ(row.problem, to_command_line(test::gemm(64, 64, 64)));
  EXPECT_EQ(row.choice, to_string(config_a));
  EXPECT_EQ(row.best, to_string(config_b));
  EXPECT_EQ(row.choice_us, 11.0);
  EXPECT_EQ(row.best_us, 10.0);
  EXPECT_EQ(row.tried, 2u);
  EXPECT_EQ(row.legal, 90u);
  EXPECT_EQ(rows[2].error, "not measured");
  EXPECT_FALSE(rows[2].counts());
}

TEST(Loss, IsSummedUpByList) {
  const std::vector<LossSummary> summaries = summarize(read(some_lines));
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[0].compared, 2u);
  EXPECT_EQ(summaries[0].not_compared, 1u);
  EXPECT_NEAR(summaries[0].mean, std::sqrt(1.1), 1e-12);
  EXPECT_NEAR(summaries[0].worst, 1.1, 1e-12);
  EXPECT_EQ(to_string(summaries[0]),
            "loss: dense 2 problems, geometric mean 1.049, worst 1.100 (64x64x64 f16); the best of "
            "2 tried of 90 legal configurations (medians), 1 not compared");
  EXPECT_EQ(to_string(summaries[1]),
            "loss: splitk 1 problem, geometric mean 2.000, worst 2.000 (64x64x64 f16); the best of "
            "2 tried of 90 legal configurations (medians)");
}

// A tuned shape does not hide what those beside it get.
TEST(Loss, OfEstimatesAloneIsToldWhereShapesAreTuned) {
  const std::vector<LossRow> rows = read(line(test::gemm(64, 64, 64), "dense", 10.0, 10.0, 14.4) +
                                         line(test::gemm(128, 64, 64), "dense", 11.0, 11.0));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].estimate_us, 14.4);
  EXPECT_EQ(rows[0].loss(), 1.0);
  EXPECT_EQ(rows[1].loss_of_estimate(), rows[1].loss());
  const std::vector<LossSummary> summaries = summarize(rows);
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_EQ(summaries[0].tuned, 1u);
  EXPECT_NEAR(summaries[0].estimates_mean, 1.2, 1e-12);
  EXPECT_EQ(to_string(summaries[0]),
            "loss: dense 2 problems, geometric mean 1.000, worst 1.000 (64x64x64 f16); the best of "
            "3 tried of 90 legal configurations (medians); 1 by tuned shapes; estimates alone "
            "would lose 1.200 (2), worst 1.440");

  // One that was not timed is not taken for as good as the choice.
  std::string text = line(test::gemm(64, 64, 64), "dense", 10.0, 10.0, 14.4);
  const std::size_t us = text.find("\"us\":14.4");
  ASSERT_NE(us, std::string::npos);
  text.replace(us, 9, "\"error\":\"late\"");
  const std::vector<LossSummary> untimed =
      summarize(read(text + line(test::gemm(128, 64, 64), "dense", 11.0, 10.0)));
  ASSERT_EQ(untimed.size(), 1u);
  EXPECT_EQ(untimed[0].tuned, 1u);
  EXPECT_EQ(untimed[0].estimates, 1u);
  EXPECT_NEAR(untimed[0].estimates_mean, 1.1, 1e-12);
}

TEST(Loss, ALaterRowReplacesAnEarlierOne) {
  const std::vector<LossRow> rows =
      read(some_lines + line(test::gemm(64, 64, 64), "dense", 15.0, 10.0));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].choice_us, 15.0);
}

TEST(Loss, ErrorsNameLineAndField) {
  const auto why = [](const std::string& text) {
    std::vector<LossRow> rows;
    const auto added = add_loss_rows(rows, text, "t.jsonl");
    return added ? "none" : added.error().message;
  };
  EXPECT_EQ(why("{}"), "t.jsonl:1: problem is missing");
  EXPECT_EQ(why("\n{\"problem\":\"--m 1\",\"best\":3}"), "t.jsonl:2: best is 3, not an object");
  EXPECT_TRUE(contains(why("{\"problem\":\"--m 1\",\"best\":{\"config\":\"x\",\"us\":-1}}"),
                       "us is -1, not a finite number"));
}

}  // namespace
}  // namespace vkgemm::report
