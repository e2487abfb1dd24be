#include <vkgemm/vkgemm.h>

// Plans the packing of B, which `problem` describes as it is, and the product with the packed B.
// If layout->bytes is 0, packing gains nothing: record no packing, and bind the plain B.
VkgemmStatus plan_packed(const VkgemmContext* context, VkgemmProblem problem, VkgemmPlan** packing,
                         VkgemmPlan** product, VkgemmPackedLayout* layout, VkgemmError* error) {
  VkgemmStatus status =
      vkgemm_plan_pack(context, &problem, VKGEMM_PACKED_OPERAND_B, packing, error);
  if (status != VKGEMM_SUCCESS) return status;
  layout->struct_size = sizeof *layout;
  vkgemm_plan_layout(*packing, layout);
  VkgemmMatrix b;
  vkgemm_matrix_init(&b, sizeof b);  // f16; for another type set b.type
  b.packing = VKGEMM_PACKING_PACKED;
  if (layout->bytes != 0) problem.b = &b;
  return vkgemm_plan_create(context, &problem, NULL, product, error);
}

// Recorded once. `packed` has layout->bytes bytes. Record a barrier before the first product.
VkgemmStatus record_packing(const VkgemmPlan* packing, VkCommandBuffer commands, VkgemmDeviceSpan b,
                            VkgemmDeviceSpan packed, VkgemmError* error) {
  VkgemmOperands operands;
  vkgemm_operands_init(&operands, sizeof operands);
  operands.source = b;
  operands.packed = packed;
  return vkgemm_plan_record(packing, commands, &operands, NULL, error);
}

// Recorded for each product: `operands` has the others. A plain B ignores the fingerprint.
VkgemmStatus record_product(const VkgemmPlan* product, VkCommandBuffer commands,
                            VkgemmOperands operands, VkgemmDeviceSpan b,
                            const VkgemmPackedLayout* layout, VkgemmError* error) {
  operands.b = b;  // the packed B, or the plain B if layout->bytes is 0
  operands.b_fingerprint = layout->fingerprint;
  return vkgemm_plan_record(product, commands, &operands, NULL, error);
}
