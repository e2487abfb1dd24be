// module.hpp: a SPIR-V module as a list of instructions.
#pragma once

#define SPV_ENABLE_UTILITY_CODE
#include <cstddef>
#include <cstdint>
#include <span>
#include <spirv/unified1/spirv.hpp11>
#include <vector>

#include "vkgemm/result.hpp"

namespace vkgemm::spirv {

struct Instruction {
  spv::Op op = spv::Op::OpNop;
  std::uint32_t type = 0;                   // an id; 0: none
  std::uint32_t result = 0;                 // an id; 0: none
  std::span<const std::uint32_t> words;     // all of them
  std::span<const std::uint32_t> operands;  // those after type and result

  // 0, which is no id, if there are fewer.
  std::uint32_t operand(std::size_t i) const noexcept {
    return i < operands.size() ? operands[i] : 0;
  }
};

// A bool, an integer or a float.
struct ScalarType {
  std::uint32_t width = 0;  // in bits; 1 for a bool, 0 for types that are no scalars
  bool is_signed = false;
  bool is_float = false;
};

class Module {
 public:
  // `words` must outlive the module. Errors: invalid_argument.
  static Result<Module> parse(std::span<const std::uint32_t> words);

  std::span<const std::uint32_t> header() const noexcept { return header_; }
  std::span<const Instruction> instructions() const noexcept { return instructions_; }
  // All ids are less.
  std::uint32_t bound() const noexcept { return static_cast<std::uint32_t>(definitions_.size()); }
  // The instruction with this result; null if there is none.
  const Instruction* definition(std::uint32_t id) const noexcept;
  std::size_t index(const Instruction& instruction) const noexcept {
    return static_cast<std::size_t>(&instruction - instructions_.data());
  }
  // The first instruction of the first function, or the end.
  std::size_t first_function() const noexcept { return first_function_; }

  ScalarType scalar_type(std::uint32_t type) const noexcept;
  // Of the value with this id.
  ScalarType scalar_type_of(std::uint32_t id) const noexcept;
  // The id of GLSL.std.450; 0 if the module doesn't import it.
  std::uint32_t glsl_set() const noexcept { return glsl_set_; }

 private:
  std::span<const std::uint32_t> header_;
  std::vector<Instruction> instructions_;
  std::vector<std::uint32_t> definitions_;  // by id: the index plus 1
  std::size_t first_function_ = 0;
  std::uint32_t glsl_set_ = 0;
};

}  // namespace vkgemm::spirv
