// Functions of applications that are linked into modules: what takes their place, what is refused,
// and damaged SPIR-V.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "counter.epilogue.h"
#include "everything.epilogue.h"
#include "kernels/kernel_words.hpp"
#include "lib/constants.h"
#include "specialise/link.hpp"
#include "specialise/module.hpp"

namespace vkgemm {
namespace {

using Words = std::vector<std::uint32_t>;

constexpr const char* linked_name = "vkgemm_epilogue";

Words kernel() {
  return kernel_words("gemm_fma_f32", std::array<std::uint32_t, SPEC_COUNT>{}, false).value();
}
Words everything() { return {std::begin(vkgemm_everything), std::end(vkgemm_everything)}; }

Result<Words> linked(const Words& library, const char* name = linked_name) {
  return link_function(kernel(), SPEC_EPILOGUE_FUNCTION, library, name);
}

std::size_t count(const spirv::Module& module, spv::Op op) {
  return static_cast<std::size_t>(
      std::ranges::count(module.instructions(), op, &spirv::Instruction::op));
}

// Each id that the result uses is there once, types are not declared twice, and main is left out.
TEST(Link, AddsTheFunctionsOfALibrary) {
  const Words before = kernel(), after = linked(everything()).value(), library = everything();
  const auto module = spirv::Module::parse(before), result = spirv::Module::parse(after),
             own = spirv::Module::parse(library);
  ASSERT_TRUE(module && result && own);
  EXPECT_EQ(count(*result, spv::Op::OpFunction),
            count(*module, spv::Op::OpFunction) + count(*own, spv::Op::OpFunction) - 1);
  EXPECT_EQ(count(*result, spv::Op::OpEntryPoint), 1u);
  for (const spv::Op op : {spv::Op::OpTypeFloat, spv::Op::OpTypeBool, spv::Op::OpTypeVoid}) {
    EXPECT_EQ(count(*result, op), count(*module, op)) << static_cast<std::uint32_t>(op);
  }
}

// A constant of the epilogue decides if the function is called at all.
TEST(Link, SpecialisesTheResult) {
#define VKGEMM_DEFAULT(id, name, value) std::uint32_t{value},
  std::array<std::uint32_t, SPEC_COUNT> constants{VKGEMM_CONSTANTS(VKGEMM_DEFAULT)};
#undef VKGEMM_DEFAULT
  const LinkedFunction function{"everything", everything()};
  // The specialiser folds this loop's kernels whole: no calls hide the steps.
  const Words without = kernel_words("gemm_khr_f16", constants, true, &function).value();
  constants[SPEC_STEP_COUNT] = 1;
  constants[SPEC_STEP0] = STEP_FUNCTION;
  constants[SPEC_EPILOGUE_FUNCTION] = 1;
  const Words with = kernel_words("gemm_khr_f16", constants, true, &function).value();
  EXPECT_GT(with.size(), without.size());
}

TEST(Link, RefusesWhatKernelsDoNotHave) {
  const auto fails = [](const Result<Words>& result, const std::string& message) {
    ASSERT_FALSE(result) << message;
    EXPECT_NE(result.error().message.find(message), std::string::npos) << result.error().message;
  };
  fails(linked({}), "there is no header");
  fails(linked(everything(), "nothing"), "the module has no function nothing()");
  fails(linked(everything(), "sum_of"), "sum_of() has another type");
  fails(linked({std::begin(vkgemm_counter), std::end(vkgemm_counter)}),
        "it has a global variable without a constant value");
  fails(link_function(everything(), SPEC_EPILOGUE_FUNCTION, everything(), linked_name),
        "no function that gives way");
}

// Words that were changed or cut off: an error, or a module that can be read.
TEST(Link, DamagedLibraries) {
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    Words library = everything();
    for (std::uint32_t change = 0; change <= random() % 3; ++change) {
      std::uint32_t& word = library[random() % library.size()];
      word = random() % 2 == 0 ? word ^ 1u << random() % 32 : library[random() % library.size()];
    }
    if (random() % 8 == 0) library.resize(random() % library.size());
    const auto result = linked(library);
    if (result) {
      EXPECT_TRUE(spirv::Module::parse(*result)) << i;
    }
  }
}

}  // namespace
}  // namespace vkgemm
