// row_quantisation.hpp: the oracle of rows that become codes (vkgemm/matrix.hpp, RowQuantisation):
// in double precision, rounded where the definition rounds, so every bit.
#pragma once

#include "vkgemm/problem.hpp"

namespace vkgemm::oracle {

// Writes the codes of elements, so padding keeps what it held, and all scales.
void quantise_rows(const RowQuantisation& quantisation, const void* source, void* codes,
                   void* scales);

}  // namespace vkgemm::oracle
