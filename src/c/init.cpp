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

// Defines a function that sets a structure to its defaults. Messages call it `name`.
#define VKGEMM_INIT(function, Pointer, name) \
  VkgemmStatus function(Pointer name, size_t struct_size) { return init(name, struct_size, #name); }
VKGEMM_INIT(vkgemm_matrix_init, VkgemmMatrix*, matrix)
VKGEMM_INIT(vkgemm_epilogue_init, VkgemmEpilogue*, epilogue)
VKGEMM_INIT(vkgemm_gated_init, VkgemmGated*, gated)
VKGEMM_INIT(vkgemm_grouping_init, VkgemmGrouping*, grouping)
VKGEMM_INIT(vkgemm_row_reduction_init, VkgemmRowReduction*, reduction)
VKGEMM_INIT(vkgemm_split_k_init, VkgemmSplitK*, split_k)
VKGEMM_INIT(vkgemm_quantisation_init, VkgemmQuantisation*, quantisation)
VKGEMM_INIT(vkgemm_problem_init, VkgemmProblem*, problem)
VKGEMM_INIT(vkgemm_kernel_kind_init, VkgemmKernelKind*, kind)
VKGEMM_INIT(vkgemm_verdict_init, VkgemmVerdict*, verdict)
VKGEMM_INIT(vkgemm_self_test_init, VkgemmSelfTest*, self_test)
VKGEMM_INIT(vkgemm_context_create_info_init, VkgemmContextCreateInfo*, info)
VKGEMM_INIT(vkgemm_operands_init, VkgemmOperands*, operands)
VKGEMM_INIT(vkgemm_row_quantisation_init, VkgemmRowQuantisation*, quantisation)
VKGEMM_INIT(vkgemm_dispatch_range_init, VkgemmDispatchRange*, range)
#undef VKGEMM_INIT
