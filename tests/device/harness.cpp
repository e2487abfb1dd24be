#include "harness.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_set>
#include <utility>

#include "command_watch.hpp"
#include "kernels/legality.hpp"
#include "kernels/loops/khr_fragments.hpp"
#include "kernels/lowering.hpp"
#include "problem/resolve.hpp"
#include "tuning/device_tables.hpp"

namespace vkgemm::test {
namespace {

std::unique_ptr<headless::Runner> the_runner;
ExpectedHazards* expected_hazards = nullptr;

// The runner goes while GoogleTest still counts failures: the layers report what was not destroyed.
class Teardown : public testing::Environment {
 public:
  void TearDown() override { destroy_runner(); }
};

// peel=0 halves the code, and with it the time that a CPU's driver compiles; one configuration of a
// path keeps the default, so that both forms of the main loop run. swizzle=2: several bands of
// tiles in small matrices.
constexpr std::string_view khr_texts[] = {
    // lavapipe: subgroups of 8; 8x8x8 is listed, the vendors' shapes are flexible dimensions
    "khr:tile=16x16x16,fragment=8x8x8,subgroups=2x1,subgroup_size=8,subtiles=1,swizzle=2,peel=0",
    "khr:tile=16x16x16,fragment=16x16x16,subgroups=1x1,subgroup_size=8,swizzle=2,peel=0",
    "khr:tile=32x8x16,fragment=16x8x16,subgroups=2x1,subgroup_size=8,swizzle=2,peel=0",
    "khr:tile=16x16x16,fragment=8x16x16,subgroups=1x1,subgroup_size=8,subtiles=2,swizzle=2",
    // rings; in the first one nine subgroups: the loads of A and B do not divide over the workgroup
    "khr_ring:tile=48x24x16,fragment=8x8x8,subgroups=3x3,subgroup_size=8,swizzle=2,peel=0",
    "khr_ring:tile=16x8x32,fragment=8x8x16,subgroups=2x1,subgroup_size=8,peel=0",
    "khr_ring:tile=16x16x16,fragment=8x8x8,subgroups=1x2,subgroup_size=8,swizzle=2",
    // fragments straight from memory
    "khr_direct:tile=16x16x16,fragment=8x8x8,subgroups=2x1,subgroup_size=8,swizzle=2,pack=ab",
    "khr_direct:tile=24x16x8,fragment=8x8x8,subgroups=1x2,subgroup_size=8,subtiles=3,peel=0,ahead="
    "0,"
    "swap_a=1,pack=ab",
    "khr_direct:tile=8x16x32,fragment=8x8x8,subgroups=1x2,subgroup_size=8,peel=0,interleave_k=1,"
    "subgroups_k=3,pack=ab",
    // NVIDIA, AMD
    "khr:tile=32x32x32,fragment=16x16x16,subgroups=2x1,subgroup_size=32,swizzle=2,peel=0",
    "khr:tile=64x32x16,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=2,swizzle=2",
    "khr:tile=32x32x32,fragment=16x8x16,subgroups=1x2,subgroup_size=32,subtiles=2,swizzle=3",
    "khr:tile=32x16x16,fragment=16x8x8,subgroups=1x2,subgroup_size=32,swizzle=2",
    "khr:tile=32x32x32,fragment=16x16x16,subgroups=2x1,subgroup_size=64,swizzle=2",
    "khr_ring:tile=64x32x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,swizzle=2",
    "khr_ring:tile=32x32x32,fragment=16x16x16,subgroups=2x1,subgroup_size=32,peel=0",
    "khr_ring:tile=48x48x32,fragment=16x16x16,subgroups=3x3,subgroup_size=32,swizzle=2",
    "khr_direct:tile=64x32x32,fragment=16x16x16,subgroups=2x1,subgroup_size=32,subtiles=2,swap_a=1,"
    "interleave_k=1,swizzle=2,pack=ab",
    "khr_direct:tile=32x48x16,fragment=16x16x16,subgroups=1x1,subgroup_size=32,ahead=0,pack=ab",
    "khr_direct:tile=16x32x32,fragment=16x16x16,subgroups=1x2,subgroup_size=32,subgroups_k=3,pack="
    "ab",
    // Intel
    "khr:tile=32x32x32,fragment=8x16x16,subgroups=2x2,subgroup_size=16,subtiles=2,swizzle=2",
    "khr:tile=32x16x16,fragment=8x8x16,subgroups=2x2,subgroup_size=16,swizzle=2",
};
constexpr std::string_view fma_texts[] = {
    "fma:tile=16x16x8,fragment=4x4,swizzle=2,peel=0",
    "fma:tile=8x16x16,fragment=4x4,swizzle=2",
    "fma:tile=32x16x8,fragment=8x4,swizzle=3,peel=0",
    "skinny:tile=3x16x32,swizzle=2",  // for few rows
    "skinny:tile=1x32x64",
};
// Of s8, whose groups of 16 bytes are 16 elements.
constexpr std::string_view byte_texts[] = {
    "khr:tile=16x16x16,fragment=8x8x16,subgroups=2x1,subgroup_size=8,swizzle=2,peel=0",
    "khr_direct:tile=16x32x64,fragment=8x8x16,subgroups=2x1,subgroup_size=8,peel=0,swap_a=1,"
    "interleave_k=1,subgroups_k=2,swizzle=2,pack=ab",
    "khr_direct:tile=8x16x32,fragment=8x8x16,subgroups=1x2,subgroup_size=8,peel=0,pack=ab",
    "khr:tile=64x32x64,fragment=16x16x32,subgroups=2x2,subgroup_size=32,subtiles=2,swizzle=2",
    "khr_direct:tile=64x32x64,fragment=16x16x32,subgroups=2x1,subgroup_size=32,subtiles=2,swap_a=1,"
    "interleave_k=1,swizzle=2,pack=ab",
    "khr_direct:tile=16x32x64,fragment=16x16x32,subgroups=1x2,subgroup_size=32,subgroups_k=3,pack="
    "ab",
    "khr:tile=32x32x32,fragment=16x16x16,subgroups=2x1,subgroup_size=64,swizzle=2",
    "fma:tile=16x32x16,fragment=4x4,swizzle=2,peel=0",
    "fma:tile=16x32x16,fragment=4x8,swizzle=2",  // for gates
    "fma:tile=32x16x48,fragment=8x4,swizzle=2",  // 12 steps
};
constexpr std::string_view nv_texts[] = {
    "nv:tile=32x32x32,invocations=128,swizzle=2",
    "nv:tile=64x32x16,invocations=128,swizzle=2,unroll_k=4",
    "nv:tile=64x64x32,invocations=256,swizzle=3,unroll_k=2",
};

// Kinds of the direct loop, which is not legal before the self-test: what is wrong with them is for
// these tests to find.
constexpr KernelKind direct_kind(DataType input, std::uint32_t fragment, std::uint32_t size,
                                 bool a_in_rows = false, std::uint32_t code_run = 0) {
  return make_kind(MainLoop::khr_direct, input,
                   FragmentKind{.m = fragment,
                                .n = fragment,
                                .k = input == DataType::s8 ? 2 * fragment : fragment,
                                .subgroup_size = size,
                                .a_in_rows = a_in_rows ? 1u : 0u,
                                .code_run = code_run});
}
const Verdict trusted[] = {
    {.kind = direct_kind(DataType::f16, 8, 8), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::f16, 16, 32), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::bf16, 16, 32), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::s8, 8, 8), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::s8, 16, 32), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::s8, 8, 8, true), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::s8, 16, 32, true), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::f16, 8, 8, true), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::f16, 16, 32, true), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::bf16, 16, 32, true), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::f16, 8, 8, false, 1), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::f16, 16, 32, false, 1), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::bf16, 16, 32, false, 1), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::f16, 16, 32, false, 4), .outcome = Outcome::passed},
    {.kind = direct_kind(DataType::bf16, 16, 32, false, 4), .outcome = Outcome::passed},
};

std::vector<std::string_view> texts_of(Path path, DataType input) {
  if (input == DataType::s8) return {std::begin(byte_texts), std::end(byte_texts)};
  switch (path) {
    case Path::nv:
      return {std::begin(nv_texts), std::end(nv_texts)};
    case Path::khr:
      return {std::begin(khr_texts), std::end(khr_texts)};
    case Path::fma:
      return {std::begin(fma_texts), std::end(fma_texts)};
  }
  return {};
}

}  // namespace

Settings& settings() {
  static Settings the_settings;
  return the_settings;
}

void tell_hazard(const std::string& text) {
  if (expected_hazards != nullptr) {
    expected_hazards->found_.push_back(text);
  } else {
    ADD_FAILURE() << "hazard: " << text;
  }
}

ExpectedHazards::ExpectedHazards() { expected_hazards = this; }
ExpectedHazards::~ExpectedHazards() { expected_hazards = nullptr; }

std::unique_ptr<headless::Runner> another_runner(headless::RunnerOptions options,
                                                 bool trusts_direct) {
  static std::once_flag watching;
  std::call_once(watching, [] { watch_commands(tell_hazard); });
  options.device = settings().device;
  options.self_test.use_trusted_list = false;
  if (trusts_direct) options.self_test.verdicts = trusted;
  options.on_validation_message = [](std::string_view text) {
    ADD_FAILURE() << "validation: " << text;
  };
  auto created = headless::Runner::create(options);
  if (!created) {
    // Not a skip: somebody asked for the tests of a device.
    std::fprintf(stderr, "no device to test: %s\n", created.error().message.c_str());
    std::exit(1);
  }
  return std::move(*created);
}

void destroy_runner() { the_runner.reset(); }

headless::Runner& runner() {
  if (the_runner == nullptr) {
    the_runner = another_runner();
    testing::AddGlobalTestEnvironment(new Teardown);
  }
  return *the_runner;
}

Target target() {
  static const DeviceTables tables(caps());
  return tables.target(caps());
}

bool peels(const Config& config) {
  const auto parameters = descriptor(config).parameters;
  const auto peel = std::ranges::find(parameters, "peel", &Parameter::name);
  return peel == parameters.end() || peel->get(config, 0) != 0;
}

std::vector<Config> small_configs(Path path, DataType input) {
  // The strictest layouts: what is legal here is legal for all others.
  const Matrix plain{.type = input}, d{.type = input == DataType::s8 ? DataType::f32 : input};
  std::vector<Config> legal;
  for (const std::string_view text : texts_of(path, input)) {
    const Config config = parse_config(text).value();
    if (config.path() != path) continue;
    bool everywhere = true;
    for (const Layout a : {Layout::row_major, Layout::col_major}) {
      for (const Layout b : {Layout::row_major, Layout::col_major}) {
        Problem problem{.m = 64, .n = 64, .k = 64, .a = plain, .b = plain, .d = d};
        problem.a.layout = a;
        problem.b.layout = b;
        everywhere = everywhere && is_legal(config, resolve(problem).value(), target());
      }
    }
    if (everywhere) legal.push_back(config);
  }
  return legal;
}

bool is_nightly() {
  static const bool nightly = std::getenv("VKGEMM_NIGHTLY") != nullptr;
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  return nightly || (test != nullptr && std::string_view(test->name()).starts_with("Nightly"));
}

namespace {

std::size_t left_out = 0;

// Equal for the same pipelines. The order of packed operands is the context's: each such case
// counts as one with pipelines of its own.
std::size_t pipelines_of(const Config& config, const Problem& problem) {
  const auto resolved = resolve(problem);
  if (!resolved || !is_legal(config, *resolved, target())) {
    return std::hash<std::string>{}(to_string(config) + ' ' + to_command_line(problem));
  }
  const DispatchPlan plan = lower(config, *resolved, target());
  std::size_t pipelines = PipelineKeyHash{}(plan.product.key);
  for (const auto& steps : {plan.before, plan.after}) {
    for (const Step& step : steps) pipelines = 31 * pipelines + PipelineKeyHash{}(step.key);
  }
  return pipelines;
}

}  // namespace

std::size_t left_out_count() { return left_out; }

bool is_left_out(const Config& config, const Problem& problem) {
  if (!on_cpu() || is_nightly()) return false;
  const std::size_t pipelines = pipelines_of(config, problem);
  static const testing::TestInfo* asked = nullptr;
  const testing::TestInfo* const asking = testing::UnitTest::GetInstance()->current_test_info();
  const bool is_first = std::exchange(asked, asking) != asking;
  static std::unordered_set<std::size_t> compiled;
  constexpr std::size_t one_in = 8;
  if (!is_first && pipelines % one_in != 0 && !compiled.contains(pipelines)) {
    ++left_out;
    return true;
  }
  compiled.insert(pipelines);
  return false;
}

namespace {

// Where a CPU runs a test by day that is there for khr and fma: on one of them. On both what a
// path's own code is most likely to break, and what has something to say of one path alone.
std::optional<Path> path_by_day() {
  constexpr std::string_view on_both[] = {"Candidates", "Guards", "GuardsOfRows", "HazardsOfRecord",
                                          "Pack"};
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const testing::TestInfo* const test = all.current_test_info();
  if (!on_cpu() || is_nightly() || settings().path || test == nullptr) return std::nullopt;
  if (!caps().khr.available || !caps().fma.available) return std::nullopt;
  const testing::TestSuite& suite = *all.current_test_suite();
  if (std::ranges::find(on_both, std::string_view(suite.name())) != std::end(on_both)) {
    return std::nullopt;
  }
  const std::string name = test->name();
  const std::string without_path = name.substr(0, name.find('/'));
  int found = 0;
  for (int i = 0; i < suite.total_test_count(); ++i) {
    const std::string_view other = suite.GetTestInfo(i)->name();
    if (other == without_path + "/khr" || other == without_path + "/fma") ++found;
  }
  if (found != 2) return std::nullopt;
  const std::hash<std::string_view> hash;
  return (hash(suite.name()) ^ hash(without_path)) % 2 == 0 ? Path::khr : Path::fma;
}

}  // namespace

std::string why_skip(Path path, DataType input) {
  if (settings().path && *settings().path != path) {
    return "only path " + std::string(to_string(*settings().path)) + " was asked for";
  }
  const PathSupport& support = caps().path(path);
  if (!support.available) {
    return "path " + std::string(to_string(path)) + " on " + caps().name + ": " + support.reason;
  }
  if (const auto by_day = path_by_day(); by_day && *by_day != path) {
    return "by day on path " + std::string(to_string(*by_day)) + ", at night on this one, too";
  }
  if (small_configs(path, input).empty()) {
    return "no legal configuration of path " + std::string(to_string(path)) + " for " +
           std::string(to_string(input)) + " inputs on " + caps().name +
           (input == DataType::bf16 && !caps().bf16_matrices
                ? ": no bf16 cooperative matrices (VK_KHR_shader_bfloat16)"
                : "");
  }
  return {};
}

Result<Plan> plan_on(Path path, const Problem& problem) {
  const auto candidates = context().candidates(problem);
  if (!candidates) return candidates.error();
  const auto own =
      std::ranges::find(*candidates, path, [](const Candidate& c) { return c.config.path(); });
  if (own == candidates->end()) {
    return Error{Status::unsupported, "no candidate of path " + std::string(to_string(path))};
  }
  return context().plan(problem, own->config);
}

void record_barrier(VkCommandBuffer commands) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                       VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, nullptr, 0,
                       nullptr);
}

std::vector<DataType> inputs_of(Path path) {
  std::vector<DataType> inputs;
  for (const DataType input : {DataType::f16, DataType::bf16, DataType::f32}) {
    if (!small_configs(path, input).empty()) inputs.push_back(input);
  }
  return inputs;
}

}  // namespace vkgemm::test
