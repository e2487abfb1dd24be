// init.cpp: structures at their defaults.
#include "c/call.hpp"
#include "c/create_info.hpp"

using namespace vkgemm;
using namespace vkgemm::c;

namespace {

template <class C>
VkgemmStatus init(C* structure, size_t struct_size, std::string_view name) {
  return call(nullptr, {pointer(structure, name)},
              [&] { return write_structure(defaults<C>(), structure, struct_size, name); });
}

}  // namespace

// Defines vkgemm_<function>_init(). Messages call the structure `name`.
#define VKGEMM_INIT(function, Structure, name)                                 \
  VkgemmStatus vkgemm_##function##_init(Structure* name, size_t struct_size) { \
    return init(name, struct_size, #name);                                     \
  }
VKGEMM_INIT(matrix, VkgemmMatrix, matrix)
VKGEMM_INIT(epilogue, VkgemmEpilogue, epilogue)
VKGEMM_INIT(gated, VkgemmGated, gated)
VKGEMM_INIT(grouping, VkgemmGrouping, grouping)
VKGEMM_INIT(row_reduction, VkgemmRowReduction, reduction)
VKGEMM_INIT(split_k, VkgemmSplitK, split_k)
VKGEMM_INIT(quantisation, VkgemmQuantisation, quantisation)
VKGEMM_INIT(problem, VkgemmProblem, problem)
VKGEMM_INIT(kernel_kind, VkgemmKernelKind, kind)
VKGEMM_INIT(verdict, VkgemmVerdict, verdict)
VKGEMM_INIT(self_test, VkgemmSelfTest, self_test)
VKGEMM_INIT(context_create_info, VkgemmContextCreateInfo, info)
VKGEMM_INIT(operands, VkgemmOperands, operands)
VKGEMM_INIT(row_quantisation, VkgemmRowQuantisation, quantisation)
VKGEMM_INIT(dispatch_range, VkgemmDispatchRange, range)
#undef VKGEMM_INIT
