// quantise_rows.hpp: one quantisation of rows on the device, against the oracle, to the byte.
#pragma once

#include <cstdint>

#include "harness.hpp"
#include "trial.hpp"

namespace vkgemm::test {

// The device's reason why not; empty: it quantises rows.
std::string why_not_quantised(const headless::Runner& device = runner());

// Rows on the host, and what the device made of them. Padding of the source is NaN, and bytes
// that nothing writes are 0xff.
class QuantisedRows {
 public:
  // `shift`: bytes by which codes begin behind a 256-byte boundary; so many elements, the source.
  explicit QuantisedRows(const RowQuantisation& quantisation, std::uint64_t shift = 0);

  // Random numbers, in rows of magnitudes from 2^-8 to 2^7.
  void fill(std::uint64_t seed);
  void set(std::uint64_t row, std::uint64_t column, double value, std::uint64_t batch = 0);
  double source(std::uint64_t row, std::uint64_t column, std::uint64_t batch = 0) const;

  // Plans and runs; once more, it must be the same bytes.
  testing::AssertionResult run(headless::Runner& device = runner());
  testing::AssertionResult repeats();

  // After run(): every byte of codes, scales, their margins and padding.
  testing::AssertionResult is_exact() const;
  // The definition's promises, without the oracle.
  testing::AssertionResult is_near() const;

  double code(std::uint64_t row, std::uint64_t column, std::uint64_t batch = 0) const;
  float scale(std::uint64_t row, std::uint64_t batch = 0) const;

  const HostBuffer& source_bytes() const { return source_; }
  const HostBuffer& codes_bytes() const { return codes_; }
  const HostBuffer& scales_bytes() const { return scales_; }

 private:
  RowQuantisation q_;
  HostBuffer source_, codes_, scales_;
};

// Every row and matrix is followed by padding: `padding` elements of the source, twice as many
// codes. `aligned`: 16 bytes are promised, else only the element's own size.
RowQuantisation with_padding(RowQuantisation quantisation, std::uint64_t padding = 1,
                             bool aligned = false);

}  // namespace vkgemm::test
