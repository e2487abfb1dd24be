// init.cpp: structures at their defaults.
#include "c/call.hpp"
#include "c/create_info.hpp"

using namespace vkgemm;
using namespace vkgemm::c;

// Defines a function that sets a structure to its defaults.
#define VKGEMM_INIT(type, name)                                                        \
  VkgemmStatus vkgemm_##name##_init(Vkgemm##type* structure, size_t struct_size) {     \
    return call(nullptr, {pointer(structure, #name)}, [&] {                            \
      return write_structure(defaults<Vkgemm##type>(), structure, struct_size, #name); \
    });                                                                                \
  }
VKGEMM_STRUCTURES(VKGEMM_INIT)
VKGEMM_INIT(KernelKind, kernel_kind)
VKGEMM_INIT(Verdict, verdict)
VKGEMM_INIT(SelfTest, self_test)
VKGEMM_INIT(ContextCreateInfo, context_create_info)
VKGEMM_INIT(Operands, operands)
VKGEMM_INIT(DispatchRange, dispatch_range)
VKGEMM_INIT(TuneInfo, tune_info)
#undef VKGEMM_INIT
