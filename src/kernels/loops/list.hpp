// list.hpp: the main loops. Each has a file <name>.cpp in this folder, which defines <name>_loop.
#pragma once

// X(name, NAME): the enumerators of MainLoop and of VkgemmMainLoop, in the order of the former.
#define VKGEMM_MAIN_LOOPS(X) \
  X(nv, NV)                  \
  X(khr, KHR)                \
  X(khr_ring, KHR_RING)      \
  X(khr_direct, KHR_DIRECT)  \
  X(fma, FMA)                \
  X(skinny, SKINNY)
