#include "tool/case_tuner.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "device/caps.hpp"
#include "problem/resolve.hpp"
#include "tool/fault.hpp"
#include "tool/time_share.hpp"
#include "tool/tool.hpp"
#include "tuner/config_space.hpp"

namespace vkgemm::tool {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr double forever = std::numeric_limits<double>::infinity();

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

// Results whose verification is still under way.
constexpr std::size_t most_pending = 6;
constexpr std::uint64_t large_results = std::uint64_t{1} << 30;

bool is_denied(const Bench& bench, std::size_t index, const Config& config) {
  const DataType type = unwrap(resolve(bench.task.problems[index].problem)).input_type();
  return is_denied(bench.task, config, type) || is_denied(bench.session, config, type);
}

class CaseTuner {
 public:
  CaseTuner(const Bench& bench, std::size_t index)
      : bench_(bench),
        index_(index),
        tuned_(bench.session.cases[index]),
        problem_(bench.task.problems[index]),
        resolved_(unwrap(resolve_on(caps(), bench.tables, problem_.problem))),
        shares_the_host_(is_cpu(caps()) || caps().type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU) {
    begin_ = Clock::now();
    const auto left =
        static_cast<double>(std::ranges::count(bench.session.cases, false, &TuneCase::done));
    const std::chrono::duration<double> all =
        std::max(bench.task.deadline - begin_, Clock::duration(0));
    time_ = TimeShare(all.count() / std::max(left, 1.0));
    // A third of the time for the first rounds, if all of those that may take turns do.
    turn_ms_ =
        std::clamp(1000.0 * time_.seconds() / (3.0 * first_rounds * first_most), 5.0, most_turn_ms);
  }

  void tune(const Proposal& proposal) {
    if (proposal.space.empty()) {
      throw Failure(usage_error, "no configuration is legal here, or may be tried");
    }
    guide_ = proposal.guide;
    say(says::searches(index_, proposal.choices, proposal.space.size(), proposal.legal));
    prepare();
    // The tables' choices and one of each path are looked at whatever the time, all else while
    // there is some.
    std::vector<Config> first, others;
    for (const Config& config : configs_of(proposal)) {
      const bool is_choice = std::ranges::any_of(
          proposal.choices, [&](const NamedConfig& choice) { return choice.config == config; });
      const bool is_first =
          std::ranges::find(proposal.first_of_paths, config) != proposal.first_of_paths.end();
      (is_choice || is_first ? first : others).push_back(config);
    }
    const auto is_eligible = [&](const Config& config) {
      return is_wanted(bench_.task, config) &&
             (!bench_.task.from_generic ||
              std::ranges::find(proposal.space, config, &tuner::ProposedConfig::config) !=
                  proposal.space.end());
    };
    look_at(std::move(first), is_eligible, forever);
    // The culprit of a death is looked for whatever the time.
    double share = share_of_first_looks;
    if (bench_.session.alone == index_) share = forever;
    look_at(std::move(others), is_eligible, share);
    conclude(0);
    rounds(1, first_rounds, first_within, first_most);
    climb();
    rounds(first_rounds + 1, last_rounds, last_within, last_most);
  }

 private:
  // Timed, and not yet verified.
  struct Pending {
    Measured measured;
    std::future<oracle::VerifyReport> report;
  };

  const DeviceCaps& caps() const { return bench_.runner.caps(); }
  void say(const std::string& line) { bench_.say(line); }

  void prepare() {
    data_ =
        std::make_unique<TimedCase>(bench_.runner, bench_.pool, problem_.problem, problem_.groups);
  }

  double passed_s() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  double spent() const { return time_.spent(passed_s()); }

  // After the first barrier given up, this process waits at none. The configuration that did it is
  // told, and a new process goes on.
  void check_waits(const Config& config, bool eligible) {
    if (bench_.runner.context().barrier_aborts() == 0 &&
        !has_fault(tune_fault, "give_up", to_string(config))) {
      return;
    }
    kept_busy_by_ = nullptr;
    conclude(0);
    found({.config = config,
           .outcome = TuneOutcome::late,
           .reason = "its workgroups gave up waiting for one another",
           .eligible = eligible});
    throw StartAgain{};
  }

  void found(const Measured& measured) { say(says::found(index_, measured)); }

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
    const bool lost = error.status == Status::device_lost;
    const bool failed = lost || error.status == Status::driver_error;
    found({.config = config,
           .outcome = failed ? TuneOutcome::failed : TuneOutcome::unfit,
           .reason = error.message,
           .eligible = eligible});
    if (lost) throw StartAgain{};
  }

  std::vector<double> time(const Plan& plan, std::uint32_t repeats, double after_pause_ms) {
    const std::chrono::duration<double, std::milli> pause = Clock::now() - last_timing_;
    const double warm_up = is_cpu(caps()) || pause.count() < pause_ms ? 0.0 : after_pause_ms;
    std::vector<double> times =
        data_->time(plan, {.repeats = repeats, .warm_up_ms = warm_up, .flush = bench_.flush});
    last_timing_ = Clock::now();
    for (double& time : times) time *= 1000.0;
    return times;
  }

  std::uint32_t repeats_of(double microseconds) const {
    const TuneLimits& limits = bench_.task.limits;
    if (limits.repeat != 0) return static_cast<std::uint32_t>(limits.repeat);
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
      double& longest_s = longest_look_s_[config.path()];
      const double begin_s = passed_s();
      if (share != forever && best_us_ > 0.0 && !time_.has_room(begin_s, longest_s)) continue;
      first_look(config, is_eligible(config));
      longest_s = std::max(longest_s, passed_s() - begin_s);
    }
    bench_.builder.drop_wanted(index_);
  }

  // Builds, computes, verifies, and takes the first times.
  void first_look(const Config& config, bool eligible) {
    if (const Measured* known = tuned_.find(config)) {
      // The search has come to what another table proposed.
      if (eligible && !known->eligible && known->outcome == TuneOutcome::good) {
        found({.config = config, .round = known->round, .eligible = true});
      }
      return;
    }
    if (is_denied(bench_, index_, config)) return;
    say(says::tries(index_, config));
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
    say(says::begins(index_));
    conclude(most_pending);
  }

  // While the host builds or verifies, a GPU had better go on than lower its clock. Not for ever: a
  // build that hangs is noticed because no line comes.
  bool may_keep_busy() const {
    return kept_busy_by_ != nullptr && !shares_the_host_ &&
           Clock::now() - idle_since_ < longest_busy;
  }
  void keep_busy() {
    const Config config = kept_busy_by_->config();
    say(says::tries(index_, config));
    try {
      data_->time(*kept_busy_by_, {.warm_up_ms = pause_ms / 2.0, .flush = bench_.flush});
      last_timing_ = Clock::now();
      check_waits(config, true);
    } catch (const Failure& failure) {
      kept_busy_by_ = nullptr;
      give_up(config, true, failure);
    }
    say(says::begins(index_));
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
      const oracle::VerifyReport report = pending_.front().report.get();
      pending_.pop_front();
      if (!report.passed()) {
        measured.outcome = TuneOutcome::wrong;
        measured.reason = report.first_failure;
      }
      found(measured);
    }
  }

  void give_up(const Config& config, bool eligible, const Failure& failure) {
    const bool lost = bench_.runner.context().device_lost();
    fail(config, eligible, {lost ? Status::device_lost : Status::unsupported, failure.what()});
  }

  // Builders take from a device its cores, or its power and memory; one of its own they don't
  // disturb: its timestamps know nothing of the host, and it always has a submission in hand.
  std::shared_ptr<void> rest() {
    if (!shares_the_host_) return nullptr;
    bench_.builder.rest();
    return {&bench_.builder, [](tuner::PlanBuilder* builder) { builder->go_on(); }};
  }

  // Takes the times of the best by turns.
  void rounds(std::uint32_t first, std::uint32_t count, double within, std::size_t most) {
    const std::vector<Config> taking_turns = survivors(tuned_, within, most);
    const auto resting = rest();
    for (std::uint32_t round = first; round < first + count; ++round) {
      // One round there must be: the first looks are not to be compared.
      if (round > 1 && !time_.has_room(passed_s(), longest_round_s_)) return;
      const double begin_s = passed_s();
      for (const Config& config : taking_turns) take_turn(config, round);
      longest_round_s_ = std::max(longest_round_s_, passed_s() - begin_s);
    }
  }

  void take_turn(const Config& config, std::uint32_t round) {
    const Measured known = *tuned_.find(config);
    if (known.outcome != TuneOutcome::good) return;
    say(says::tries(index_, config));
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
      const Measured* best = fastest(tuned_);
      if (best == nullptr) return;
      const Config from = best->config;
      const std::uint32_t round = best->round;
      const std::size_t before = tuned_.measured.size();
      std::vector<Config> around = tuner::neighbours(
          *guide_, from, resolved_, bench_.tables.target(caps()),
          {.within = neighbours_within, .static_shapes = bench_.task.limits.static_shapes});
      std::erase_if(around, [&](const Config& config) { return !is_wanted(bench_.task, config); });
      look_at(
          std::move(around), [](const Config&) { return true; }, share_before_last_rounds);
      conclude(0);
      if (tuned_.measured.size() == before) return;
      // Configurations that look better join the rounds, beside the one that they are to replace.
      const auto resting = rest();
      for (const Config& config : survivors(tuned_, first_within, first_most)) {
        take_turn(config, std::max(round, 1u));
      }
      const Measured* after = fastest(tuned_);
      if (after == nullptr || after->config == from) return;
    }
  }

  const Bench& bench_;
  std::size_t index_;
  const TuneCase& tuned_;
  const TuneProblem& problem_;
  ResolvedProblem resolved_;
  bool shares_the_host_;  // what computes and what compiles
  Clock::time_point begin_;
  TimeShare time_{0.0};
  std::map<Path, double> longest_look_s_;  // paths take different times to compile
  double longest_round_s_ = 0.0;
  double turn_ms_ = most_turn_ms;
  double best_us_ = 0.0;  // of the first looks
  const Plan* kept_busy_by_ = nullptr;
  Clock::time_point idle_since_;
  std::unique_ptr<TimedCase> data_;
  std::deque<Pending> pending_;  // gone before the data that they read
  std::map<std::string, Plan> plans_;
  Clock::time_point last_timing_;  // long ago
  const TuningTable* guide_ = nullptr;
};

}  // namespace

std::vector<Config> worth_building(const Bench& bench, std::size_t index,
                                   std::vector<Config> configs) {
  std::erase_if(configs, [&](const Config& config) {
    return bench.session.cases[index].find(config) != nullptr || is_denied(bench, index, config);
  });
  return configs;
}

void tune_case(const Bench& bench, std::size_t index, const Proposal& proposal) {
  CaseTuner(bench, index).tune(proposal);
}

}  // namespace vkgemm::tool
