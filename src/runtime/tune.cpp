// tune.cpp: the search for the fastest configuration of one problem, on a queue that the
// application lends, within a budget.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/date.hpp"
#include "base/errors.hpp"
#include "base/statistics.hpp"
#include "base/text.hpp"
#include "device/caps.hpp"
#include "device/user_file.hpp"
#include "kernels/legality.hpp"
#include "runtime/plan_impl.hpp"
#include "runtime/plan_internal.hpp"
#include "runtime/self_tester.hpp"
#include "runtime/timed_runs.hpp"
#include "tuner/candidates.hpp"
#include "tuner/plan_builder.hpp"
#include "tuning/table_file.hpp"
#include "tuning/tuned_problem.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {
namespace {

using Clock = std::chrono::steady_clock;

// The shares of the budget after which no first look begins, and no turn.
constexpr double share_of_first_looks = 0.6;
constexpr double share_of_turns = 0.95;
constexpr double share_of_warm_up = 0.1;
constexpr double most_warm_up_ms = 150.0;

// Executions of a first look. A configuration whose first execution takes longer than the fastest
// one by this factor gets no more.
constexpr std::uint32_t most_looks = 5;
constexpr double look_ms = 4.0;
constexpr double hopeless = 2.0;

// Turns: the configurations that are at most this much slower than the fastest, how many of them,
// and how often each.
struct Turns {
  double within = 1.0;
  std::size_t most = 0;
  int count = 0;
};
constexpr Turns first_turns{1.15, 10, 3};
constexpr Turns last_turns{1.05, 4, 12};

// The gain that replaces a choice: less is noise.
constexpr double worth_a_change = 1.01;

// Results agree if they differ by at most this part of the largest one: sums in another order,
// rounded to the type, do.
constexpr double agreement = 0x1p-6;

bool agree(const std::vector<double>& a, const std::vector<double>& b) {  // of one operand
  double largest = 0.0;
  for (const double value : a) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return std::ranges::equal(a, b, [&](double x, double y) {
    return x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= agreement * largest;
  });
}

struct Timed {
  Config config;
  Plan plan;
  std::vector<double> looks, turns;

  double us() const { return median(turns.empty() ? looks : turns); }
};

class TuneRun {
 public:
  TuneRun(Context::Impl& context, std::shared_ptr<Context::Impl> sibling, const LentQueue& queue,
          const Plan& chosen, const TuneInfo& info)
      : context_(context),
        sibling_(std::move(sibling)),
        chosen_(InternalAccess::impl(chosen)),
        info_(info),
        runs_(context.functions, context.submits, queue),
        builder_(
            [this](const Problem& problem, const Config& config) { return build(problem, config); },
            info.threads != 0 ? info.threads : tuner::PlanBuilder::default_threads()) {}
  ~TuneRun() {
    if (runs_.in_flight()) Context::Impl::keep(sibling_);
  }
  TuneRun(const TuneRun&) = delete;
  TuneRun& operator=(const TuneRun&) = delete;

  Result<TuneResult> run();

 private:
  Result<Plan> build(const Problem& problem, const Config& config) const {
    return without_exceptions([&] { return sibling_->make_plan(sibling_, problem, &config); });
  }
  double elapsed_ms() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin_).count();
  }
  bool may_go_on(double share) const {
    return !cancelled_ && elapsed_ms() < share * info_.budget_ms;
  }
  const Timed* fastest() const {
    return timed_.empty() ? nullptr : &*std::ranges::min_element(timed_, {}, &Timed::us);
  }
  std::vector<Config> candidates() const;
  Result<void> look_at(std::vector<Config> configs);
  Result<void> first_look(const Config& config, Plan plan);
  Result<void> take_turns(const Turns& turns);
  void report();
  TunedShape shape_of(const Timed& timed) const;

  Context::Impl& context_;
  std::shared_ptr<Context::Impl> sibling_;
  const Plan::Impl& chosen_;
  const TuneInfo& info_;
  const Clock::time_point begin_ = Clock::now();
  TimedRuns runs_;
  tuner::PlanBuilder builder_;
  std::vector<Timed> timed_;  // the choice of plan() first
  std::vector<std::vector<double>> expected_;
  std::size_t candidates_ = 0;
  std::size_t looked_at_ = 0;
  std::uint32_t timed_count_ = 0;
  bool cancelled_ = false;
};

std::vector<Config> TuneRun::candidates() const {
  const DeviceCaps& caps = *chosen_.caps;
  const DeviceTables& tables = *chosen_.tables;
  const auto allowed = [&](const Config& config) {
    return !tables.why_denied(config, chosen_.resolved, caps);
  };
  const tuner::Candidates found =
      tuner::candidates(table_name(caps), chosen_.resolved, tables.target(caps),
                        {.most = info_.max_candidates, .of_a_path = 1}, allowed);
  std::vector<Config> configs;
  for (const tuner::ProposedConfig& proposed : found.space) {
    if (configs.size() == info_.max_candidates) break;
    if (proposed.config != chosen_.config) configs.push_back(proposed.config);
  }
  return configs;
}

void TuneRun::report() {
  if (!info_.progress || cancelled_) return;
  const Timed* const best = fastest();
  cancelled_ = !info_.progress({.timed = timed_count_,
                                .candidates = static_cast<std::uint32_t>(candidates_ + 1),
                                .elapsed_ms = elapsed_ms(),
                                .best_us = best != nullptr ? best->us() : 0.0,
                                .chosen_us = timed_.empty() ? 0.0 : timed_.front().us()});
}

Result<void> TuneRun::first_look(const Config& config, Plan plan) {
  const Timed* const best = fastest();
  Timed timed{.config = config, .plan = std::move(plan)};
  if (auto cleared = runs_.clear_results(); !cleared) return cleared;
  const auto first = runs_.time(timed.plan, 1);
  if (!first) return first.error();
  timed.looks = *first;
  const auto values = runs_.samples();
  if (!values) return values.error();
  if (timed_.empty()) {
    expected_ = *values;
  } else if (!std::ranges::equal(expected_, *values, agree)) {
    context_.log.write(LogLevel::warning, concat(to_string(config), " gave other results than ",
                                                 to_string(chosen_.config), " of ",
                                                 chosen_.command_line(), ": tune() leaves it out"));
    return {};
  }
  if (best == nullptr || timed.us() <= hopeless * best->us()) {
    const double looks = std::clamp(1000.0 * look_ms / timed.us(), 1.0, double{most_looks});
    const auto more = runs_.time(timed.plan, static_cast<std::uint32_t>(looks));
    if (!more) return more.error();
    timed.looks = *more;
  }
  timed_.push_back(std::move(timed));
  ++timed_count_;
  report();
  return {};
}

// Looks at configurations in the order in which their plans are there, one at least: the choice
// alone is no result to keep. While none is, the fastest one keeps the clock up.
Result<void> TuneRun::look_at(std::vector<Config> configs) {
  builder_.want(0, chosen_.problem, configs);
  while (!configs.empty() && (looked_at_ == 0 ? !cancelled_ : may_go_on(share_of_first_looks))) {
    const auto next = builder_.next(0, configs, std::chrono::milliseconds(1));
    if (!next) {
      if (auto kept = runs_.time(fastest()->plan, 1); !kept) return kept.error();
      continue;
    }
    const Config config = configs[*next];
    configs.erase(configs.begin() + static_cast<std::ptrdiff_t>(*next));
    ++looked_at_;
    Result<Plan> plan = builder_.take(0, chosen_.problem, config);
    if (!plan && plan.error().status == Status::device_lost) return plan.error();
    if (!plan) continue;
    if (auto looked = first_look(config, *std::move(plan)); !looked) {
      // Its workspace may be too large, others' not.
      if (looked.error().status != Status::out_of_device_memory) return looked;
    }
  }
  builder_.drop_wanted(0);
  return {};
}

// Keeps the fastest configurations, and times them by turns. The others go: their first looks can't
// be compared with turns. Each that stays has one turn at least, whatever the budget.
Result<void> TuneRun::take_turns(const Turns& turns) {
  std::ranges::stable_sort(timed_.begin() + 1, timed_.end(), {}, &Timed::us);
  const double most_us = turns.within * fastest()->us();
  const auto slower = std::ranges::find_if(
      timed_.begin() + 1, timed_.end(), [&](const Timed& timed) { return timed.us() > most_us; });
  const auto stay = std::min(slower - timed_.begin(), static_cast<std::ptrdiff_t>(turns.most));
  timed_.erase(timed_.begin() + stay, timed_.end());
  const double turn_ms = std::clamp(info_.budget_ms * 0.15 / static_cast<double>(turns.count) /
                                        static_cast<double>(timed_.size()),
                                    0.2, 20.0);
  for (int turn = 0; turn < turns.count; ++turn) {
    for (Timed& timed : timed_) {
      if (!may_go_on(share_of_turns) && !timed.turns.empty()) return {};
      const double executions = std::clamp(1000.0 * turn_ms / timed.us(), 1.0, 20.0);
      const auto times = runs_.time(timed.plan, static_cast<std::uint32_t>(executions));
      if (!times) return times.error();
      timed.turns.insert(timed.turns.end(), times->begin(), times->end());
    }
    report();
  }
  return {};
}

TunedShape TuneRun::shape_of(const Timed& timed) const {
  const DeviceCaps& caps = *chosen_.caps;
  TunedShape shape{.problem = tuned_problem(chosen_.resolved),
                   .microseconds = std::round(1000.0 * timed.us()) / 1000.0,
                   .arguments = to_command_line(chosen_.problem),
                   .complete = looked_at_ == candidates_};
  const std::size_t timings = timed.turns.size();
  shape.row.config = timed.config;
  shape.row.provenance =
      concat("measured: ", caps.name, ", driver ", driver_text(caps), ", ", today(), ", ",
             info_.warm_l2 ? "warm" : "cold", " L2: ", timings, " timings, the fastest of ",
             timed_count_, "; ", to_string(timed_.front().config), " took ",
             std::round(10.0 * timed_.front().us()) / 10.0, " us");
  return shape;
}

Result<TuneResult> TuneRun::run() {
  const std::vector<Config> configs = candidates();
  candidates_ = configs.size();
  builder_.want(0, chosen_.problem, configs);
  Result<Plan> chosen = build(chosen_.problem, chosen_.config);
  if (!chosen) return chosen.error();
  if (auto ready = runs_.prepare(*chosen, info_.offsets, !info_.warm_l2); !ready)
    return ready.error();
  const double warm_up_ms = std::min(share_of_warm_up * info_.budget_ms, most_warm_up_ms);
  const double warm_at_ms = elapsed_ms() + (is_cpu(*chosen_.caps) ? 0.0 : warm_up_ms);
  do {
    if (auto warmed = runs_.time(*chosen, 1); !warmed) return warmed.error();
  } while (elapsed_ms() < warm_at_ms);
  if (auto looked = first_look(chosen_.config, *chosen); !looked) return looked.error();
  if (auto looked = look_at(configs); !looked) return looked.error();
  for (const Turns& turns : {first_turns, last_turns}) {
    if (auto taken = take_turns(turns); !taken) return taken.error();
  }
  const Timed& before = timed_.front();
  const Timed* best = fastest();
  if (before.us() <= worth_a_change * best->us()) best = &before;
  TuneResult result{.config = best->config,
                    .microseconds = best->us(),
                    .chosen = before.config,
                    .chosen_us = before.us(),
                    .timed = timed_count_,
                    .candidates = static_cast<std::uint32_t>(candidates_ + 1),
                    .is_complete = looked_at_ == candidates_};
  if (looked_at_ == 0 && candidates_ > 0) return result;
  const TunedShape shape = shape_of(*best);
  context_.learn(shape);
  if (context_.log.enabled()) {
    context_.log.write(LogLevel::info, concat(chosen_.command_line(), ": tuned to ",
                                              to_string(best->config), ", ", shape.row.provenance));
  }
  if (!info_.file.empty()) {
    if (auto added = add_to_file(info_.file, shape, *chosen_.caps); !added) return added.error();
  }
  return result;
}

// The result for a problem that a table has timed on this device.
std::optional<TuneResult> timed_before(const Plan::Impl& plan) {
  const TunedShape* const shape = plan.choice && plan.choice->timed ? plan.choice->tuned : nullptr;
  if (shape == nullptr || shape->problem != tuned_problem(plan.resolved)) return std::nullopt;
  return TuneResult{.config = plan.config,
                    .microseconds = shape->microseconds,
                    .chosen = plan.config,
                    .chosen_us = shape->microseconds,
                    .is_complete = shape->complete};
}

Result<LentQueue> queue_of(const Context::Impl& context, const TuneInfo& info) {
  LentQueue queue = context.submits.lent;
  if (info.queue != VK_NULL_HANDLE) {
    queue.queue = info.queue;
    queue.family = info.queue_family;
  }
  if (queue.queue == VK_NULL_HANDLE) {
    return invalid_argument("queue is VK_NULL_HANDLE, and self_test.queue, too");
  }
  if (auto checked = check_queue(queue, context.submits.families, ""); !checked) {
    return checked.error();
  }
  if (context.submits.families[queue.family].timestampValidBits == 0) {
    return invalid_argument(
        concat("queue_family is ", queue.family, ", whose queues have no timestamps"));
  }
  return queue;
}

}  // namespace

std::filesystem::path default_tuning_file(const DeviceCaps& caps) {
  return user_file("tuned", caps, concat(caps.name, "\n", driver_text(caps)));
}

Result<TuneResult> Context::tune(const Problem& problem, const TuneInfo& info) const {
  return without_exceptions([&]() -> Result<TuneResult> {
    if (!(info.budget_ms > 0.0)) {
      return invalid_argument(concat("budget_ms is ", info.budget_ms, ": more than 0 is needed"));
    }
    if (info.max_candidates == 0) return invalid_argument("max_candidates is 0");
    if (auto error = check_offsets(problem, info.offsets)) return *error;
    const Result<LentQueue> queue = queue_of(*impl_, info);
    if (!queue) return queue.error();
    const Result<Plan> chosen = impl_->make_plan(impl_, problem, nullptr);
    if (!chosen) return chosen.error();
    if (chosen->dispatch_count() == 0) {
      return invalid_argument(concat("the problem computes nothing: m is ", problem.m, ", n is ",
                                     problem.n, ", batch is ", problem.batch));
    }
    if (info.skip_timed) {
      if (const auto timed = timed_before(InternalAccess::impl(*chosen))) return *timed;
    }
    auto sibling = impl_->make_sibling();
    if (!sibling) return sibling.error();
    const std::scoped_lock lock(impl_->testing);
    TuneRun run(*impl_, *sibling, *queue, *chosen, info);
    Result<TuneResult> result = run.run();
    if (!result && result.error().status == Status::device_lost) impl_->lost = true;
    return result;
  });
}

}  // namespace vkgemm
