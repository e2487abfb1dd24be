// Three forms of each kernel give the same bits, so that none depends on an optimiser: as glslang
// wrote it, with the constants left to Vulkan; as it is built in, likewise; and specialised. A
// fourth one, of the first, has its variables poisoned: what a kernel reads before it writes would
// show.
//
// VKGEMM_SHADERS_FOLDER: where the build keeps <module>.glslang.spv.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "embedded/embedded.hpp"
#include "harness.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/parts/pack.hpp"
#include "poison.hpp"
#include "specialise/specialise.hpp"
#include "support/command_watch.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

using Words = std::vector<std::uint32_t>;
using Constants = std::span<const std::uint32_t>;

Words unoptimised(std::string_view module) {
  const std::string path =
      concat(std::getenv("VKGEMM_SHADERS_FOLDER"), "/", module, ".glslang.spv");
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    ADD_FAILURE() << "cannot read " << path;
    return {};
  }
  Words words(static_cast<std::size_t>(file.tellg()) / sizeof(std::uint32_t));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(words.data()),
            static_cast<std::streamsize>(words.size() * sizeof(std::uint32_t)));
  return words;
}

Words as_built_in(std::string_view module, Constants) {
  return embedded::spirv(*embedded::find_module(module));
}

Words poisoned(std::string_view module, Constants constants) {
  return poison(specialise(unoptimised(module), constants).value());
}

struct Form {
  std::string_view name;
  support::ModuleForm form;
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
  add("swiglu", f16, [](Problem& p) { p.gated = Gated{.gate = Gate::swiglu}; });
  const std::vector<std::int64_t> offsets{0, 7, 7, 40};
  add("groups of rows", f16, [](Problem& p) { p.grouping = Grouping{.groups = 3}; },
      {.offsets = offsets});
  for (const CodeType type : {CodeType::int4, CodeType::e4m3, CodeType::mxfp4}) {
    Quantisation codes{.type = type};
    if (type == CodeType::int4) codes.group_k = 32;
    all.push_back({to_string(type), gemm({40, 64, 128}), {.quantisation = codes}});
  }
  all.push_back({"both packed", f16, {.packs_a = true, .packs_b = true}});
  return all;
}

// One configuration of each main loop, and slices of one kernel.
std::vector<Config> configurations(const Case& one) {
  const Problem problem = planned(one.problem, one.options);
  std::vector<Config> all = small_configs(Path::khr, problem.a.type);
  std::ranges::copy(small_configs(Path::fma, problem.a.type), std::back_inserter(all));
  std::vector<Config> found;
  std::set<MainLoop> loops;
  for (const Config& config : all) {
    const Config given = as_given(config, resolve(problem).value(), caps());
    if (loops.contains(config.main_loop()) || !context().plan(problem, given)) continue;
    loops.insert(config.main_loop());
    found.push_back(given);
  }
  if (one.what == "f16" && !found.empty()) {
    for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver}) {
      const Config slices = sliced(found.back(), 2, mode);
      if (context().plan(problem, slices)) found.push_back(slices);
    }
  }
  return found;
}

// By day one case, with the last of its configurations: unoptimised pipelines compile slowly.
void expect_same_bits(std::string_view only) {
  if (std::getenv("VKGEMM_SHADERS_FOLDER") == nullptr) {
    GTEST_SKIP() << "VKGEMM_SHADERS_FOLDER doesn't say where unoptimised modules are";
  }
  const Form forms[] = {
      {"specialised", {}},
      {"as built in", as_built_in},
      {"unoptimised", [](std::string_view module, Constants) { return unoptimised(module); }},
      {"poisoned", poisoned}};
  int compared = 0;
  std::vector<std::unique_ptr<support::Runner>> devices;
  for (std::size_t i = 0; i < std::size(forms); ++i) devices.push_back(another_runner());
  for (const Case& one : cases()) {
    if (!only.empty() && one.what != only) continue;
    std::vector<Config> configs = configurations(one);
    EXPECT_FALSE(configs.empty()) << one.what;
    if (!only.empty() && !configs.empty()) configs = {configs.back()};
    for (const Config& config : configs) {
      std::unique_ptr<Trial> first;
      for (std::size_t i = 0; i < std::size(forms); ++i) {
        const testing::Message where = testing::Message() << one.what << ", " << forms[i].name
                                                          << ", " << to_string(config);
        TrialOptions options = one.options;
        options.on = devices[i].get();
        auto trial = std::make_unique<Trial>(one.problem, Fill::random, options);
        support::set_module_form(forms[i].form);
        const testing::AssertionResult ran = trial->run(config);
        support::set_module_form({});
        ASSERT_TRUE(ran) << where;
        if (first == nullptr) {
          EXPECT_TRUE(trial->is_within_bound()) << where;
          first = std::move(trial);
        } else {
          EXPECT_TRUE(trial->has_bits_of(*first)) << where;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 0);
}

TEST(Forms, GiveTheSameBits) { expect_same_bits("f32"); }
TEST(Forms, GiveTheSameBitsFromCodes) { expect_same_bits("int4"); }
TEST(Forms, NightlyGiveTheSameBits) { expect_same_bits(""); }

}  // namespace
}  // namespace vkgemm::test
