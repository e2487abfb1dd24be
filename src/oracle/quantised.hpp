// quantised.hpp: quantised matrices in host memory (vkgemm/matrix.hpp, Quantisation): what codes
// mean, where they stand, and the codes of given numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "oracle/code_blocks.hpp"
#include "problem/inputs/codes.hpp"
#include "problem/operand_shape.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::oracle {

// The number that a code stands for, before zero point and scale. Codes of integers without zero
// points are two's complement.
double code_value(CodeType type, bool zeros, std::uint32_t code);

// How many codes there are in packed bytes: 16 or 256.
inline std::uint32_t code_count(CodeType type) { return 1u << bits_of(type); }

// The code whose number is nearest, the even one of two; of NaN e4m3's and e5m2's own, else 0.
std::uint32_t nearest_code(CodeType type, bool zeros, double value);

// True if the configuration rounds the elements of a quantised B to B's type before it multiplies
// them. Otherwise the oracle needs a problem whose B has f32 elements.
bool rounds_b(const Problem& problem, const Config& config);

// The matrix of an operand that is number `i` of those that differ: of a dimension that shares
// matrices there is one.
std::uint64_t matrix_of(const OperandShape& shape, std::uint64_t i);

// B of a problem, as codes that lie as Context::plan_pack() wants them.
class CodeMatrix {
 public:
  // `problem` has quantised_b and a plain B that code_source() accepts.
  explicit CodeMatrix(const Problem& problem);

  // Bytes of the spans.
  std::vector<std::byte> codes, scales, zeros;

  std::uint64_t matrices() const { return matrices_; }
  std::uint64_t columns() const { return columns_; }
  const CodeSource& source() const { return source_; }

  // Element (k, column) of a matrix. Scales and zero points are those of its group; a scale is
  // rounded to its type, E8M0 to a power of two.
  std::uint32_t code(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const;
  double scale(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const;
  double zero(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const;
  void set_code(std::uint64_t matrix, std::uint64_t k, std::uint64_t column, std::uint32_t code);
  void set_scale(std::uint64_t matrix, std::uint64_t k, std::uint64_t column, double scale);
  void set_zero(std::uint64_t matrix, std::uint64_t k, std::uint64_t column, double zero);

  // The block of an element, and its format, if codes lie in blocks.
  bool in_blocks() const { return q_.layout == CodeLayout::ggml_blocks; }
  const BlockFormat& format() const { return format_; }
  std::byte* block(std::uint64_t matrix, std::uint64_t k, std::uint64_t column);
  const std::byte* block(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const;

  // What it stands for, in f32: before it is rounded to B's type.
  float element(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const;

  // All elements, not rounded to B's type, at the places that B of `plain` has for them.
  std::vector<float> elements(const Problem& plain) const;

  // Chooses scales, zero points and codes for `value(matrix, k, column)`: a group's largest
  // magnitude (int4 with zeros: its range) is that of the codes. Calls it from several threads.
  using Values = std::function<double(std::uint64_t, std::uint64_t, std::uint64_t)>;
  void quantise(const Values& value);

 private:
  // Where a code's byte stands, and whether it is the upper half.
  struct Place {
    std::uint64_t byte = 0;
    bool upper = false;
  };
  void quantise_columns(const Values& value, std::uint64_t matrix, std::uint64_t first,
                        std::uint64_t last);
  void quantise_blocks(const Values& value, std::uint64_t matrix, std::uint64_t first,
                       std::uint64_t last);
  void set_zeros(std::uint64_t matrix, std::uint64_t k, std::uint64_t first, std::uint64_t last,
                 double zero);
  Place place_of_code(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const;
  Place place_of_zero(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const;
  std::uint64_t group_of(std::uint64_t k, std::uint64_t column) const;
  std::uint32_t offset() const;
  std::uint32_t within(std::uint64_t k) const {
    return static_cast<std::uint32_t>(k % format_.codes());
  }
  DataType scale_type() const {
    return q_.type == CodeType::nvfp4 ? DataType::e4m3 : q_.scale_type;
  }

  Quantisation q_;
  CodeSource source_;
  BlockFormat format_;
  bool in_rows_ = true;
  std::uint64_t k_ = 0, columns_ = 0, matrices_ = 0;
};

}  // namespace vkgemm::oracle
