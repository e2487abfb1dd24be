// Handles that are none, and pointers to nothing.
#include "expect.h"

// Hands something to every function that takes a handle; `kind` is what it is.
void refuse_everywhere(void* bad, Kind kind) {
  VkgemmVerdict verdict = {.struct_size = sizeof verdict};
  VkgemmDeviceCaps device = {.struct_size = sizeof device};
  VkgemmLimits limits = {.struct_size = sizeof limits};
  VkgemmFragmentShape fragment = {.struct_size = sizeof fragment};
  VkgemmFlexibleShape flexible = {.struct_size = sizeof flexible};
  VkgemmDenial denial = {.struct_size = sizeof denial};
  VkgemmKernelKind kernel_kind = {.struct_size = sizeof kernel_kind};
  VkgemmPackedLayout layout = {.struct_size = sizeof layout};
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  INIT(VkgemmOperands, operands, vkgemm_operands_init);
  INIT(VkgemmRowQuantisation, rows, vkgemm_row_quantisation_init);
  const VkPhysicalDeviceFeatures2* features = NULL;
  VkPhysicalDeviceFeatures2 chain = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  const char* const* names = NULL;
  const VkgemmCaps* caps = NULL;
  VkgemmVerdicts* verdicts = NULL;
  VkgemmCandidates* candidates = NULL;
  VkgemmPlan* plan = NULL;
  VkgemmStatus status = VKGEMM_SUCCESS;
  VkResult result = VK_SUCCESS;
  VkBool32 boolean = VK_FALSE;
  const char *text = NULL, *other = NULL;
  uint32_t count = 0;
  uint64_t bytes = 0;
  double ms = 0.0;
  size_t size = 0;
  const VkgemmPackedOperand b = VKGEMM_PACKED_OPERAND_B;

#define NONE_OF(of, call) \
  if (kind != of) EXPECT_STATUS(call, VKGEMM_ERROR_INVALID_HANDLE)
  NONE_OF(ERRORS, vkgemm_error_status(bad, &status));
  NONE_OF(ERRORS, vkgemm_error_message(bad, &text));
  NONE_OF(ERRORS, vkgemm_error_vk_result(bad, &result));
  NONE_OF(REQUIREMENTS, vkgemm_requirements_extensions(bad, &count, &names));
  NONE_OF(REQUIREMENTS, vkgemm_requirements_features(bad, &features));
  NONE_OF(REQUIREMENTS, vkgemm_requirements_merge_into(bad, &chain));
  NONE_OF(REQUIREMENTS, vkgemm_requirements_caps(bad, &caps));
  NONE_OF(CAPS, vkgemm_caps_device(bad, &device));
  NONE_OF(CAPS, vkgemm_caps_limits(bad, &limits));
  NONE_OF(CAPS, vkgemm_caps_path(bad, VKGEMM_PATH_FMA, &boolean, &text));
  NONE_OF(CAPS, vkgemm_caps_fragment_shape(bad, 0, &fragment));
  NONE_OF(CAPS, vkgemm_caps_flexible_shape(bad, 0, &flexible));
  NONE_OF(CAPS, vkgemm_caps_denial(bad, 0, &denial));
  NONE_OF(CAPS, vkgemm_caps_kernel_kind(bad, 0, &kernel_kind));
  NONE_OF(CAPS, vkgemm_default_verdict_file(bad, NULL, &size));
  NONE_OF(CAPS, vkgemm_default_tuning_file(bad, NULL, &size));
  NONE_OF(CAPS, vkgemm_verdicts_load(bad, "none", &verdicts, error));
  NONE_OF(VERDICTS, vkgemm_verdicts_save(bad, NULL, "none", error));
  NONE_OF(VERDICTS, vkgemm_verdicts_add(bad, &verdict, error));
  NONE_OF(VERDICTS, vkgemm_verdicts_count(bad, &count));
  NONE_OF(VERDICTS, vkgemm_verdicts_get(bad, 0, &verdict));
  NONE_OF(CONTEXT, vkgemm_context_caps(bad, &caps));
  NONE_OF(CONTEXT, vkgemm_context_verdicts(bad, &verdicts));
  NONE_OF(CONTEXT, vkgemm_context_add_function(bad, "f", &count, 1, 0.0, &count, error));
  NONE_OF(CONTEXT, vkgemm_context_barrier_aborts(bad, &count));
  NONE_OF(CONTEXT, vkgemm_context_notify_device_lost(bad));
  NONE_OF(CONTEXT, vkgemm_context_device_lost(bad, &boolean));
  NONE_OF(CONTEXT, vkgemm_context_save_pipeline_cache(bad, error));
  NONE_OF(CONTEXT, vkgemm_candidates_create(bad, &problem, &candidates, error));
  NONE_OF(CONTEXT, vkgemm_plan_create(bad, &problem, NULL, &plan, error));
  NONE_OF(CONTEXT, vkgemm_tune(bad, &problem, NULL, NULL, error));
  NONE_OF(CONTEXT, vkgemm_packed_layout(bad, &problem, b, &layout, error));
  NONE_OF(CONTEXT, vkgemm_plan_pack(bad, &problem, b, &plan, error));
  NONE_OF(CONTEXT, vkgemm_plan_quantise_rows(bad, &rows, &plan, error));
  NONE_OF(CONTEXT, vkgemm_context_record(bad, bad, VK_NULL_HANDLE, &operands, NULL, error));
  NONE_OF(CANDIDATES, vkgemm_candidates_count(bad, &count));
  NONE_OF(CANDIDATES, vkgemm_candidates_get(bad, 0, &text, &other));
  NONE_OF(PLAN, vkgemm_plan_problem(bad, &problem));
  NONE_OF(PLAN, vkgemm_plan_config(bad, &text));
  NONE_OF(PLAN, vkgemm_plan_layout(bad, &layout));
  NONE_OF(PLAN, vkgemm_plan_operands(bad, &operands));
  NONE_OF(PLAN, vkgemm_plan_workspace_bytes(bad, &bytes));
  NONE_OF(PLAN, vkgemm_plan_dispatch_count(bad, &count));
  NONE_OF(PLAN, vkgemm_plan_estimated_ms(bad, &ms));
  NONE_OF(PLAN, vkgemm_plan_explain(bad, NULL, &size));
  NONE_OF(PLAN, vkgemm_plan_command_line(bad, NULL, &size));
  NONE_OF(PLAN, vkgemm_plan_record(bad, VK_NULL_HANDLE, &operands, NULL, error));
  if (bad != NULL) {  // destroying null does nothing, an error may be null
    NONE_OF(ERRORS, vkgemm_verdicts_count(NULL, &count));
    NONE_OF(ERRORS, vkgemm_error_destroy(bad));
    NONE_OF(ERRORS, vkgemm_config_parse("fma", NULL, bad));
    NONE_OF(REQUIREMENTS, vkgemm_requirements_destroy(bad));
    NONE_OF(VERDICTS, vkgemm_verdicts_destroy(bad));
    NONE_OF(CONTEXT, vkgemm_context_destroy(bad));
    NONE_OF(CANDIDATES, vkgemm_candidates_destroy(bad));
    NONE_OF(PLAN, vkgemm_plan_destroy(bad));
  }
}

void test_no_handles(void) {
  refuse_everywhere(NULL, NO_KIND);
  uint64_t memory[4] = {1, 2, 3, 4};
  refuse_everywhere(memory, NO_KIND);
  refuse_everywhere((char*)memory + 1, NO_KIND);
  refuse_everywhere(error, ERRORS);
  EXPECT_ERROR(vkgemm_verdicts_save(NULL, NULL, "none", error), VKGEMM_ERROR_INVALID_HANDLE,
               "verdicts is null");

  EXPECT_SUCCESS(vkgemm_error_destroy(NULL));
  EXPECT_SUCCESS(vkgemm_requirements_destroy(NULL));
  EXPECT_SUCCESS(vkgemm_verdicts_destroy(NULL));
  EXPECT_SUCCESS(vkgemm_context_destroy(NULL));
  EXPECT_SUCCESS(vkgemm_candidates_destroy(NULL));
  EXPECT_SUCCESS(vkgemm_plan_destroy(NULL));

  // What was destroyed is usually told. The address sanitizer tells it always, and ends the
  // process.
#ifndef __SANITIZE_ADDRESS__
  VkgemmVerdicts* list = NULL;
  EXPECT_SUCCESS(vkgemm_verdicts_create(&list));
  void* volatile gone = list;  // a compiler that sees through it would warn
  EXPECT_SUCCESS(vkgemm_verdicts_destroy(list));
  EXPECT_STATUS(vkgemm_verdicts_destroy(gone), VKGEMM_ERROR_INVALID_HANDLE);
  refuse_everywhere(gone, NO_KIND);
#endif
}

void test_no_pointers(void) {
  uint32_t count = 0;
  size_t size = 0;
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  EXPECT_STATUS(vkgemm_error_create(NULL), VKGEMM_ERROR_INVALID_ARGUMENT);
  EXPECT_STATUS(vkgemm_verdicts_create(NULL), VKGEMM_ERROR_INVALID_ARGUMENT);
  EXPECT_STATUS(vkgemm_matrix_init(NULL, 40), VKGEMM_ERROR_INVALID_ARGUMENT);
  EXPECT_STATUS(vkgemm_version(&count, NULL, &count), VKGEMM_ERROR_INVALID_ARGUMENT);
  EXPECT_ERROR(vkgemm_problem_command_line(NULL, NULL, &size, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "problem is null");
  EXPECT_ERROR(vkgemm_config_parse(NULL, NULL, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "config is null");
  EXPECT_ERROR(vkgemm_context_create(NULL, NULL, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "info is null");
  EXPECT_ERROR(vkgemm_requirements_query(NULL, NULL, NULL, NULL, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "requirements is null");
  VkgemmRequirements* needs = NULL;
  EXPECT_ERROR(vkgemm_requirements_query(NULL, NULL, NULL, &needs, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "instance is VK_NULL_HANDLE");
  EXPECT(needs == NULL);
}
