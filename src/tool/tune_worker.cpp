#include "tool/tune_worker.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "context_impl.hpp"
#include "support/config_space.hpp"
#include "tool/timing.hpp"
#include "tool/tool.hpp"
#include "tuning_file.hpp"

namespace vkgemm::tool {
namespace {

using support::Measured;
using support::NamedConfig;
using support::Runner;
using support::TuneCase;
using support::TuneSession;
using support::Verdict;
using Clock = std::chrono::steady_clock;

// Of a problem's time, the part for first looks; the rest is for what they lead to.
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
constexpr double turn_ms = 40.0;  // of one configuration in a round

// Multiply-adds of the reference for each configuration. Each looks at other rows.
constexpr double verification_work = 0x1p28;

// Neighbours whose estimate is above that of the best by more than this factor are left out.
constexpr double neighbours_within = 2.0;

// Of a device that died the driver may answer nothing any more: the next process has to go on.
struct DeviceLost {};

class CaseTuner {
 public:
  CaseTuner(const TuneTask& task, TuneSession& session, std::size_t index, Runner& runner,
            const support::Buffer* flush, std::function<void(const std::string&)> say)
      : task_(task),
        index_(index),
        tuned_(session.cases[index]),
        problem_(task.problems[index]),
        resolved_(unwrap(resolve(problem_.problem))),
        runner_(runner),
        flush_(flush),
        say_(std::move(say)) {
    const auto now = Clock::now();
    const auto left =
        static_cast<double>(std::ranges::count(session.cases, false, &TuneCase::done));
    const std::chrono::duration<double> all = std::max(task.deadline - now, Clock::duration(0));
    begin_ = now;
    seconds_ = all.count() / std::max(left, 1.0);
  }

  void tune() {
    say_(support::says::begins(index_));
    const std::vector<support::ProposedConfig> space = propose();
    if (space.empty()) {
      say_(support::says::done(index_, "no configuration is legal here, or may be tried"));
      return;
    }
    say_(support::says::searches(index_, choices_, space.size()));
    data_ = std::make_unique<TimedCase>(runner_, problem_.problem, problem_.groups);
    for (const NamedConfig& choice : choices_) {
      first_look(choice.config,
                 is_wanted(choice.config) && (!task_.from_generic || is_in(space, choice.config)));
    }
    for (const support::ProposedConfig& proposed : space) {
      if (spent() > share_of_first_looks && support::fastest(tuned_) != nullptr) break;
      first_look(proposed.config, true);
    }
    rounds(1, first_rounds, first_within, first_most);
    climb();
    rounds(first_rounds + 1, last_rounds, last_within, last_most);
    say_(support::says::done(index_));
  }

 private:
  double spent() const {
    const std::chrono::duration<double> passed = Clock::now() - begin_;
    return seconds_ > 0.0 ? passed.count() / seconds_ : 1.0;
  }

  static bool is_in(const std::vector<support::ProposedConfig>& space, const Config& config) {
    return std::ranges::any_of(
        space, [&](const support::ProposedConfig& proposed) { return proposed.config == config; });
  }

  bool is_wanted(const Config& config) const {
    return !task_.limits.path || config.path == *task_.limits.path;
  }
  bool is_denied(const Config& config) const {
    return task_.before && vkgemm::is_denied(*task_.before, config, resolved_.a.type);
  }

  std::vector<support::ProposedConfig> propose() {
    const DeviceCaps& caps = runner_.caps();
    const auto choose = [&](const std::string& name, const DeviceTables& tables) {
      if (const auto best = tables.best(resolved_, caps)) choices_.push_back({name, best->config});
    };
    choose("built_in", DeviceTables(caps.architecture));
    if (task_.table && check_device(*task_.table, caps))
      choose("table", DeviceTables(caps.architecture, {*task_.table}));

    const support::SpaceLimits limits{.within = task_.limits.within,
                                      .most = task_.limits.per_problem,
                                      .allowed = [this](const Config& config) {
                                        return is_wanted(config) && !is_denied(config);
                                      }};
    guide_ = &built_in_table(task_.from_generic ? "generic" : caps.architecture);
    std::vector<support::ProposedConfig> space =
        support::search_space(*guide_, resolved_, caps, limits);
    // An architecture's table may have nothing for a problem.
    if (space.empty()) {
      guide_ = &built_in_table("generic");
      space = support::search_space(*guide_, resolved_, caps, limits);
    }
    return space;
  }

  void found(const Measured& measured) { say_(support::says::found(index_, measured)); }

  // The plan, if the configuration can be built. Else that is told.
  const Plan* plan_of(const Config& config, bool eligible) {
    const std::string key = to_string(config);
    if (const auto known = plans_.find(key); known != plans_.end()) return &known->second;
    auto plan = runner_.context().plan(problem_.problem, config);
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
    if (error.status == Status::device_lost) throw DeviceLost{};
  }

  std::vector<double> time(const Plan& plan, std::uint32_t repeats, double after_pause_ms) {
    const std::chrono::duration<double, std::milli> pause = Clock::now() - last_timing_;
    const bool cpu = runner_.caps().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    const double warm_up = cpu || pause.count() < pause_ms ? 0.0 : after_pause_ms;
    std::vector<double> times = data_->time(plan, repeats, warm_up, flush_);
    last_timing_ = Clock::now();
    for (double& time : times) time *= 1000.0;
    return times;
  }

  std::uint32_t repeats_of(double microseconds) const {
    if (task_.limits.repeat != 0) return static_cast<std::uint32_t>(task_.limits.repeat);
    return static_cast<std::uint32_t>(
        std::clamp(1000.0 * turn_ms / std::max(microseconds, 1.0), 1.0, 20.0));
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
    if (is_denied(config)) return;
    say_(support::says::tries(index_, config));
    const Plan* plan = plan_of(config, eligible);
    if (plan == nullptr) return;
    try {
      Measured measured{.config = config, .eligible = eligible};
      measured.microseconds = time(*plan, 1, first_warm_up_ms);
      const double slow = 20.0 * best_time();
      if (slow == 0.0 || measured.microseconds.front() < slow) {
        const std::uint32_t repeats = std::max(repeats_of(measured.microseconds.front()) / 2, 1u);
        measured.microseconds = time(*plan, repeats, first_warm_up_ms);
      }
      const support::VerifyReport report =
          data_->verify(tuned_.measured.size() + 1, verification_work);
      if (!report.passed()) {
        measured.verdict = Verdict::wrong;
        measured.reason = report.first_failure;
      }
      found(measured);
    } catch (const Failure& failure) {
      give_up(config, eligible, failure);
    }
  }

  void give_up(const Config& config, bool eligible, const Failure& failure) {
    const bool lost = runner_.context().device_lost();
    fail(config, eligible,
         {lost ? Status::device_lost : Status::unsupported, failure.what(), VK_SUCCESS});
  }

  double best_time() const {
    const Measured* best = support::fastest(tuned_, true);
    return best == nullptr ? 0.0 : best->median();
  }

  // Takes the times of the best by turns.
  void rounds(std::uint32_t first, std::uint32_t count, double within, std::size_t most) {
    const std::vector<Config> taking_turns = support::survivors(tuned_, within, most);
    for (std::uint32_t round = first; round < first + count; ++round) {
      // One round there must be: the first looks are not to be compared.
      if (round > first && spent() > 1.0) return;
      for (const Config& config : taking_turns) take_turn(config, round);
    }
  }

  void take_turn(const Config& config, std::uint32_t round) {
    const Measured known = *tuned_.find(config);
    if (known.verdict != Verdict::good) return;
    say_(support::says::tries(index_, config));
    const Plan* plan = plan_of(config, known.eligible);
    if (plan == nullptr) return;
    try {
      Measured measured{.config = config, .round = round, .eligible = known.eligible};
      measured.microseconds = time(*plan, repeats_of(known.median()), warm_up_ms);
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
      for (const Config& config : support::neighbours(
               *guide_, from, resolved_, runner_.caps(),
               {.within = neighbours_within, .static_shapes = task_.limits.static_shapes})) {
        if (spent() > share_before_last_rounds) break;
        if (is_wanted(config)) first_look(config, true);
      }
      if (tuned_.measured.size() == before) return;
      // Those that look better join the rounds, beside the one that they are to replace.
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
  Runner& runner_;
  const support::Buffer* flush_;
  std::function<void(const std::string&)> say_;
  Clock::time_point begin_;
  double seconds_ = 0.0;
  std::vector<NamedConfig> choices_;
  std::unique_ptr<TimedCase> data_;
  std::map<std::string, Plan> plans_;
  Clock::time_point last_timing_;  // long ago
  const TuningTable* guide_ = nullptr;
};

// Why this device is not the one that the tables are for. Times of another device or driver are not
// to stand beside this one's.
Result<void> check_tables(const TuneTask& task, const DeviceCaps& caps) {
  if (task.table && !task.table_is_optional) {
    if (auto checked = check_device(*task.table, caps); !checked) return checked;
  }
  if (!task.before) return {};
  if (auto checked = check_device(*task.before, caps); !checked) return checked;
  if (const auto reason = support::why_not_resumed(*task.before, caps.name, driver_of(caps))) {
    return Error{Status::invalid_argument, "--resume: " + *reason};
  }
  return {};
}

}  // namespace

bool tune_work(const TuneTask& task, TuneSession session,
               const std::function<void(std::string)>& say) {
  // This process has its own copy of the session, which learns the same as the other one.
  const auto tell = [&](const std::string& line) {
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
    for (std::size_t i = 0; i < session.cases.size(); ++i) {
      if (session.cases[i].done) continue;
      if (Clock::now() > task.deadline) break;
      try {
        CaseTuner(task, session, i, *runner, task.limits.warm_l2 ? nullptr : &flush, tell).tune();
      } catch (const Failure& failure) {
        if (runner->context().device_lost()) return false;
        tell(support::says::done(i, failure.what()));
      }
    }
    if (runner->validation_messages() != 0) {
      tell(support::says::fatal(std::to_string(runner->validation_messages()) +
                                " validation messages"));
    }
    return true;
  } catch (const DeviceLost&) {
    tell(support::says::lost());
    return false;
  } catch (const Failure& failure) {
    tell(support::says::fatal(failure.what()));
    return true;
  }
}

}  // namespace vkgemm::tool
