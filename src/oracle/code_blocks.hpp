// code_blocks.hpp: the blocks of ggml files in host memory (include/QUANTISED.md): their numbers,
// and blocks of given numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace vkgemm::oracle {

// A block of one of the SOURCE_* with IS_BLOCKS (lib/quantised.h).
struct BlockFormat {
  std::uint32_t source = 0;
  std::uint32_t group = 0;  // codes that share a scale

  std::uint32_t codes() const;  // of a block
  std::uint32_t bytes() const;

  // The stored code of an element, and the number that it stands for.
  std::uint32_t code(const std::byte* block, std::uint32_t i) const;
  void set_code(std::byte* block, std::uint32_t i, std::uint32_t code) const;
  double number(std::uint32_t code) const;

  bool has_minima() const;

  // Scale and minimum of the group of element i, in f32: exact.
  float scale(const std::byte* block, std::uint32_t i) const;
  float minimum(const std::byte* block, std::uint32_t i) const;

  // Sets the scale of element i's group, rounded to its type; up, if it is a power of two. Only of
  // scales in one level.
  void set_scale(std::byte* block, std::uint32_t i, double scale) const;

  // Random codes and scales of groups, and given numbers that multiply them.
  void fill(std::byte* block, const std::function<std::uint32_t()>& random, double scale,
            double minimum) const;

  // The plain quantisation: the largest magnitude of a group becomes that of its codes. Groups with
  // a minimum span from the smallest number or 0 to the largest. Scales and minima of groups are
  // rounded to their bits, their largest to all of them. The scale of q1_0 is the mean magnitude.
  void quantise(std::span<const double> numbers, std::byte* block) const;

 private:
  struct Range;
  struct Level;
  Range range() const;
  Level wanted(std::span<const double> numbers) const;
  std::uint32_t nearest(double number) const;
};

}  // namespace vkgemm::oracle
