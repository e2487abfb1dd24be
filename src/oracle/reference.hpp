// reference.hpp: the oracle. The problem of vkgemm/problem.hpp in double precision on the host,
// with the bound that a correct f32-accumulating kernel must keep for every element.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/verification.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::oracle {

// Compares the results among the operands (those that are not null) with the reference. The oracle
// multiplies the B that the kernel multiplies: with a quantised B whose elements the kernel does
// not round (rounds_b()), `problem` has a B of f32, and its quantised_b is set. The bound for an
// element: (2K + 2) · 2^-23 · |alpha| · (|A|·|B|)ij for the accumulation (of s8, which is exact,
// 2^-23 of the sum), the epilogue's own terms propagated through the activation's slope (times a
// small factor for the accuracy of the device's transcendental functions), and u_out · |ref| + the
// smallest subnormal for the last cast, u_out = 2^-11 (f16), 2^-8 (bf16), 2^-23 (f32). A row
// reduction takes these bounds through its formula and adds those of its sums.
VerifyReport verify(const Problem& problem, const HostOperands& operands,
                    const VerifyOptions& options = {});

// The bytes of each result that verify() looks at, in ascending order: all else need not be
// downloaded.
struct ByteRange {
  std::uint64_t begin = 0, bytes = 0;
};
using VerifiedParts = PerOperand<std::vector<ByteRange>>;
VerifiedParts verified_parts(const Problem& problem, const HostOperands& operands,
                             const VerifyOptions& options);

// The reference itself, rounded to the types of the results, for exact comparisons (small
// integers). Writes only the elements that the problem writes, so padding keeps what it held.
using HostResults = PerOperand<void*>;
void compute_reference(const Problem& problem, const HostOperands& operands,
                       const HostResults& results, std::uint32_t threads = 0);

}  // namespace vkgemm::oracle
