// liveness.hpp: the instructions that a module's effects depend on.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "specialise/flow.hpp"
#include "specialise/module.hpp"
#include "specialise/values.hpp"

namespace vkgemm::spirv {

class Liveness {
 public:
  // `functions` holds every function of the module, restructured.
  Liveness(const Module& module, std::span<const Function> functions, const Values& values);

  // True if the instruction of a reached block is needed.
  bool is_live(const Instruction& instruction) const noexcept {
    return live_[module_.index(instruction)];
  }
  bool is_live(std::uint32_t id) const noexcept { return id < needed_.size() && needed_[id]; }

  // True if a type of 8 bits is needed.
  bool uses_bytes() const noexcept;

  // The needed ids of instructions in functions whose values are known scalars.
  std::span<const std::uint32_t> constants() const noexcept { return constants_; }

 private:
  void start_globals();
  void start_function(const Function& function);
  void run();
  void reach(const Instruction& instruction) { reached_[module_.index(instruction)] = true; }
  void need(std::uint32_t id);
  void need_operands(const Instruction& instruction);
  void activate(const Instruction& instruction);
  void need_phi_operands(const Instruction& phi);
  const Instruction* local_variable(std::uint32_t pointer) const noexcept;

  struct Place {
    const Function* function = nullptr;
    BlockIndex block = no_block;
  };

  const Module& module_;
  const std::span<const Function> functions_;
  const Values& values_;
  std::vector<bool> live_;     // by instruction
  std::vector<bool> reached_;  // by instruction: global, or in a reached block of a live function
  std::vector<bool> needed_;   // by id
  std::vector<std::uint32_t> work_;
  std::vector<std::uint32_t> constants_;
  std::map<std::uint32_t, const Function*> function_of_;             // by OpFunction
  std::map<std::uint32_t, std::vector<const Instruction*>> stores_;  // by variable
  std::vector<Place> place_;                                         // of phis, by id
};

}  // namespace vkgemm::spirv
