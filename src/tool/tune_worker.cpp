#include "tool/tune_worker.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "support/config_space.hpp"
#include "tool/plan_builder.hpp"
#include "tool/timing.hpp"
#include "tool/tool.hpp"
#include "tool/tune_fault.hpp"
#include "tool/tune_proposal.hpp"
#include "tuning/device_tables.hpp"

namespace vkgemm::tool {
namespace {

using support::Measured;
using support::Runner;
using support::TuneCase;
using support::TuneSession;
using support::Verdict;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// The part of a problem's time for first looks; the rest is for what they lead to.
constexpr double share_of_first_looks = 0.5;
constexpr double share_before_last_rounds = 0.85;

// Rounds: how much slower than the fastest a configuration may be to stay among those that are
// timed by turns, and how many stay.
constexpr double first_within = 1.15;
constexpr double last_within = 1.05;
constexpr std::size_t first_most = 12;
constexpr std::size_t last_most = 6;
constexpr std::uint32_t first_rounds = 3;
constexpr std::uint32_t last_rounds = 8;

// An idle GPU lowers its clock (an H200 to a sixth), so whoever comes after a pause warms it up.
constexpr double pause_ms = 20.0;
constexpr double first_warm_up_ms = 150.0;
constexpr double warm_up_ms = 300.0;
constexpr double most_turn_ms = 40.0;  // of one configuration in a round

constexpr auto longest_busy = std::chrono::seconds(2);

// Multiply-adds of the reference for each configuration. Each looks at other rows.
constexpr double verification_work = 0x1p28;

// Neighbours whose estimate is above that of the best by more than this factor are left out.
constexpr double neighbours_within = 2.0;

// The driver of a device that died may answer nothing any more: the next process has to go on.
struct StartAgain {};  // another process is to go on

// Problems whose plans are built while another is measured.
constexpr std::size_t problems_ahead = 4;

// Results whose verification is still under way.
constexpr std::size_t most_pending = 6;
constexpr std::uint64_t large_results = std::uint64_t{1} << 30;

// The parts that all problems of a process share.
struct Bench {
  const TuneTask& task;
  TuneSession& session;
  Runner& runner;
  PlanBuilder& builder;
  OperandPool& pool;
  const support::Buffer* flush;
  std::function<void(const std::string&)> say;
};

bool is_denied(const Bench& bench, std::size_t index, const Config& config) {
  const DataType type = bench.task.problems[index].problem.a.type;
  return is_denied(bench.task, config, type) || support::is_denied(bench.session, config, type);
}

// The configurations that are not known for this problem, nor denied.
std::vector<Config> worth_building(const Bench& bench, std::size_t index,
                                   std::vector<Config> configs) {
  std::erase_if(configs, [&](const Config& config) {
    return bench.session.cases[index].find(config) != nullptr || is_denied(bench, index, config);
  });
  return configs;
}

class CaseTuner {
 public:
  CaseTuner(const Bench& bench, std::size_t index)
      : task_(bench.task),
        index_(index),
        tuned_(bench.session.cases[index]),
        problem_(bench.task.problems[index]),
        resolved_(unwrap(resolve(problem_.problem))),
        bench_(bench),
        runner_(bench.runner),
        shares_the_host_(runner_.caps().type == VK_PHYSICAL_DEVICE_TYPE_CPU ||
                         runner_.caps().type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU) {
    const auto now = Clock::now();
    const auto left =
        static_cast<double>(std::ranges::count(bench.session.cases, false, &TuneCase::done));
    const std::chrono::duration<double> all = std::max(task_.deadline - now, Clock::duration(0));
    begin_ = now;
    seconds_ = all.count() / std::max(left, 1.0);
    // A third of the time for the first rounds, if all of those that may take turns do.
    turn_ms_ = std::clamp(1000.0 * seconds_ / (3.0 * first_rounds * first_most), 5.0, most_turn_ms);
  }

  void tune(const Proposal& proposal) {
    say(support::says::begins(index_));
    if (proposal.space.empty()) {
      say(support::says::done(index_, "no configuration is legal here, or may be tried"));
      return;
    }
    guide_ = proposal.guide;
    say(support::says::searches(index_, proposal.choices, proposal.space.size(), proposal.legal));
    prepare();
    // The tables' choices are looked at whatever the time, all else while there is some.
    std::vector<Config> chosen, others;
    for (const Config& config : configs_of(proposal)) {
      const bool is_choice = std::ranges::any_of(
          proposal.choices,
          [&](const support::NamedConfig& choice) { return choice.config == config; });
      (is_choice ? chosen : others).push_back(config);
    }
    const auto is_eligible = [&](const Config& config) {
      return is_wanted(task_, config) &&
             (!task_.from_generic ||
              std::ranges::find(proposal.space, config, &support::ProposedConfig::config) !=
                  proposal.space.end());
    };
    look_at(std::move(chosen), is_eligible, std::numeric_limits<double>::infinity());
    look_at(std::move(others), is_eligible, share_of_first_looks);
    conclude(0);
    rounds(1, first_rounds, first_within, first_most);
    climb();
    rounds(first_rounds + 1, last_rounds, last_within, last_most);
    say(support::says::done(index_));
  }

  // One that may have killed a process, while nothing else is done.
  void try_alone(const support::Place& suspect) {
    say(support::says::tries(index_, suspect.config));
    const auto plan = bench_.builder.take(index_, problem_.problem, suspect.config);
    if (plan && suspect.ran) {
      try {
        prepare();
        data_->time(*plan, 1, 0.0, bench_.flush);
      } catch (const Failure& failure) {
        if (runner_.context().device_lost()) give_up(suspect.config, false, failure);
      }
    }
    say(support::says::cleared(index_, suspect.config));
    check_waits(suspect.config, false);
  }

 private:
  // Timed, and not yet verified.
  struct Pending {
    Measured measured;
    std::future<support::VerifyReport> report;
  };

  void say(const std::string& line) { bench_.say(line); }

  void prepare() {
    data_ = std::make_unique<TimedCase>(runner_, bench_.pool, problem_.problem, problem_.groups);
  }

  double spent() const {
    const std::chrono::duration<double> passed = Clock::now() - begin_;
    return seconds_ > 0.0 ? passed.count() / seconds_ : 1.0;
  }

  // Where workgroups gave up once, none wait any more, and what would is late from then on.
  void check_waits(const Config& config, bool eligible) {
    if (runner_.context().barrier_aborts() == 0 && !has_fault("give_up", config)) return;
    kept_busy_by_ = nullptr;
    conclude(0);
    Measured late{.config = config, .verdict = Verdict::late, .eligible = eligible};
    late.reason = "its workgroups gave up waiting for one another";
    found(late);
    throw StartAgain{};
  }

  void found(const Measured& measured) { say(support::says::found(index_, measured)); }

  // The plan, if the configuration can be built. Else that is told.
  const Plan* plan_of(const Config& config, bool eligible) {
    const std::string key = to_string(config);
    if (const auto known = plans_.find(key); known != plans_.end()) return &known->second;
    auto plan = bench_.builder.take(index_, problem_.problem, config);
    if (plan) return &plans_.emplace(key, *std::move(plan)).first->second;
    fail(config, eligible, plan.error());
    return nullptr;
  }

  void fail(const Config& config, bool eligible, const Error& error) {
    Measured measured{.config = config, .verdict = Verdict::unfit, .eligible = eligible};
    measured.reason = error.message;
    if (error.status == Status::device_lost || error.status == Status::driver_error) {
      measured.verdict = Verdict::failed;
    }
    found(measured);
    if (error.status == Status::device_lost) throw StartAgain{};
  }

  std::vector<double> time(const Plan& plan, std::uint32_t repeats, double after_pause_ms) {
    const std::chrono::duration<double, std::milli> pause = Clock::now() - last_timing_;
    const bool cpu = runner_.caps().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    const double warm_up = cpu || pause.count() < pause_ms ? 0.0 : after_pause_ms;
    std::vector<double> times = data_->time(plan, repeats, warm_up, bench_.flush);
    last_timing_ = Clock::now();
    for (double& time : times) time *= 1000.0;
    return times;
  }

  std::uint32_t repeats_of(double microseconds) const {
    if (task_.limits.repeat != 0) return static_cast<std::uint32_t>(task_.limits.repeat);
    return static_cast<std::uint32_t>(
        std::clamp(1000.0 * turn_ms_ / std::max(microseconds, 1.0), 1.0, 20.0));
  }

  // First looks, at those first whose plans are there, until this share of the time is spent.
  template <class IsEligible>
  void look_at(std::vector<Config> configs, const IsEligible& is_eligible, double share) {
    bench_.builder.want(index_, problem_.problem, worth_building(bench_, index_, configs));
    while (!configs.empty()) {
      if (spent() > share && best_us_ > 0.0) break;
      const auto next = bench_.builder.next(index_, configs, may_keep_busy() ? 0ms : 100ms);
      if (!next) {
        if (may_keep_busy()) keep_busy();
        conclude(most_pending);
        continue;
      }
      const Config config = configs[*next];
      configs.erase(configs.begin() + static_cast<std::ptrdiff_t>(*next));
      first_look(config, is_eligible(config));
    }
    bench_.builder.drop_wanted(index_);
  }

  // Builds, computes, verifies, and takes the first times.
  void first_look(const Config& config, bool eligible) {
    if (const Measured* known = tuned_.find(config)) {
      // The search has come to what another table proposed.
      if (eligible && !known->eligible && known->verdict == Verdict::good) {
        found({.config = config, .round = known->round, .eligible = true});
      }
      return;
    }
    if (is_denied(bench_, index_, config)) return;
    say(support::says::tries(index_, config));
    const Plan* plan = plan_of(config, eligible);
    if (plan == nullptr) return;
    // Verification takes a host's cores, and large results its memory.
    if (shares_the_host_ || data_->result_bytes() > large_results) conclude(0);
    const auto resting = rest();
    try {
      Measured measured{.config = config, .eligible = eligible};
      measured.microseconds = time(*plan, 1, first_warm_up_ms);
      if (best_us_ == 0.0 || measured.microseconds.front() < 20.0 * best_us_) {
        const std::uint32_t repeats = std::max(repeats_of(measured.microseconds.front()) / 2, 1u);
        measured.microseconds = time(*plan, repeats, first_warm_up_ms);
      }
      check_waits(config, eligible);
      kept_busy_by_ = plan;
      idle_since_ = Clock::now();
      const double us = measured.median();
      best_us_ = best_us_ == 0.0 ? us : std::min(best_us_, us);
      pending_.push_back({std::move(measured),
                          data_->start_verification(tuned_.measured.size() + pending_.size() + 1,
                                                    verification_work)});
    } catch (const Failure& failure) {
      give_up(config, eligible, failure);
    }
    say(support::says::begins(index_));
    conclude(most_pending);
  }

  // While the host builds or verifies, a GPU had better go on than lower its clock. Not for ever: a
  // build that hangs is noticed by that there is nothing to say.
  bool may_keep_busy() const {
    return kept_busy_by_ != nullptr && !shares_the_host_ &&
           Clock::now() - idle_since_ < longest_busy;
  }
  void keep_busy() {
    const Config config = kept_busy_by_->config();
    say(support::says::tries(index_, config));
    try {
      data_->time(*kept_busy_by_, 1, pause_ms / 2.0, bench_.flush);
      last_timing_ = Clock::now();
      check_waits(config, true);
    } catch (const Failure& failure) {
      kept_busy_by_ = nullptr;
      give_up(config, true, failure);
    }
    say(support::says::begins(index_));
  }

  // Tells what was verified, and waits until at most so many are not.
  void conclude(std::size_t most) {
    while (!pending_.empty()) {
      const bool ready = pending_.front().report.wait_for(0s) == std::future_status::ready;
      if (!ready && pending_.size() <= most) return;
      if (!ready && may_keep_busy()) {
        keep_busy();
        continue;
      }
      Measured measured = std::move(pending_.front().measured);
      const support::VerifyReport report = pending_.front().report.get();
      pending_.pop_front();
      if (!report.passed()) {
        measured.verdict = Verdict::wrong;
        measured.reason = report.first_failure;
      }
      found(measured);
    }
  }

  void give_up(const Config& config, bool eligible, const Failure& failure) {
    const bool lost = runner_.context().device_lost();
    fail(config, eligible, {lost ? Status::device_lost : Status::unsupported, failure.what()});
  }

  // Builders take from a device its cores, or its power and memory; one of its own they don't
  // disturb: its timestamps know nothing of the host, and it always has a submission in hand.
  std::shared_ptr<void> rest() {
    if (!shares_the_host_) return nullptr;
    bench_.builder.rest();
    return {&bench_.builder, [](PlanBuilder* builder) { builder->go_on(); }};
  }

  // Takes the times of the best by turns.
  void rounds(std::uint32_t first, std::uint32_t count, double within, std::size_t most) {
    const std::vector<Config> taking_turns = support::survivors(tuned_, within, most);
    const auto resting = rest();
    for (std::uint32_t round = first; round < first + count; ++round) {
      // One round there must be: the first looks are not to be compared.
      if (round > first && spent() > 1.0) return;
      for (const Config& config : taking_turns) take_turn(config, round);
    }
  }

  void take_turn(const Config& config, std::uint32_t round) {
    const Measured known = *tuned_.find(config);
    if (known.verdict != Verdict::good) return;
    say(support::says::tries(index_, config));
    const Plan* plan = plan_of(config, known.eligible);
    if (plan == nullptr) return;
    try {
      Measured measured{.config = config, .round = round, .eligible = known.eligible};
      measured.microseconds = time(*plan, repeats_of(known.median()), warm_up_ms);
      check_waits(config, known.eligible);
      found(measured);
    } catch (const Failure& failure) {
      give_up(config, known.eligible, failure);
    }
  }

  // From the best to the best of its neighbours, until there is no better one or no time.
  void climb() {
    while (spent() < share_before_last_rounds) {
      const Measured* best = support::fastest(tuned_);
      if (best == nullptr) return;
      const Config from = best->config;
      const std::uint32_t round = best->round;
      const std::size_t before = tuned_.measured.size();
      std::vector<Config> around = support::neighbours(
          *guide_, from, resolved_, tables_.target(runner_.caps()),
          {.within = neighbours_within, .static_shapes = task_.limits.static_shapes});
      std::erase_if(around, [&](const Config& config) { return !is_wanted(task_, config); });
      look_at(
          std::move(around), [](const Config&) { return true; }, share_before_last_rounds);
      conclude(0);
      if (tuned_.measured.size() == before) return;
      // Configurations that look better join the rounds, beside the one that they are to replace.
      const auto resting = rest();
      for (const Config& config : support::survivors(tuned_, first_within, first_most)) {
        take_turn(config, std::max(round, 1u));
      }
      const Measured* after = support::fastest(tuned_);
      if (after == nullptr || after->config == from) return;
    }
  }

  const TuneTask& task_;
  std::size_t index_;
  TuneCase& tuned_;
  const TuneProblem& problem_;
  ResolvedProblem resolved_;
  const Bench& bench_;
  Runner& runner_;
  bool shares_the_host_;  // what computes and what compiles
  Clock::time_point begin_;
  double seconds_ = 0.0;
  double turn_ms_ = most_turn_ms;
  double best_us_ = 0.0;  // of the first looks
  const Plan* kept_busy_by_ = nullptr;
  Clock::time_point idle_since_;
  std::unique_ptr<TimedCase> data_;
  std::deque<Pending> pending_;  // gone before the data that they read
  std::map<std::string, Plan> plans_;
  Clock::time_point last_timing_;  // long ago
  const DeviceTables tables_{runner_.caps().architecture};
  const TuningTable* guide_ = nullptr;
};

// Without threads, so that whoever does harm is known.
void clear_suspects(const TuneTask& task, TuneSession& session, Runner& runner, OperandPool& pool,
                    const support::Buffer* flush,
                    const std::function<void(const std::string&)>& tell) {
  const std::vector<support::Place> suspects = session.suspects;
  if (suspects.empty()) return;
  PlanBuilder nobody(runner.context(), 0, {}, {});
  const Bench bench{task, session, runner, nobody, pool, flush, tell};
  for (const support::Place& suspect : suspects) {
    CaseTuner(bench, suspect.index).try_alone(suspect);
  }
}

void tune_all(const Bench& bench) {
  const TuneSession& session = bench.session;
  const TuneTask& task = bench.task;
  std::map<std::size_t, Proposal> proposals;
  const auto propose_for = [&](std::size_t index) {
    if (proposals.contains(index)) return;
    Proposal& proposal = proposals[index];
    proposal = propose(task, unwrap(resolve(task.problems[index].problem)), bench.runner.caps());
    bench.builder.want(index, task.problems[index].problem,
                       worth_building(bench, index, configs_of(proposal)));
  };
  for (std::size_t i = 0; i < session.cases.size(); ++i) {
    if (session.cases[i].done) continue;
    if (Clock::now() > task.deadline && std::ranges::any_of(session.cases, &TuneCase::done)) break;
    std::size_t ahead = 0;
    for (std::size_t next = i; next < session.cases.size() && ahead <= problems_ahead; ++next) {
      if (session.cases[next].done) continue;
      propose_for(next);
      ++ahead;
    }
    try {
      CaseTuner(bench, i).tune(proposals[i]);
    } catch (const std::exception& failure) {  // the host's memory or threads are no one's fault
      if (bench.runner.context().device_lost()) throw StartAgain{};
      bench.say(support::says::done(i, failure.what()));
    }
    bench.builder.forget(i);
    proposals.erase(i);
  }
}

}  // namespace

bool tune_work(const TuneTask& task, TuneSession session,
               const std::function<void(std::string)>& say) {
  // This process has its own copy of the session, which learns the same as the other one. Threads
  // that build say so, too.
  std::mutex telling;
  const auto tell = [&](const std::string& line) {
    const std::scoped_lock lock(telling);
    say(line);
    support::take_in(session, line);
  };
  try {
    const std::unique_ptr<Runner> runner = task.device.open();
    const DeviceCaps& caps = runner->caps();
    tell(support::says::device(caps.name, driver_of(caps), caps.architecture));
    unwrap(check_tables(task, caps));
    support::Buffer flush;
    if (!task.limits.warm_l2) flush = unwrap(runner->allocate(flush_bytes(caps)));
    const support::Buffer* const flushed = task.limits.warm_l2 ? nullptr : &flush;
    OperandPool pool(*runner);
    clear_suspects(task, session, *runner, pool, flushed, tell);
    PlanBuilder builder(
        runner->context(), session.builders(task.limits.threads),
        [&](std::size_t i, const Config& c) { tell(support::says::builds(i, c)); },
        [&](std::size_t i, const Config& c) { tell(support::says::built(i, c)); });
    const Bench bench{task, session, *runner, builder, pool, flushed, tell};
    tune_all(bench);
    if (runner->validation_messages() != 0) {
      tell(support::says::fatal(std::to_string(runner->validation_messages()) +
                                " validation messages"));
    }
    return true;
  } catch (const StartAgain&) {
    tell(support::says::lost());
    return false;
  } catch (const Failure& failure) {
    tell(support::says::fatal(failure.what()));
    return true;
  }
}

}  // namespace vkgemm::tool
