// vkgemm run: one product, from files or generated, computed, verified, timed, written.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

#include "support/groups.hpp"
#include "support/reference.hpp"
#include "tool/gated.hpp"
#include "tool/groups.hpp"
#include "tool/matrices.hpp"
#include "tool/options.hpp"
#include "tool/planning.hpp"
#include "tool/row_options.hpp"
#include "tool/tool.hpp"
#include "tool/verification.hpp"

namespace vkgemm::tool {
namespace {

using support::Buffer;
using support::Runner;
using support::Verify;

struct RunOptions {
  DeviceOptions device;
  std::string a_file, b_file, b_right_file, c_file, bias_file, d_file, aux_file;
  std::string gamma_file, beta_file, row_values_file;
  bool bf16 = false;
  std::optional<std::uint64_t> m, n, k;
  std::optional<Gated> gated;
  std::uint64_t batch = 1;
  std::optional<DataType> type;
  MatrixOptions a, b, c, d, aux;
  EpilogueOptions epilogue;
  GroupOptions groups;
  RowOptions rows;
  Fill fill = Fill::random;
  std::uint64_t seed = 1;
  std::optional<Path> path;
  std::string config;
  SplitK split_k;
  std::string verify = "auto";
  std::optional<std::uint64_t> repeat;
  bool explain = false;
  bool list_devices = false;
};

// What there is to compute: the problem, and its operands as the problem lays them out.
struct Job {
  Problem problem;
  Groups groups;
  std::vector<std::byte> a, b, b_right, c, bias, offsets, gamma, beta;

  support::HostOperands operands() const {
    return {a.data(),       b.data(),     c.data(),    bias.data(),
            offsets.data(), gamma.data(), beta.data(), b_right.data()};
  }
};

[[noreturn]] void usage(const std::string& message) { throw Failure(usage_error, message); }

std::string number(std::uint64_t value) { return std::to_string(value); }

void check_size(const char* option, const std::optional<std::uint64_t>& asked, std::uint64_t found,
                const std::string& file) {
  if (asked && *asked != found) {
    usage(std::string(option) + " is " + number(*asked) + ", but " + file + " makes it " +
          number(found));
  }
}

// The batch of the product, of which every file has one matrix or all.
std::uint64_t common_batch(const std::vector<std::pair<std::string, std::uint64_t>>& batches) {
  const std::pair<std::string, std::uint64_t>* first = nullptr;
  for (const auto& entry : batches) {
    if (entry.second == 1) continue;
    if (first != nullptr && first->second != entry.second) {
      usage(first->first + " is a batch of " + number(first->second) + ", " + entry.first +
            " one of " + number(entry.second));
    }
    first = &entry;
  }
  return first != nullptr ? first->second : 1;
}

Matrix file_matrix(const LoadedMatrix& loaded, std::uint64_t batch, const MatrixOptions& options,
                   const std::string& name) {
  if (options.type || options.layout || options.ld || options.batch_stride) {
    usage("--" + name + ": " + loaded.file +
          " says its type and layout itself; --dtype, --layout, --ld and --batch-stride are for "
          "generated matrices");
  }
  Matrix matrix = options.matrix(loaded.type, loaded.layout);
  if (loaded.batch != batch) matrix.batch_stride = 0;  // one matrix for the whole batch
  return matrix;
}

void epilogue_without_operands(const EpilogueOptions& from, Epilogue& to) {
  to.alpha = from.alpha;
  to.beta = from.beta;
  to.activation = from.activation;
  to.clamp_min = from.clamp_min;
  to.clamp_max = from.clamp_max;
}

void load_c(const RunOptions& options, std::uint64_t batch, Job& job) {
  Problem& p = job.problem;
  if (options.c_file.empty()) {
    if (options.epilogue.beta != 0.0f) usage("--beta needs a matrix C: give --c, or --beta 0");
    return;
  }
  if (options.epilogue.beta == 0.0f) usage("--c is given, but --beta is 0: C would not be read");
  LoadedMatrix c = load_matrix(options.c_file, options.bf16);
  if (c.rows != p.m || c.cols != p.n) {
    usage("C must be M x N = " + number(p.m) + " x " + number(p.n) + ", but is " + c.describe());
  }
  p.c = file_matrix(c, batch, options.c, "c");
  // One row or one column is both; else C decides how D and aux lie, since the three share a
  // layout.
  if (p.m == 1 || p.n == 1) p.c.layout = options.d.layout.value_or(p.c.layout);
  if (options.d.layout && *options.d.layout != p.c.layout) {
    usage("--layout-d is " + std::string(to_string(*options.d.layout)) + ", but " + c.file +
          " is " + std::string(to_string(p.c.layout)) + ": C, D and aux share one layout");
  }
  p.d.layout = p.c.layout;
  job.c = std::move(c.data);
}

void load_bias_file(const RunOptions& options, Job& job) {
  Problem& p = job.problem;
  const std::optional<Bias> mode = options.epilogue.bias;
  if (options.bias_file.empty()) {
    if (mode.value_or(Bias::none) != Bias::none) usage("--bias-mode needs a bias: give --bias");
    return;
  }
  LoadedBias bias = load_bias(options.bias_file, options.bf16);
  p.epilogue.bias = mode.value_or(Bias::along_n);
  if (p.epilogue.bias == Bias::none) usage("--bias is given, but --bias-mode is none");
  const bool along_n = p.epilogue.bias == Bias::along_n;
  const std::uint64_t needed = along_n ? support::product_columns(p) : p.m;
  if (bias.length != needed) {
    usage("the bias must have " +
          std::string(!along_n  ? "M = "
                      : p.gated ? "2N = "
                                : "N = ") +
          number(needed) + " values, but is " + bias.describe() +
          (along_n && bias.length == p.m ? " (did you mean --bias-mode along_m?)" : ""));
  }
  const std::uint64_t count = p.grouping ? p.grouping->groups : p.batch;
  if (bias.batch != 1 && bias.batch != count) {
    usage(bias.describe() + " has " + number(bias.batch) + " biases, there are " + number(count) +
          (p.grouping ? " groups" : " products"));
  }
  p.epilogue.bias_type = bias.type;
  p.epilogue.bias_batch_stride = bias.batch == 1 ? 0 : bias.length;
  job.bias = std::move(bias.data);
}

// gamma or beta of a row reduction. The first one's type is that of both.
std::vector<std::byte> load_row_vector(const std::string& file, const RunOptions& options,
                                       const Problem& p, RowReduction& rows, bool& given) {
  if (file.empty()) {
    if (given) usage("--with-row-gamma and --with-row-beta are for generated matrices");
    return {};
  }
  LoadedBias vector = load_bias(file, options.bf16);
  if (vector.batch != 1 || vector.length != p.n) {
    usage("gamma and beta must have N = " + number(p.n) + " values, but there is " +
          vector.describe());
  }
  if (rows.gamma && vector.type != rows.vector_type) {
    usage("gamma and beta must have one type, but " + file + " is " +
          std::string(to_string(vector.type)) + " and " + options.gamma_file + " is " +
          std::string(to_string(rows.vector_type)));
  }
  rows.vector_type = vector.type;
  given = true;
  return std::move(vector.data);
}

void load_row_vectors(const RunOptions& options, Job& job) {
  Problem& p = job.problem;
  if (!p.row_reduction) {
    if (options.gamma_file.empty() && options.beta_file.empty()) return;
    usage("--row-gamma and --row-beta need --row-op rms_norm or layer_norm");
  }
  RowReduction& rows = *p.row_reduction;
  job.gamma = load_row_vector(options.gamma_file, options, p, rows, rows.gamma);
  job.beta = load_row_vector(options.beta_file, options, p, rows, rows.beta);
}

Job job_from_files(const RunOptions& options) {
  if (options.a_file.empty() || options.b_file.empty()) {
    usage("--a and --b belong together: only " +
          (options.a_file.empty() ? "--b " + options.b_file : "--a " + options.a_file) +
          " is given");
  }
  LoadedMatrix a = load_matrix(options.a_file, options.bf16);
  LoadedMatrix b = load_matrix(options.b_file, options.bf16);
  if (a.cols != b.rows) {
    usage("A is M x K, B is K x N, but " + a.describe() + " has " + number(a.cols) +
          " columns and " + b.describe() + " has " + number(b.rows) + " rows");
  }
  if (a.type != b.type) {
    usage("A and B must have one type, but " + a.file + " is " + std::string(to_string(a.type)) +
          " and " + b.file + " is " + std::string(to_string(b.type)));
  }
  check_size("--m", options.m, a.rows, a.file);
  Job job;
  const std::uint64_t n =
      b.cols / load_b_right(options.gated, options.b_right_file, options.bf16, b, job.b_right);
  check_size("--n", options.n, n, b.file);
  check_size("--k", options.k, a.cols, a.file);
  if (options.type && *options.type != a.type) {
    usage("--dtype is " + std::string(to_string(*options.type)) + ", but " + a.file + " is " +
          std::string(to_string(a.type)));
  }

  Problem& p = job.problem;
  p.gated = options.gated;
  p.m = a.rows;
  p.n = n;
  p.k = a.cols;
  std::optional<std::uint64_t> m = a.rows, k = a.cols;
  job.groups = options.groups.groups(m, k);
  p.grouping = job.groups.grouping;
  if (p.grouping) {
    const std::uint64_t needed = support::MatrixCounts(p).b;
    if (a.batch != 1 || b.batch != needed) {
      usage("with these groups A is one matrix and B " + number(needed) + ", but there are " +
            a.describe() + " and " + b.describe());
    }
  } else {
    p.batch = common_batch({{a.describe(), a.batch}, {b.describe(), b.batch}});
  }
  const support::MatrixCounts counts(p);
  p.a = file_matrix(a, counts.a, options.a, "a");
  p.b = file_matrix(b, counts.b, options.b, "b");
  p.d = options.d.matrix(a.type, Layout::row_major);
  epilogue_without_operands(options.epilogue, p.epilogue);
  load_c(options, counts.d, job);
  load_bias_file(options, job);
  p.row_reduction = options.rows.reduction();
  load_row_vectors(options, job);
  job.a = std::move(a.data);
  job.b = std::move(b.data);
  return job;
}

Job generated_job(const RunOptions& options) {
  if (!options.c_file.empty() || !options.bias_file.empty()) {
    usage("--c and --bias files need --a and --b");
  }
  Job job;
  std::optional<std::uint64_t> m = options.m, k = options.k;
  job.groups = options.groups.groups(m, k);
  if (!m || !options.n || !k) usage("give --a and --b, or --m, --n and --k to generate them");
  Problem& p = job.problem;
  p.grouping = job.groups.grouping;
  p.m = *m;
  p.n = *options.n;
  p.gated = options.gated;
  p.k = *k;
  p.batch = options.batch;
  const DataType type = options.type.value_or(DataType::f16);
  p.a = options.a.matrix(type, Layout::row_major);
  p.b = options.b.matrix(type, Layout::row_major);
  p.d = options.d.matrix(type, Layout::row_major);
  p.c = options.c.matrix(p.d.type, p.d.layout);
  epilogue_without_operands(options.epilogue, p.epilogue);
  p.epilogue.bias = options.epilogue.bias.value_or(Bias::none);
  p.epilogue.bias_type = options.epilogue.bias_type.value_or(DataType::f32);
  p.epilogue.bias_batch_stride = options.epilogue.bias_batch_stride;
  p.row_reduction = options.rows.reduction();
  return job;
}

// After the plan has accepted the problem: until then a stride may be nonsense.
void generate_operands(const RunOptions& options, Job& job) {
  const Problem& p = job.problem;
  std::fprintf(stderr, "generating operands …\n");
  const support::MatrixCounts counts(p);
  job.a = generate_matrix(p.a, p.m, p.k, counts.a, options.fill, options.seed);
  const std::uint64_t n = support::columns_of_b(p);
  job.b = generate_matrix(p.b, p.k, n, counts.b, options.fill, options.seed + 1);
  if (p.gated && p.gated->b == GatedB::separate) {
    job.b_right = generate_matrix(p.b, p.k, n, counts.b, options.fill, options.seed + 4);
  }
  if (p.epilogue.beta != 0.0f) {
    job.c = generate_matrix(p.c, p.m, p.n, counts.d, options.fill, options.seed + 2);
  }
  const support::OperandBytes bytes = support::operand_bytes(p);
  job.bias = generate(p.epilogue.bias_type, bytes.bias, options.fill, options.seed + 3);
  const DataType vectors = p.row_reduction.value_or(RowReduction{}).vector_type;
  job.gamma = generate(vectors, bytes.row_vector, options.fill, options.seed + 4);
  job.beta = generate(vectors, bytes.row_vector, options.fill, options.seed + 5);
}

struct DeviceOperands {
  Buffer a, b, b_right, c, bias, d, aux, offsets, gamma, beta, row_values, workspace;

  Operands operands() const {
    return {.a = a.span(),
            .b = b.span(),
            .b_right = b_right.span(),
            .c = c.span(),
            .d = d.span(),
            .bias = bias.span(),
            .aux = aux.span(),
            .offsets = offsets.span(),
            .gamma = gamma.span(),
            .beta = beta.span(),
            .row_values = row_values.span(),
            .workspace = workspace.span()};
  }
};

DeviceOperands upload(Runner& runner, const Job& job, std::uint64_t workspace_bytes) {
  const support::OperandBytes bytes = support::operand_bytes(job.problem);
  const auto place = [&](const std::vector<std::byte>& data, std::uint64_t needed) {
    Buffer buffer = unwrap(runner.allocate(needed));
    unwrap(runner.upload(buffer, 0, data.data(), std::min<std::uint64_t>(needed, data.size())));
    return buffer;
  };
  // NaN, so that an element nobody writes cannot pass for a result.
  const auto poisoned = [&](std::uint64_t needed) {
    Buffer buffer = unwrap(runner.allocate(needed));
    unwrap(runner.fill(buffer, 0xffffffffU));
    return buffer;
  };
  DeviceOperands device;
  device.a = place(job.a, bytes.a);
  device.b = place(job.b, bytes.b);
  device.b_right = place(job.b_right, bytes.b_right);
  device.c = place(job.c, bytes.c);
  device.bias = place(job.bias, bytes.bias);
  device.offsets = place(job.offsets, bytes.offsets);
  device.gamma = place(job.gamma, bytes.row_vector);
  device.beta = place(job.beta, bytes.row_vector);
  device.row_values = poisoned(bytes.row_values);
  device.d = poisoned(bytes.d);
  device.aux = poisoned(bytes.aux);
  device.workspace = unwrap(runner.allocate(workspace_bytes));
  return device;
}

std::vector<std::byte> download(Runner& runner, const Buffer& buffer, std::uint64_t bytes) {
  std::vector<std::byte> data(bytes);
  unwrap(runner.download(buffer, 0, data.data(), bytes));
  return data;
}

// Computes once for the result, then as often as is sensible (or asked for) for the time.
std::vector<double> compute(Runner& runner, const Plan& plan, const DeviceOperands& device,
                            const std::optional<std::uint64_t>& repeat) {
  const auto record = [&](VkCommandBuffer commands) {
    return plan.record(commands, device.operands());
  };
  const auto run_once = [&] {
    const auto start = std::chrono::steady_clock::now();
    unwrap(runner.submit(record));
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  };
  double once = run_once();
  if (repeat && *repeat == 0) return {};
  // Some drivers finish compiling only when a pipeline is first executed.
  if (once > 300.0) once = std::min(once, run_once());
  const double sensible = std::clamp(1000.0 / std::max(once, 1e-3), 1.0, 20.0);
  const auto repeats = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(repeat.value_or(static_cast<std::uint64_t>(sensible)), 1U << 20));
  // A CPU, or anything else that took this long, is as warm as it gets.
  auto times = runner.time(record, repeats, once > 300.0 ? 0.0 : 300.0);
  if (!times && times.error().status == Status::unsupported) {
    std::fprintf(stderr, "no time: %s\n", times.error().message.c_str());
    return {};
  }
  return unwrap(std::move(times));
}

void print_problem(const Problem& p) {
  std::printf("problem        M %s, N %s, K %s", number(p.m).c_str(), number(p.n).c_str(),
              number(p.k).c_str());
  if (p.batch != 1) std::printf(", batch %s", number(p.batch).c_str());
  if (p.gated) std::printf(", %s", describe(*p.gated).c_str());
  if (p.grouping) std::printf(", %s", describe(*p.grouping).c_str());
  std::printf(", %s -> %s\n", std::string(to_string(p.a.type)).c_str(),
              std::string(to_string(p.d.type)).c_str());
}

void print_times(const Problem& problem, const std::vector<double>& times) {
  if (times.empty()) return;
  const double middle = median(times);
  std::printf("time           %.4f ms, median of %zu (min %.4f)\n", middle, times.size(),
              *std::min_element(times.begin(), times.end()));
  std::printf("throughput     %.4g TFLOP/s\n", tera_flops(problem, middle));
}

int run(const RunOptions& options) {
  const bool from_files = !options.a_file.empty() || !options.b_file.empty();
  Job job = from_files ? job_from_files(options) : generated_job(options);
  Problem& problem = job.problem;
  problem.epilogue.aux = options.epilogue.with_aux || !options.aux_file.empty();
  problem.aux = options.aux.matrix(problem.d.type, problem.d.layout);
  problem.split_k = options.split_k;

  const std::unique_ptr<Runner> runner = options.device.open();
  const DeviceCaps& caps = runner->caps();
  std::printf("device         %s (%s, %s)\n", caps.name.c_str(), type_of(caps).c_str(),
              caps.architecture.c_str());
  std::printf("driver         %s\n", driver_of(caps).c_str());
  print_problem(problem);

  const Plan plan = choose_plan(runner->context(), problem, options.path, options.config);
  const bool empty = is_empty(problem);
  if (!empty) {
    std::printf("path           %s\n", std::string(to_string(plan.config().path)).c_str());
    std::printf("configuration  %s\n", to_string(plan.config()).c_str());
  }
  if (options.explain) std::printf("%s", plan.explain().c_str());
  std::fflush(stdout);

  if (!from_files) generate_operands(options, job);
  job.offsets = job.groups.encoded();
  const Problem worked = job.groups.worked(problem);
  const support::OperandBytes bytes = support::operand_bytes(problem);
  const DeviceOperands device = upload(*runner, job, plan.workspace_bytes());
  print_times(worked, compute(*runner, plan, device,
                              empty ? std::optional<std::uint64_t>(0) : options.repeat));
  std::vector<std::byte> d = download(*runner, device.d, bytes.d);
  std::vector<std::byte> aux = download(*runner, device.aux, bytes.aux);
  std::vector<std::byte> row_values = download(*runner, device.row_values, bytes.row_values);

  const support::VerifyOptions verification =
      choose_verification(options.verify, options.seed, worked, job.groups);
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  const support::VerifyReport report = support::verify(problem, job.operands(), d.data(),
                                                       aux.data(), verification, row_values.data());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  bool passed = report_verification(verification, problem, report, seconds);

  const auto save = [&](const std::string& file, const Matrix& matrix, std::uint64_t columns,
                        std::vector<std::byte> data) {
    if (file.empty()) return;
    save_matrix(file, matrix, problem.m, columns, support::MatrixCounts(problem).d,
                std::move(data));
    std::printf("wrote          %s\n", file.c_str());
  };
  save(options.d_file, problem.d, problem.n, std::move(d));
  save(options.aux_file, problem.aux, support::product_columns(problem), std::move(aux));
  if (!options.row_values_file.empty()) {
    if (!problem.row_reduction || !is_scalar(problem.row_reduction->op)) {
      usage("--row-values needs --row-op logsumexp, sum, max, mean or variance");
    }
    // One row for each matrix of the batch.
    save_matrix(options.row_values_file, {.type = problem.row_reduction->value_type}, problem.batch,
                problem.m, 1, std::move(row_values));
    std::printf("wrote          %s\n", options.row_values_file.c_str());
  }
  if (runner->validation_messages() != 0) {
    std::printf("validation     %s messages\n", number(runner->validation_messages()).c_str());
    passed = false;
  }
  return passed ? success : verification_failed;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App& command = *app.add_subcommand(
      "run", "Compute D = clamp(activation(alpha*A*B + beta*C + bias)), verify, time and write it");
  command.footer(
      "Matrices come from .npy files (f16, f32, bf16 as uint16; C or Fortran order; a third, first "
      "dimension is a batch) or are generated from --m, --n and --k. D and aux are written as "
      ".npy; bf16 as uint16.");

  command.option_defaults()->group("Files");
  command.add_option("--a", options->a_file, "A, M x K")->type_name("FILE");
  command.add_option("--b", options->b_file, "B, K x N")->type_name("FILE");
  command.add_option("--b-right", options->b_right_file, "Right half of B, see --gated")
      ->type_name("FILE");
  command.add_option("--c", options->c_file, "C, M x N")->type_name("FILE");
  command.add_option("--bias", options->bias_file, "Bias, N values (or M, see --bias-mode)")
      ->type_name("FILE");
  command.add_option("--out,--d", options->d_file, "Write D")->type_name("FILE");
  command.add_option("--aux", options->aux_file, "Write aux, the value before the activation")
      ->type_name("FILE");
  command.add_option("--row-gamma", options->gamma_file, "Scale of normalised rows, N values")
      ->type_name("FILE");
  command.add_option("--row-beta", options->beta_file, "Shift of normalised rows, N values")
      ->type_name("FILE");
  command.add_option("--row-values", options->row_values_file, "Write the numbers of rows")
      ->type_name("FILE");
  command.add_flag("--bf16", options->bf16, "uint16 files hold the bits of bf16 values");

  command.option_defaults()->group("Generated operands");
  add_size(command, "--m", options->m, "Rows of A and D");
  add_size(command, "--n", options->n, "Columns of B and D");
  add_size(command, "--k", options->k, "Columns of A, rows of B");
  add_size(command, "--batch", options->batch, "Number of products");
  add_type(command, "--dtype", options->type, "Element type of A and B (default f16)");
  add_fill(command, options->fill);
  add_size(command, "--seed", options->seed, "Other seeds give other values", UINT64_MAX >> 1);

  command.option_defaults()->group("Groups");
  options->groups.add(command);

  command.option_defaults()->group("Epilogue");
  options->epilogue.add(command);
  add_gated(command, options->gated);
  command.option_defaults()->group("Row reduction");
  options->rows.add(command);
  command.option_defaults()->group("Types and layouts");
  options->a.add(command, "a");
  options->b.add(command, "b");
  options->c.add(command, "c");
  options->d.add(command, "d");
  options->aux.add(command, "aux");

  command.option_defaults()->group("Execution");
  options->device.add(command);
  command.add_flag("--list-devices", options->list_devices, "List the devices and stop");
  add_path(command, options->path);
  command.add_option("--config", options->config,
                     "Use this configuration, as --explain or `vkgemm bench` print them");
  add_split_k(command, options->split_k);
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
    for (const support::DeviceListing& device : support::list_devices(&error)) {
      std::printf("%u: %s%s\n", device.index, device.name.c_str(),
                  device.caps ? "" : (" (unusable: " + device.reason + ")").c_str());
    }
    if (!error.empty()) throw Failure(device_error, error);
  });
}

}  // namespace vkgemm::tool
