// vkgemm run: one product, from files or generated, computed, verified, timed, written.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>

#include "base/paths.hpp"
#include "base/statistics.hpp"
#include "base/text.hpp"
#include "device/caps.hpp"
#include "oracle/groups.hpp"
#include "oracle/quantised.hpp"
#include "oracle/reference.hpp"
#include "problem/operands.hpp"
#include "problem/resolve.hpp"
#include "report/statistics.hpp"
#include "tool/job.hpp"
#include "tool/options.hpp"
#include "tool/packing.hpp"
#include "tool/planning.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

using headless::Buffer;
using headless::Runner;

struct RunOptions {
  JobOptions job;
  DeviceOptions device;
  std::optional<Path> path;
  std::string config;
  std::string verify = "auto";
  std::optional<std::uint64_t> repeat;
  bool explain = false;
};

// Memory for operands that are not packed.
DeviceOperands allocate(Runner& runner, const Job& job, std::uint64_t workspace_bytes) {
  const PerOperand<std::uint64_t> bytes = operand_bytes(job.source);
  DeviceOperands device;
  for (const OperandRow& row : operand_rows()) {
    device.plain[row.id] = unwrap(runner.allocate(is_packed(job.problem, row) ? 0 : bytes[row.id]));
  }
  device.workspace = unwrap(runner.allocate(workspace_bytes));
  return device;
}

// Brings the operands to the device, packed if the problem has them so. The elements of a quantised
// B become those that its codes stand for.
void upload(Runner& runner, Job& job, const JobOptions& options, DeviceOperands& device) {
  const auto place = [&](const std::vector<std::byte>& data, const Buffer& to) {
    unwrap(runner.upload(to, 0, data.data(), std::min<std::uint64_t>(to.bytes(), data.size())));
  };
  const Problem source = to_be_packed(job.source, job.problem);
  for (const OperandRow& row : operand_rows()) {
    std::vector<std::byte>& data = job.data[row.id];
    std::optional<PackedBuffer>& packed = device.packed[row.id];
    if (row.is_written(job.problem)) {
      // NaN: an element that the kernel leaves out then fails verification.
      unwrap(runner.fill(device.plain[row.id], 0xffffffffU));
    } else if (!is_packed(job.problem, row)) {
      place(data, device.plain[row.id]);
    } else if (is_empty(job.problem) || data.empty()) {
      continue;
    } else if (const auto& header = job.packed[row.id]) {
      const std::string& file = options.files[row.id];
      packed = prepare_loading(runner, job.problem, file, *header, data.size());
      place(data, packed->buffer);
    } else {
      Packed result = pack(runner, source, packed_as(row), data, {}, job.blocks[row.id]);
      packed = std::move(result.form);
      job.codes[row.id] = std::move(result.codes);
      if (!job.codes[row.id] || row.id != OperandId::b) continue;
      std::printf("quantised      b, %s: relative error %.3g, largest %.3g\n",
                  to_string(*source.quantised_b).c_str(), result.error.relative,
                  result.error.largest);
    }
  }
}

// The results join the job's data.
void download(Runner& runner, const DeviceOperands& device, Job& job) {
  const PerOperand<std::uint64_t> bytes = operand_bytes(job.source);
  for (const OperandRow& row : operand_rows()) {
    if (!row.is_written(job.problem)) continue;
    job.data[row.id].resize(bytes[row.id]);
    unwrap(runner.download(device.plain[row.id], 0, job.data[row.id].data(), bytes[row.id]));
  }
}

// Milliseconds.
struct Submitted {
  double all = 0.0;
  double longest = 0.0;  // of its submissions
};

// A driver that times whole submissions is who dispatches are cut for: each is submitted by itself.
bool submits_one_by_one(const Plan& plan) { return plan.problem().max_dispatch_ms > 0.0; }

Submitted submit_once(Runner& runner, const Plan& plan, const DeviceOperands& device) {
  Submitted took;
  const auto submit = [&](DispatchRange range) {
    const auto start = std::chrono::steady_clock::now();
    unwrap(runner.submit(
        [&](VkCommandBuffer commands) { return plan.record(commands, device.operands(), range); }));
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    took.all += time.count();
    took.longest = std::max(took.longest, time.count());
  };
  if (!submits_one_by_one(plan)) {
    submit({});
    return took;
  }
  for (std::uint32_t i = 0; i < plan.dispatch_count(); ++i) submit({.first = i, .count = 1});
  return took;
}

// The same configuration, cut by the time that this device takes. `chosen` is cut as short as can
// be, and tells.
Plan measured_plan(Runner& runner, const Plan& chosen, const DeviceOperands& device) {
  // With the estimate that the plan will be cut by.
  Plan cautious = unwrap(runner.context().plan(chosen.problem(), chosen.config()));
  const std::optional<double> estimated = cautious.estimated_ms();
  if (!estimated) return cautious;
  // Some drivers finish compiling only when a pipeline is first executed.
  const double first = submit_once(runner, cautious, device).all;
  const double measured = std::min(first, submit_once(runner, cautious, device).all);
  Problem problem = cautious.problem();
  problem.estimate_scale = measured / *estimated;
  std::printf("estimate scale %.4g (%.4g ms measured, %.4g ms estimated)\n", problem.estimate_scale,
              measured, *estimated);
  return unwrap(runner.context().plan(problem, cautious.config()));
}

// Computes once for the result, then as often as is sensible (or asked for) for the time.
std::vector<double> compute(Runner& runner, const Plan& plan, const DeviceOperands& device,
                            const std::optional<std::uint64_t>& repeat) {
  const auto record = [&](VkCommandBuffer commands) {
    return plan.record(commands, device.operands());
  };
  const bool one_by_one = submits_one_by_one(plan);
  double longest = 0.0;  // of all runs; the first, in which some drivers compile, only if alone
  std::uint32_t runs = 0;
  const auto run_once = [&] {
    const Submitted took = submit_once(runner, plan, device);
    longest = runs++ <= 1 ? took.longest : std::max(longest, took.longest);
    return took.all;
  };
  const auto print_longest = [&] {
    if (!one_by_one) return;
    std::printf("dispatches     %u, each by itself, the longest took %.4g ms\n",
                plan.dispatch_count(), longest);
  };
  double once = run_once();
  if (repeat && *repeat == 0) {
    print_longest();
    return {};
  }
  // Some drivers finish compiling only when a pipeline is first executed.
  if (once > 300.0) once = std::min(once, run_once());
  const double sensible = std::clamp(1000.0 / std::max(once, 1e-3), 1.0, 20.0);
  const auto repeats = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(repeat.value_or(static_cast<std::uint64_t>(sensible)), 1U << 20));
  if (one_by_one) {  // with what their submissions cost
    std::vector<double> times;
    while (times.size() < repeats) times.push_back(run_once());
    print_longest();
    return times;
  }
  // A CPU, or anything else that took this long, is as warm as it gets.
  auto times = runner.time(record, repeats, once > 300.0 ? 0.0 : 300.0);
  if (!times && times.error().status == Status::unsupported) {
    std::fprintf(stderr, "no time: %s\n", times.error().message.c_str());
    return {};
  }
  return unwrap(std::move(times));
}

void print_problem(const Problem& p) {
  std::printf("problem        M %s, N %s, K %s", std::to_string(p.m).c_str(),
              std::to_string(p.n).c_str(), std::to_string(p.k).c_str());
  if (p.batch != 1) std::printf(", batch %s", std::to_string(p.batch).c_str());
  if (p.sum_batch) std::printf(" (summed)");
  if (p.outer_batch != 1) {
    std::printf(", outer batch %s", std::to_string(p.outer_batch).c_str());
  }
  if (p.gated) {
    std::printf(", gated %s, b %s", to_string(p.gated->gate).data(), to_string(p.gated->b).data());
  }
  if (p.grouping) std::printf(", %s", describe(*p.grouping).c_str());
  if (const std::string packed = packed_operands(p); !packed.empty()) {
    std::printf(", packed %s", packed.c_str());
  }
  std::printf(", %s -> %s\n", describe_inputs(p, input_of(p).multiplied).c_str(),
              to_string(p.d.type).data());
}

void print_times(const Problem& problem, const std::vector<double>& times) {
  if (times.empty()) return;
  const double middle = median(times);
  std::printf("time           %.4f ms, median of %zu (min %.4f)\n", middle, times.size(),
              *std::min_element(times.begin(), times.end()));
  std::printf("throughput     %.4g TFLOP/s\n", report::tera_flops(multiply_adds(problem), middle));
}

// A file that an option names, if it does.
class ResultFile {
 public:
  ResultFile() = default;
  explicit ResultFile(const std::string& name) : name_(name) {
    if (!name.empty()) file_.emplace(unwrap(OutputFile::open(path_of(name))));
  }
  void save(const OperandRow& row, const Problem& problem, std::vector<std::byte> data) {
    if (!file_) return;
    OperandShape shape = row.shape(problem);
    // Vectors of a batch are the rows of one matrix. Tensors that are written are matrices.
    if (row.matrix == nullptr) {
      shape = {{.type = shape.matrix.type}, shape.count, shape.length(), 1};
    }
    save_matrix(*file_, shape, std::move(data));
    std::printf("wrote          %s\n", name_.c_str());
  }

 private:
  std::string name_;
  std::optional<OutputFile> file_;
};

// "a", "b" or "a and b": operands whose plain values nobody knows.
std::string unknown_operands(const Job& job) {
  const bool a = job.packed[OperandId::a].has_value(), b = job.packed[OperandId::b].has_value();
  return std::string(a ? "a" : "") + (a && b ? " and " : "") + (b ? "b" : "");
}

// Before anything is computed that cannot be verified as it is asked for.
void check_verification(const RunOptions& options, const Job& job) {
  const std::string unknown = unknown_operands(job);
  if (unknown.empty() || options.verify == "auto" || options.verify == "off") return;
  throw Failure(usage_error,
                "--verify is " + options.verify + ", but of " + unknown +
                    " only the packed form is known: give the .npy file with --packed-" +
                    (job.packed[OperandId::b] ? "b" : "a") + " to verify");
}

// Multiply-adds that the reference does in a few seconds.
constexpr double kFullVerification = 0x1p33;

// `how`: auto, full, sampled or off. `worked`: the dense problem with as much work.
oracle::VerifyOptions choose_verification(const std::string& how, std::uint64_t seed,
                                          const Problem& worked, const Groups& groups) {
  oracle::VerifyOptions verify;
  verify.seed = seed;
  const double work = multiply_adds(worked);
  if (how == "full" || (how == "auto" && work <= kFullVerification)) return verify;
  verify.mode = how == "off" ? oracle::Verify::off : oracle::Verify::sampled;
  const double per_row =
      std::max(1.0, work / static_cast<double>(std::max<std::uint64_t>(worked.m, 1)));
  const double rows = kFullVerification / per_row / groups.sharing_rows();
  verify.sampled_rows = static_cast<std::uint64_t>(std::clamp(rows, 2.0, 64.0));
  return verify;
}

// Prints the verdict. False if a result is wrong.
bool report_verification(const oracle::VerifyOptions& options, const Problem& problem,
                         const oracle::VerifyReport& report, double seconds) {
  if (options.mode == oracle::Verify::off) {
    std::printf("verification   off\n");
    return true;
  }
  const std::string how =
      options.mode == oracle::Verify::full
          ? "full"
          : "sampled, " + std::to_string(std::min(options.sampled_rows, problem.m)) + " rows" +
                (problem.grouping                                  ? " of each group"
                 : result_count(problem) * problem.outer_batch > 1 ? " of each matrix"
                                                                   : "");
  std::printf("verification   %s: %s elements against double precision (%.1f s)\n", how.c_str(),
              std::to_string(report.checked).c_str(), seconds);
  std::printf("error          max %.3g, %.3g of the bound; relative (norm) %.3g\n",
              report.max_abs_error, report.max_rel_to_bound, report.relative_error);
  if (report.passed()) {
    std::printf("verdict        PASSED\n");
  } else {
    std::printf("verdict        FAILED: %s elements are wrong, first: %s\n",
                std::to_string(report.failures).c_str(), report.first_failure.c_str());
  }
  return report.passed();
}

// False if a result is wrong.
bool verify(const RunOptions& options, const Job& job, const Plan& plan) {
  if (const std::string unknown = unknown_operands(job); !unknown.empty()) {
    std::printf("verification   not verified: %s %s packed\n", unknown.c_str(),
                unknown.size() == 1 ? "is" : "are");
    return true;
  }
  const oracle::VerifyOptions verification = choose_verification(
      options.verify, options.job.seed, job.groups.worked(job.source), job.groups);
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  oracle::HostOperands operands = job.operands();
  Problem problem = job.source;
  PerOperand<std::vector<float>> exact;
  if (!oracle::rounds_b(plan.problem(), plan.config())) {
    problem.b.type = DataType::f32;
    problem.quantised_b = plan.problem().quantised_b;
    for (const OperandRow& row : operand_rows()) {
      if (!job.codes[row.id]) continue;
      exact[row.id] = job.codes[row.id]->elements(job.source);
      operands[row.id] = exact[row.id].data();
    }
  }
  const oracle::VerifyReport report = oracle::verify(problem, operands, verification);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report_verification(verification, job.source, report, seconds);
}

int run(const RunOptions& options) {
  Job job = make_job(options.job);
  check_verification(options, job);
  PerOperand<ResultFile> files;
  for (const OperandRow& row : operand_rows()) {
    if (row.is_written(job.problem)) files[row.id] = ResultFile(options.job.files[row.id]);
  }
  Problem& problem = job.problem;
  unwrap(resolve(problem));

  const std::unique_ptr<Runner> runner = options.device.open(true);
  const DeviceCaps& caps = runner->caps();
  std::printf("device         %s (%s, %s)\n", caps.name.c_str(), type_of(caps).c_str(),
              caps.architecture.c_str());
  std::printf("driver         %s\n", driver_text(caps).c_str());
  print_problem(problem);

  const bool empty = is_empty(problem);
  const bool measures_scale =
      problem.max_dispatch_ms > 0.0 && !options.job.product.has("estimate_scale") && !empty;
  if (measures_scale) problem.estimate_scale = std::numeric_limits<double>::infinity();
  Plan plan = choose_plan(runner->context(), problem, options.path, options.config);
  if (!empty) {
    std::printf("path           %s\n", std::string(to_string(plan.config().path())).c_str());
    std::printf("configuration  %s\n", to_string(plan.config()).c_str());
  }
  if (options.explain) std::printf("%s", plan.explain().c_str());
  std::fflush(stdout);

  // A device that has no room for plain operands says so before they are made.
  DeviceOperands device = allocate(*runner, job, plan.workspace_bytes());
  generate_operands(options.job, job);
  upload(*runner, job, options.job, device);
  const Problem worked = job.groups.worked(problem);
  if (measures_scale) plan = measured_plan(*runner, plan, device);
  print_times(worked, compute(*runner, plan, device,
                              empty ? std::optional<std::uint64_t>(0) : options.repeat));
  download(*runner, device, job);

  bool passed = verify(options, job, plan);

  for (const OperandRow& row : operand_rows()) {
    files[row.id].save(row, problem, std::move(job.data[row.id]));
  }
  if (runner->validation_messages() != 0) {
    std::printf("validation     %s messages\n",
                std::to_string(runner->validation_messages()).c_str());
    passed = false;
  }
  return passed ? success : verification_failed;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App& command = *app.add_subcommand(
      "run",
      "Compute D = clamp(activation(alpha*A*B + beta*C + bias)), a gated product or whole rows "
      "reduced, verify, time and write it");
  command.footer(
      "Matrices come from .npy files (f16, f32, bf16 as uint16; C or Fortran order; a third, first "
      "dimension is a batch) or are generated from --m, --n and --k; A and B also from .vkp files "
      "that `vkgemm pack` has written, and nothing is verified then. D and aux are written as "
      ".npy; bf16 as uint16.");

  options->job.add(command);
  command.option_defaults()->group("Execution");
  options->device.add(command);
  add_named(command, "--path", options->path, "Only configurations of this path");
  command.add_option("--config", options->config,
                     "Use this configuration, as --explain or `vkgemm bench` print them");
  options->job.add_plan(command);
  command
      .add_option("--verify", options->verify,
                  "Check D and aux against double precision: every element, up to 64 rows of each "
                  "matrix, nothing; auto: full up to 2^33 multiply-adds")
      ->check(CLI::IsMember({"auto", "full", "sampled", "off"}))
      ->capture_default_str();
  add_size(command, "--repeat", options->repeat,
           "Timed executions (default: about a second's worth)");
  command.add_flag("--explain", options->explain, "Say why this kernel was chosen");
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace vkgemm::tool
