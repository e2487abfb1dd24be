// trial.hpp: one problem on one configuration, through the three gates: exact results where the
// arithmetic is exact, the elementwise bound elsewhere, and the same bits whenever it is repeated.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headless/runner.hpp"
#include "host_buffer.hpp"
#include "oracle/quantised.hpp"
#include "oracle/reference.hpp"
#include "problem/operands.hpp"
#include "vkgemm/vkgemm.hpp"

namespace vkgemm::test {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// A and B: is each packed?
struct Packs {
  bool a, b;
};
inline constexpr Packs all_packs[] = {{true, false}, {false, true}, {true, true}};

// The values that A, B, C and bias hold. All that no element stands on (padding between rows and
// matrices, what lies before and behind) is NaN.
enum class Fill : std::uint8_t {
  integers,  // -3 … 3: every sum is exact, whatever its order
  random,    // -1 … 1
};

// Element `index` of a fill.
double fill_value(Fill fill, std::uint64_t seed, std::uint64_t index);

struct TrialOptions {
  // Elements by which every span starts behind a 256-byte boundary; more than 0 only if the problem
  // promises no alignment.
  std::uint64_t shift = 0;
  bool in_place = false;   // D is C
  bool in_pieces = false;  // each dispatch is submitted by itself
  std::uint64_t seed = 1;
  std::byte poison = nan_byte;  // of D and aux; another one where NaN is what is expected
  std::vector<std::int64_t> offsets = {};  // of a grouped problem
  // Packed by Context::plan_pack() first, from where and how the problem says that they lie.
  bool packs_a = false;
  bool packs_b = false;
  Packing packing = Packing::packed;  // the order
  // B is packed from codes, in lines with padding. They are random, too, and so are scales and zero
  // points; with integers all elements are multiples of 0.5. Elements of B are what they stand for.
  std::optional<Quantisation> quantisation = {};
  headless::Runner* on = nullptr;  // the device; null: the one that all tests share
};

// Operands on the host, and what to do with them.
class Trial {
 public:
  Trial(const Problem& problem, Fill fill, const TrialOptions& options = {});

  // Sets one element. A vector along N has one row, one along M one column.
  void set(OperandId id, std::uint64_t row, std::uint64_t col, double value,
           std::uint64_t batch = 0);
  // An element of 8 bits, by its code.
  void set_byte(OperandId id, std::uint64_t row, std::uint64_t col, std::uint8_t code);

  // An integer of offsets, sizes or indices.
  void set_integer(OperandId id, std::uint64_t place, std::int64_t value);

  // The codes of a quantised B, or of its right half; store_elements() once they were changed.
  oracle::CodeMatrix& codes(OperandId id = OperandId::b) { return *codes_[id]; }
  void store_elements();

  // Plans with `config`, runs with D and aux poisoned.
  testing::AssertionResult run(const Config& config);
  testing::AssertionResult run(const Plan& plan);

  // After run(): every byte of D's and aux's memory, their margins and padding, against the
  // reference. The whole of it must be equal …
  testing::AssertionResult is_exact() const;
  // … or within the bound, and equal only where no element stands.
  testing::AssertionResult is_within_bound(oracle::Verify mode = oracle::Verify::full) const;
  // Runs again: all bytes as before.
  testing::AssertionResult repeats(const Config& config);
  testing::AssertionResult repeats(const Plan& plan);
  // After run() of both: the results have the same bytes.
  testing::AssertionResult has_bits_of(const Trial& first) const;

  // After run() of a grouped problem: the word that tells of bad offsets.
  std::uint32_t bad_group() const { return bad_group_; }

  // One element.
  double get(OperandId id, std::uint64_t row, std::uint64_t col, std::uint64_t batch = 0) const;
  double d(std::uint64_t row, std::uint64_t col, std::uint64_t batch = 0) const {
    return get(OperandId::d, row, col, batch);
  }
  double aux(std::uint64_t row, std::uint64_t col, std::uint64_t batch = 0) const {
    return get(OperandId::aux, row, col, batch);
  }
  double row_value(std::uint64_t row, std::uint64_t batch = 0) const {
    return get(OperandId::row_values, row, 0, batch);
  }

 private:
  testing::AssertionResult run(const Result<Plan>& plan);
  void record_bits(const Config& config) const;  // record.hpp
  headless::Runner& device() const;
  HostBuffer poisoned(OperandId id) const;  // a result before a run
  oracle::HostOperands host_operands() const;
  // The problem with the B that the last run's kernel multiplied.
  Problem multiplied() const;
  DataType type_of(OperandId id) const;

  Problem problem_;
  TrialOptions options_;
  PerOperand<HostBuffer> host_;  // results as the device wrote them
  PerOperand<std::shared_ptr<oracle::CodeMatrix>> codes_;
  PerOperand<std::vector<float>> exact_;  // the elements of codes, not rounded
  bool rounds_b_ = true;                  // the last run's kernel
  std::uint32_t bad_group_ = 0;
};

// As it is planned: packed operands are.
Problem planned(Problem problem, const TrialOptions& options);
// The same for a configuration: one that takes fragments gets them, whatever the device prefers.
Problem planned(const Problem& problem, TrialOptions options, const Config& config);

// The three gates. Exactness is not asked of activations that are not exact.
testing::AssertionResult passes_gates(const Config& config, const Problem& problem,
                                      const TrialOptions& options = {});

// The trial, for messages: two lines that repeat it.
std::string describe(const Config& config, const Problem& problem);

// --- problems
// ---------------------------------------------------------------------------------------

struct Shape {
  std::uint64_t m, n, k;
};

// Packed and 16-byte aligned, all operands of `input` type; D of `output` type.
Problem gemm(Shape shape, DataType input = DataType::f16, DataType output = DataType::f32);

// Every row (or column) and every matrix is followed by padding, of A by `padding` elements, of B
// by twice that, and so on. `aligned`: 16 bytes are promised, else only the element's own size.
Problem with_padding(Problem problem, std::uint64_t padding = 1, bool aligned = false);

}  // namespace vkgemm::test
