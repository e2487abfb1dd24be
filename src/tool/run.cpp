// vkgemm run: one product, from files or generated, computed, verified, timed, written.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>

#include "base/paths.hpp"
#include "device/caps.hpp"
#include "headless/device_listing.hpp"
#include "oracle/groups.hpp"
#include "oracle/quantised.hpp"
#include "oracle/reference.hpp"
#include "problem/resolved_problem.hpp"
#include "report/statistics.hpp"
#include "tool/gated.hpp"
#include "tool/job.hpp"
#include "tool/options.hpp"
#include "tool/packing.hpp"
#include "tool/planning.hpp"
#include "tool/tool.hpp"
#include "tool/verification.hpp"

namespace vkgemm::tool {
namespace {

using headless::Buffer;
using headless::Runner;

struct RunOptions {
  JobOptions job;
  DeviceOptions device;
  std::optional<Path> path;
  std::string config;
  Wishes wishes;
  std::string verify = "auto";
  std::optional<std::uint64_t> repeat;
  bool explain = false;
  bool list_devices = false;
};

struct DeviceOperands {
  Buffer a, b, b_right, c, bias, row_scales, column_scales, d, aux, offsets, gamma, beta;
  Buffer row_values, workspace;
  std::optional<PackedBuffer> packed_a, packed_b, packed_right;

  Operands operands() const {
    const auto span = [](const Buffer& plain, const std::optional<PackedBuffer>& packed) {
      return packed ? packed->span() : plain.span();
    };
    const auto fingerprint = [](const std::optional<PackedBuffer>& packed) {
      return packed ? packed->layout.fingerprint : Fingerprint{};
    };
    return {.a = span(a, packed_a),
            .b = span(b, packed_b),
            .b_right = span(b_right, packed_right),
            .c = c.span(),
            .d = d.span(),
            .bias = bias.span(),
            .row_scales = row_scales.span(),
            .column_scales = column_scales.span(),
            .aux = aux.span(),
            .offsets = offsets.span(),
            .gamma = gamma.span(),
            .beta = beta.span(),
            .row_values = row_values.span(),
            .workspace = workspace.span(),
            .a_fingerprint = fingerprint(packed_a),
            .b_fingerprint = fingerprint(packed_b),
            .b_right_fingerprint = fingerprint(packed_right)};
  }
};

// Memory for an operand that is packed; nothing if it is not, or nothing is computed.
std::optional<PackedBuffer> allocate_packed(Runner& runner, const Job& job, PackedOperand operand,
                                            const std::string& file,
                                            const std::vector<std::byte>& data) {
  const bool is_a = operand == PackedOperand::a;
  const Matrix& matrix = is_a ? job.problem.a : job.problem.b;
  if (matrix.packing == Packing::plain || is_empty(job.problem)) return std::nullopt;
  const auto& header = is_a ? job.packed_a : job.packed_b;
  if (!header && !is_a && job.problem.quantised_b) return std::nullopt;  // made when it is uploaded
  if (!header) return prepare_packing(runner, job.source, operand);
  return prepare_loading(runner, job.problem, file, *header, data.size());
}

DeviceOperands allocate(Runner& runner, const Job& job, const JobOptions& options,
                        std::uint64_t workspace_bytes) {
  const oracle::OperandBytes bytes = oracle::operand_bytes(job.source);
  const auto buffer = [&](std::uint64_t needed) { return unwrap(runner.allocate(needed)); };
  // What a file holds packed has no plain form.
  const auto plain = [&](std::uint64_t needed, const auto& header) {
    return buffer(header ? 0 : needed);
  };
  const auto packed = [&](PackedOperand operand, const std::string& file,
                          const std::vector<std::byte>& data) {
    return allocate_packed(runner, job, operand, file, data);
  };
  return {.a = plain(bytes.a, job.packed_a),
          .b = plain(bytes.b, job.packed_b),
          .b_right = plain(bytes.b_right, job.packed_b),
          .c = buffer(bytes.c),
          .bias = buffer(bytes.bias),
          .row_scales = buffer(bytes.row_scales),
          .column_scales = buffer(bytes.column_scales),
          .d = buffer(bytes.d),
          .aux = buffer(bytes.aux),
          .offsets = buffer(bytes.offsets),
          .gamma = buffer(bytes.row_vector),
          .beta = buffer(bytes.row_vector),
          .row_values = buffer(bytes.row_values),
          .workspace = buffer(workspace_bytes),
          .packed_a = packed(PackedOperand::a, options.a_file, job.a),
          .packed_b = packed(PackedOperand::b, options.b_file, job.b),
          .packed_right = bytes.b_right == 0
                              ? std::nullopt
                              : packed(PackedOperand::b, options.b_right_file, job.b_right)};
}

// B as codes, which are packed. The job has the elements then that they stand for.
void upload_codes(Runner& runner, Job& job, DeviceOperands& device) {
  Problem source = job.source;
  source.quantised_b = job.problem.quantised_b;
  const auto quantised = [&](std::vector<std::byte>& b, std::optional<oracle::CodeMatrix>& codes,
                             std::optional<PackedBuffer>& packed) {
    QuantisedB result = quantise(runner, source, b);
    codes = std::move(result.codes);
    packed = std::move(result.packed);
    return result.error;
  };
  const QuantisationError error = quantised(job.b, job.codes_b, device.packed_b);
  std::printf("quantised      b, %s: relative error %.3g, largest %.3g\n",
              to_string(*source.quantised_b).c_str(), error.relative, error.largest);
  if (!job.b_right.empty()) quantised(job.b_right, job.codes_right, device.packed_right);
  device.b = Buffer();
  device.b_right = Buffer();
}

void upload(Runner& runner, Job& job, DeviceOperands& device) {
  const auto place = [&](const std::vector<std::byte>& data, const Buffer& to) {
    unwrap(runner.upload(to, 0, data.data(), std::min<std::uint64_t>(to.bytes(), data.size())));
  };
  const auto place_input = [&](const std::vector<std::byte>& data, Buffer& to,
                               const std::optional<PackedBuffer>& packed) {
    if (packed && !packed->plan) return place(data, packed->buffer);
    place(data, to);
    if (!packed) return;
    pack(runner, to.span(), *packed);
    to = Buffer();
  };
  place_input(job.a, device.a, device.packed_a);
  if (job.problem.quantised_b && !job.packed_b && !is_empty(job.problem)) {
    upload_codes(runner, job, device);
  } else {
    place_input(job.b, device.b, device.packed_b);
    place_input(job.b_right, device.b_right, device.packed_right);
  }
  place(job.c, device.c);
  place(job.bias, device.bias);
  place(job.row_scales, device.row_scales);
  place(job.column_scales, device.column_scales);
  place(job.offsets, device.offsets);
  place(job.gamma, device.gamma);
  place(job.beta, device.beta);
  // NaN, so that an element nobody writes cannot pass for a result.
  for (const Buffer* result : {&device.row_values, &device.d, &device.aux}) {
    unwrap(runner.fill(*result, 0xffffffffU));
  }
}

std::vector<std::byte> download(Runner& runner, const Buffer& buffer, std::uint64_t bytes) {
  std::vector<std::byte> data(bytes);
  unwrap(runner.download(buffer, 0, data.data(), bytes));
  return data;
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
  if (p.gated) std::printf(", %s", describe(*p.gated).c_str());
  if (p.grouping) std::printf(", %s", describe(*p.grouping).c_str());
  if (const std::string packed = packed_operands(p); !packed.empty()) {
    std::printf(", packed %s", packed.c_str());
  }
  std::printf(", %s -> %s\n", std::string(to_string(p.a.type)).c_str(),
              std::string(to_string(p.d.type)).c_str());
}

void print_times(const Problem& problem, const std::vector<double>& times) {
  if (times.empty()) return;
  const double middle = report::median(times);
  std::printf("time           %.4f ms, median of %zu (min %.4f)\n", middle, times.size(),
              *std::min_element(times.begin(), times.end()));
  std::printf("throughput     %.4g TFLOP/s\n", report::tera_flops(multiply_adds(problem), middle));
}

// A file that an option names, if it does.
class ResultFile {
 public:
  explicit ResultFile(const std::string& name) : name_(name) {
    if (!name.empty()) file_.emplace(unwrap(OutputFile::open(path_of(name))));
  }
  void save(const Matrix& matrix, std::uint64_t rows, std::uint64_t columns, std::uint64_t batch,
            std::vector<std::byte> data) {
    if (!file_) return;
    save_matrix(*file_, matrix, rows, columns, batch, std::move(data));
    std::printf("wrote          %s\n", name_.c_str());
  }

 private:
  std::string name_;
  std::optional<OutputFile> file_;
};

// "a", "b" or "a and b": operands whose plain values nobody knows.
std::string unknown_operands(const Job& job) {
  return std::string(job.packed_a ? "a" : "") + (job.packed_a && job.packed_b ? " and " : "") +
         (job.packed_b ? "b" : "");
}

// Before anything is computed that cannot be verified as it is asked for.
void check_verification(const RunOptions& options, const Job& job) {
  const std::string unknown = unknown_operands(job);
  if (unknown.empty() || options.verify == "auto" || options.verify == "off") return;
  throw Failure(usage_error,
                "--verify is " + options.verify + ", but of " + unknown +
                    " only the packed form is known: give the .npy file with --packed-" +
                    (job.packed_b ? "b" : "a") + " to verify");
}

// False if D or aux is wrong.
bool verify(const RunOptions& options, const Job& job, const Plan& plan,
            const std::vector<std::byte>& d, const std::vector<std::byte>& aux,
            const std::vector<std::byte>& row_values) {
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
  std::vector<float> b, b_right;
  if (job.codes_b && !oracle::rounds_b(plan.problem(), plan.config())) {
    problem.b.type = DataType::f32;
    b = job.codes_b->elements(job.source);
    if (job.codes_right) b_right = job.codes_right->elements(job.source);
    operands.b = b.data();
    operands.b_right = b_right.data();
  }
  const oracle::VerifyReport report =
      oracle::verify(problem, operands, d.data(), aux.data(), verification, row_values.data());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report_verification(verification, job.source, report, seconds);
}

int run(const RunOptions& options) {
  Job job = make_job(options.job);
  check_verification(options, job);
  ResultFile d_file(options.job.d_file);
  ResultFile aux_file(options.job.aux_file);
  ResultFile values_file(options.job.row_values_file);
  Problem& problem = job.problem;
  options.wishes.apply_to(problem);
  unwrap(resolve(problem));

  const std::unique_ptr<Runner> runner = options.device.open();
  const DeviceCaps& caps = runner->caps();
  std::printf("device         %s (%s, %s)\n", caps.name.c_str(), type_of(caps).c_str(),
              caps.architecture.c_str());
  std::printf("driver         %s\n", driver_text(caps).c_str());
  print_problem(problem);

  const bool empty = is_empty(problem);
  const bool measures_scale =
      problem.max_dispatch_ms > 0.0 && !options.wishes.estimate_scale && !empty;
  if (measures_scale) problem.estimate_scale = std::numeric_limits<double>::infinity();
  Plan plan = choose_plan(runner->context(), problem, options.path, options.config);
  if (!empty) {
    std::printf("path           %s\n", std::string(to_string(plan.config().path())).c_str());
    std::printf("configuration  %s\n", to_string(plan.config()).c_str());
  }
  if (options.explain) std::printf("%s", plan.explain().c_str());
  std::fflush(stdout);

  // A device that has no room for the operands says so before they are made.
  DeviceOperands device = allocate(*runner, job, options.job, plan.workspace_bytes());
  generate_operands(options.job, job);
  upload(*runner, job, device);
  const Problem worked = job.groups.worked(problem);
  const oracle::OperandBytes bytes = oracle::operand_bytes(job.source);
  if (measures_scale) plan = measured_plan(*runner, plan, device);
  print_times(worked, compute(*runner, plan, device,
                              empty ? std::optional<std::uint64_t>(0) : options.repeat));
  std::vector<std::byte> d = download(*runner, device.d, bytes.d);
  std::vector<std::byte> aux = download(*runner, device.aux, bytes.aux);
  std::vector<std::byte> row_values = download(*runner, device.row_values, bytes.row_values);

  bool passed = verify(options, job, plan, d, aux, row_values);

  const std::uint64_t matrices = oracle::MatrixCounts(problem).d;
  d_file.save(problem.d, problem.m, problem.n, matrices, std::move(d));
  aux_file.save(problem.aux, problem.m, oracle::product_columns(problem), matrices, std::move(aux));
  if (problem.row_reduction) {  // one row for each matrix of the batch
    values_file.save({.type = problem.row_reduction->value_type}, problem.batch, problem.m, 1,
                     std::move(row_values));
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
  command.add_flag("--list-devices", options->list_devices, "List the devices and stop");
  add_path(command, options->path);
  command.add_option("--config", options->config,
                     "Use this configuration, as --explain or `vkgemm bench` print them");
  options->wishes.add(command);
  command
      .add_option("--verify", options->verify,
                  "Check D and aux against double precision: every element, up to 64 rows of each "
                  "matrix, nothing; auto: full up to 2^33 multiply-adds")
      ->check(CLI::IsMember({"auto", "full", "sampled", "off"}))
      ->capture_default_str();
  add_size(command, "--repeat", options->repeat,
           "Timed executions (default: about a second's worth)");
  command.add_flag("--explain", options->explain, "Say why this kernel was chosen");
  command.callback([options, &exit_code] {
    if (!options->list_devices) {
      exit_code = run(*options);
      return;
    }
    std::string error;
    for (const headless::DeviceListing& device : headless::list_devices(&error)) {
      std::printf("%u: %s%s\n", device.index, device.name.c_str(),
                  device.caps ? "" : (" (unusable: " + device.reason + ")").c_str());
    }
    if (!error.empty()) throw Failure(device_error, error);
  });
}

}  // namespace vkgemm::tool
