#include "kernels/part.hpp"

namespace vkgemm {

extern const Part quantised_part;
extern const Part gated_part;
extern const Part rows_part;
extern const Part grouping_part;
extern const Part pack_part;
extern const Part split_k_part;
extern const Part column_sums_part;
extern const Part amax_part;

namespace {

constexpr const Part* all[] = {&quantised_part, &gated_part,   &rows_part,        &grouping_part,
                               &pack_part,      &split_k_part, &column_sums_part, &amax_part};

}  // namespace

std::span<const Part* const> parts() noexcept { return all; }

}  // namespace vkgemm
