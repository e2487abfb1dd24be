// values.hpp: what is known of the value of each id.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "specialise/fold.hpp"
#include "specialise/module.hpp"

namespace vkgemm::spirv {

// Descends from unseen to a known value to varying, never back.
struct Value {
  enum class State : std::uint8_t { unseen, scalar, composite, varying };
  State state = State::varying;
  std::uint64_t bits = 0;  // of a scalar; the number of a composite

  bool is_known() const noexcept { return state == State::scalar || state == State::composite; }
  bool operator==(const Value&) const = default;
};

class Values {
 public:
  // Of the constants, by SpecId where they have one; unseen for what functions compute.
  Values(const Module& module, std::span<const std::uint32_t> constants);

  const Value& of(std::uint32_t id) const noexcept;
  // The bits, if it is a known scalar.
  std::optional<std::uint64_t> scalar(std::uint32_t id) const noexcept;

  // What an instruction gives; all but OpPhi.
  Value evaluate(const Instruction& instruction);
  // Meets the value that the id has. Returns true if that changed it.
  bool meet(std::uint32_t id, Value value) noexcept;

  static Value met(const Value& a, const Value& b) noexcept;

  const Module& module() const noexcept { return module_; }

 private:
  Value evaluate(const Instruction& instruction, spv::Op op,
                 std::span<const std::uint32_t> operands);
  Value construct(std::span<const std::uint32_t> parts);
  Value extract(std::span<const std::uint32_t> operands) const;
  Value select(std::span<const std::uint32_t> operands) const;
  Value compute(const Instruction& instruction, spv::Op op,
                std::span<const std::uint32_t> operands) const;
  Value constant(const Instruction& instruction) const noexcept;

  const Module& module_;
  std::map<std::uint32_t, std::uint32_t> given_;  // by the id of a specialization constant
  std::vector<Value> values_;
  std::vector<std::vector<std::uint64_t>> composites_;           // the bits of their parts
  std::map<std::vector<std::uint64_t>, std::uint64_t> numbers_;  // of composites
};

}  // namespace vkgemm::spirv
