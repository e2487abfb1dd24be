// module.hpp: reads a SPIR-V module as a list of instructions, and writes instructions.
#pragma once

#define SPV_ENABLE_UTILITY_CODE
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <spirv/unified1/spirv.hpp11>
#include <string_view>
#include <vector>

#include "vkgemm/result.hpp"

namespace vkgemm::spirv {

struct Instruction {
  spv::Op op = spv::Op::OpNop;
  std::uint32_t type = 0;                   // an id; 0: none
  std::uint32_t result = 0;                 // an id; 0: none
  std::span<const std::uint32_t> words;     // all of them
  std::span<const std::uint32_t> operands;  // those after type and result

  // Returns 0, which is no id, if the instruction has fewer operands.
  std::uint32_t operand(std::size_t i) const noexcept {
    return i < operands.size() ? operands[i] : 0;
  }
};

struct ScalarType {
  std::uint32_t width = 0;  // in bits; 1: a bool; 0: no scalar type
  bool is_signed = false;
  bool is_float = false;
};

constexpr std::uint64_t mask_of(std::uint32_t width) noexcept {
  return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

// Reads a literal of `width` bits: two words if it has more than 32. Missing words are 0.
std::uint64_t read_literal(std::span<const std::uint32_t> words, std::uint32_t width) noexcept;

// Reads a literal string up to its first null.
std::string_view read_text(std::span<const std::uint32_t> words) noexcept;

// Appends an instruction; `operands` include its type and result.
void append(std::vector<std::uint32_t>& words, spv::Op op, std::span<const std::uint32_t> operands);
void append(std::vector<std::uint32_t>& words, spv::Op op,
            std::initializer_list<std::uint32_t> operands);

// True for names, sources and lines, which change nothing.
bool is_debug(spv::Op op) noexcept;

class Module {
 public:
  // `words` must outlive the module. Errors: invalid_argument.
  static Result<Module> parse(std::span<const std::uint32_t> words);

  std::span<const std::uint32_t> header() const noexcept { return header_; }
  std::span<const Instruction> instructions() const noexcept { return instructions_; }
  // Every id is less than the bound.
  std::uint32_t bound() const noexcept { return static_cast<std::uint32_t>(definitions_.size()); }
  // Returns the instruction with this result, or null.
  const Instruction* definition(std::uint32_t id) const noexcept;
  std::size_t index(const Instruction& instruction) const noexcept {
    return static_cast<std::size_t>(&instruction - instructions_.data());
  }
  // Returns the index of the first OpFunction, or the number of instructions.
  std::size_t first_function() const noexcept { return first_function_; }

  ScalarType scalar_type(std::uint32_t type) const noexcept;
  // Returns the type of the value with this id.
  ScalarType scalar_type_of(std::uint32_t id) const noexcept;
  // Returns the id of GLSL.std.450, or 0 if the module doesn't import it.
  std::uint32_t glsl_set() const noexcept { return glsl_set_; }

 private:
  std::span<const std::uint32_t> header_;
  std::vector<Instruction> instructions_;
  std::vector<std::uint32_t> definitions_;  // by id: the instruction's index plus 1
  std::size_t first_function_ = 0;
  std::uint32_t glsl_set_ = 0;
};

}  // namespace vkgemm::spirv
