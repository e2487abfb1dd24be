// Compares the forms of modules: a kernel gives the same bits in each, so that none depends on an
// optimiser. The forms are the library's own, specialised; the embedded module, whose constants
// Vulkan sets; the module that glslang wrote, likewise; and the last one with poisoned variables.
//
// VKGEMM_SHADERS_FOLDER: the folder of the build that holds <module>.glslang.spv.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "base/text.hpp"
#include "command_watch.hpp"
#include "embedded/embedded.hpp"
#include "harness.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/parts/pack.hpp"
#include "kernels/steps.hpp"
#include "poison.hpp"
#include "problem/resolve.hpp"
#include "specialise/module.hpp"
#include "specialise/specialise.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

using Words = std::vector<std::uint32_t>;
using Constants = std::span<const std::uint32_t>;

Words unoptimised(std::string_view module) {
  const std::filesystem::path folder = std::getenv("VKGEMM_SHADERS_FOLDER");
  const auto bytes = read_file(folder / concat(module, ".glslang.spv"), std::size_t{1} << 24);
  if (!bytes) {
    ADD_FAILURE() << bytes.error().message;
    return {};
  }
  Words words(bytes->size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), bytes->data(), words.size() * sizeof(std::uint32_t));
  return words;
}

Words embedded_words(std::string_view module, Constants) {
  return embedded::spirv(*embedded::find_module(module));
}

Words poisoned(std::string_view module, Constants constants) {
  return poison(specialise(unoptimised(module), constants).value());
}

struct Form {
  std::string_view name;
  ModuleForm form;
  bool has_structures = false;  // of matrices
};

struct Case {
  std::string_view what;
  Problem problem;
  TrialOptions options = {};
};

std::vector<Case> cases() {
  const Shape shape{40, 48, 72};
  const Problem f16 = gemm(shape);
  const Problem f32 = gemm(shape, DataType::f32);
  std::vector<Case> all{
      {"f16", f16}, {"f32", f32}, {"s8", gemm(shape, DataType::s8, DataType::s32)}};
  const auto add = [&all](std::string_view what, Problem problem, auto&& change,
                          TrialOptions options = {}) {
    change(problem);
    all.push_back({what, problem, options});
  };
  add("epilogue", f16, [](Problem& p) {
    p.epilogue = {
        .alpha = 0.75f, .beta = 0.5f, .bias = Bias::along_n, .activation = Activation::gelu_tanh};
  });
  add("column-major", f16, [](Problem& p) { p.a.layout = p.b.layout = Layout::col_major; });
  add("bf16", gemm(shape, DataType::bf16), [](Problem&) {});
  add("layer_norm", f16,
      [](Problem& p) { p.row_reduction = RowReduction{.op = RowOp::layer_norm}; });
  add("logsumexp", f32, [](Problem& p) { p.row_reduction = RowReduction{.op = RowOp::logsumexp}; });
  add("softmax", f16, [](Problem& p) { p.row_reduction = RowReduction{.op = RowOp::softmax}; });
  add("swiglu", f16, [](Problem& p) { p.gated = Gated{.gate = Gate::swiglu}; });
  add("f32 in parts", f32, [](Problem& p) { p.f32_arithmetic = F32Arithmetic::f16x3; },
      {.packs_a = true, .packs_b = true});
  const std::vector<std::int64_t> offsets{0, 7, 7, 40};
  add("groups of rows", f16, [](Problem& p) { p.grouping = Grouping{.groups = 3}; },
      {.offsets = offsets});
  add("groups of K", gemm({40, 48, 40}),
      [](Problem& p) { p.grouping = Grouping{.groups = 3, .along = GroupAlong::k}; },
      {.offsets = offsets});
  for (const CodeType type : {CodeType::int4, CodeType::e4m3, CodeType::mxfp4}) {
    Quantisation codes{.type = type};
    if (type == CodeType::int4) codes.group_k = 32;
    all.push_back({to_string(type), gemm({40, 64, 128}), {.quantisation = codes}});
  }
  all.push_back({"both packed", f16, {.packs_a = true, .packs_b = true}});
  return all;
}

// Tiles that reduce rows: small_configs() has narrower ones only.
constexpr std::string_view row_texts[] = {
    "khr_ring:tile=32x32x16,fragment=8x8x8,subgroups=2x2,subgroup_size=8,subtiles=2",
    "khr_direct:tile=16x32x16,fragment=8x8x8,subgroups=2x1,subgroup_size=8,pack=ab",
};

// One configuration of each main loop, and of f16 the slices of each, too; of row reductions both
// kernels that reduce.
std::vector<Config> configurations(const Case& one) {
  const Problem problem = planned(one.problem, one.options);
  std::vector<Config> all = small_configs(Path::khr, problem.a.type);
  std::ranges::copy(small_configs(Path::fma, problem.a.type), std::back_inserter(all));
  const auto candidates = context().candidates(problem);  // of main loops that have no small one
  EXPECT_TRUE(succeeds(candidates));
  if (!candidates) return {};
  for (const Candidate& candidate : *candidates) {
    all.push_back(candidate.config);
    all.back().rows = RowStrategy::none;
  }
  std::vector<RowStrategy> strategies{RowStrategy::none};
  if (problem.row_reduction) {
    strategies = {RowStrategy::two_pass, RowStrategy::recompute};
    for (const std::string_view text : row_texts) all.push_back(parse_config(text).value());
  }
  std::vector<Config> found;
  std::set<std::pair<MainLoop, RowStrategy>> seen;
  for (const Config& config : all) {
    for (const RowStrategy strategy : strategies) {
      Config given = as_given(config, resolve(problem).value(), caps());
      given.rows = strategy;
      const std::pair kernel(config.main_loop(), strategy);
      if (seen.contains(kernel) || !context().plan(problem, given)) continue;
      seen.insert(kernel);
      found.push_back(given);
      if (one.what != "f16") continue;
      for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver,
                                       ReductionMode::device_barrier}) {
        const Config slices = sliced(given, 2, mode);
        if (context().plan(problem, slices)) found.push_back(slices);
      }
    }
  }
  return found;
}

// The modules of which forms were compared, by name.
std::set<std::string, std::less<>>& compared_modules() {
  static std::set<std::string, std::less<>> names;
  return names;
}

// Runs a problem in each form and compares the bytes of all results with the first form's.
void compare_forms(const Case& one, const Config& config, std::span<const Form> forms,
                   std::span<const std::unique_ptr<headless::Runner>> devices) {
  std::unique_ptr<Trial> first;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    // lavapipe 26.2 crashes on structures of 8-bit matrices.
    if (forms[i].has_structures && on_cpu() && one.problem.a.type == DataType::s8) continue;
    const testing::Message where = testing::Message() << one.what << ", " << forms[i].name << ", "
                                                      << to_string(config);
    TrialOptions options = one.options;
    options.on = devices[i].get();
    auto trial = std::make_unique<Trial>(one.problem, Fill::random, options);
    if (const auto& form = forms[i].form) {
      set_module_form([&form](std::string_view module, Constants constants) {
        compared_modules().emplace(module);
        return form(module, constants);
      });
    }
    const testing::AssertionResult ran = trial->run(config);
    set_module_form({});
    ASSERT_TRUE(ran) << where;
    if (first == nullptr) {
      EXPECT_TRUE(trial->is_within_bound()) << where;
      first = std::move(trial);
    } else {
      EXPECT_TRUE(trial->has_bits_of(*first)) << where;
    }
  }
}

// By day one case, and of its configurations the last: unoptimised pipelines compile slowly.
void expect_same_bits(std::string_view only) {
  if (std::getenv("VKGEMM_SHADERS_FOLDER") == nullptr) {
    GTEST_SKIP() << "VKGEMM_SHADERS_FOLDER doesn't say where unoptimised modules are";
  }
  compared_modules().clear();
  const Form forms[] = {
      {"specialised", {}},
      {"embedded", embedded_words},
      {"unoptimised", [](std::string_view module, Constants) { return unoptimised(module); }, true},
      {"poisoned", poisoned, true}};
  std::vector<std::unique_ptr<headless::Runner>> devices;
  for (std::size_t i = 0; i < std::size(forms); ++i) devices.push_back(another_runner());
  for (const Case& one : cases()) {
    if (!only.empty() && one.what != only) continue;
    std::vector<Config> configs = configurations(one);
    EXPECT_FALSE(configs.empty()) << one.what;
    if (!only.empty() && !configs.empty()) configs = {configs.back()};
    for (const Config& config : configs) {
      compare_forms(one, config, forms, devices);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_FALSE(compared_modules().empty());
}

// Every variable that is not a pointer gets an initialiser, and nothing else changes.
TEST(Forms, PoisonReachesVariables) {
  const Words words = specialise(embedded_words("gemm_khr_f16", {}), {}).value();
  const Words poisoned_words = poison(words);
  const auto before = spirv::Module::parse(words).value();
  const auto after = spirv::Module::parse(poisoned_words).value();
  std::size_t variables = 0;
  for (const spirv::Instruction& instruction : before.instructions()) {
    if (instruction.op != spv::Op::OpVariable) continue;
    const auto storage = static_cast<spv::StorageClass>(instruction.operand(0));
    const bool is_local =
        storage == spv::StorageClass::Function || storage == spv::StorageClass::Private;
    EXPECT_EQ(after.definition(instruction.result)->operand(1) != 0, is_local);
    variables += is_local ? 1 : 0;
  }
  EXPECT_GT(variables, 0u);
}

TEST(Forms, GiveTheSameBits) { expect_same_bits("f32"); }
TEST(Forms, GiveTheSameBitsFromCodes) { expect_same_bits("int4"); }

// A module's name without the type of its inputs.
std::string_view kind_of(std::string_view module) {
  for (const std::string_view suffix :
       {"_f32_in_bf16", "_f32_in_f16", "_f16", "_bf16", "_f32", "_s8"}) {
    if (module.ends_with(suffix)) return module.substr(0, module.size() - suffix.size());
  }
  return module;
}

TEST(Forms, NightlyGiveTheSameBits) {
  expect_same_bits("");
  if (IsSkipped()) return;
  std::set<std::string_view> kinds;
  for (const std::string_view module : compared_modules()) kinds.insert(kind_of(module));
  // All kernels of a main loop are compared, if its products are.
  for (const embedded::Module& module : embedded::modules()) {
    if (input_of_module(module.name) == nullptr) continue;
    const std::string_view kind = kind_of(module.name);
    for (const LoopDescriptor* const loop : main_loops()) {
      const bool is_compared = kinds.contains(concat("gemm_", loop->name));
      if (!is_compared || !kind.ends_with(concat('_', loop->name))) continue;
      EXPECT_TRUE(kinds.contains(kind)) << kind << " was never compared";
    }
  }
  std::string others;
  for (const embedded::Module& module : embedded::modules()) {
    if (!compared_modules().contains(module.name)) others += concat(' ', module.name);
  }
  std::printf("%zu of %zu modules compared, not:%s\n", compared_modules().size(),
              embedded::modules().size(), others.c_str());
}

}  // namespace
}  // namespace vkgemm::test
