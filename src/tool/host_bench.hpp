// host_bench.hpp: what the library costs the host: plan() and record().
#pragma once

#include "headless/runner.hpp"

namespace vkgemm::tool {

// Prints times of a small f16 problem with the whole epilogue: of plan() when it compiles, when
// another problem has its pipeline, and when it is warm; of record(), with its calls of operator
// new.
void bench_host(headless::Runner& runner);

}  // namespace vkgemm::tool
