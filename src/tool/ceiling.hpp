// ceiling.hpp: the yardsticks of the benchmarks: what cooperative matrices and multiply-adds reach
// from registers alone, and what memory does, on this device, now.
#pragma once

#include "headless/runner.hpp"

namespace vkgemm::tool {

// TFLOP/s of f16 products with f32 accumulation, the best of the shapes that the device lists.
// unsupported if the device has no cooperative matrices.
Result<double> measure_matrix_ceiling(headless::Runner& runner);

// TFLOP/s of f32 multiply-adds without matrices, which path fma makes of all types.
Result<double> measure_fma_ceiling(headless::Runner& runner);

// GB/s of a copy within the device's memory, bytes read and bytes written, far beyond its caches.
Result<double> measure_bandwidth(headless::Runner& runner);

}  // namespace vkgemm::tool
