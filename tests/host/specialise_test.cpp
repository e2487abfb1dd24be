// Tests of the specialiser on small modules. footprint_test.cpp and all device tests specialise the
// library's own modules.
#include "specialise/specialise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "embedded/embedded.hpp"
#include "kernels/constants.hpp"
#include "kernels/kernel_words.hpp"
#include "specialise/module.hpp"

namespace vkgemm {
namespace {

using spirv::Instruction;
using spirv::Module;
using spv::Op;
using Words = std::vector<std::uint32_t>;

// Ids of the modules below.
enum Id : std::uint32_t {
  none,
  void_type,
  function_type,
  bool_type,
  uint_type,
  ulong_type,
  uint_pointer,
  output_pointer,
  output,
  main_function,
  constant_a,  // SpecId 0
  constant_b,  // SpecId 1
  flag,        // SpecId 2, a bool
  zero,
  one,
  two,
  first_free,
};

// Writes a module with one function, `main_function`: the entry point "kernel".
class Assembler {
 public:
  Assembler() : words_{spv::MagicNumber, 0x10600, 0, first_free + 16, 0} {
    add(Op::OpCapability, {1});
    add(Op::OpMemoryModel, {0, 1});
    add(Op::OpEntryPoint, {5, main_function, 0x6e72656b, 0x6c65, output});
    add(Op::OpName, {main_function, 0x6e69616d, 0});
    for (std::uint32_t i = 0; i < 3; ++i) add(Op::OpDecorate, {constant_a + i, 1, i});
    add(Op::OpTypeVoid, {void_type});
    add(Op::OpTypeFunction, {function_type, void_type});
    add(Op::OpTypeBool, {bool_type});
    add(Op::OpTypeInt, {uint_type, 32, 0});
    add(Op::OpTypeInt, {ulong_type, 64, 0});
    add(Op::OpTypePointer, {uint_pointer, 7, uint_type});
    add(Op::OpTypePointer, {output_pointer, 4, uint_type});
    add(Op::OpVariable, {output_pointer, output, 4});
    add(Op::OpSpecConstant, {uint_type, constant_a, 7});
    add(Op::OpSpecConstant, {uint_type, constant_b, 9});
    add(Op::OpSpecConstantFalse, {bool_type, flag});
    add(Op::OpConstant, {uint_type, zero, 0});
    add(Op::OpConstant, {uint_type, one, 1});
    add(Op::OpConstant, {uint_type, two, 2});
  }

  Assembler& add(Op op, std::initializer_list<std::uint32_t> operands) {
    spirv::append(words_, op, operands);
    return *this;
  }
  // Begins the function. Its first block follows.
  Assembler& begin() { return add(Op::OpFunction, {void_type, main_function, 0, function_type}); }
  Assembler& label(std::uint32_t id) { return add(Op::OpLabel, {id}); }
  Assembler& store(std::uint32_t value) { return add(Op::OpStore, {output, value}); }
  Words end() {
    add(Op::OpReturn, {});
    add(Op::OpFunctionEnd, {});
    return words_;
  }

 private:
  Words words_;
};

struct Specialised {
  explicit Specialised(const Words& words, std::initializer_list<std::uint32_t> constants = {}) {
    auto made = specialise(words, std::vector<std::uint32_t>(constants));
    if (!made) {
      ADD_FAILURE() << made.error().message;
      return;
    }
    out = std::move(*made);
    auto parsed = Module::parse(out);
    if (!parsed) {
      ADD_FAILURE() << parsed.error().message;
      return;
    }
    for (const Instruction& instruction : parsed->instructions()) {
      all.push_back(instruction);
    }
  }

  std::size_t count(Op op) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(all, [op](const Instruction& i) { return i.op == op; }));
  }
  const Instruction* find(std::uint32_t id) const {
    const auto found =
        std::ranges::find_if(all, [id](const Instruction& i) { return i.result == id; });
    return found != all.end() ? &*found : nullptr;
  }
  // The value of an id that became a constant.
  std::uint32_t constant(std::uint32_t id) const {
    const Instruction* const found = find(id);
    if (found == nullptr || found->op != Op::OpConstant) {
      ADD_FAILURE() << "id " << id << " is no constant";
      return ~0U;
    }
    return found->operand(0);
  }

  Words out;
  std::vector<Instruction> all;
};

TEST(Specialise, SetsConstantsAndFoldsWhatFollows) {
  constexpr std::uint32_t sum = first_free, product = sum + 1, block = sum + 2;
  Assembler code;
  code.add(Op::OpSpecConstantOp,
           {uint_type, sum, static_cast<std::uint32_t>(Op::OpIAdd), constant_a, constant_b});
  code.begin().label(block).add(Op::OpIMul, {uint_type, product, sum, two}).store(product);
  const Words words = code.end();
  EXPECT_EQ(Specialised(words).constant(product), 32u) << "defaults";
  const Specialised made(words, {100, 11});
  EXPECT_EQ(made.constant(product), 222u);
  EXPECT_EQ(made.count(Op::OpIMul), 0u);
  EXPECT_EQ(made.count(Op::OpSpecConstant) + made.count(Op::OpSpecConstantOp), 0u);
  EXPECT_EQ(made.count(Op::OpDecorate), 0u) << "SpecId";
  EXPECT_EQ(made.count(Op::OpName), 0u);
  EXPECT_EQ(made.find(sum), nullptr) << "nothing needs it any more";
  EXPECT_EQ(made.find(ulong_type), nullptr);
  EXPECT_EQ(made.all[2].words[3], 0x6e72656bu) << "the entry point's name";
}

TEST(Specialise, WritesConstantsAsWideAsTheirTypes) {
  constexpr std::uint32_t wide = first_free, shift = wide + 1, narrow = wide + 2, block = wide + 3;
  Assembler code;
  code.begin()
      .label(block)
      .add(Op::OpUConvert, {ulong_type, wide, constant_a})
      .add(Op::OpShiftLeftLogical, {ulong_type, shift, wide, constant_b})
      .add(Op::OpUConvert, {uint_type, narrow, shift})
      .store(narrow)
      .add(Op::OpStore, {output, shift});
  const Specialised made(code.end(), {0xffffffff, 4});
  EXPECT_EQ(made.constant(narrow), 0xfffffff0u);
  ASSERT_NE(made.find(shift), nullptr);
  EXPECT_EQ(made.find(shift)->operand(0), 0xfffffff0u);
  EXPECT_EQ(made.find(shift)->operand(1), 0xfu);
}

TEST(Specialise, LeavesWhatTheSpecificationLeavesUndefined) {
  constexpr std::uint32_t quotient = first_free, shifted = quotient + 1, block = quotient + 2;
  Assembler code;
  code.begin()
      .label(block)
      .add(Op::OpUDiv, {uint_type, quotient, constant_a, constant_b})
      .add(Op::OpShiftLeftLogical, {uint_type, shifted, constant_a, constant_b})
      .store(quotient)
      .store(shifted);
  const Words words = code.end();
  EXPECT_EQ(Specialised(words, {7, 0}).count(Op::OpUDiv), 1u);
  EXPECT_EQ(Specialised(words, {7, 32}).count(Op::OpShiftLeftLogical), 1u);
  EXPECT_EQ(Specialised(words, {7, 31}).count(Op::OpShiftLeftLogical), 0u);
}

// if (flag) x = a; else x = b; output = x
TEST(Specialise, TakesOneBranch) {
  constexpr std::uint32_t top = first_free, yes = top + 1, no = top + 2, join = top + 3,
                          value = top + 4, local = top + 5;
  Assembler code;
  code.begin()
      .label(top)
      .add(Op::OpVariable, {uint_pointer, local, 7})
      .add(Op::OpSelectionMerge, {join, 0})
      .add(Op::OpBranchConditional, {flag, yes, no})
      .label(yes)
      .add(Op::OpStore, {local, one})
      .add(Op::OpBranch, {join})
      .label(no)
      .add(Op::OpBranch, {join})
      .label(join)
      .add(Op::OpPhi, {uint_type, value, constant_a, yes, constant_b, no})
      .store(value);
  const Words words = code.end();
  const Specialised taken(words, {100, 11, 1});
  EXPECT_EQ(taken.constant(value), 100u);
  EXPECT_EQ(taken.count(Op::OpLabel), 3u);
  EXPECT_EQ(taken.count(Op::OpSelectionMerge) + taken.count(Op::OpBranchConditional), 0u);
  EXPECT_EQ(taken.find(local), nullptr) << "stored to, never read";
  EXPECT_EQ(Specialised(words, {100, 11, 0}).constant(value), 11u);
}

// The value is not constant, but comes from one block.
TEST(Specialise, CopiesPhisOfOneValue) {
  constexpr std::uint32_t top = first_free, yes = top + 1, no = top + 2, join = top + 3,
                          value = top + 4, read = top + 5, other = top + 6;
  Assembler code;
  code.begin()
      .label(top)
      .add(Op::OpLoad, {uint_type, read, output})
      .add(Op::OpSelectionMerge, {join, 0})
      .add(Op::OpBranchConditional, {flag, yes, no})
      .label(yes)
      .add(Op::OpBranch, {join})
      .label(no)
      .add(Op::OpIAdd, {uint_type, other, read, one})
      .add(Op::OpBranch, {join})
      .label(join)
      .add(Op::OpPhi, {uint_type, value, read, yes, other, no})
      .store(value);
  const Specialised made(code.end(), {0, 0, 1});
  EXPECT_EQ(made.count(Op::OpPhi), 0u);
  ASSERT_EQ(made.count(Op::OpCopyObject), 1u);
  EXPECT_EQ(made.find(value)->operand(0), read);
  EXPECT_EQ(made.find(other), nullptr);
}

// switch (selector) { case 5: goto stay; default: if (condition) break; } stay: output = a
constexpr std::uint32_t switch_body = first_free + 1;
Words early_return(std::uint32_t selector, bool reads_condition) {
  constexpr std::uint32_t top = first_free, body = switch_body, leave = top + 2, stay = top + 3,
                          join = top + 4, read = top + 5, equal = top + 6;
  Assembler code;
  code.begin()
      .label(top)
      .add(Op::OpSelectionMerge, {join, 0})
      .add(Op::OpSwitch, {selector, body, 5, stay})
      .label(body);
  if (reads_condition) {
    code.add(Op::OpLoad, {uint_type, read, output})
        .add(Op::OpIEqual, {bool_type, equal, read, one});
  }
  code.add(Op::OpSelectionMerge, {stay, 0})
      .add(Op::OpBranchConditional, {reads_condition ? equal : std::uint32_t{flag}, leave, stay})
      .label(leave)
      .add(Op::OpBranch, {join})
      .label(stay)
      .store(constant_a)
      .add(Op::OpBranch, {join})
      .label(join);
  return code.end();
}

TEST(Specialise, KeepsASwitchThatBlocksInsideLeave) {
  const Specialised made(early_return(zero, true));
  EXPECT_EQ(made.count(Op::OpSwitch), 1u);
  EXPECT_EQ(made.count(Op::OpSelectionMerge), 2u);
}

TEST(Specialise, DropsASwitchThatNothingInsideLeaves) {
  const Words words = early_return(constant_a, false);
  for (const std::uint32_t leaves : {0u, 1u}) {
    const Specialised made(words, {4, 0, leaves});
    EXPECT_EQ(made.count(Op::OpSwitch) + made.count(Op::OpSelectionMerge), 0u);
    EXPECT_EQ(made.count(Op::OpStore), 1 - leaves);
  }
  EXPECT_EQ(Specialised(words, {5}).find(switch_body), nullptr) << "a case";
}

// for (i = 0; i < a; ++i) output = i
Words counted_loop() {
  constexpr std::uint32_t top = first_free, header = top + 1, body = top + 2, next = top + 3,
                          end = top + 4, i = top + 5, less = top + 6, more = top + 7;
  Assembler code;
  code.begin()
      .label(top)
      .add(Op::OpBranch, {header})
      .label(header)
      .add(Op::OpPhi, {uint_type, i, zero, top, more, next})
      .add(Op::OpULessThan, {bool_type, less, i, constant_a})
      .add(Op::OpLoopMerge, {end, next, 0})
      .add(Op::OpBranchConditional, {less, body, end})
      .label(body)
      .store(i)
      .add(Op::OpBranch, {next})
      .label(next)
      .add(Op::OpIAdd, {uint_type, more, i, one})
      .add(Op::OpBranch, {header})
      .label(end);
  return code.end();
}

TEST(Specialise, DropsALoopThatIsNotEntered) {
  const Specialised made(counted_loop(), {0});
  EXPECT_EQ(made.count(Op::OpLoopMerge) + made.count(Op::OpStore), 0u);
  EXPECT_EQ(made.count(Op::OpLabel), 3u);
}

TEST(Specialise, KeepsALoopThatIs) {
  const Specialised made(counted_loop(), {1});
  EXPECT_EQ(made.count(Op::OpLoopMerge), 1u);
  EXPECT_EQ(made.count(Op::OpPhi), 1u);
  EXPECT_EQ(made.count(Op::OpStore), 1u);
}

// for (;;) { if (output == 1) break; output += i; if (!flag) break; }: one iteration, with a nested
// break
TEST(Specialise, GivesALoopOfOneIterationABranchBack) {
  constexpr std::uint32_t top = first_free, header = top + 1, leave = top + 2, stay = top + 3,
                          next = top + 4, end = top + 5, i = top + 6, read = top + 7,
                          equal = top + 8, more = top + 9;
  Assembler code;
  code.begin()
      .label(top)
      .add(Op::OpBranch, {header})
      .label(header)
      .add(Op::OpPhi, {uint_type, i, zero, top, more, next})
      .add(Op::OpLoad, {uint_type, read, output})
      .add(Op::OpIAdd, {uint_type, more, i, read})
      .add(Op::OpLoopMerge, {end, next, 0})
      .add(Op::OpBranch, {leave})
      .label(leave)
      .add(Op::OpIEqual, {bool_type, equal, read, one})
      .add(Op::OpSelectionMerge, {stay, 0})
      .add(Op::OpBranchConditional, {equal, end, stay})
      .label(stay)
      .store(more)
      .add(Op::OpSelectionMerge, {next, 0})
      .add(Op::OpBranchConditional, {flag, next, end})
      .label(next)
      .add(Op::OpBranch, {header})
      .label(end);
  const Words words = code.end();
  const Specialised made(words, {0, 0, 0});
  EXPECT_EQ(made.count(Op::OpLoopMerge), 1u);
  ASSERT_NE(made.find(next), nullptr) << "the continue target";
}

TEST(Specialise, KeepsABooleanThatIsTrueForAnyNumber) {
  Assembler code;
  constexpr std::uint32_t block = first_free, value = block + 1;
  code.begin().label(block).add(Op::OpSelect, {uint_type, value, flag, one, two}).store(value);
  const Words words = code.end();
  EXPECT_EQ(Specialised(words, {0, 0, 5}).constant(value), 1u);
  EXPECT_EQ(Specialised(words).constant(value), 2u);
}

TEST(KernelWords, AreSpecialisedOrAsBuiltIn) {
  const std::vector<std::uint32_t> constants(SPEC_COUNT, 1);
  const Words embedded_words = embedded::spirv(*embedded::find_module("sum_slices"));
  EXPECT_LT(kernel_words("sum_slices", constants, true).value().size(), embedded_words.size());
  EXPECT_EQ(kernel_words("sum_slices", constants, false).value(), embedded_words);
  EXPECT_NE(kernels_digest(true), kernels_digest(false)) << "verdicts are about other kernels";
}

// Kernels of problems without 8-bit types run on devices without them.
TEST(KernelWords, DeclareBytesOnlyWhereTheyUseThem) {
  std::vector<std::uint32_t> constants;
#define VKGEMM_DEFAULT(id, name, value) constants.push_back(value);
  VKGEMM_CONSTANTS(VKGEMM_DEFAULT)
#undef VKGEMM_DEFAULT
  const auto declares = [&](std::string_view name) {
    const Words words = kernel_words(name, constants, true).value();
    const Module module = Module::parse(words).value();
    return std::ranges::any_of(module.instructions(), [](const Instruction& instruction) {
      const std::uint32_t first = instruction.operand(0);
      return instruction.op == Op::OpCapability &&
             (first == static_cast<std::uint32_t>(spv::Capability::Int8) ||
              first == static_cast<std::uint32_t>(spv::Capability::StorageBuffer8BitAccess));
    });
  };
  for (const embedded::Module& module : embedded::modules()) {
    const bool of_bytes = module.name.find("s8") != std::string_view::npos ||
                          module.name.starts_with("quantise_rows");
    if (of_bytes) continue;
    for (const std::uint32_t type : {TYPE_F16, TYPE_BF16, TYPE_F32}) {
      constants[SPEC_D_TYPE] = constants[SPEC_C_TYPE] = constants[SPEC_AUX_TYPE] = type;
      EXPECT_FALSE(declares(module.name)) << module.name;
    }
  }
  constants[SPEC_D_TYPE] = TYPE_E4M3;
  constants[SPEC_BYTE_TYPES] = 1;
  EXPECT_TRUE(declares("gemm_fma_f16"));
}

TEST(KernelWords, OfAModuleThatIsNotThere) {
  const auto words = kernel_words("none", {});
  ASSERT_FALSE(words);
  EXPECT_EQ(words.error().status, Status::unsupported);
  EXPECT_EQ(words.error().message, "there is no shader module none");
}

TEST(Specialise, RejectsWhatIsNoModule) {
  const auto message = [](const Words& words) {
    const auto made = specialise(words, {});
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(message({}), "SPIR-V, word 0: there is no header");
  Words words = counted_loop();
  words[0] = 1;
  EXPECT_EQ(message(words), "SPIR-V, word 0: there is no header");
  words = counted_loop();
  words[3] = 0x10000000;
  EXPECT_EQ(message(words), "SPIR-V, word 3: the bound is too large");
  words = counted_loop();
  words[5] &= 0xffff;
  EXPECT_EQ(message(words), "SPIR-V, word 5: the word count is wrong");
  words = counted_loop();
  words.pop_back();
  EXPECT_EQ(message(words), "SPIR-V: a function has no end");
}

// The specialiser returns an error or a module for damaged modules, and never crashes.
TEST(Specialise, SurvivesDamagedModules) {
  std::mt19937 random(1);
  const auto word = [&random] { return static_cast<std::uint32_t>(random()); };
  const auto below = [&word](std::size_t n) { return word() % static_cast<std::uint32_t>(n); };
  for (const std::string_view name : {"carry", "sum_slices", "pack", "reduce_rows"}) {
    const embedded::Module* const module = embedded::find_module(name);
    ASSERT_NE(module, nullptr) << name;
    const Words intact = embedded::spirv(*module);
    std::size_t accepted = 0;
    for (int turn = 0; turn < 200; ++turn) {
      Words words = intact;
      for (std::uint32_t changes = 1 + below(8); changes != 0; --changes) {
        words[below(words.size())] = below(2) != 0 ? word() : below(words[3]);
      }
      const std::vector<std::uint32_t> constants(below(80), word());
      if (specialise(words, constants)) ++accepted;
    }
    EXPECT_GT(accepted, 0u) << name;
  }
}

}  // namespace
}  // namespace vkgemm
