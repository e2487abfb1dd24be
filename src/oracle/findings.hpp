// findings.hpp: an element that was computed beside the one that was expected, and what a whole
// verification finds. Internal to the reference.
#pragma once

#include <array>
#include <cstdint>

#include "oracle/verification.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::oracle {

// The last cast: its relative error (half a unit in the last place, a whole one of f32, which is
// not cast), and what lies below the smallest number kept. f32 and bf16 share their exponents with
// the arithmetic, which may flush to zero below 2^-126.
struct Rounding {
  double unit;
  double smallest;
  double largest;  // from here on the cast gives infinity
  DataType type;
  double zero_point;

  // The result of the cast to a type of 8 bits.
  double cast(double x) const;
};
// `zero_point`: added to what is rounded to an integer.
Rounding rounding(DataType type, double zero_point = 0.0);

struct Comparison {
  bool ok = true;
  double error = 0.0;  // zero for what is not a number or infinite
  double bound = 0.0;
};

Comparison compare(double got, double expected, double bound, const Rounding& cast,
                   bool unpredictable);

// One thread's findings.
class Findings {
 public:
  void add(const char* operand, std::uint64_t batch, std::uint64_t i, std::uint64_t j, double got,
           double expected, const Comparison& comparison);
  void merge(const Findings& other);

  // With the relative error of all that was added.
  VerifyReport finish() const;

 private:
  using Place = std::array<std::uint64_t, 3>;
  VerifyReport report_;
  Place first_{};
  double squared_error_ = 0.0;
  double squared_size_ = 0.0;
};

}  // namespace vkgemm::oracle
