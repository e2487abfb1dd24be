// reference.hpp: the oracle. The problem of vkgemm/problem.hpp in double precision on the host,
// with the bound that a correct f32-accumulating kernel must keep for every element.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/verification.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::oracle {

// Compares D (and aux, if the problem has one; may be null if not) with the reference. The oracle
// multiplies the B that the kernel multiplies: with a quantised B whose elements the kernel does
// not round (rounds_b()), `problem` has a B of f32. The bound for an element: (2K + 2) · 2^-23 ·
// |alpha| · (|A|·|B|)ij for the accumulation (of s8, which is exact, 2^-23 of the sum), the
// epilogue's own terms propagated through the activation's slope (times a small factor for the
// accuracy of the device's transcendental functions), and u_out · |ref| + the smallest subnormal
// for the last cast, u_out = 2^-11 (f16), 2^-8 (bf16), 2^-23 (f32). A row reduction takes these
// bounds through its formula and adds those of its sums. `row_values`, and `d` if the problem
// doesn't store it, may be null if there are none.
VerifyReport verify(const Problem& problem, const HostOperands& operands, const void* d,
                    const void* aux, const VerifyOptions& options = {},
                    const void* row_values = nullptr);

// The bytes of D and aux that verify() looks at, in ascending order: all else need not be
// downloaded.
struct ByteRange {
  std::uint64_t begin = 0, bytes = 0;
};
struct VerifiedParts {
  std::vector<ByteRange> d, aux;
};
VerifiedParts verified_parts(const Problem& problem, const HostOperands& operands,
                             const VerifyOptions& options);

// The reference itself, rounded to D's and aux's types, for exact comparisons (small integers).
// Writes only the elements that the problem writes, so padding keeps what it held.
void compute_reference(const Problem& problem, const HostOperands& operands, void* d, void* aux,
                       std::uint32_t threads = 0, void* row_values = nullptr);

// Bytes from the first to the last element an operand touches, over the whole batch.
struct OperandBytes {
  std::uint64_t a = 0, b = 0, b_right = 0, c = 0, d = 0, aux = 0, bias = 0, offsets = 0;
  std::uint64_t row_scales = 0, column_scales = 0;
  std::uint64_t row_vector = 0, row_values = 0;  // gamma and beta, each; results of a row reduction
};
OperandBytes operand_bytes(const Problem& problem);

}  // namespace vkgemm::oracle
