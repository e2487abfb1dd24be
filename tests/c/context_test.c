// Contexts: what they are created with, capabilities, the self-test, lifetimes.
#include <stdio.h>
#include <string.h>

#include "expect.h"

void test_create_info(const Device* device) {
  VkgemmContext* context = NULL;
  VkgemmContextCreateInfo info = device->info;
  info.enabled_features = NULL;
  EXPECT_ERROR(vkgemm_context_create(&info, &context, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "enabled_features is null");
  info = device->info;
  info.enabled_extensions = NULL;
  info.enabled_extension_count = 2;
  EXPECT_ERROR(vkgemm_context_create(&info, &context, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "enabled_extensions is null, and enabled_extension_count is 2");
  info = device->info;
  info.tuning_file = "/no/such/table.json";
  EXPECT_ERROR(vkgemm_context_create(&info, &context, error), VKGEMM_ERROR_IO, "table.json");
  info = device->info;
  info.read_default_tuning_file = 7;
  EXPECT_ERROR(vkgemm_context_create(&info, &context, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "info.read_default_tuning_file is 7");

  INIT(VkgemmSelfTest, self_test, vkgemm_self_test_init);
  info = device->info;
  info.self_test = &self_test;
  self_test.use_deny_list = 5;
  EXPECT_ERROR(vkgemm_context_create(&info, &context, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "self_test.use_deny_list is 5");
  self_test.use_deny_list = VK_TRUE;
  self_test.only_count = 1;
  EXPECT_ERROR(vkgemm_context_create(&info, &context, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "self_test.only is null, and self_test.only_count is 1");
  const VkgemmKernelKind* const only[1] = {NULL};
  self_test.only = only;
  EXPECT_ERROR(vkgemm_context_create(&info, &context, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "self_test.only[0] is null");
  INIT(VkgemmKernelKind, kind, vkgemm_kernel_kind_init);
  kind.loop = VKGEMM_MAIN_LOOP_KHR_DIRECT;
  kind.a_in_rows = 2;
  const VkgemmKernelKind* const kinds[1] = {&kind};
  self_test.only = kinds;
  EXPECT_ERROR(vkgemm_context_create(&info, &context, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "self_test.only[0].a_in_rows is 2");
  self_test.only_count = 0;
  self_test.verdicts = (const VkgemmVerdicts*)error;
  EXPECT_ERROR(vkgemm_context_create(&info, &context, error), VKGEMM_ERROR_INVALID_HANDLE,
               "self_test.verdicts");
  EXPECT(context == NULL);
}

void test_caps(const Device* device) {
  const VkgemmCaps *wanted = NULL, *caps = NULL;
  EXPECT_SUCCESS(vkgemm_requirements_caps(device->needs, &wanted));
  EXPECT_SUCCESS(vkgemm_context_caps(device->context, &caps));
  EXPECT(wanted != caps);
  VkgemmDeviceCaps of_needs = {.struct_size = sizeof of_needs};
  VkgemmDeviceCaps is = {.struct_size = sizeof is};
  EXPECT_SUCCESS(vkgemm_caps_device(wanted, &of_needs));
  EXPECT_SUCCESS(vkgemm_caps_device(caps, &is));
  EXPECT(is.name[0] != '\0' && strcmp(is.name, of_needs.name) == 0);
  EXPECT(is.vendor_id != 0 && is.device_id == of_needs.device_id && is.architecture[0] != '\0');
  EXPECT(memcmp(is.pipeline_cache_uuid, of_needs.pipeline_cache_uuid, VK_UUID_SIZE) == 0);
  EXPECT(is.fragment_shape_count == of_needs.fragment_shape_count && is.kernel_kind_count >= 1);
  EXPECT(is.int8_arithmetic <= VK_TRUE && is.int8_arithmetic == of_needs.int8_arithmetic);
  EXPECT((is.device_barrier == VK_TRUE) == (is.device_barrier_reason[0] == '\0'));
  VkgemmLimits limits = {.struct_size = sizeof limits};
  EXPECT_SUCCESS(vkgemm_caps_limits(caps, &limits));
  EXPECT(limits.max_shared_memory_bytes >= 16384 && limits.max_workgroup_count[2] >= 65535);

  const VkgemmPath paths[] = {VKGEMM_PATH_NV, VKGEMM_PATH_KHR, VKGEMM_PATH_FMA};
  for (size_t i = 0; i < 3; ++i) {
    VkBool32 available = VK_FALSE;
    const char* reason = NULL;
    EXPECT_SUCCESS(vkgemm_caps_path(caps, paths[i], &available, &reason));
    EXPECT(available == VK_TRUE || reason[0] != '\0');
    EXPECT(available == VK_TRUE || paths[i] != VKGEMM_PATH_FMA);
    if (paths[i] == VKGEMM_PATH_KHR) EXPECT((is.fragment_shape_count != 0) == (available != 0));
  }
  VkBool32 available = VK_FALSE;
  const char* reason = NULL;
  EXPECT_STATUS(vkgemm_caps_path(caps, (VkgemmPath)9, &available, &reason),
                VKGEMM_ERROR_INVALID_ARGUMENT);

  for (uint32_t i = 0; i < is.fragment_shape_count; ++i) {
    VkgemmFragmentShape shape = {.struct_size = sizeof shape};
    EXPECT_SUCCESS(vkgemm_caps_fragment_shape(caps, i, &shape));
    EXPECT(shape.m != 0 && shape.n != 0 && shape.k != 0 && shape.input != VKGEMM_DATA_TYPE_ANY);
  }
  for (uint32_t i = 0; i < is.flexible_shape_count; ++i) {
    VkgemmFlexibleShape shape = {.struct_size = sizeof shape};
    EXPECT_SUCCESS(vkgemm_caps_flexible_shape(caps, i, &shape));
    EXPECT(shape.granularity_m != 0 && shape.input != VKGEMM_DATA_TYPE_ANY);
  }
  for (uint32_t i = 0; i < is.denial_count; ++i) {
    VkgemmDenial denial = {.struct_size = sizeof denial};
    EXPECT_SUCCESS(vkgemm_caps_denial(caps, i, &denial));
    EXPECT(denial.reason[0] != '\0');
  }
  int f32_kinds = 0;
  for (uint32_t i = 0; i < is.kernel_kind_count; ++i) {
    VkgemmKernelKind kind = {.struct_size = sizeof kind};
    EXPECT_SUCCESS(vkgemm_caps_kernel_kind(caps, i, &kind));
    if (kind.input == VKGEMM_DATA_TYPE_F32 && kind.loop == VKGEMM_MAIN_LOOP_FMA) ++f32_kinds;
  }
  EXPECT(f32_kinds == 1);

  // Behind the end.
  VkgemmFragmentShape fragment = {.struct_size = sizeof fragment};
  VkgemmFlexibleShape flexible = {.struct_size = sizeof flexible};
  VkgemmDenial denial = {.struct_size = sizeof denial};
  VkgemmKernelKind kind = {.struct_size = sizeof kind};
  const VkgemmStatus invalid = VKGEMM_ERROR_INVALID_ARGUMENT;
  EXPECT_STATUS(vkgemm_caps_fragment_shape(caps, is.fragment_shape_count, &fragment), invalid);
  EXPECT_STATUS(vkgemm_caps_flexible_shape(caps, is.flexible_shape_count, &flexible), invalid);
  EXPECT_STATUS(vkgemm_caps_denial(caps, is.denial_count, &denial), invalid);
  EXPECT_STATUS(vkgemm_caps_kernel_kind(caps, is.kernel_kind_count, &kind), invalid);
}

// The self-test of one kind, on the application's queue; its verdict goes to a file and comes back.
void test_self_test(const Device* device, const char* folder) {
  char file[1024];
  snprintf(file, sizeof file, "%s/verdicts.json", folder);
  remove(file);
  INIT(VkgemmKernelKind, kind, vkgemm_kernel_kind_init);
  const VkgemmKernelKind* const only[] = {&kind};
  INIT(VkgemmSelfTest, self_test, vkgemm_self_test_init);
  self_test.queue = device->app->queue;
  self_test.queue_family = device->app->queue_family;
  self_test.only = only;
  self_test.only_count = 1;
  VkgemmContextCreateInfo info = device->info;
  info.self_test = &self_test;
  VkgemmContext* context = NULL;
  EXPECT_SUCCESS(vkgemm_context_create(&info, &context, error));
  VkgemmVerdicts* verdicts = NULL;
  EXPECT_SUCCESS(vkgemm_context_verdicts(context, &verdicts));
  uint32_t count = 0;
  EXPECT_SUCCESS(vkgemm_verdicts_count(verdicts, &count));
  EXPECT(count == 1);
  VkgemmVerdict verdict = {.struct_size = sizeof verdict};
  EXPECT_SUCCESS(vkgemm_verdicts_get(verdicts, 0, &verdict));
  EXPECT(verdict.loop == VKGEMM_MAIN_LOOP_FMA && verdict.outcome == VKGEMM_OUTCOME_PASSED);
  EXPECT(verdict.failed == VK_FALSE && verdict.config[0] != '\0');

  const VkgemmCaps* caps = NULL;
  EXPECT_SUCCESS(vkgemm_context_caps(context, &caps));
  EXPECT_SUCCESS(vkgemm_verdicts_save(verdicts, caps, file, error));
  EXPECT_SUCCESS(vkgemm_verdicts_destroy(verdicts));
  EXPECT_SUCCESS(vkgemm_verdicts_load(caps, file, &verdicts, error));
  EXPECT_SUCCESS(vkgemm_verdicts_get(verdicts, 0, &verdict));
  EXPECT(verdict.outcome == VKGEMM_OUTCOME_PASSED && verdict.config[0] != '\0');
  EXPECT_SUCCESS(vkgemm_context_destroy(context));

  // Handed over, they take the place of a test; one that failed takes the kind out of every choice.
  verdict.outcome = VKGEMM_OUTCOME_WRONG_RESULT;
  verdict.detail = "expected 1, got 2";
  VkgemmVerdicts* bad = NULL;
  EXPECT_SUCCESS(vkgemm_verdicts_create(&bad));
  EXPECT_SUCCESS(vkgemm_verdicts_add(bad, &verdict, error));
  EXPECT_SUCCESS(vkgemm_verdicts_destroy(verdicts));
  EXPECT_SUCCESS(vkgemm_self_test_init(&self_test, sizeof self_test));
  self_test.verdicts = bad;
  EXPECT_SUCCESS(vkgemm_context_create(&info, &context, error));
  INIT(VkgemmMatrix, f32, vkgemm_matrix_init);
  f32.type = VKGEMM_DATA_TYPE_F32;
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  problem.m = problem.n = problem.k = 64;
  problem.a = problem.b = problem.d = &f32;
  VkgemmPlan* plan = NULL;
  EXPECT_ERROR(
      vkgemm_plan_create(context, &problem, "fma:tile=32x32x16,fragment=4x4", &plan, error),
      VKGEMM_ERROR_UNSUPPORTED, "expected 1, got 2");
  EXPECT_SUCCESS(vkgemm_context_destroy(context));
  EXPECT_SUCCESS(vkgemm_verdicts_destroy(bad));

  EXPECT_SUCCESS(vkgemm_context_caps(device->context, &caps));
  EXPECT_SUCCESS(vkgemm_verdicts_load(caps, "/no/such/file", &verdicts, error));
  EXPECT_SUCCESS(vkgemm_verdicts_count(verdicts, &count));
  EXPECT(count == 0);
  EXPECT_SUCCESS(vkgemm_verdicts_destroy(verdicts));
  size_t size = 0;
  EXPECT_SUCCESS(vkgemm_default_verdict_file(caps, NULL, &size));
  EXPECT(size >= 1);
}

// Plans outlive their context; a lost device is told everywhere.
void test_lifetimes(const Device* device, const char* folder) {
  char file[1024];
  snprintf(file, sizeof file, "%s/pipelines", folder);
  remove(file);
  VkgemmContextCreateInfo info = device->info;
  info.pipeline_cache_file = file;
  VkgemmContext* context = NULL;
  EXPECT_SUCCESS(vkgemm_context_create(&info, &context, error));
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  problem.m = problem.n = problem.k = 16;
  VkgemmPlan* plan = NULL;
  EXPECT_SUCCESS(vkgemm_plan_create(context, &problem, NULL, &plan, error));
  EXPECT_SUCCESS(vkgemm_context_save_pipeline_cache(context, error));
  FILE* saved = fopen(file, "rb");
  EXPECT(saved != NULL);
  if (saved != NULL) fclose(saved);
  uint32_t aborts = 9;
  EXPECT_SUCCESS(vkgemm_context_barrier_aborts(context, &aborts));
  EXPECT(aborts == 0);
  EXPECT_SUCCESS(vkgemm_context_destroy(context));
  const char* config = NULL;
  EXPECT_SUCCESS(vkgemm_plan_config(plan, &config));
  EXPECT(config[0] != '\0');
  EXPECT_SUCCESS(vkgemm_plan_destroy(plan));

  EXPECT_SUCCESS(vkgemm_context_create(&device->info, &context, error));
  VkBool32 lost = VK_TRUE;
  EXPECT_SUCCESS(vkgemm_context_device_lost(context, &lost));
  EXPECT(lost == VK_FALSE);
  EXPECT_SUCCESS(vkgemm_context_notify_device_lost(context));
  EXPECT_SUCCESS(vkgemm_context_device_lost(context, &lost));
  EXPECT(lost == VK_TRUE);
  EXPECT_ERROR(vkgemm_plan_create(context, &problem, NULL, &plan, error), VKGEMM_ERROR_DEVICE_LOST,
               "lost");
  VkResult result = VK_SUCCESS;
  EXPECT_SUCCESS(vkgemm_error_vk_result(error, &result));
  EXPECT(result == VK_ERROR_DEVICE_LOST);
  EXPECT_SUCCESS(vkgemm_context_destroy(context));
}
