#include "kernels/parts/gated.hpp"
#include "kernels/parts/grouping.hpp"
#include "kernels/parts/pack.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/parts/split_k.hpp"

namespace vkgemm {
namespace {

constexpr const Part* all[] = {&gated_part, &rows_part, &grouping_part, &pack_part, &split_k_part};

}  // namespace

std::span<const Part* const> parts() noexcept { return all; }

}  // namespace vkgemm
