// vkgemm bench: times shapes and configurations on one device, beside the ceiling of its matrix
// units measured in the same run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>

#include "commit.hpp"
#include "support/heavy_epilogue.hpp"
#include "tool/bench_case.hpp"
#include "tool/ceiling.hpp"
#include "tool/gated.hpp"
#include "tool/groups.hpp"
#include "tool/host_bench.hpp"
#include "tool/options.hpp"
#include "tool/planning.hpp"
#include "tool/row_options.hpp"
#include "tool/rows.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

using support::Buffer;
using support::Runner;

constexpr const char* kGpuSuite =
    "512,1024,2048,4096,8192,8192x28672x4096,16x4096x4096,64x8192x8192";
constexpr const char* kCpuSuite = "64,128,256,512";

struct BenchOptions {
  DeviceOptions device;
  std::string shapes;
  std::vector<std::string> types = {"f16"};
  std::optional<Layout> layout_a;
  std::optional<Layout> layout_b;
  std::string epilogue = "plain";
  std::optional<Gated> gated;
  GroupOptions groups;
  RowOptions rows;
  std::optional<Path> path;
  std::vector<std::string> configs;
  SplitK split_k;
  std::uint64_t repeat = 50;
  double warm_up_ms = 300.0;
  bool warm_l2 = false;
  bool no_verify = false;
  bool no_ceiling = false;
  bool host = false;
  bool csv = false;
  bool json = false;
  std::string plot;
};

// M or K not set: what the groups hold.
struct Shape {
  std::optional<std::uint64_t> m;
  std::uint64_t n;
  std::optional<std::uint64_t> k;
};

std::vector<Shape> parse_shapes(const std::string& text, const GroupOptions& groups) {
  std::vector<Shape> shapes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    const std::vector<std::uint64_t> sizes = parse_sizes("--shapes", one);
    const bool two = sizes.size() == 2 && groups.given();
    if (sizes.size() != 1 && sizes.size() != 3 && !two) {
      throw Failure(usage_error, "--shapes: '" + one + "' is neither N nor MxNxK");
    }
    for (const std::uint64_t size : sizes) {
      if (size == 0) throw Failure(usage_error, "--shapes: '" + one + "' has no work to time");
    }
    if (sizes.size() == 1) {
      shapes.push_back({sizes[0], sizes[0], sizes[0]});
    } else if (sizes.size() == 3) {
      shapes.push_back({sizes[0], sizes[1], sizes[2]});
    } else if (groups.along == GroupAlong::m) {
      shapes.push_back({std::nullopt, sizes[0], sizes[1]});
    } else {
      shapes.push_back({sizes[0], sizes[1], std::nullopt});
    }
    begin = end + 1;
  }
  return shapes;
}

Problem make_problem(const Shape& shape, DataType type, const BenchOptions& options) {
  Problem problem{.m = shape.m.value(), .n = shape.n, .k = shape.k.value()};
  for (Matrix* matrix : {&problem.a, &problem.b, &problem.c, &problem.d, &problem.aux}) {
    matrix->type = type;
  }
  problem.a.layout = options.layout_a.value_or(Layout::row_major);
  problem.b.layout = options.layout_b.value_or(Layout::row_major);
  problem.split_k = options.split_k;
  problem.gated = options.gated;
  problem.row_reduction = options.rows.reduction();
  if (options.epilogue == "heavy") problem.epilogue = support::heavy_epilogue();
  return problem;
}

class Bench {
 public:
  Bench(Runner& runner, const BenchOptions& options) : runner_(runner), options_(options) {}

  // False if a result was wrong.
  bool run() {
    const bool cpu = runner_.caps().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    const std::vector<Shape> shapes = parse_shapes(!options_.shapes.empty() ? options_.shapes
                                                   : cpu                    ? kCpuSuite
                                                                            : kGpuSuite,
                                                   options_.groups);
    std::vector<DataType> types;
    for (const std::string& text : options_.types) {
      const auto type = parse_data_type(text);
      if (!type)
        throw Failure(usage_error, "--dtype is '" + text + "': f16, bf16 or f32 is needed");
      types.push_back(*type);
    }
    if (!options_.warm_l2) flush_ = unwrap(runner_.allocate(flush_bytes(runner_.caps())));
    if (!options_.no_ceiling) find_ceiling();
    print_header();
    const std::size_t cases = types.size() * shapes.size();
    std::size_t done = 0;
    for (const DataType type : types) {
      for (const Shape& shape : shapes) run_case(shape, type, ++done, cases);
    }
    if (!options_.plot.empty()) {
      std::ofstream file(options_.plot);
      file << plot_svg(rows_);
      if (!file.flush())
        throw Failure(usage_error, "--plot: " + options_.plot + " cannot be written");
    }
    return std::none_of(rows_.begin(), rows_.end(), [](const BenchRow& row) {
      return row.error.empty() && row.relative_error >= 0.0 && !row.verified;
    });
  }

 private:
  void find_ceiling() {
    std::fprintf(stderr, "measuring the ceiling …\n");
    const Result<double> ceiling = measure_ceiling(runner_);
    if (ceiling) {
      ceiling_ = *ceiling;
    } else if (ceiling.error().status == Status::device_lost) {
      throw Failure(ceiling.error());
    } else {
      std::fprintf(stderr, "without a ceiling: %s\n", ceiling.error().message.c_str());
    }
  }

  void print_header() const {
    if (options_.json) return;
    if (options_.csv) return print_csv_header(stdout);
    std::printf("%s, %s, vkgemm %s\n", runner_.caps().name.c_str(),
                driver_of(runner_.caps()).c_str(), VKGEMM_COMMIT);
    if (ceiling_ > 0.0) {
      std::printf("ceiling %.4g TFLOP/s (f16 cooperative matrices from registers alone)\n",
                  ceiling_);
    }
    print_table_header(stdout);
    std::fflush(stdout);
  }

  void run_case(Shape shape, DataType type, std::size_t index, std::size_t cases) {
    const Groups groups = options_.groups.groups(shape.m, shape.k);
    Problem problem = make_problem(shape, type, options_);
    problem.grouping = groups.grouping;
    const std::vector<Config> configs =
        choose_configs(runner_.context(), problem, options_.path, options_.configs);
    std::fprintf(stderr, "case %zu of %zu: preparing operands …\n", index, cases);
    Case data(runner_, problem, groups);
    for (std::size_t c = 0; c < configs.size(); ++c) {
      std::fprintf(stderr, "case %zu of %zu, configuration %zu of %zu: %s\n", index, cases, c + 1,
                   configs.size(), to_string(configs[c]).c_str());
      rows_.push_back(run_config(problem, groups, configs[c], data));
      print(rows_.back());
    }
  }

  // Of a gated product that is its gate, and how B lies if not as most have it.
  std::string epilogue_name() const {
    if (!options_.gated) return options_.epilogue;
    std::string gate(to_string(options_.gated->gate));
    if (options_.gated->b == GatedB::halves) return gate;
    return gate + ':' + std::string(to_string(options_.gated->b));
  }

  BenchRow run_config(const Problem& problem, const Groups& groups, const Config& config,
                      Case& data) {
    BenchRow row;
    row.device = runner_.caps().name;
    row.driver = driver_of(runner_.caps());
    row.commit = VKGEMM_COMMIT;
    row.m = problem.m;
    row.n = problem.n;
    row.k = problem.k;
    if (problem.grouping) row.groups = describe(*problem.grouping);
    row.type = to_string(problem.a.type);
    row.layout_a = to_string(problem.a.layout);
    row.layout_b = to_string(problem.b.layout);
    row.epilogue = epilogue_name();
    if (problem.row_reduction) {
      const std::string op(to_string(problem.row_reduction->op));
      row.epilogue = row.epilogue == "plain" ? op : row.epilogue + "+" + op;
    }
    row.l2 = options_.warm_l2 ? "warm" : "cold";
    const std::string family = problem.grouping ? "grouped"
                               : problem.row_reduction
                                   ? std::string(to_string(problem.row_reduction->op))
                                   : "gemm";
    row.kernel = family + "_" + std::string(to_string(config.path)) + "_" + row.type;
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
        data.time(*plan, static_cast<std::uint32_t>(options_.repeat), options_.warm_up_ms,
                  options_.warm_l2 ? nullptr : &flush_);
    row.repeats = times.size();
    row.median_ms = median(times);
    row.min_ms = *std::min_element(times.begin(), times.end());
    row.tflops = tera_flops(groups.worked(problem), row.median_ms);
    // The ceiling is one of 16-bit products.
    if (problem.a.type != DataType::f32) row.ceiling_tflops = ceiling_;
    if (!options_.no_verify) {
      const support::VerifyReport report = data.verify();
      row.relative_error = report.relative_error;
      row.verified = report.passed();
      if (!report.passed()) std::fprintf(stderr, "wrong: %s\n", report.first_failure.c_str());
    }
    return row;
  }

  void print(const BenchRow& row) const {
    if (options_.json) {
      print_json_line(stdout, row);
    } else if (options_.csv) {
      print_csv_row(stdout, row);
    } else {
      print_table_row(stdout, row);
    }
  }

  Runner& runner_;
  const BenchOptions& options_;
  Buffer flush_;
  double ceiling_ = 0.0;
  std::vector<BenchRow> rows_;
};

void print_host_times(const HostTimes& times) {
  std::printf("plan(), cold             %10.2f us\n", times.cold_plan_us);
  std::printf("plan(), same pipeline    %10.2f us\n", times.other_plan_us);
  std::printf("plan(), warm             %10.3f us (median)\n", times.warm_plan_us);
  std::printf("record()                 %10.3f us (median; slowest batch %.3f)\n", times.record_us,
              times.record_max_us);
  if (times.record_allocations) {
    std::printf("allocations in record()  %10llu in %llu recordings\n",
                static_cast<unsigned long long>(*times.record_allocations),
                static_cast<unsigned long long>(times.recordings));
  } else {
    std::printf("allocations in record()  not counted (sanitizer)\n");
  }
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App& command = *app.add_subcommand(
      "bench", "Time shapes and configurations beside the ceiling of the device's matrix units");
  command.footer(
      "GPU timestamps, a full barrier between executions, random operands, sampled rows verified. "
      "The L2 cache is flushed before each execution, unless --warm-l2.");
  command.add_option("--shapes", options->shapes,
                     std::string("MxNxK or N, separated by commas (default on a GPU: ") +
                         kGpuSuite + "); with groups NxK, or MxN with --group-along k");
  command.add_option("--dtype", options->types, "f16, bf16 or f32; may be repeated")
      ->capture_default_str();
  add_layout(command, "--layout-a", options->layout_a, "Layout of A");
  add_layout(command, "--layout-b", options->layout_b, "Layout of B");
  command
      .add_option("--epilogue", options->epilogue,
                  "plain: nothing; heavy: alpha, residual, bias, gelu and aux")
      ->check(CLI::IsMember({"plain", "heavy"}))
      ->capture_default_str();
  add_gated(command, options->gated);
  options->groups.add(command);
  options->rows.add(command);
  add_path(command, options->path);
  command.add_option("--config", options->configs,
                     "Configuration; may be repeated; all: every candidate (default: the one that "
                     "the library chooses)");
  add_split_k(command, options->split_k);
  add_size(command, "--repeat", options->repeat, "Timed executions", 1U << 20);
  command
      .add_option("--warm-up", options->warm_up_ms, "Milliseconds of warm-up before each timing")
      ->check(CLI::Range(0.0, 60000.0))
      ->capture_default_str();
  command.add_flag("--warm-l2", options->warm_l2, "Don't flush the L2 cache between executions");
  command.add_flag("--no-verify", options->no_verify, "Don't check results");
  command.add_flag("--no-ceiling", options->no_ceiling, "Don't measure the ceiling");
  command.add_flag("--host", options->host, "Time plan() and record() on the host instead");
  CLI::Option* csv = command.add_flag("--csv", options->csv, "Print CSV");
  command.add_flag("--json", options->json, "Print a JSON object a line")->excludes(csv);
  command.add_option("--plot", options->plot, "Draw fraction of the ceiling over size")
      ->type_name("FILE.svg");
  options->device.add(command);
  command.callback([options, &exit_code] {
    if (options->repeat == 0) throw Failure(usage_error, "--repeat is 0: at least 1 is needed");
    // What contradicts itself is said before the ceiling is measured.
    static_cast<void>(options->rows.reduction());
    const std::unique_ptr<Runner> runner = options->device.open();
    bool good = true;
    if (options->host) {
      print_host_times(measure_host(*runner));
    } else {
      good = Bench(*runner, *options).run();
    }
    if (runner->validation_messages() != 0) {
      std::fprintf(stderr, "vkgemm: %llu validation messages\n",
                   static_cast<unsigned long long>(runner->validation_messages()));
      good = false;
    }
    exit_code = good ? success : verification_failed;
  });
}

}  // namespace vkgemm::tool
