// row_quantisation.hpp: a RowQuantisation that was checked, with nothing left to default. Pure.
#pragma once

#include <cstdint>

#include "problem/resolved_matrix.hpp"
#include "vkgemm/problem.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

struct ResolvedRowQuantisation {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t batch = 1;
  ResolvedMatrix source = {};
  ResolvedMatrix codes = {};
  std::uint32_t group_k = 0;
  std::uint64_t groups = 1;  // of a row
  std::uint64_t scales_bytes = 0;
};

// Checks everything that needs no device. Messages name the caller's field and value.
Result<ResolvedRowQuantisation> resolve(const RowQuantisation& quantisation);

}  // namespace vkgemm
