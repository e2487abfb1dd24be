#include "tool/tune_worker.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "device/caps.hpp"
#include "tool/case_tuner.hpp"
#include "tool/fault.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

using headless::Runner;
using Clock = std::chrono::steady_clock;

// Problems whose plans are built while another is measured.
constexpr std::size_t problems_ahead = 4;

// Adds what an application would choose that lends its queue.
void add_choice_of_context(const Bench& bench, const TuneProblem& task, Proposal& proposal) {
  const TuneLimits& limits = bench.task.limits;
  if (limits.context_ms == 0.0) return;
  const Problem& problem = task.problem;
  const std::vector<std::uint64_t> offsets(task.groups.offsets.begin(), task.groups.offsets.end());
  const Result<TuneResult> tuned =
      bench.runner.context().tune(problem, {.queue = bench.runner.queue(),
                                            .queue_family = bench.runner.queue_family(),
                                            .budget_ms = limits.context_ms,
                                            .threads = limits.threads,
                                            .warm_l2 = limits.warm_l2,
                                            .offsets = offsets});
  proposal.choices.push_back({"context", unwrap(tuned).config});
}

void tune_all(const Bench& bench) {
  const TuneSession& session = bench.session;
  const TuneTask& task = bench.task;
  std::map<std::size_t, Proposal> proposals;
  const auto propose_for = [&](std::size_t index) {
    if (proposals.contains(index)) return;
    Proposal& proposal = proposals[index];
    const DeviceCaps& caps = bench.runner.caps();
    const auto problem = resolve_on(caps, bench.tables, task.problems[index].problem);
    if (!problem) return;  // tune_case() says why
    proposal = propose(task, *problem, bench.tables, caps);
    bench.builder.want(index, task.problems[index].problem,
                       worth_building(bench, index, configs_of(proposal)));
  };
  for (std::size_t i = 0; i < session.cases.size(); ++i) {
    if (session.cases[i].done) continue;
    const bool alone = session.alone == i;
    if (!alone && Clock::now() > task.deadline &&
        std::ranges::any_of(session.cases, &TuneCase::done)) {
      break;
    }
    bench.say(says::begins(i));
    std::size_t ahead = 0;
    for (std::size_t next = i; next < session.cases.size() && ahead <= problems_ahead; ++next) {
      if (session.cases[next].done) continue;
      propose_for(next);
      ++ahead;
    }
    std::string error;
    try {
      add_choice_of_context(bench, task.problems[i], proposals[i]);
      tune_case(bench, i, proposals[i]);
    } catch (const std::exception& failure) {  // the host's memory or threads are no one's fault
      if (bench.runner.context().device_lost()) throw StartAgain{.explained = false};
      error = failure.what();
    }
    // Before the problem is done: a thread that hangs at one of its plans is noticed here.
    bench.builder.forget(i);
    bench.say(says::done(i, error));
    proposals.erase(i);
    if (alone) throw StartAgain{};  // the next process has threads again
  }
}

}  // namespace

bool tune_work(const TuneTask& task, TuneSession session,
               const std::function<void(std::string)>& say) {
  // This process has its own copy of the session, which learns the same as the other one.
  const auto tell = [&](const std::string& line) {
    say(line);
    take_in(session, line);
  };
  try {
    const std::unique_ptr<Runner> runner = task.device.open();
    const DeviceCaps& caps = runner->caps();
    tell(says::device(caps.name, driver_text(caps), caps.architecture));
    unwrap(check_tables(task, caps));
    headless::Buffer flush;
    if (!task.limits.warm_l2) flush = unwrap(runner->allocate(flush_bytes(caps)));
    OperandPool pool(*runner);
    tuner::PlanBuilder builder(
        [&context = runner->context()](const Problem& problem, const Config& config) {
          crash_or_hang(tune_fault, to_string(config));
          return context.plan(problem, config);
        },
        session.builders());
    const DeviceTables tables(caps);
    tune_all({task, session, *runner, builder, pool, task.limits.warm_l2 ? nullptr : &flush, tables,
              tell});
    if (runner->validation_messages() != 0) {
      tell(says::fatal(std::to_string(runner->validation_messages()) + " validation messages"));
    }
    return true;
  } catch (const StartAgain& again) {
    if (again.explained) tell(says::lost());
    return false;
  } catch (const Failure& failure) {
    tell(says::fatal(failure.what()));
    return true;
  }
}

}  // namespace vkgemm::tool
