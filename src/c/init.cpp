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

VkgemmStatus vkgemm_matrix_init(VkgemmMatrix* matrix, size_t struct_size) {
  return init(matrix, struct_size, "matrix");
}
VkgemmStatus vkgemm_epilogue_init(VkgemmEpilogue* epilogue, size_t struct_size) {
  return init(epilogue, struct_size, "epilogue");
}
VkgemmStatus vkgemm_gated_init(VkgemmGated* gated, size_t struct_size) {
  return init(gated, struct_size, "gated");
}
VkgemmStatus vkgemm_grouping_init(VkgemmGrouping* grouping, size_t struct_size) {
  return init(grouping, struct_size, "grouping");
}
VkgemmStatus vkgemm_row_reduction_init(VkgemmRowReduction* reduction, size_t struct_size) {
  return init(reduction, struct_size, "reduction");
}
VkgemmStatus vkgemm_split_k_init(VkgemmSplitK* split_k, size_t struct_size) {
  return init(split_k, struct_size, "split_k");
}

VkgemmStatus vkgemm_quantisation_init(VkgemmQuantisation* quantisation, size_t struct_size) {
  return init(quantisation, struct_size, "quantisation");
}
VkgemmStatus vkgemm_problem_init(VkgemmProblem* problem, size_t struct_size) {
  return init(problem, struct_size, "problem");
}
VkgemmStatus vkgemm_kernel_kind_init(VkgemmKernelKind* kind, size_t struct_size) {
  return init(kind, struct_size, "kind");
}
VkgemmStatus vkgemm_verdict_init(VkgemmVerdict* verdict, size_t struct_size) {
  return init(verdict, struct_size, "verdict");
}
VkgemmStatus vkgemm_self_test_init(VkgemmSelfTest* self_test, size_t struct_size) {
  return init(self_test, struct_size, "self_test");
}
VkgemmStatus vkgemm_context_create_info_init(VkgemmContextCreateInfo* info, size_t struct_size) {
  return init(info, struct_size, "info");
}
VkgemmStatus vkgemm_operands_init(VkgemmOperands* operands, size_t struct_size) {
  return init(operands, struct_size, "operands");
}
VkgemmStatus vkgemm_row_quantisation_init(VkgemmRowQuantisation* quantisation, size_t struct_size) {
  return init(quantisation, struct_size, "quantisation");
}
VkgemmStatus vkgemm_dispatch_range_init(VkgemmDispatchRange* range, size_t struct_size) {
  return init(range, struct_size, "range");
}
