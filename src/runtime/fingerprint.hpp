// fingerprint.hpp: what packed bytes were made for. Pure.
#pragma once

#include <optional>
#include <string>

#include "problem/resolved_problem.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

// Of an operand that is `width` wide along M or N and K deep, packed for this device.
Fingerprint fingerprint_of(const ResolvedMatrix& packed, std::uint64_t width, std::uint64_t k,
                           const DeviceCaps& caps);

// The order of packed bytes in words: "rows", "fragments of 16x16 for subgroups of 32".
std::string order_text(const Fingerprint& fingerprint);

// Of what codes they are; none: of elements.
std::optional<Quantisation> quantisation_of(const Fingerprint& fingerprint);

// The fingerprints that the caller's A and B must have; not set: the operand is not packed.
struct Fingerprints {
  std::optional<Fingerprint> a, b;
  bool has_b_right = false;  // which must have b's
};
Fingerprints fingerprints_of(const ResolvedProblem& problem, const DeviceCaps& caps);

// wrong_fingerprint, if an operand has another one.
Result<void> check_fingerprints(const Fingerprints& wanted, const Operands& operands);

}  // namespace vkgemm
