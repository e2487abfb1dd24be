// Tuning: what vkgemm_tune() returns, what later plans take, and files.
#include <stdio.h>
#include <string.h>

#include "expect.h"

typedef struct Calls {
  uint32_t count;
  uint32_t most;  // the call that ends the run
} Calls;

static VkBool32 VKAPI_PTR count_calls(const VkgemmTuneProgress* progress, void* user_data) {
  Calls* const calls = user_data;
  EXPECT(progress->struct_size == sizeof *progress && progress->timed >= 1);
  EXPECT(progress->best_us > 0.0 && progress->best_us <= progress->chosen_us);
  return ++calls->count < calls->most ? VK_TRUE : VK_FALSE;
}

// The configuration that a new plan takes.
static void expect_config(const VkgemmContext* context, const VkgemmProblem* problem,
                          const char* expected) {
  VkgemmPlan* plan = NULL;
  EXPECT_SUCCESS(vkgemm_plan_create(context, problem, NULL, &plan, error));
  const char* config = NULL;
  EXPECT_SUCCESS(vkgemm_plan_config(plan, &config));
  EXPECT(config != NULL && strcmp(config, expected) == 0);
  EXPECT_SUCCESS(vkgemm_plan_destroy(plan));
}

static void test_refusals(const Device* device, const VkgemmProblem* problem) {
  INIT(VkgemmTuneInfo, info, vkgemm_tune_info_init);
  const VkgemmStatus invalid = VKGEMM_ERROR_INVALID_ARGUMENT;
  EXPECT_ERROR(vkgemm_tune(device->context, problem, &info, NULL, error), invalid,
               "queue is VK_NULL_HANDLE");
  EXPECT_ERROR(vkgemm_tune(device->context, problem, NULL, NULL, error), invalid,
               "queue is VK_NULL_HANDLE");
  EXPECT_ERROR(vkgemm_tune(device->context, NULL, &info, NULL, error), invalid, "problem is null");
  info.queue = device->app->queue;
  info.queue_family = device->app->queue_family;
  VkgemmTuneResult result = {.struct_size = 3};
  EXPECT_ERROR(vkgemm_tune(device->context, problem, &info, &result, error), invalid,
               "result.struct_size is 3");
  info.budget_ms = -1.0;
  EXPECT_ERROR(vkgemm_tune(device->context, problem, &info, NULL, error), invalid,
               "budget_ms is -1");
  info.budget_ms = 50.0;
  info.offset_count = 2;
  EXPECT_ERROR(vkgemm_tune(device->context, problem, &info, NULL, error), invalid,
               "info.offsets is null");
  const uint64_t offsets[] = {0, 96};
  info.offsets = offsets;
  EXPECT_ERROR(vkgemm_tune(device->context, problem, &info, NULL, error), invalid,
               "offsets has 2 values, grouping is not set");
  info.skip_timed = 2;
  EXPECT_ERROR(vkgemm_tune(device->context, problem, &info, NULL, error), invalid,
               "info.skip_timed is 2");
}

void test_tune(const Device* device, const char* folder) {
  INIT(VkgemmMatrix, f32, vkgemm_matrix_init);
  f32.type = VKGEMM_DATA_TYPE_F32;
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  problem.m = problem.n = problem.k = 96;
  problem.a = problem.b = problem.d = &f32;
  test_refusals(device, &problem);

  char file[1024];
  snprintf(file, sizeof file, "%s/tuned.json", folder);
  remove(file);
  INIT(VkgemmTuneInfo, info, vkgemm_tune_info_init);
  info.queue = device->app->queue;
  info.queue_family = device->app->queue_family;
  info.budget_ms = 600000.0;
  info.file = file;
  Calls calls = {0, 2};
  info.progress = count_calls;
  info.progress_user_data = &calls;
  VkgemmContext* context = NULL;
  EXPECT_SUCCESS(vkgemm_context_create(&device->info, &context, error));
  VkgemmTuneResult result = {.struct_size = sizeof result};
  EXPECT_SUCCESS(vkgemm_tune(context, &problem, &info, &result, error));
  EXPECT(calls.count == calls.most && result.timed >= 1 && result.candidates >= result.timed);
  EXPECT(result.is_complete == VK_FALSE);
  EXPECT(result.microseconds > 0.0 && result.microseconds <= result.chosen_us);
  expect_config(device->context, &problem, result.chosen);
  expect_config(context, &problem, result.config);

  // Another time nothing is timed. Texts stay.
  const char* const config = result.config;
  info.skip_timed = VK_TRUE;
  EXPECT_SUCCESS(vkgemm_tune(context, &problem, &info, &result, error));
  EXPECT(result.timed == 0 && result.config == config && result.chosen == config);
  EXPECT_SUCCESS(vkgemm_context_destroy(context));

  // Another context loads the file.
  VkgemmContextCreateInfo with_file = device->info;
  with_file.tuning_file = file;
  EXPECT_SUCCESS(vkgemm_context_create(&with_file, &context, error));
  EXPECT_SUCCESS(vkgemm_tune(context, &problem, &info, NULL, error));
  EXPECT(calls.count == calls.most);
  EXPECT_SUCCESS(vkgemm_context_destroy(context));
  remove(file);

  const VkgemmCaps* caps = NULL;
  EXPECT_SUCCESS(vkgemm_context_caps(device->context, &caps));
  size_t size = sizeof file;
  EXPECT_SUCCESS(vkgemm_default_tuning_file(caps, file, &size));
  EXPECT(size == 1 || strstr(file, "tuned-") != NULL);
}
