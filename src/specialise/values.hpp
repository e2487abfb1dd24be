// values.hpp: the value of each id, as far as it is known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "specialise/fold.hpp"
#include "specialise/module.hpp"

namespace vkgemm::spirv {

// A value of the propagation's lattice: it descends from unseen to scalar or composite to varying.
struct Value {
  enum class State : std::uint8_t { unseen, scalar, composite, varying };
  State state = State::varying;
  std::uint64_t bits = 0;  // the bits of a scalar, or the index of a composite

  bool operator==(const Value&) const = default;
};

class Values {
 public:
  // Evaluates the module's constants. `constants` are the values by SpecId. Results of instructions
  // in functions are unseen.
  Values(const Module& module, std::span<const std::uint32_t> constants);

  const Value& of(std::uint32_t id) const noexcept;
  // Returns the bits of a known scalar, and nothing for other values.
  std::optional<std::uint64_t> scalar(std::uint32_t id) const noexcept;

  // Evaluates an instruction other than OpPhi.
  Value evaluate(const Instruction& instruction);
  // Meets `value` with the value of the id. Returns true if the id's value changed.
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
  Value evaluate_constant(const Instruction& instruction) const noexcept;

  const Module& module_;
  std::map<std::uint32_t, std::uint32_t> given_;  // values of specialization constants, by id
  std::vector<Value> values_;
  std::vector<std::vector<std::uint64_t>> composites_;           // the bits of their members
  std::map<std::vector<std::uint64_t>, std::uint64_t> indices_;  // of composites
};

}  // namespace vkgemm::spirv
