// Context::tune(): its result is chosen from then on, in the next process, too, and is right.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "../set_environment.hpp"
#include "harness.hpp"
#include "self_tests.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

class ContextTune : public SelfTests {
 protected:
  void SetUp() override {
    SelfTests::SetUp();
    const char* const cache = std::getenv("XDG_CACHE_HOME");
    cache_ = cache != nullptr ? cache : "";
    set_environment("XDG_CACHE_HOME", folder_.c_str());
  }
  void TearDown() override {
    set_environment("XDG_CACHE_HOME", cache_.c_str());
    SelfTests::TearDown();
  }

  TuneInfo quick() const {
    return {.queue = runner_->queue(),
            .queue_family = runner_->queue_family(),
            .budget_ms = 1500.0,
            .max_candidates = 3};
  }

 private:
  std::string cache_;
};

TEST_F(ContextTune, ItsResultIsChosenFromThenOn) {
  const Problem problem = gemm({96, 80, 64}, DataType::f32);
  auto context = create({});
  ASSERT_TRUE(succeeds(context));
  const auto before = context->plan(problem);
  ASSERT_TRUE(succeeds(before));
  TuneInfo info = quick();
  info.file = default_tuning_file(caps());
  ASSERT_TRUE(info.file.string().starts_with(folder_.string())) << info.file;
  std::uint32_t calls = 0;
  info.progress = [&](const TuneProgress& progress) {
    ++calls;
    EXPECT_GE(progress.timed, 1u);
    EXPECT_GT(progress.best_us, 0.0);
    EXPECT_LE(progress.best_us, progress.chosen_us);
    return true;
  };
  const auto tuned = context->tune(problem, info);
  ASSERT_TRUE(succeeds(tuned));
  EXPECT_GT(calls, 0u);
  EXPECT_EQ(tuned->chosen, before->config());
  EXPECT_LE(tuned->microseconds, tuned->chosen_us);
  EXPECT_GE(tuned->timed, 1u);
  const auto expect_tuned = [&](const Context& made) {
    const auto plan = made.plan(problem);
    ASSERT_TRUE(succeeds(plan));
    EXPECT_EQ(plan->config(), tuned->config);
    const std::string text = plan->explain();
    for (const std::string& part : {"provenance: measured: " + caps().name, std::string("-"),
                                    std::string("timings, the fastest of"), std::string("took")}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    }
  };
  expect_tuned(*context);
  EXPECT_EQ(before->config(), tuned->chosen) << "plans that exist keep their configuration";
  // Other contexts read the user's file.
  const auto other = create({});
  ASSERT_TRUE(succeeds(other));
  expect_tuned(*other);
  // A second run replaces the shape.
  ASSERT_TRUE(succeeds(other->tune(problem, info)));
  EXPECT_EQ(log_, "");
}

// A problem that was timed is left, also in the next process; one of another epilogue is not.
TEST_F(ContextTune, TimedProblemsAreSkipped) {
  const Problem problem = gemm({96, 80, 64}, DataType::f32);
  TuneInfo info = quick();
  info.max_candidates = 1;
  info.skip_timed = true;
  info.file = default_tuning_file(caps());
  auto context = create({});
  ASSERT_TRUE(succeeds(context));
  const auto tuned = context->tune(problem, info);
  ASSERT_TRUE(succeeds(tuned));
  EXPECT_GE(tuned->timed, 1u);
  info.progress = [](const TuneProgress&) {
    ADD_FAILURE() << "timed again";
    return true;
  };
  const auto expect_skipped = [&](const Context& made) {
    const auto skipped = made.tune(problem, info);
    ASSERT_TRUE(succeeds(skipped));
    EXPECT_EQ(skipped->timed, 0u);
    EXPECT_EQ(skipped->config, tuned->config);
    EXPECT_EQ(skipped->chosen, tuned->config);
    EXPECT_NEAR(skipped->microseconds, tuned->microseconds, 0.001);
    EXPECT_EQ(skipped->chosen_us, skipped->microseconds);
  };
  expect_skipped(*context);
  const auto other = create({});
  ASSERT_TRUE(succeeds(other));
  expect_skipped(*other);
  info.progress = {};
  Problem with_c = problem;
  with_c.epilogue.beta = 0.5f;
  const auto tuned_with_c = other->tune(with_c, info);
  ASSERT_TRUE(succeeds(tuned_with_c));
  EXPECT_GE(tuned_with_c->timed, 1u);
  info.skip_timed = false;
  const auto again = other->tune(problem, info);
  ASSERT_TRUE(succeeds(again));
  EXPECT_GE(again->timed, 1u);
}

// A callback that says no ends the run, and what was timed counts.
TEST_F(ContextTune, ACallbackEndsIt) {
  auto context = create({});
  ASSERT_TRUE(succeeds(context));
  TuneInfo info = quick();
  info.budget_ms = 600000.0;
  info.max_candidates = 1000;
  std::uint32_t calls = 0;
  info.progress = [&](const TuneProgress&) { return ++calls < 2; };
  const auto tuned = context->tune(gemm({64, 64, 64}, DataType::f16), info);
  ASSERT_TRUE(succeeds(tuned));
  EXPECT_FALSE(tuned->is_complete);
  EXPECT_EQ(calls, 2u);
}

TEST_F(ContextTune, RefusalsNameTheField) {
  auto context = create({});
  ASSERT_TRUE(succeeds(context));
  const Problem problem = gemm({64, 64, 64}, DataType::f32);
  const auto refuses = [&](const TuneInfo& info, const Problem& p, Status status,
                           const std::string& text) {
    EXPECT_TRUE(fails_with(context->tune(p, info), status, {text}));
  };
  TuneInfo info = quick();
  info.budget_ms = 0.0;
  refuses(info, problem, Status::invalid_argument, "budget_ms is 0");
  info = quick();
  info.max_candidates = 0;
  refuses(info, problem, Status::invalid_argument, "max_candidates is 0");
  refuses({}, problem, Status::invalid_argument, "queue is VK_NULL_HANDLE");
  info = quick();
  info.queue_family = 99;
  refuses(info, problem, Status::invalid_argument, "queue_family is 99");
  refuses(quick(), gemm({0, 64, 64}, DataType::f32), Status::invalid_argument, "m is 0");
  const auto refuses_offsets = [&](const std::vector<std::uint64_t>& offsets, bool is_grouped,
                                   const std::string& text) {
    Problem p = problem;
    if (is_grouped) p.grouping = Grouping{.groups = 2};
    TuneInfo given = quick();
    given.offsets = offsets;
    refuses(given, p, Status::invalid_argument, text);
  };
  refuses_offsets({0, 64}, false, "offsets has 2 values, grouping is not set");
  refuses_offsets({0, 64}, true, "offsets has 2 values, grouping.groups is 2");
  refuses_offsets({0, 32, 65}, true, "offsets[2] is 65, m is 64");
  refuses_offsets({0, 33, 32}, true, "offsets[2] is 32, offsets[1] is 33");
  Problem bad = problem;
  bad.a.ld = 3;
  refuses(quick(), bad, Status::invalid_argument, "a.ld is 3");
  info = quick();
  info.file = folder_;
  fs::create_directories(folder_);
  refuses(info, problem, Status::io_error, folder_.string());
}

// Every form of problem is tuned on operands of its own. The configuration computes right.
TEST_F(ContextTune, EveryFormIsTunedAndRight) {
  struct Form {
    Problem problem;
    TrialOptions options = {};
  };
  const Problem plain = gemm({96, 80, 64}, DataType::f16);
  std::vector<Form> forms(5, Form{plain});
  forms[0].problem.epilogue = {.beta = 0.5f, .bias = Bias::along_n};
  forms[1].problem.row_reduction = RowReduction{.op = RowOp::rms_norm, .gamma = true};
  forms[2].problem.gated = Gated{.gate = Gate::swiglu};
  forms[3].problem.grouping = Grouping{.groups = 3, .b = GroupedB::per_group};
  forms[3].options.offsets = {0, 40, 40, 96};
  forms[4].options.packs_b = true;
  forms[4].options.packing = Packing::packed_rows;  // this context has no verdict on fragments
  auto context = create({});
  ASSERT_TRUE(succeeds(context));
  for (const Form& form : forms) {
    const Problem problem = planned(form.problem, form.options);
    SCOPED_TRACE(to_command_line(problem));
    TuneInfo info = quick();
    info.max_candidates = 2;
    const std::vector<std::uint64_t> offsets(form.options.offsets.begin(),
                                             form.options.offsets.end());
    info.offsets = offsets;
    const auto tuned = context->tune(problem, info);
    ASSERT_TRUE(succeeds(tuned));
    const auto plan = context->plan(problem);
    ASSERT_TRUE(succeeds(plan));
    EXPECT_EQ(plan->config(), tuned->config);
    EXPECT_TRUE(passes_gates(tuned->config, form.problem, form.options));
  }
  EXPECT_EQ(log_, "");
}

// Results that differ from the choice's are left out, and the log says so.
TEST_F(ContextTune, OtherResultsAreLeftOut) {
  auto context = create({});
  ASSERT_TRUE(succeeds(context));
  TuneInfo info = quick();
  info.progress = [](const TuneProgress& progress) {
    fault.forgets_a_workgroup = progress.timed >= 1;
    return true;
  };
  const auto tuned = context->tune(gemm({96, 80, 64}, DataType::f32), info);
  ASSERT_TRUE(succeeds(tuned));
  EXPECT_EQ(tuned->config, tuned->chosen);
  EXPECT_EQ(tuned->timed, 1u);
  EXPECT_NE(log_.find("gave other results"), std::string::npos) << log_;
}

TEST_F(ContextTune, ALostDeviceIsAnError) {
  auto context = create({});
  ASSERT_TRUE(succeeds(context));
  fault.submit = VK_ERROR_DEVICE_LOST;
  EXPECT_TRUE(fails_with(context->tune(gemm({64, 64, 64}, DataType::f32), quick()),
                         Status::device_lost, {}));
  EXPECT_TRUE(context->device_lost());
}

}  // namespace
}  // namespace vkgemm::test
