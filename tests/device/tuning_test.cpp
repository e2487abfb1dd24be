// Tuning tables that a context loads.
#include <filesystem>
#include <fstream>

#include "../set_environment.hpp"
#include "harness.hpp"
#include "trial.hpp"
#include "tuning/table.hpp"

namespace vkgemm::test {
namespace {

class TuningFile : public testing::Test {
 protected:
  ~TuningFile() override {
    set_environment("VKGEMM_TUNING");
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  // Writes a tuned shape of 96x80x64, with a configuration that is not the one that is chosen else.
  void write(std::string_view config, std::string_view type = "f32") {
    std::ofstream(path_) << R"({"architecture": ")" << caps().architecture
                         << R"(", "rows": [], "tuned": [{"family": "gemm", "input_type": ")" << type
                         << R"(",)"
                         << R"("a_layout": "row_major", "b_layout": "row_major", "aligned": true,)"
                         << R"("m": 96, "n": 80, "k": 64, "config": ")" << config
                         << R"(", "microseconds": 12.5, "provenance": "measured: in a test"}]})";
  }
  Result<std::string> explained(const std::string& file, const Problem& problem,
                                std::span<const Verdict> verdicts = {}) {
    warnings_.clear();
    faster_loops_ = 0;
    headless::RunnerOptions options;
    options.device = settings().device;
    options.tuning_file = file;
    options.self_test.verdicts = verdicts;
    options.self_test.use_trusted_list = false;
    options.log = [this](LogLevel level, std::string_view message) {
      if (level == LogLevel::warning) warnings_ += message;
      if (message.starts_with("might be faster")) ++faster_loops_;
    };
    auto other = headless::Runner::create(options);
    if (!other) return other.error();
    auto plan = (*other)->context().plan(problem);
    if (!plan) return plan.error();
    const auto candidates = (*other)->context().candidates(problem);
    if (!candidates) return candidates.error();
    EXPECT_EQ(candidates->front().config, plan->config());
    if (const auto again = (*other)->context().plan(problem); !again) return again.error();
    const auto pinned = (*other)->context().plan(problem, plan->config());
    if (!pinned) return pinned.error();
    return plan->explain();
  }

  std::string path_ =
      (std::filesystem::temp_directory_path() / ("vkgemm_" + std::to_string(getpid()) + ".json"))
          .string();
  std::string warnings_;
  int faster_loops_ = 0;  // that the log names
};

TEST_F(TuningFile, ItsShapeIsChosenAndExplained) {
  const Problem problem = gemm({96, 80, 64}, DataType::f32);
  const Problem near = gemm({96, 80, 72}, DataType::f32);
  const std::string config = "fma:tile=16x128x32,fragment=4x4";
  const auto before = explained("", problem);
  ASSERT_TRUE(succeeds(before));
  ASSERT_EQ(before->find(config), std::string::npos);
  EXPECT_EQ(before->find("tuned"), std::string::npos) << *before;

  write(config);
  for (const bool variable : {false, true}) {
    if (variable) set_environment("VKGEMM_TUNING", path_.c_str());
    const auto text = explained(variable ? "" : path_, problem);
    ASSERT_TRUE(succeeds(text));
    for (const std::string& part :
         {config, std::string("provenance: measured: in a test"), "tuning table: " + path_,
          std::string("tuned: this shape"), std::string("measured: 12.5 us")}) {
      EXPECT_NE(text->find(part), std::string::npos) << part << "\n" << *text;
    }
  }
  const auto text = explained("", near);
  ASSERT_TRUE(succeeds(text));
  EXPECT_NE(text->find("nearest tuned shape: m 96, n 80, k 64, 0.17 doublings away"),
            std::string::npos)
      << *text;
  EXPECT_EQ(warnings_, "");
}

TEST_F(TuningFile, AFileThatWasAskedForFailsTheVariableWarns) {
  const Problem problem = gemm({96, 80, 64}, DataType::f32);
  const auto before = explained("", problem);
  write("fma:tile=nonsense");
  EXPECT_TRUE(fails_with(explained(path_, problem), Status::invalid_argument,
                         {path_, "line 1", "tuned[0].config"}));
  EXPECT_TRUE(fails_with(explained(path_ + ".none", problem), Status::io_error, {path_}));
  set_environment("VKGEMM_TUNING", path_.c_str());
  const auto after = explained("", problem);
  ASSERT_TRUE(succeeds(after));
  EXPECT_EQ(*after, *before);
  EXPECT_NE(warnings_.find("tuned[0].config"), std::string::npos) << warnings_;
}

// A table only proposes: what denies everything is overruled, and that is told.
// A table refuses configurations of the caller's, too, but not the only ones that there are.
TEST_F(TuningFile, RefusalsOfEverythingAreOverruled) {
  std::ofstream file(path_);
  file << R"({"architecture": ")" << caps().architecture << R"(", "rows": [], "refused": [)";
  std::string_view comma;
  for (const std::string_view strategy : {"resident", "panel", "recompute", "two_pass"}) {
    file << comma << R"({"architecture": ")" << caps().architecture << R"(", "rows": ")" << strategy
         << R"(", "reason": "not here"})";
    comma = ",";
  }
  file << "]}";
  file.close();
  Problem problem = gemm({16, 64, 32}, DataType::f32);
  problem.row_reduction = RowReduction{.op = RowOp::softmax};
  const auto text = explained(path_, problem);
  ASSERT_TRUE(succeeds(text));
  EXPECT_NE(text->find("not here"), std::string::npos) << *text;
  EXPECT_NE(warnings_.find("overruled"), std::string::npos) << warnings_;
}

TEST_F(TuningFile, DenialsOfEverythingAreOverruled) {
  const Problem problem = gemm({96, 80, 64}, DataType::f32);
  const auto before = explained("", problem);
  ASSERT_TRUE(succeeds(before));
  {
    std::ofstream file(path_);
    file << R"({"architecture": ")" << caps().architecture << R"(", "rows": [], "denied": [)";
    std::string_view comma;
    for (const std::string& name : {std::string("generic"), caps().architecture}) {
      for (const TuningRow& row : built_in_table(name).rows) {
        file << comma << R"({"config": ")" << to_string(row.config)
             << R"(", "verdict": "wrong", "reason": "not mine"})";
        comma = ",";
      }
    }
    file << "]}";
  }
  set_environment("VKGEMM_TUNING", path_.c_str());
  const auto text = explained("", problem);
  ASSERT_TRUE(succeeds(text));
  const std::string told = "denied by " + path_ + ": not mine; overruled";
  EXPECT_NE(text->find(told), std::string::npos) << *text;
  EXPECT_NE(warnings_.find(told), std::string::npos) << warnings_;
  EXPECT_EQ(text->substr(0, text->find("  provenance")),
            before->substr(0, before->find("  provenance")));
}

// A kernel that needs a self-test is not chosen before, and the plan says what it misses.
TEST_F(TuningFile, WhatNeedsASelfTestIsNamed) {
  Config direct;
  for (const Config& config : small_configs(Path::khr, DataType::f16)) {
    if (config.main_loop() == MainLoop::khr_direct) direct = config;
  }
  if (direct.main_loop() != MainLoop::khr_direct) GTEST_SKIP() << "no khr_direct here";
  const Problem problem = gemm({96, 80, 64}, DataType::f16);
  write(to_string(direct), "f16");
  const auto before = explained(path_, problem);
  ASSERT_TRUE(succeeds(before));
  EXPECT_NE(before->find("might be faster: " + to_string(direct)), std::string::npos) << *before;
  EXPECT_NE(before->find("needs a self-test that passed"), std::string::npos) << *before;
  EXPECT_EQ(faster_loops_, 1) << "once for two plans";
  const auto after = explained(path_, problem, context().verdicts());
  ASSERT_TRUE(succeeds(after));
  EXPECT_EQ(after->find("might be faster"), std::string::npos) << *after;
  EXPECT_EQ(faster_loops_, 0);
  EXPECT_NE(after->find(to_string(direct)), std::string::npos) << *after;
  EXPECT_NE(after->find("in fragment order"), std::string::npos) << *after;
}

// The error of a plan that wants more workspace than there is names what is enough.
TEST(LeastWorkspace, IsNamedInOneLine) {
  Problem problem = gemm({70, 600, 33}, DataType::f16);
  problem.d.type = DataType::f16;
  problem.row_reduction = RowReduction{.op = RowOp::layer_norm};
  problem.max_workspace_bytes = 0;
  const auto none = context().plan(problem);
  if (none) GTEST_SKIP() << "needs no workspace here: " << to_string(none->config());
  const std::string& message = none.error().message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  const std::string_view before =
      "max_workspace_bytes is 0, the least that a configuration takes is ";
  const std::size_t at = message.find(before);
  ASSERT_NE(at, std::string::npos) << message;
  problem.max_workspace_bytes = std::stoull(message.substr(at + before.size()));
  const auto plan = context().plan(problem);
  ASSERT_TRUE(succeeds(plan));
  EXPECT_EQ(plan->workspace_bytes(), problem.max_workspace_bytes) << plan->explain();
  --problem.max_workspace_bytes;
  EXPECT_TRUE(fails_with(context().plan(problem), Status::unsupported, {before.substr(24)}));
}

}  // namespace
}  // namespace vkgemm::test
