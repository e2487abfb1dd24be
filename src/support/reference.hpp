// reference.hpp: the oracle. The problem of vkgemm/problem.hpp in double precision on the host,
// with the bound that a correct f32-accumulating kernel must keep for every element.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vkgemm/problem.hpp"

namespace vkgemm::support {

// Host copies of the operands, laid out exactly as the problem says (same ld, strides, types).
struct HostOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  const void* bias = nullptr;
  const void* offsets = nullptr;
  const void* gamma = nullptr;  // of a row reduction
  const void* beta = nullptr;
  const void* b_right = nullptr;  // GatedB::separate
};

enum class Verify : std::uint8_t { off, sampled, full };

struct VerifyOptions {
  Verify mode = Verify::full;
  std::uint64_t seed = 1;
  std::uint64_t sampled_rows = 64;  // per batch or group, over all of M, first and last included
  std::uint64_t sampled_groups = UINT64_MAX;  // of those that aren't empty; as rows are
  std::uint32_t threads = 0;                  // 0: all cores
};

struct VerifyReport {
  std::uint64_t checked = 0;   // elements of D and aux compared
  std::uint64_t failures = 0;  // outside the bound, or NaN where the reference has none
  double max_abs_error = 0.0;
  double max_rel_to_bound = 0.0;  // worst |error| / bound; above 1 is a failure
  double relative_error = 0.0;    // ||out - ref|| / ||ref|| over what was checked
  std::string first_failure;      // "d[batch 0, 12, 7] is 3.5, expected 3.25 ± 0.002"
  bool passed() const noexcept { return failures == 0; }
};

// Compares D (and aux, if the problem has one; may be null if not) with the reference.
// The bound for an element: (2K + 2) · 2^-23 · |alpha| · (|A|·|B|)ij for the accumulation, the
// epilogue's own terms propagated through the activation's slope (times a small factor for the
// accuracy of the device's transcendental functions), and u_out · |ref| + the smallest subnormal
// for the last cast, u_out = 2^-11 (f16), 2^-8 (bf16), 2^-23 (f32). A row reduction takes these
// bounds through its formula and adds those of its sums. `row_values`, and `d` if the problem
// doesn't store it, may be null if there are none.
VerifyReport verify(const Problem& problem, const HostOperands& operands, const void* d,
                    const void* aux, const VerifyOptions& options = {},
                    const void* row_values = nullptr);

// What verify() looks at of D and aux, in ascending order: all else need not be downloaded.
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
  std::uint64_t row_vector = 0, row_values = 0;  // gamma and beta, each; results of a row reduction
};
OperandBytes operand_bytes(const Problem& problem);

}  // namespace vkgemm::support
