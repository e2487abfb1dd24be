// heavy_epilogue.hpp: residual, bias, gelu and aux: everything that an epilogue may have to read
// and write. The meaning of "heavy" in benchmarks and in the compile tests.
#pragma once

#include "vkgemm/problem.hpp"

namespace vkgemm::oracle {

inline Epilogue heavy_epilogue() {
  return {.alpha = 1.25f,
          .beta = 0.5f,
          .bias = Bias::along_n,
          .activation = Activation::gelu_erf,
          .aux = true};
}

}  // namespace vkgemm::oracle
