// Compiles the tables' configurations that are legal on a device, on stub devices that compute
// nothing, and reads what the compiler says about them. A dense, gated or grouped one that spills
// registers to memory fails: it belongs into the `refused` rows of a tuning table. Row reductions
// may spill a little.
//
// VKGEMM_COMPILE_DEVICE: the device's name in the report (default: the driver's).
// VKGEMM_COMPILE_REPORT: a .csv to write, one line a pipeline.
// VKGEMM_COMPILE_ONE_IN: compiles one configuration in so many, and writes no report.
// VKGEMM_COMPILE_TABLE: the tuning table whose rows are compiled, instead of those that the device
// would get: NVK's stubs have the PCI id of a chip without a table.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headless/instance.hpp"
#include "headless/runner.hpp"
#include "kernels/dispatch_plan.hpp"
#include "kernels/legality.hpp"
#include "kernels/loops/khr_fragments.hpp"
#include "lib/footprint.h"
#include "oracle/heavy_epilogue.hpp"
#include "problem/data_type.hpp"
#include "problem/inputs/input.hpp"
#include "problem/resolve.hpp"
#include "runtime/plan_internal.hpp"
#include "tuning/device_tables.hpp"
#include "vkgemm/vkgemm.hpp"

namespace vkgemm::test {
namespace {

std::unique_ptr<headless::Runner> the_runner;

// Kinds that are not legal before a self-test, which a stub device cannot pass.
constexpr KernelKind direct_kind(DataType input) {
  return make_kind(MainLoop::khr_direct, input,
                   FragmentKind{.m = 16, .n = 16, .k = 16, .subgroup_size = 32});
}
const Verdict trusted[] = {
    {.kind = direct_kind(DataType::f16), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::bf16), .outcome = Outcome::passed},
};

headless::Runner& runner() {
  if (the_runner != nullptr) return *the_runner;
  auto created = headless::Runner::create(
      {.on_validation_message = [](std::string_view text) { ADD_FAILURE() << text; },
       .statistics = true,
       .self_test = {.verdicts = trusted}});
  if (!created) {
    std::fprintf(stderr, "no device to compile for: %s\n", created.error().message.c_str());
    std::exit(1);
  }
  the_runner = std::move(*created);
  return *the_runner;
}

// --- what the compiler says
// -------------------------------------------------------------------------------

struct Statistics {
  // The registers of an invocation. ANV: how many are live, 32 bytes each, of a subgroup; DG2 has
  // 128, Xe2 256.
  std::optional<std::uint64_t> registers;
  std::optional<std::uint64_t> spills;       // to memory
  std::optional<std::uint64_t> sgpr_spills;  // AMD's scalar registers, to vector registers
  std::optional<std::uint64_t> shared_bytes;
  std::optional<std::uint64_t> code;  // bytes or instructions, as the driver counts
};

// The statistics that the driver reports for a pipeline made with
// VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR.
std::vector<std::pair<std::string, std::string>> pipeline_statistics(VkDevice device,
                                                                     VkPipeline pipeline) {
  std::vector<std::pair<std::string, std::string>> pairs;
  auto info = headless::make_struct<VkPipelineInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR);
  info.pipeline = pipeline;
  std::uint32_t executables = 0;
  vkGetPipelineExecutablePropertiesKHR(device, &info, &executables, nullptr);
  for (std::uint32_t e = 0; e < executables; ++e) {
    auto executable = headless::make_struct<VkPipelineExecutableInfoKHR>(
        VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR);
    executable.pipeline = pipeline;
    executable.executableIndex = e;
    std::uint32_t count = 0;
    vkGetPipelineExecutableStatisticsKHR(device, &executable, &count, nullptr);
    VkPipelineExecutableStatisticKHR blank{};
    blank.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    std::vector<VkPipelineExecutableStatisticKHR> statistics(count, blank);
    vkGetPipelineExecutableStatisticsKHR(device, &executable, &count, statistics.data());
    for (const VkPipelineExecutableStatisticKHR& s : statistics) {
      std::string value;
      switch (s.format) {
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
          value = s.value.b32 != VK_FALSE ? "true" : "false";
          break;
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
          value = std::to_string(s.value.i64);
          break;
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
          value = std::to_string(s.value.u64);
          break;
        default:
          value = std::to_string(s.value.f64);
          break;
      }
      pairs.emplace_back(s.name, value);
    }
  }
  return pairs;
}

// The drivers' names for the same things.
Statistics read_statistics(VkPipeline pipeline) {
  struct Name {
    const char* name;
    std::optional<std::uint64_t> Statistics::*member;
  };
  constexpr Name names[] = {
      {"VGPRs", &Statistics::registers},  // RADV
      {"Spilled VGPRs", &Statistics::spills},
      {"Spilled SGPRs", &Statistics::sgpr_spills},
      {"LDS size", &Statistics::shared_bytes},
      {"Code size", &Statistics::code},
      {"Number of GPRs", &Statistics::registers},  // NVK
      {"Register count", &Statistics::registers},
      {"Spills to memory", &Statistics::spills},
      {"Shared memory size", &Statistics::shared_bytes},
      {"Instruction count", &Statistics::code},
      {"Max live registers", &Statistics::registers},  // ANV
      {"Spills", &Statistics::spills},
      {"Workgroup Memory Size", &Statistics::shared_bytes},
  };
  Statistics statistics;
  static bool printed = false;
  for (const auto& [name, value] : pipeline_statistics(runner().device(), pipeline)) {
    if (!printed) std::printf("  %s = %s\n", name.c_str(), value.c_str());
    for (const Name& known : names) {
      if (name == known.name) statistics.*known.member = std::strtoull(value.c_str(), nullptr, 10);
    }
  }
  printed = true;
  return statistics;
}

std::string text(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "";
}

// --- the report
// -------------------------------------------------------------------------------------------

std::vector<std::string> lines;

std::size_t one_in() {
  const char* const text = std::getenv("VKGEMM_COMPILE_ONE_IN");
  return text != nullptr ? std::max(std::strtoul(text, nullptr, 10), 1ul) : 1;
}

class Report : public testing::Environment {
 public:
  void TearDown() override {
    the_runner.reset();
    const char* const path = std::getenv("VKGEMM_COMPILE_REPORT");
    if (path == nullptr || lines.empty() || one_in() > 1) return;
    std::ofstream file(path);
    file << "device,driver,config,input,layouts,epilogue,registers,spills,sgpr_spills,"
            "shared_bytes,code\n";
    for (const std::string& line : lines) file << line << '\n';
    EXPECT_TRUE(file.good()) << path;
  }
};
const auto* const report = testing::AddGlobalTestEnvironment(new Report);

std::string driver() {
  std::string name = runner().caps().driver_name + " " + runner().caps().driver_info;
  std::ranges::replace(name, ',', ';');
  return name;
}

// --- the test
// ----------------------------------------------------------------------------------------------

constexpr Layout row = Layout::row_major;
constexpr Layout col = Layout::col_major;

struct Variant {
  DataType input;
  Layout a, b;
  bool heavy;  // the epilogue

  std::string layouts() const {
    return {a == Layout::row_major ? 'n' : 't', b == Layout::row_major ? 'n' : 't'};
  }
};

Problem problem_of(const Variant& variant, std::uint64_t m, std::uint64_t n) {
  const DataType result = size_in_bytes(variant.input) == 1 ? DataType::f16 : variant.input;
  // Not multiples of any tile: with the code for the edges, which needs the most registers.
  Problem problem{.m = m,
                  .n = n,
                  .k = 1000,
                  .a = {.type = variant.input, .layout = variant.a},
                  .b = {.type = variant.input, .layout = variant.b},
                  .c = {.type = result},
                  .d = {.type = result},
                  .aux = {.type = result},
                  .max_workspace_bytes = 0};  // the tables' configurations as they are
  if (variant.heavy) problem.epilogue = oracle::heavy_epilogue();
  return problem;
}

// In no table yet, but to be had: that they compile without spills is a matter of the shaders.
constexpr std::string_view extras[] = {
    "fma:tile=64x64x16,fragment=4x4,slices=8,reduction_mode=last_arriver",
    "fma:tile=64x64x16,fragment=4x4,pack=ab",
    "khr:tile=64x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=2,slices=8,"
    "reduction_mode=device_barrier",
    "khr_ring:tile=64x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=2",
    "khr_ring:tile=64x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=64,subtiles=2",
    "khr_direct:tile=64x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=2,swap_a=1,"
    "pack=ab",
    "khr_direct:tile=128x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4,ahead=0,"
    "slices=8,reduction_mode=last_arriver,pack=ab",
    "khr_direct:tile=16x64x64,fragment=16x16x16,subgroups=1x1,subgroup_size=32,subgroups_k=8,pack="
    "ab",
    "khr:tile=32x64x32,fragment=8x16x16,subgroups=4x4,subgroup_size=16,slices=8,reduction_mode="
    "last_arriver",
    "khr_ring:tile=32x64x32,fragment=8x16x16,subgroups=4x4,subgroup_size=16",
    "khr:tile=32x32x32,fragment=8x8x16,subgroups=4x4,subgroup_size=8,slices=8,reduction_mode="
    "device_barrier",
};

// The device with what the tables that are built in refuse.
Target target() {
  static const DeviceTables tables(runner().caps());
  return tables.target(runner().caps());
}

// The configurations that the tables propose for a problem, best first.
Result<std::vector<Config>> proposed_for(const Problem& problem) {
  std::vector<Config> configs;
  if (const char* const name = std::getenv("VKGEMM_COMPILE_TABLE"); name != nullptr) {
    const TuningTable& table = built_in_table(name);
    if (table.architecture != name) {
      return Error{Status::invalid_argument, std::string("no tuning table ") + name};
    }
    for (const ScoredRow& scored : rank(table, resolve(problem).value(), target())) {
      configs.push_back(scored.config);
    }
    return configs;
  }
  const auto candidates = runner().context().candidates(problem);
  if (!candidates) return candidates.error();
  for (const Candidate& candidate : *candidates) configs.push_back(candidate.config);
  return configs;
}

// The same, and the extras that are legal for it.
Result<std::vector<Config>> configs_for(const Problem& problem) {
  auto configs = proposed_for(problem);
  if (!configs) return configs.error();
  for (const std::string_view text : extras) {
    const Config config = parse_config(text).value();
    if (is_legal(config, resolve(problem).value(), target())) configs->push_back(config);
  }
  return configs;
}

class Compile : public testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(
    , Compile,
    testing::Values(
        Variant{DataType::f16, row, row, true}, Variant{DataType::f16, row, col, false},
        Variant{DataType::f16, col, row, false}, Variant{DataType::f16, col, col, true},
        Variant{DataType::bf16, row, row, true}, Variant{DataType::bf16, col, col, false},
        Variant{DataType::e4m3, row, row, true}, Variant{DataType::e4m3, row, col, false},
        Variant{DataType::f32, row, row, false}, Variant{DataType::f32, row, col, true},
        Variant{DataType::f32, col, row, true}, Variant{DataType::f32, col, col, false}),
    [](const testing::TestParamInfo<Variant>& variant) {
      return std::string(to_string(variant.param.input)) + "_" + variant.param.layouts() +
             (variant.param.heavy ? "_heavy" : "_plain");
    });

std::string device_name() {
  const char* const alias = std::getenv("VKGEMM_COMPILE_DEVICE");
  return alias != nullptr ? alias : runner().caps().name;
}

// `kind`: of the epilogue, or of the problem. How many registers are spilled goes to `spills`.
void add_to_report(const Problem& problem, const Config& config, const std::string& layouts,
                   const std::string& kind, std::optional<std::uint64_t>* spills = nullptr) {
  if (std::hash<std::string>{}(to_string(config) + layouts + kind) % one_in() != 0) return;
  // RDNA3 and RDNA4 allocate shared memory in units of 1 KiB, and RADV tells what is allocated. ANV
  // tells what is declared, which may be less by the single words: legality counts them in all
  // kernels. NVK tells nothing.
  const bool radv = runner().caps().driver_id == VK_DRIVER_ID_MESA_RADV;
  const bool anv = runner().caps().driver_id == VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA;
  const std::uint64_t unit = radv ? 1024 : anv ? SINGLE_WORDS_BYTES + 1 : 1;
  const auto start = std::chrono::steady_clock::now();
  const auto plan = runner().context().plan(problem, config);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(plan) << to_string(config) << ": " << plan.error().message;
  const Statistics s = read_statistics(pipeline_of(*plan));
  EXPECT_TRUE(s.registers) << "the driver does not tell the number of registers";
  EXPECT_TRUE(s.spills) << "the driver does not tell the number of spills";
  if (spills != nullptr) *spills = s.spills;
  // The shared memory that legality believes in, against what the driver has allocated.
  EXPECT_TRUE(s.shared_bytes || !(radv || anv)) << "the driver does not tell the shared memory";
  if (s.shared_bytes && config.path() != Path::nv) {
    const std::uint64_t believed = dispatch_plan_of(*plan).shared_memory_bytes;
    const std::uint64_t told = *s.shared_bytes;
    EXPECT_LT(told > believed ? told - believed : believed - told, unit)
        << to_string(config) << ": " << believed << " bytes on " << device_name();
  }
  std::printf("%5.2f s  registers %4s  spills %4s  shared %6s of %6llu  %s\n", took.count(),
              text(s.registers).c_str(), text(s.spills).c_str(), text(s.shared_bytes).c_str(),
              static_cast<unsigned long long>(dispatch_plan_of(*plan).shared_memory_bytes),
              to_string(config).c_str());
  lines.push_back(device_name() + ",\"" + driver() + "\",\"" + to_string(config) + "\"," +
                  std::string(to_string(problem.a.type)) + "," + layouts + "," + kind + "," +
                  text(s.registers) + "," + text(s.spills) + "," + text(s.sgpr_spills) + "," +
                  text(s.shared_bytes) + "," + text(s.code));
}

void expect_no_spills(const Problem& problem, const Config& config, const std::string& layouts,
                      const std::string& kind) {
  std::optional<std::uint64_t> spills;
  add_to_report(problem, config, layouts, kind, &spills);
  EXPECT_EQ(spills.value_or(0), 0u) << to_string(config) << " spills on " << device_name();
}

TEST_P(Compile, EveryLegalConfigurationWithoutSpills) {
  const Variant& variant = GetParam();
  std::vector<Config> done;
  // Large, few rows, few columns, one row: rows of the tables may be for one of them only.
  std::vector<std::pair<int, int>> sizes{{1000, 1000}, {10, 1000}, {1000, 10}};
  if (variant.a == row && variant.b == row) sizes.emplace_back(1, 1000);
  for (const auto& [m, n] : sizes) {
    const Problem problem =
        problem_of(variant, static_cast<std::uint64_t>(m), static_cast<std::uint64_t>(n));
    const auto configs = configs_for(problem);
    ASSERT_TRUE(configs) << configs.error().message;
    EXPECT_FALSE(configs->empty());
    for (const Config& config : *configs) {
      if (std::ranges::find(done, config) != done.end()) continue;
      done.push_back(config);
      expect_no_spills(problem, config, variant.layouts(), variant.heavy ? "heavy" : "plain");
    }
  }
}

// 8-bit floats are multiplied as they are where the device lists matrices of them.
TEST(CompileFloat8, IsNativeWhereListed) {
  const Problem problem = problem_of({DataType::e4m3, row, col, false}, 1000, 1000);
  const auto plan = runner().context().plan(problem);
  ASSERT_TRUE(plan) << plan.error().message;
  const bool is_native = native_type(problem, runner().caps()).has_value();
  EXPECT_NE(plan->explain().find(is_native ? "e4m3 by e4m3 as e4m3" : "e4m3 by e4m3 as f16"),
            std::string::npos)
      << plan->explain();
  const bool is_rdna4 = runner().caps().architecture == "amd_rdna4";
  EXPECT_EQ(is_native, is_rdna4) << "of the stub devices, RDNA4's lists such matrices";
  if (!is_native) return;
  // Matrices that compute wrong are not used.
  std::vector<Verdict> wrong;
  for (const std::uint32_t size : {32u, 64u}) {
    const FragmentKind fragment{.m = 16, .n = 16, .k = 16, .subgroup_size = size};
    wrong.push_back({.kind = make_kind(MainLoop::khr, DataType::e4m3, fragment),
                     .outcome = Outcome::wrong_result});
  }
  auto other = headless::Runner::create({.self_test = {.verdicts = wrong}});
  ASSERT_TRUE(other) << other.error().message;
  const auto converting = (*other)->context().plan(problem);
  ASSERT_TRUE(converting) << converting.error().message;
  EXPECT_NE(converting->explain().find("e4m3 by e4m3 as f16"), std::string::npos);
}

// The best ones of each path, with all that a gated product may have: its main loop differs in
// where addresses begin, its epilogue holds twice as much.
TEST(CompileGated, TheBestWithoutSpills) {
  constexpr int of_each_path = 4;
  for (const DataType type : {DataType::f16, DataType::f32}) {
    for (const GatedB b : {GatedB::halves, GatedB::interleaved}) {
      for (const Layout layout : {row, col}) {
        if (layout == col && b == GatedB::interleaved) continue;  // are halves
        Problem problem = problem_of({type, row, layout, false}, 1000, 1000);
        problem.gated = {.gate = Gate::geglu_erf, .b = b};
        problem.epilogue = {.alpha = 1.25f, .bias = Bias::along_n, .aux = true};
        const auto configs = configs_for(problem);
        ASSERT_TRUE(configs) << configs.error().message;
        ASSERT_FALSE(configs->empty());
        std::array<int, 3> done{};
        for (const Config& config : *configs) {
          int& of_this_path = done[static_cast<std::size_t>(config.path())];
          if (config.main_loop() != MainLoop::khr_ring && ++of_this_path > of_each_path) continue;
          expect_no_spills(problem, config, layout == row ? "nn" : "nt",
                           b == GatedB::halves ? "gated" : "gated pairs");
        }
      }
    }
  }
}

// The best one of each path and strategy that changes the kernel: a second kernel reduces what the
// product leaves as it does otherwise. ANV spills a little with whole rows in a tile, which is
// left as it is: a second pass moves more. With NVK all that hold 128 values spill, but NVIDIA's
// own driver, for which the tables are, does not where it was timed: there for the report.
TEST(CompileRows, TheBestSpillLittle) {
  constexpr std::uint64_t few_spills = 100;
  const bool nvk = runner().caps().driver_id == VK_DRIVER_ID_MESA_NVK;
  for (const RowOp op : {RowOp::layer_norm, RowOp::logsumexp}) {
    const bool norm = op == RowOp::layer_norm;
    Problem problem = problem_of({DataType::f16, row, row, false}, 1000, 200);
    problem.row_reduction = {.op = op, .gamma = norm, .beta = norm};
    problem.max_workspace_bytes = 1u << 30;  // panels and two passes keep something there
    const auto configs = proposed_for(problem);
    ASSERT_TRUE(configs) << configs.error().message;
    std::set<std::pair<Path, RowStrategy>> done;
    for (const Config& config : *configs) {
      if (config.rows == RowStrategy::two_pass) continue;
      if (!norm && config.rows != RowStrategy::panel) continue;
      if (!done.emplace(config.path(), config.rows).second) continue;
      const std::string kind =
          std::string(to_string(op)) + " " + std::string(to_string(config.rows));
      std::optional<std::uint64_t> spills;
      add_to_report(problem, config, "nn", kind, &spills);
      EXPECT_TRUE(nvk || spills.value_or(0) <= few_spills) << to_string(config) << " spills";
    }
  }
}

// The best ones of each path, on either schedule: what they have in common with dense products is
// compiled above.
TEST(CompileGrouped, TheBestWithoutSpills) {
  constexpr int of_each_path = 2;
  for (const DataType type : {DataType::f16, DataType::f32}) {
    for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
      Problem problem = problem_of({type, row, row, true}, 1000, 1000);
      problem.grouping = {.groups = 500, .along = along};
      const auto configs = proposed_for(problem);
      ASSERT_TRUE(configs) << configs.error().message;
      ASSERT_FALSE(configs->empty());
      std::array<int, 3> done{};
      for (Config config : *configs) {
        int& of_this_path = done[static_cast<std::size_t>(config.path())];
        if (++of_this_path > of_each_path) continue;
        config.schedule = of_this_path % 2 != 0 ? Schedule::persistent : Schedule::simple;
        if (!is_legal(config, resolve(problem).value(), target())) {
          config.schedule = Schedule::simple;
        }
        expect_no_spills(problem, config, "nn", "grouped");
      }
      for (const std::string_view text : extras) {  // copies by slots
        const Config config = parse_config(text).value();
        if (config.main_loop() != MainLoop::khr_direct) continue;
        if (!is_legal(config, resolve(problem).value(), target())) continue;
        expect_no_spills(problem, config, "nn", "grouped");
      }
    }
  }
}

// The best ones of each path with codes of B: what is loaded is decoded then.
TEST(CompileQuantised, TheBestWithoutSpills) {
  constexpr int of_each_path = 3;
  for (const Quantisation& q :
       {Quantisation{.type = CodeType::int4, .group_k = 128, .zeros = true},
        Quantisation{.type = CodeType::e4m3, .scale_type = DataType::f32}}) {
    for (const auto& [m, type] : {std::pair{1000u, DataType::f16}, {2u, DataType::bf16}}) {
      Problem problem = problem_of({type, row, row, false}, m, 1000);
      problem.b = {.type = type, .packing = Packing::packed};
      problem.quantised_b = q;
      const auto configs = proposed_for(problem);
      ASSERT_TRUE(configs) << configs.error().message;
      ASSERT_FALSE(configs->empty());
      std::array<int, 3> done{};
      for (const Config& config : *configs) {
        if (++done[static_cast<std::size_t>(config.path())] > of_each_path) continue;
        if (!runner().context().plan(problem, config)) continue;  // in another table's order
        expect_no_spills(problem, config, "nn", to_string(q));
      }
    }
  }
}

// Rows that become codes: kept in registers, and several to a workgroup.
TEST(CompileQuantiseRows, EveryPipeline) {
  if (!runner().caps().int8_arithmetic) {
    GTEST_SKIP() << runner().caps().name << " has no " << byte_features;
  }
  for (const DataType type : {DataType::f16, DataType::bf16, DataType::f32}) {
    for (const std::uint64_t columns : {8u, 9u, 100u, 4096u}) {
      const auto plan = runner().context().plan_quantise_rows(
          {.rows = 64, .columns = columns, .source = {.type = type}});
      EXPECT_TRUE(plan) << plan.error().message;
    }
  }
}

}  // namespace
}  // namespace vkgemm::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
