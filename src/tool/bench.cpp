// vkgemm bench: times cases and configurations on one device, beside the ceilings of its units
// measured in the same run; or reads what was timed before. Prints and compares it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <new>

#include "base/statistics.hpp"
#include "commit.hpp"
#include "device/caps.hpp"
#include "problem/inputs/input.hpp"
#include "report/statistics.hpp"
#include "tool/bench_report.hpp"
#include "tool/cases.hpp"
#include "tool/host_bench.hpp"
#include "tool/options.hpp"
#include "tool/planning.hpp"
#include "tool/timing.hpp"
#include "tool/tool.hpp"
#include "tool/yardstick.hpp"

namespace vkgemm::tool {
namespace {

using headless::Buffer;
using headless::Runner;
using report::BenchRow;

constexpr const char* kGpuShapes =
    "512,1024,2048,4096,8192,8192x28672x4096,16x4096x4096,64x8192x8192";
constexpr const char* kCpuShapes = "64,128,256,512";
constexpr double kMostOnCpu = 0x1p32;  // multiply-adds of a suite's case

constexpr const char* kBenchFooter =
    R"(GPU timestamps, a full barrier between executions, random operands, sampled rows verified. The
L2 cache is flushed before each execution, unless --warm-l2. Operands of --packed-a and --packed-b
are packed before, and no time counts that.

exit codes beside those of `vkgemm --help`:
  1  a result was wrong, now or in a file of --from
  3  a case could not be timed because the driver failed
  4  a case is slower than --baseline by more than --tolerance, or no longer timed
Cases that a device cannot compute are rows with the reason, and no failure.)";

struct BenchOptions {
  DeviceOptions device;
  CaseOptions cases;
  std::vector<std::string> suites;
  std::optional<Path> path;
  std::vector<std::string> configs;
  std::uint64_t repeat = 50;
  double warm_up_ms = 300.0;
  bool warm_l2 = false;
  bool no_verify = false;
  bool no_ceiling = false;
  bool host = false;
  ReportOptions report;
};

class BenchRun {
 public:
  BenchRun(Runner& runner, const BenchOptions& options, BenchReport& report)
      : runner_(runner), options_(options), report_(report), pool_(runner), clock_(runner) {}

  // False if a driver failed in one of the cases.
  bool run() {
    const bool cpu = is_cpu(runner_.caps());
    CaseOptions shapes = options_.cases;
    if (shapes.shapes.empty()) shapes.shapes = cpu ? kCpuShapes : kGpuShapes;
    const std::vector<BenchCase> cases =
        options_.suites.empty() ? shapes.cases() : suite_cases(options_.suites);
    if (!options_.warm_l2) flush_ = unwrap(runner_.allocate(flush_bytes(runner_.caps())));
    if (!options_.no_ceiling) measure_yardsticks();
    report_.begin(heading());
    for (std::size_t i = 0; i < cases.size(); ++i) {
      progress_ = "case " + std::to_string(i + 1) + " of " + std::to_string(cases.size());
      if (cases[i].suite.empty()) {
        run_case(cases[i]);
      } else {
        try_case(cases[i], cpu);
      }
    }
    return good_;
  }

 private:
  std::string heading() const {
    std::string text = runner_.caps().name + ", " + driver_text(runner_.caps()) + ", vkgemm " +
                       VKGEMM_COMMIT + '\n';
    const auto add = [&text](const char* format, double value) {
      char line[128];
      std::snprintf(line, sizeof line, format, value);
      if (value > 0.0) text += line;
    };
    add("ceiling %.4g TFLOP/s (f16 cooperative matrices from registers alone)\n", matrix_ceiling_);
    add("ceiling %.4g TFLOP/s (f32 multiply-adds from registers alone, for path fma)\n",
        fma_ceiling_);
    add("memory %.4g GB/s (a copy, read and written)\n", bandwidth_);
    return text;
  }

  double yardstick(const char* what, const Result<double>& measured) const {
    if (measured) return *measured;
    if (measured.error().status == Status::device_lost) throw Failure(measured.error());
    std::fprintf(stderr, "without %s: %s\n", what, measured.error().message.c_str());
    return 0.0;
  }

  void measure_yardsticks() {
    std::fprintf(stderr, "measuring the ceilings …\n");
    matrix_ceiling_ = yardstick("a ceiling of matrices", measure_matrix_ceiling(runner_));
    fma_ceiling_ = yardstick("a ceiling of path fma", measure_fma_ceiling(runner_));
    bandwidth_ = yardstick("the memory's bandwidth", measure_bandwidth(runner_));
  }

  BenchRow describe(const BenchCase& one) const {
    const Problem& problem = one.problem;
    BenchRow row;
    row.device = runner_.caps().name;
    row.driver = driver_text(runner_.caps());
    row.commit = VKGEMM_COMMIT;
    row.suite = one.suite;
    row.m = problem.m;
    row.n = problem.n;
    row.k = problem.k;
    if (problem.grouping) row.groups = tool::describe(*problem.grouping);
    row.type = to_string(problem.a.type);
    row.layout_a = to_string(problem.a.layout);
    row.layout_b = to_string(problem.b.layout);
    row.packed = packed_operands(problem);
    row.epilogue = one.epilogue;
    row.l2 = options_.warm_l2 ? "warm" : "cold";
    return row;
  }

  // Nobody expects that every device can compute every case of a suite: the others go on.
  void try_case(const BenchCase& one, bool cpu) {
    BenchRow row = describe(one);
    const double work = multiply_adds(one.groups.worked(one.problem));
    if (cpu && work > kMostOnCpu) {
      row.error = "not timed: too much for a CPU";
      return report_.add(row);
    }
    try {
      return run_case(one);
    } catch (const Failure& failure) {
      if (failure.status() == Status::device_lost) throw;
      row.error = failure.what();
      good_ = good_ && failure.status() != Status::driver_error;
    } catch (const std::bad_alloc&) {
      row.error = "no host memory";
    }
    report_.add(row);
  }

  void run_case(const BenchCase& one) {
    const std::vector<Config> configs =
        choose_configs(runner_.context(), one.problem, options_.path, options_.configs);
    std::fprintf(stderr, "%s: preparing operands …\n", progress_.c_str());
    TimedCase data(runner_, pool_, one.problem, one.groups);
    for (std::size_t c = 0; c < configs.size(); ++c) {
      std::fprintf(stderr, "%s, configuration %zu of %zu: %s\n", progress_.c_str(), c + 1,
                   configs.size(), to_string(configs[c]).c_str());
      report_.add(run_config(one, configs[c], data));
    }
  }

  BenchRow run_config(const BenchCase& one, const Config& config, TimedCase& data) {
    const Problem& problem = one.problem;
    BenchRow row = describe(one);
    const std::string family = problem.grouping ? "grouped"
                               : problem.row_reduction
                                   ? std::string(to_string(problem.row_reduction->op))
                                   : "gemm";
    row.kernel = family + "_" + std::string(to_string(config.main_loop())) + "_" + row.type;
    row.config = to_string(config);
    // A configuration that cannot be built is a result too; a lost device ends the run.
    const auto begin = std::chrono::steady_clock::now();
    const auto plan = runner_.context().plan(problem, config);
    row.plan_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    if (!plan) {
      if (plan.error().status == Status::device_lost) throw Failure(plan.error());
      row.error = plan.error().message;
      return row;
    }
    const std::vector<double> times =
        data.time(*plan, {.repeats = static_cast<std::uint32_t>(options_.repeat),
                          .warm_up_ms = options_.warm_up_ms,
                          .flush = options_.warm_l2 ? nullptr : &flush_,
                          .before_warm_up = [&] { row.clock = clock_.raise(); }});
    // From the first time on nothing waits any more, and all that would is late.
    const bool panel = config.rows == RowStrategy::panel && !is_scalar(problem.row_reduction->op);
    if (panel || config.reduction_mode == ReductionMode::device_barrier) {
      if (runner_.context().barrier_aborts() != 0) {
        row.error = "workgroups gave up waiting for one another: not its time";
        return row;
      }
    }
    row.repeats = times.size();
    row.median_ms = median(times);
    row.min_ms = *std::min_element(times.begin(), times.end());
    row.tflops = report::tera_flops(multiply_adds(one.groups.worked(problem)), row.median_ms);
    row.bytes = data.bytes();
    // A product of f32 in parts is several of matrices.
    row.ceiling_tflops = config.path() == Path::fma
                             ? fma_ceiling_
                             : matrix_ceiling_ / find_input(problem.f32_arithmetic)->products;
    row.bandwidth_gbs = bandwidth_;
    if (!options_.no_verify) {
      const oracle::VerifyReport verified = data.verify();
      row.relative_error = verified.relative_error;
      row.verified = verified.passed();
      if (!row.verified) std::fprintf(stderr, "wrong: %s\n", verified.first_failure.c_str());
    }
    return row;
  }

  Runner& runner_;
  const BenchOptions& options_;
  BenchReport& report_;
  OperandPool pool_;
  ClockGauge clock_;
  Buffer flush_;
  double matrix_ceiling_ = 0.0;
  double fma_ceiling_ = 0.0;
  double bandwidth_ = 0.0;
  bool good_ = true;
  std::string progress_;
};

// Without Vulkan: rows that were stored.
ExitCode report_stored(const ReportOptions& options) {
  BenchReport report(options);
  report.begin("");
  for (const BenchRow& row : report.stored()) report.add(row);
  return report.finish();
}

ExitCode bench_device(const BenchOptions& options) {
  // Options that contradict each other are reported before the ceiling is measured.
  BenchReport report(options.report);
  if (options.suites.empty()) {
    static_cast<void>(row_reduction(options.cases.rows));
    if (!options.cases.shapes.empty()) static_cast<void>(options.cases.cases());
  } else {
    static_cast<void>(suite_cases(options.suites));
  }
  const std::unique_ptr<Runner> runner = options.device.open();
  bool driver_failed = false;
  ExitCode code = success;
  if (options.host) {
    bench_host(*runner);
  } else {
    driver_failed = !BenchRun(*runner, options, report).run();
    code = report.finish();
  }
  if (runner->validation_messages() != 0) {
    std::fprintf(stderr, "vkgemm: %llu validation messages\n",
                 static_cast<unsigned long long>(runner->validation_messages()));
    return verification_failed;
  }
  return driver_failed && code != verification_failed ? device_error : code;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App& command = *app.add_subcommand(
      "bench", "Time shapes and configurations beside the ceilings of the device's units");
  command.footer(kBenchFooter);
  command.option_defaults()->group("Cases");
  const std::size_t before = command.get_options().size();
  options->cases.add(command);
  const std::vector<CLI::Option*> all = command.get_options();
  CLI::Option* suites =
      command
          .add_option("--suite", options->suites,
                      "Cases of these suites, separated by commas, in place of those of options: "
                      "see --list-suites")
          ->delimiter(',')
          ->type_name("NAME,...");
  command.add_flag_callback(
      "--list-suites",
      [] {
        list_suites();
        throw CLI::Success();
      },
      "Print the suites and the options of their cases");
  std::vector<CLI::Option*> timed(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
  for (CLI::Option* option : timed) suites->excludes(option);
  timed.push_back(suites);

  command.option_defaults()->group("Timing");
  timed.push_back(add_named(command, "--path", options->path, "Only configurations of this path"));
  timed.push_back(command.add_option("--config", options->configs,
                                     "Configuration; may be repeated; all: every candidate "
                                     "(default: the one that the library chooses)"));
  add_size(command, "--repeat", options->repeat, "Timed executions", 1U << 20);
  command
      .add_option("--warm-up", options->warm_up_ms, "Milliseconds of warm-up before each timing")
      ->check(CLI::Range(0.0, 60000.0))
      ->capture_default_str();
  command.add_flag("--warm-l2", options->warm_l2, "Don't flush the L2 cache between executions");
  command.add_flag("--no-verify", options->no_verify, "Don't check results");
  command.add_flag("--no-ceiling", options->no_ceiling,
                   "Don't measure the ceilings and the memory's bandwidth");
  timed.push_back(
      command.add_flag("--host", options->host, "Time plan() and record() on the host instead"));
  options->device.add(command);
  command.option_defaults()->group("Results");
  options->report.add(command, timed);
  command.callback([options, &exit_code] {
    if (options->repeat == 0) {
      throw Failure(usage_error, "--repeat is 0: at least 1 is needed");
    }
    exit_code =
        options->report.from.empty() ? bench_device(*options) : report_stored(options->report);
  });
}

}  // namespace vkgemm::tool
