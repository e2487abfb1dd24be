// vkgemm tune: finds the fastest configurations of a list of problems on one device, and writes
// them as a table that the library loads. A process of its own measures, which may die.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <span>
#include <sstream>
#include <utility>

#include "base/date.hpp"
#include "base/file.hpp"
#include "base/paths.hpp"
#include "base/system.hpp"
#include "commit.hpp"
#include "headless/devices.hpp"
#include "headless/process.hpp"
#include "headless/supervisor.hpp"
#include "report/loss.hpp"
#include "tool/options.hpp"
#include "tool/tool.hpp"
#include "tool/tune_report.hpp"
#include "tool/tune_worker.hpp"
#include "tuner/plan_builder.hpp"
#include "tuning/table_file.hpp"
#include "tuning/table_text.hpp"

namespace vkgemm::tool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double seconds_per_problem = 60.0;
constexpr int interrupted = 130;  // as a shell says it of SIGINT
constexpr int most_false_starts = 3;

struct TuneOptions {
  JobOptions job;
  DeviceOptions device;
  TuneLimits limits;
  std::string shapes;
  std::vector<std::string> logs;
  std::vector<std::string> reports;
  std::string out;
  bool default_table = false;  // `out` is default_tuning_file()
  std::string table;
  std::string from = "built-in";
  std::optional<double> time_limit;
  double patience = 120.0;
  bool resume = false;
  bool compare = false;
  bool json = false;
  bool worker = false;  // this is the process that measures
};

volatile std::sig_atomic_t stop_requested = 0;

// The first signal asks for an end, the second ends the process at once.
void request_stop(int signal_number) {
  stop_requested = 1;
  std::signal(signal_number, SIG_DFL);
}

std::vector<TuneProblem> list_problems(const TuneOptions& options) {
  std::vector<TuneProblem> problems;
  for (const std::string& log : options.logs) add_problems(problems, problems_of_log(log));
  if (!options.shapes.empty() || options.job.product.has("n") || options.logs.empty()) {
    if (options.shapes.empty() && !options.job.product.has("n")) {
      throw Failure(usage_error, "nothing to tune: give --log, --shapes, or --m, --n and --k");
    }
    add_problems(problems, problems_of(options.job, options.shapes));
  }
  if (problems.empty()) throw Failure(usage_error, "--log: no problem in " + options.logs.back());
  return problems;
}

// What the options say of a task.
TuneTask task_of(const TuneOptions& options) {
  TuneTask task;
  task.device = options.device;
  task.limits = options.limits;
  task.from_generic = options.from == "generic";
  task.compare = options.compare;
  return task;
}

class Tuner {
 public:
  Tuner(const TuneOptions& options, TuneTask task)
      : options_(options), task_(std::move(task)), session_(session_of(task_)) {}

  int run() {
    event("start", 0);
    measure();
    save();
    print_results(false);
    if (has_measured()) sum_up();
    if (!session_.fatal.empty()) throw Failure(device_error, session_.fatal);
    if (save_error_) throw Failure(*save_error_);
    if (!options_.out.empty() && has_measured()) {
      std::fprintf(stderr, "wrote %s\n", options_.out.c_str());
    }
    return exit_code();
  }

 private:
  void measure() {
    TuneProgress progress(session_, task_.deadline);
    const headless::Supervision supervision{
        .on_line = [&](std::string_view line) { take_in(line, progress); },
        .on_start = [&](long pid) { event("worker", pid); },
        .on_tick = [&] { progress.update(); },
        .patience_s = options_.patience,
        .stop = &stop_requested};
    std::vector<std::string> arguments = headless::own_arguments();
    arguments.emplace_back("--worker");
    int false_starts = 0;
    while (!session_.done() && session_.fatal.empty()) {
      const std::size_t heard = lines_;
      const headless::WorkerEnd end =
          headless::supervise(arguments, handed_on(task_) + "\n" + history_, supervision);
      if (end.left_behind != 0) {
        progress.say("process " + std::to_string(end.left_behind) +
                     " does not end, not even when it is killed: its driver holds it");
      }
      if (end.ending == headless::Ending::stopped) {
        progress.say("interrupted: what was measured is kept");
        break;
      }
      if (end.ending == headless::Ending::finished) break;
      learn(says::died(end.reason));
      progress.update();
      // The device's name alone is no start.
      false_starts = lines_ <= heard + 1 ? false_starts + 1 : 0;
      if (false_starts >= most_false_starts) {
        session_.fatal = "the process that measures does not start: " + end.reason;
      }
      // The culprit of a death is looked for whatever the time.
      if (Clock::now() > task_.deadline && !session_.alone) break;
    }
    progress.update();
  }

  // True if the line makes sense. The next process learns it, too.
  bool learn(std::string_view line) {
    if (!tool::take_in(session_, line)) return false;
    history_.append(line) += '\n';
    return true;
  }

  void take_in(std::string_view line, TuneProgress& progress) {
    ++lines_;
    const std::size_t before = finished();
    if (!learn(line)) {
      progress.say("not understood: " + std::string(line));
      return;
    }
    progress.update();
    if (finished() == before) return;
    print_results(true);
    const bool failed_before = save_error_.has_value();
    save();
    if (save_error_ && !failed_before) {
      progress.say(save_error_->message + ": the table is not written yet, tuning goes on");
    }
  }

  std::size_t finished() const {
    return static_cast<std::size_t>(std::ranges::count(session_.cases, true, &TuneCase::done));
  }

  bool has_measured() const {
    return std::ranges::any_of(session_.cases,
                               [](const TuneCase& tuned) { return !tuned.measured.empty(); });
  }

  // Readers see the old table or the new one, never a part.
  void save() {
    if (options_.out.empty() || !has_measured()) return;
    Result<void> saved;
    if (options_.default_table) {
      saved = change_file(path_of(options_.out), [this](const TuningTable* now) {
        if (now != nullptr) keep_shapes_of_others(*now);
        return Result<std::string>(table());
      });
    } else {
      const std::string text = table();
      saved = write_file(path_of(options_.out), std::as_bytes(std::span(text)));
    }
    save_error_.reset();
    if (!saved) save_error_ = saved.error();
  }

  std::string table() const {
    return to_table(session_, before_ ? &*before_ : nullptr,
                    "measured: " + session_.device + ", driver " + session_.driver + ", " +
                        today() + ", commit " + VKGEMM_COMMIT);
  }

  // Applications may add to the file while this process runs.
  void keep_shapes_of_others(const TuningTable& now) {
    if (!before_) before_.emplace();
    std::for_each(now.tuned.rbegin(), now.tuned.rend(), [this](const TunedShape& shape) {
      const auto is_own = [&](const TuneCase& tuned) { return tuned.arguments == shape.arguments; };
      if (std::ranges::none_of(session_.cases, is_own)) add_tuned(*before_, shape);
    });
  }

  void sum_up() const {
    if (!options_.json) print_comparison(session_);
    if (!options_.compare) return;
    std::vector<report::LossRow> rows;
    for (const TuneCase& tuned : session_.cases) {
      unwrap(report::add_loss_rows(rows, result_of(tuned), "--compare"));
    }
    report_loss(rows, options_.json ? stderr : stdout);
  }

  // For scripts that want to know, or to interfere.
  void event(const char* name, long pid) const {
    if (!options_.json) return;
    if (pid != 0) {
      std::printf("{\"event\":\"%s\",\"pid\":%ld}\n", name, pid);
    } else {
      std::printf("{\"event\":\"%s\"}\n", name);
    }
    std::fflush(stdout);
  }

  std::string result_of(const TuneCase& tuned) const {
    return to_json(session_, tuned, VKGEMM_COMMIT, today());
  }

  // Prints each result when it is done, so that a kill loses none.
  void print_results(bool only_done) {
    if (!options_.json) return;
    printed_.resize(session_.cases.size());
    for (std::size_t i = 0; i < session_.cases.size(); ++i) {
      const TuneCase& tuned = session_.cases[i];
      if (printed_[i] || (only_done && !tuned.done)) continue;
      std::printf("%s\n", result_of(tuned).c_str());
      printed_[i] = true;
    }
    std::fflush(stdout);
  }

  int exit_code() const {
    bool wrong = false, good = false;
    std::string error;
    for (const TuneCase& tuned : session_.cases) {
      wrong =
          wrong || std::ranges::count(tuned.measured, TuneOutcome::wrong, &Measured::outcome) != 0;
      good = good || fastest(tuned, true) != nullptr;
      if (error.empty()) error = tuned.error;
    }
    if (wrong) {
      std::fprintf(stderr, "vkgemm: configurations gave WRONG RESULTS on this device, see above\n");
      return verification_failed;
    }
    if (stop_requested != 0) return interrupted;
    if (!good)
      throw Failure(device_error, "nothing was measured" + (error.empty() ? "" : ": " + error));
    return success;
  }

  const TuneOptions& options_;
  TuneTask task_;
  std::optional<TuningTable> before_ = task_.before;
  TuneSession session_;
  std::string history_;  // the lines that the session learnt from
  std::size_t lines_ = 0;
  std::vector<bool> printed_;
  std::optional<Error> save_error_;  // of the last time
};

// Without Vulkan: what was measured before.
ExitCode report_stored(const TuneOptions& options) {
  std::vector<report::LossRow> rows;
  for (const std::string& file : options.reports) {
    unwrap(report::add_loss_rows(rows, read_file("--report", file), file));
  }
  print_losses(rows);
  report_loss(rows, stdout);
  return success;
}

// The process that measures.
[[noreturn]] void measure(const TuneOptions& options) {
  headless::work_for_supervisor([&](const std::string& input, const headless::Say& say) {
    std::istringstream lines(input);
    std::string line;
    std::getline(lines, line);
    TuneTask task = task_of(options);
    take_over(task, line);
    TuneSession session = session_of(task);
    while (std::getline(lines, line)) take_in(session, line);
    return tune_work(task, std::move(session), say);
  });
}

// The file that --default-table means.
std::string default_table(const DeviceOptions& options) {
  const auto instance = unwrap(headless::Instance::create(false));
  auto devices = unwrap(headless::find_devices(*instance));
  const headless::FoundDevice& device = *unwrap(headless::choose_device(devices, options.device));
  if (!device.caps) throw Failure(device_error, device.name + ": " + device.reason);
  const std::filesystem::path file = default_tuning_file(*device.caps);
  if (file.empty()) {
    throw Failure(usage_error, "--default-table: the environment names no folder for it");
  }
  (void)os::create_private_folders(file.parent_path());
  return utf8(file);
}

int tune(TuneOptions options) {
  if (options.worker) measure(options);
  if (!options.reports.empty()) return report_stored(options);
  if (options.default_table) options.out = default_table(options.device);
  if (options.out.empty() && !options.compare) {
    throw Failure(usage_error,
                  "give --out FILE or --default-table for the table, or --compare to measure only");
  }
  if (options.resume && options.out.empty()) {
    throw Failure(usage_error, "--resume needs --out, the table to go on with");
  }
  TuneTask task = task_of(options);
  task.problems = list_problems(options);
  go_on_with(task, options.out, options.resume || options.default_table);
  compare_with(task, options.table);
  if (task.before && options.resume) {
    const std::size_t all = task.problems.size();
    std::erase_if(task.problems, [&](const TuneProblem& problem) {
      return is_complete(*task.before, problem.arguments);
    });
    std::fprintf(stderr, "%s has %zu of %zu problems\n", options.out.c_str(),
                 all - task.problems.size(), all);
    if (task.problems.empty()) return success;
  }
  if (!options.out.empty()) unwrap(OutputFile::open(path_of(options.out)));
  const double seconds =
      options.time_limit.value_or(seconds_per_problem * static_cast<double>(task.problems.size()));
  task.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(seconds));
  stop_requested = 0;
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  return Tuner(options, std::move(task)).run();
}

// Adds --report.
void add_report_option(CLI::App& command, TuneOptions& options) {
  CLI::Option* stored =
      command
          .add_option("--report", options.reports,
                      "Say what the built-in choices lose by what --compare --json printed before, "
                      "without a device; may be repeated, a later file replaces an earlier one's "
                      "problems")
          ->type_name("FILE")
          ->allow_extra_args(false);
  for (const char* name :
       {"--log", "--shapes", "--m", "--out", "--default-table", "--compare", "--json"}) {
    stored->excludes(command.get_option(name));
  }
}

void add_search_options(CLI::App& command, TuneOptions& options) {
  command
      .add_option("--out", options.out, "The table to write, also from time to time while it runs")
      ->type_name("FILE");
  command
      .add_flag("--default-table", options.default_table,
                "Add to the table of this device and driver that every context reads")
      ->excludes("--out");
  command.add_flag(
      "--resume", options.resume,
      "Go on with the table at --out: skip its problems, and the configurations that it denies");
  command
      .add_option("--time-limit", options.time_limit,
                  "Seconds for it all, shared by the problems (default: a minute for each)")
      ->check(CLI::Range(0.1, 1e6));
  command
      .add_option("--per-problem", options.limits.per_problem,
                  "Configurations that the search of a problem begins with")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command
      .add_option(
          "--within", options.limits.within,
          "Begin with configurations whose estimate is at most this factor above the best estimate")
      ->check(CLI::Range(1.0, 1000.0))
      ->capture_default_str();
  command
      .add_option("--from", options.from,
                  "The rows and estimates that guide the search: those of the device's built-in "
                  "table, or of the generic one")
      ->check(CLI::IsMember({"built-in", "generic"}))
      ->capture_default_str();
  command
      .add_option(
          "--threads", options.limits.threads,
          "Threads that build kernels before they are timed; 0: build each when it is timed")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  add_named(command, "--path", options.limits.path, "Only configurations of this path");
  command.add_flag("--static-shapes", options.limits.static_shapes,
                   "Also try kernels with N and K compiled in: a pipeline for each shape");
  command.add_flag(
      "--compare", options.compare,
      "Print for each problem the choices of the tables, the fastest configuration tried, and the "
      "loss; for each log the mean and the worst loss (also without --out)");
  command
      .add_option(
          "--table", options.table,
          "A table to compare with, in addition to the built-in ones (default: VKGEMM_TUNING)")
      ->type_name("FILE");
  command.add_flag(
      "--json", options.json,
      "Print a JSON object for each problem, a line each; with --compare bench/plot.py draws "
      "the losses");
  command.add_flag("--worker", options.worker)->group("");
  command
      .add_option(
          "--context-tune", options.limits.context_ms,
          "Also time the choice of Context::tune() with this budget in milliseconds: `context` "
          "in the JSON lines")
      ->type_name("MS")
      ->check(CLI::Range(1.0, 1e6));
  command.add_flag("--warm-l2", options.limits.warm_l2,
                   "Don't flush the L2 cache between executions");
  add_size(command, "--repeat", options.limits.repeat,
           "Timed executions of a configuration in a round (default: what takes about 40 ms)",
           1U << 16);
  command
      .add_option("--patience", options.patience,
                  "Seconds after which a configuration that does not answer is stopped")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
}

}  // namespace

void add_tune(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TuneOptions>();
  options->limits.threads = tuner::PlanBuilder::default_threads();
  CLI::App& command = *app.add_subcommand(
      "tune", "Find the fastest configurations of a list of problems, and write them as a table");
  command.footer(
      "Each configuration is verified before its final timing. The best ones are timed in turns, "
      "so "
      "that a drifting clock affects all alike. The table denies configurations that are wrong or "
      "crash their process. Ctrl-C keeps what was measured (exit code 130). Use the "
      "table through VKGEMM_TUNING=FILE, or ContextCreateInfo::tuning_file. The table of "
      "--default-table needs neither.");
  command.option_defaults()->group("Problems");
  command
      .add_option(
          "--log", options->logs,
          "Problems from a log with lines `vkgemm run …`, as VKGEMM_LOG writes them; may be "
          "repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command.add_option("--shapes", options->shapes,
                     "MxNxK or N, separated by commas: each with the options of the problem");
  options->job.add_plan(command);
  options->job.add_problem(command);
  command.option_defaults()->group("Tuning");
  add_search_options(command, *options);
  options->device.add(command);
  add_report_option(command, *options);
  command.callback([options, &exit_code] { exit_code = tune(*options); });
}

}  // namespace vkgemm::tool
