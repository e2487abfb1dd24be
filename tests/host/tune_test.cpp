// Tests of what `vkgemm tune` decides, and how it survives what it measures.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "headless/supervisor.hpp"
#include "test_devices.hpp"
#include "tool/tune_session.hpp"
#include "tuning/table_file.hpp"
#include "worker.hpp"

namespace vkgemm::tool {
namespace {

using headless::Ending;
using headless::Say;
using headless::WorkerEnd;

using test::contains;
using test::gemm;
using test::resolved;

const Config config_a = test::config("fma:tile=32x32x16,fragment=4x4");
const Config config_b = test::config("fma:tile=64x64x16,fragment=4x4");
const Config config_c = test::config("fma:tile=64x64x16,fragment=8x8");

TuneSession session_of(const std::vector<Problem>& problems) {
  TuneSession session;
  for (const Problem& problem : problems) {
    TuneCase tuned;
    tuned.arguments = to_command_line(problem);
    tuned.problem = tuned_problem(resolved(problem));
    tuned.multiply_adds = 1e6;
    session.cases.push_back(tuned);
  }
  EXPECT_TRUE(take_in(session, says::device("a \"GPU\"", "driver 1", "nvidia_sm90")));
  return session;
}

TuneSession measured_session() {
  TuneSession session = session_of({gemm(64, 64, 64), gemm(128, 64, 64)});
  EXPECT_TRUE(take_in(session, says::begins(0)));
  EXPECT_TRUE(take_in(session, says::searches(0, {{"built_in", config_b}}, 7, 9)));
  const auto found = [&](const Config& config, std::vector<double> us, std::uint32_t round) {
    EXPECT_TRUE(take_in(session, says::tries(0, config)));
    EXPECT_TRUE(
        take_in(session,
                says::found(0, {.config = config, .microseconds = std::move(us), .round = round})));
  };
  found(config_a, {1.0}, 0);
  found(config_b, {40.0}, 0);
  found(config_a, {20.0, 21.0, 99.0}, 1);
  found(config_b, {30.0}, 1);
  EXPECT_TRUE(take_in(session, says::found(0, {.config = config_c,
                                               .outcome = TuneOutcome::wrong,
                                               .reason = "d[0, 0] is \xff 5"})));
  return session;
}

TEST(TuneSession, LearnsWhatIsSaid) {
  const TuneSession session = measured_session();
  const TuneCase& tuned = session.cases[0];
  EXPECT_EQ(session.device, "a \"GPU\"");
  EXPECT_EQ(tuned.candidates, 7u);
  ASSERT_EQ(tuned.measured.size(), 3u);
  EXPECT_EQ(tuned.measured[0].median(), 21.0);  // the first look does not count any more
  EXPECT_EQ(tuned.measured[1].median(), 30.0);
  EXPECT_EQ(fastest(tuned)->config, config_a);
  EXPECT_EQ(survivors(tuned, 1.1, 8), (std::vector{config_a, config_b}));  // b as a table's choice
  EXPECT_FALSE(session.done());

  TuneSession other = session;
  EXPECT_FALSE(take_in(other, "{"));
  EXPECT_FALSE(take_in(other, "{\"says\":\"begins\",\"case\":9}"));
  EXPECT_FALSE(take_in(other, "{\"says\":\"tries\",\"case\":0,\"config\":\"x\"}"));
}

TEST(TuneSession, TheChoiceOfATableStaysIfItIsAsGood) {
  TuneSession session = session_of({gemm(64, 64, 64)});
  take_in(session, says::searches(0, {{"built_in", config_b}}, 2, 2));
  const auto found = [&](const Config& config, double us, bool eligible) {
    take_in(session,
            says::found(0, {.config = config, .microseconds = {us}, .eligible = eligible}));
  };
  found(config_a, 100.0, true);
  found(config_b, 100.9, true);
  EXPECT_EQ(fastest(session.cases[0])->config, config_b);
  found(config_b, 103.0, true);  // the median of both is
  EXPECT_EQ(fastest(session.cases[0])->config, config_a);
  // A configuration that only another table proposes is compared with, not chosen.
  found(config_c, 50.0, false);
  EXPECT_EQ(fastest(session.cases[0])->config, config_a);
  EXPECT_EQ(fastest(session.cases[0], true)->config, config_c);
}

TEST(TuneSession, TheConfigurationIsToBlameForADeath) {
  TuneSession session = measured_session();
  take_in(session, says::tries(0, config_a));
  blame(session, "signal 11");
  EXPECT_EQ(session.cases[0].find(config_a)->outcome, TuneOutcome::failed);
  EXPECT_EQ(fastest(session.cases[0])->config, config_b);
  EXPECT_FALSE(session.cases[0].done);
  // A lost device is told beforehand: nobody else is to blame.
  take_in(session, says::tries(0, config_b));
  take_in(session, says::lost());
  blame(session, "exit code 1");
  EXPECT_EQ(session.cases[0].find(config_b)->outcome, TuneOutcome::good);
  // With no configuration in hand the problem gets two more chances.
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(session.cases[1].done) << i;
    take_in(session, says::begins(1));
    blame(session, "signal 9");
  }
  EXPECT_TRUE(session.cases[1].done);
  EXPECT_EQ(session.cases[1].error, "signal 9");
}

// A death while threads build cannot be blamed on one configuration: the problem is tuned without
// them, and then the death has one to blame.
TEST(TuneSession, WhileThreadsBuildNobodyIsToBlame) {
  TuneSession session = session_of({gemm(64, 64, 64), gemm(128, 64, 64)});
  session.threads = 15;
  take_in(session, says::begins(1));
  take_in(session, says::tries(1, config_b));
  // A configuration that was verified meanwhile is told while another one is tried.
  take_in(session, says::found(1, {.config = config_a, .microseconds = {1.0}}));
  EXPECT_EQ(session.trying, config_b);
  EXPECT_EQ(session.builders(), 15u);

  blame(session, "signal 11");
  EXPECT_EQ(session.cases[1].measured.size(), 1u);  // nobody is denied
  EXPECT_EQ(session.alone, 1u);
  EXPECT_EQ(session.builders(), 0u);

  take_in(session, says::device("a \"GPU\"", "driver 1", "nvidia_sm90"));
  take_in(session, says::tries(1, config_c));
  blame(session, "signal 11");
  ASSERT_NE(session.cases[1].find(config_c), nullptr);
  EXPECT_EQ(session.cases[1].find(config_c)->outcome, TuneOutcome::failed);
  EXPECT_EQ(session.builders(), 15u);

  // Nobody may be guilty: the memory was short. Then threads build again after the problem.
  take_in(session, says::begins(1));
  blame(session, "signal 9");
  EXPECT_EQ(session.builders(), 0u);
  take_in(session, says::done(0));
  EXPECT_EQ(session.builders(), 0u);
  take_in(session, says::done(1));
  EXPECT_EQ(session.builders(), 15u);
  EXPECT_EQ(session.cases[1].deaths, 0u);

  // A device that is lost names the one that lost it.
  take_in(session, says::tries(0, config_b));
  take_in(session, says::found(0, {.config = config_b, .outcome = TuneOutcome::failed}));
  take_in(session, says::lost());
  blame(session, "exit code 1");
  EXPECT_EQ(session.builders(), 15u);
}

TEST(TuneSession, AProblemThatDiesAloneIsGivenUp) {
  TuneSession session = session_of({gemm(64, 64, 64)});
  session.threads = 15;
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(session.cases[0].done) << i;
    take_in(session, says::begins(0));
    blame(session, "signal 9");
  }
  EXPECT_TRUE(session.cases[0].done);
  EXPECT_EQ(session.builders(), 15u);
}

TEST(TuneSession, WhatIsDeniedIsSoForAllProblemsOfItsType) {
  TuneSession session = measured_session();  // config_c is wrong
  take_in(session, says::tries(0, config_a));
  blame(session, "signal 11");
  EXPECT_TRUE(is_denied(session, config_a, DataType::f16));
  EXPECT_TRUE(is_denied(session, config_c, DataType::f16));
  EXPECT_FALSE(is_denied(session, config_b, DataType::f16));
  EXPECT_FALSE(is_denied(session, config_a, DataType::bf16));
}

TEST(TuneSession, WritesATableThatIsReadAgain) {
  const TuneSession session = measured_session();
  const std::string provenance = "measured: a \"GPU\", driver 1, 2026-11-22, commit x";
  const auto table = parse_tuning_table(to_table(session, nullptr, provenance), "t");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->device, "a \"GPU\"");
  EXPECT_EQ(table->driver, "driver 1");
  EXPECT_EQ(table->architecture, "nvidia_sm90");
  ASSERT_EQ(table->tuned.size(), 1u);
  EXPECT_EQ(table->tuned[0].problem, tuned_problem(resolved(gemm(64, 64, 64))));
  EXPECT_EQ(table->tuned[0].row.config, config_a);
  EXPECT_EQ(table->tuned[0].microseconds, 21.0);
  EXPECT_EQ(table->tuned[0].arguments, session.cases[0].arguments);
  EXPECT_TRUE(table->tuned[0].row.provenance.starts_with(provenance + ": 0.09524 TFLOP/s"))
      << table->tuned[0].row.provenance;
  EXPECT_TRUE(contains(table->tuned[0].row.provenance, "verified"));
  EXPECT_TRUE(is_denied(*table, config_c, DataType::f16));
  EXPECT_FALSE(is_denied(*table, config_b, DataType::f16));

  // Rows that were there before stay, but for what was measured again.
  TuneSession more = session_of({gemm(64, 64, 64), gemm(7, 8, 9)});
  take_in(more, says::found(1, {.config = config_b, .microseconds = {3.0}}));
  const auto both = parse_tuning_table(to_table(more, &*table, provenance), "t");
  ASSERT_TRUE(both) << both.error().message;
  ASSERT_EQ(both->tuned.size(), 2u);
  EXPECT_EQ(both->tuned[1].microseconds, 21.0);
  EXPECT_TRUE(is_denied(*both, config_c, DataType::f16));
  take_in(more, says::found(0, {.config = config_b, .microseconds = {5.0}}));
  const auto again = parse_tuning_table(to_table(more, &*table, provenance), "t");
  ASSERT_TRUE(again);
  ASSERT_EQ(again->tuned.size(), 2u);
  EXPECT_EQ(again->tuned[0].microseconds, 5.0);
}

TEST(TuneSession, WrongResultsDenyAMainLoopAndFailuresAConfiguration) {
  TuneSession session = measured_session();  // config_c is wrong
  take_in(session, says::tries(0, config_a));
  blame(session, "signal 11");
  const auto table = parse_tuning_table(to_table(session, nullptr, "measured: here"), "t");
  ASSERT_TRUE(table) << table.error().message;
  const auto denied = [&](Config config, std::uint32_t slices, DataType type) {
    config.slices = slices;
    return is_denied(*table, config, type);
  };
  EXPECT_TRUE(denied(config_c, 1, DataType::f16));
  EXPECT_TRUE(denied(config_c, 4, DataType::f16));
  EXPECT_FALSE(denied(config_c, 1, DataType::bf16));
  EXPECT_TRUE(denied(config_a, 1, DataType::f16));
  EXPECT_FALSE(denied(config_a, 4, DataType::f16));
  EXPECT_FALSE(denied(config_a, 1, DataType::f32));
  EXPECT_FALSE(denied(config_b, 1, DataType::f16));
  // As older tables have it: for all types.
  const auto old =
      parse_tuning_table(R"({"architecture": "x", "rows": [], "denied": [{"config": ")" +
                             to_string(config_a) + R"(", "reason": "lost"}]})",
                         "t");
  ASSERT_TRUE(old);
  EXPECT_TRUE(is_denied(*old, config_a, DataType::bf16));
}

TEST(TuneSession, AnInterruptedProblemIsNotComplete) {
  const auto table = [](const TuneSession& session, const TuningTable* before) {
    auto parsed = parse_tuning_table(to_table(session, before, "measured: here"), "t");
    EXPECT_TRUE(parsed) << parsed.error().message;
    return *std::move(parsed);
  };
  TuneSession session = measured_session();
  const std::string arguments = session.cases[0].arguments;
  const TuningTable interrupted = table(session, nullptr);
  ASSERT_EQ(interrupted.tuned.size(), 1u);
  EXPECT_FALSE(interrupted.tuned[0].complete);
  EXPECT_FALSE(is_complete(interrupted, arguments));

  // Interrupted again, the faster row stays; at the end the new one does.
  TuneSession more = session_of({gemm(64, 64, 64)});
  take_in(more, says::found(0, {.config = config_b, .microseconds = {25.0}}));
  const TuningTable twice = table(more, &interrupted);
  ASSERT_EQ(twice.tuned.size(), 1u);
  EXPECT_EQ(twice.tuned[0].microseconds, 21.0);
  EXPECT_FALSE(is_complete(twice, arguments));
  take_in(more, says::done(0));
  const TuningTable complete = table(more, &twice);
  ASSERT_EQ(complete.tuned.size(), 1u);
  EXPECT_EQ(complete.tuned[0].microseconds, 25.0);
  EXPECT_TRUE(is_complete(complete, arguments));
  EXPECT_FALSE(is_complete(complete, arguments + " --alpha 2"));
  // A search that gave up may be tried again.
  take_in(session, says::done(0, "signal 9"));
  EXPECT_FALSE(is_complete(table(session, nullptr), arguments));
}

TEST(TuneSession, IsResumedByTheSameDeviceAndDriver) {
  auto table = parse_tuning_table(to_table(measured_session(), nullptr, "measured: here"), "t");
  ASSERT_TRUE(table);
  table->source = "t.json";
  EXPECT_FALSE(why_not_continued(*table, "a \"GPU\"", "driver 1"));
  EXPECT_EQ(why_not_continued(*table, "a \"GPU\"", "driver 2"),
            "t.json was measured on 'a \"GPU\"', driver 'driver 1', this is 'a \"GPU\"', driver "
            "'driver 2'");
  EXPECT_TRUE(why_not_continued(*table, "another", "driver 1"));
  table->device = table->driver = "";
  EXPECT_FALSE(why_not_continued(*table, "another", "driver 2"));
}

class TuneWorker : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = test::why_no_worker()) GTEST_SKIP() << *why;
  }
};

TuneSession session_of_one() { return session_of({gemm(64, 64, 64)}); }

// The session as the process before has left it.
TuneSession told(const std::string& history, std::uint32_t threads) {
  TuneSession session = session_of_one();
  session.threads = threads;
  std::istringstream lines(history);
  for (std::string line; std::getline(lines, line);) take_in(session, line);
  return session;
}

// As `vkgemm tune` does: how many processes it takes.
int processes_until_finished(TuneSession& session, const test::Worker& worker) {
  int processes = 0;
  std::string history;
  const auto learn = [&](const std::string& line) {
    EXPECT_TRUE(take_in(session, line)) << line;
    history += line + '\n';
  };
  for (bool more = true; more && processes < 10; ++processes) {
    const WorkerEnd end =
        worker.run({.on_line = [&](std::string_view line) { learn(std::string(line)); }}, history);
    more = end.ending != Ending::finished;
    if (more) learn(says::died(end.reason));
  }
  return processes;
}

const std::vector<Config> configs_to_try = {config_a, config_b, config_c};

const test::Worker tries("tries", [](const std::string& history, const Say& say) {
  const TuneSession session = told(history, 0);
  for (const Config& config : configs_to_try) {
    if (session.cases[0].find(config) != nullptr) continue;
    say(says::tries(0, config));
    if (config != config_b) test::crash();
    say(says::found(0, {.config = config, .microseconds = {1.0}}));
  }
  say(says::done(0));
  return true;
});

// A process that dies again and again costs one configuration each time.
TEST_F(TuneWorker, WorkGoesOnInAnotherProcess) {
  TuneSession session = session_of_one();
  EXPECT_EQ(processes_until_finished(session, tries), 3);
  EXPECT_TRUE(session.done());
  EXPECT_EQ(fastest(session.cases[0])->config, config_b);
  EXPECT_EQ(session.cases[0].find(config_a)->outcome, TuneOutcome::failed);
  EXPECT_EQ(session.cases[0].find(config_c)->outcome, TuneOutcome::failed);
}

const test::Worker builds("builds", [](const std::string& history, const Say& say) {
  const TuneSession session = told(history, 3);
  say(says::begins(0));
  const auto build = [](const Config& config) {
    if (config == config_b) test::crash();
  };
  std::vector<Config> left;
  for (const Config& config : configs_to_try) {
    if (session.cases[0].find(config) == nullptr) left.push_back(config);
  }
  if (session.builders() != 0) std::ranges::for_each(left, build);
  for (const Config& config : left) {
    say(says::tries(0, config));
    build(config);
    say(says::found(0, {.config = config, .microseconds = {1.0}}));
  }
  say(says::done(0));
  return true;
});

// The same where threads build: the process that dies of a crowd denies nobody.
TEST_F(TuneWorker, FindsTheGuiltyOneAmongMany) {
  TuneSession session = session_of_one();
  session.threads = 3;
  EXPECT_EQ(processes_until_finished(session, builds), 3);
  EXPECT_TRUE(session.done());
  EXPECT_EQ(session.cases[0].find(config_a)->outcome, TuneOutcome::good);
  EXPECT_EQ(session.cases[0].find(config_b)->outcome, TuneOutcome::failed);
  EXPECT_EQ(session.cases[0].find(config_c)->outcome, TuneOutcome::good);
}

}  // namespace
}  // namespace vkgemm::tool
