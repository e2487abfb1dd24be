// Problems, their parts and their candidates.
#include <stdio.h>
#include <string.h>

#include "expect.h"

// Every field of a problem and its parts reaches the plan, and comes back from it.
void test_problem(const Device* device) {
  INIT(VkgemmMatrix, a, vkgemm_matrix_init);
  INIT(VkgemmMatrix, d, vkgemm_matrix_init);
  INIT(VkgemmEpilogue, epilogue, vkgemm_epilogue_init);
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  a.type = VKGEMM_DATA_TYPE_F32;
  a.ld = 50;
  a.batch_stride = 0;
  a.alignment = 4;
  d.type = VKGEMM_DATA_TYPE_F32;
  d.layout = VKGEMM_LAYOUT_COL_MAJOR;
  epilogue.alpha = 0.75f;
  epilogue.beta = 2.0f;
  epilogue.bias = VKGEMM_BIAS_ALONG_M;
  epilogue.bias_type = VKGEMM_DATA_TYPE_BF16;
  epilogue.bias_batch_stride = 40;
  epilogue.activation = VKGEMM_ACTIVATION_SILU;
  epilogue.aux = VK_TRUE;
  epilogue.clamp_min = -1.5f;
  epilogue.clamp_max = 6.0f;
  epilogue.row_scales = VKGEMM_SCALES_SHARED;
  epilogue.column_scales = VKGEMM_SCALES_PER_MATRIX;
  epilogue.tensors[2] = VKGEMM_TENSOR_SHAPE_MATRIX;
  epilogue.steps[0].op = VKGEMM_STEP_OP_MULTIPLY;
  epilogue.steps[0].operand = VKGEMM_STEP_OPERAND_T2;
  epilogue.steps[1].op = VKGEMM_STEP_OP_ACTIVATE;
  epilogue.steps[1].activation = VKGEMM_ACTIVATION_ELU;
  epilogue.steps[1].number = 0.25f;
  INIT(VkgemmMatrix, tensor, vkgemm_matrix_init);
  tensor.type = VKGEMM_DATA_TYPE_BF16;
  tensor.ld = 41;
  problem.m = 33;
  problem.n = 40;
  problem.k = 48;
  problem.batch = 3;
  problem.a = &a;
  VkgemmMatrix b = a;
  b.ld = VKGEMM_NOT_SET;
  b.batch_stride = VKGEMM_NOT_SET;
  problem.b = &b;
  problem.c = problem.d = problem.aux = &d;
  problem.t2 = &tensor;
  problem.epilogue = &epilogue;
  problem.f32_arithmetic = VKGEMM_F32_ARITHMETIC_BF16X9;
  problem.max_workspace_bytes = 1u << 20;
  problem.max_dispatch_ms = 5.0;
  problem.estimate_scale = 2.0;

  VkgemmPlan* plan = NULL;
  EXPECT_SUCCESS(vkgemm_plan_create(device->context, &problem, NULL, &plan, error));
  VkgemmProblem back = {.struct_size = sizeof back};
  EXPECT_SUCCESS(vkgemm_plan_problem(plan, &back));
  EXPECT(back.m == 33 && back.n == 40 && back.k == 48 && back.batch == 3);
  EXPECT(memcmp(back.a, &a, sizeof a) == 0 && memcmp(back.b, &b, sizeof b) == 0);
  EXPECT(memcmp(back.c, &d, sizeof d) == 0 && memcmp(back.d, &d, sizeof d) == 0);
  EXPECT(memcmp(back.aux, &d, sizeof d) == 0);
  EXPECT(memcmp(back.t2, &tensor, sizeof tensor) == 0);
  EXPECT(memcmp(back.epilogue, &epilogue, sizeof epilogue) == 0);
  EXPECT(back.gated == NULL && back.grouping == NULL && back.row_reduction == NULL);
  EXPECT(back.split_k != NULL && back.split_k->slices == 0);
  EXPECT(back.f32_arithmetic == VKGEMM_F32_ARITHMETIC_BF16X9);
  EXPECT(back.max_workspace_bytes == 1u << 20 && back.max_dispatch_ms == 5.0);
  EXPECT(back.estimate_scale == 2.0);
  char mine[1024], its[1024];
  snprintf(mine, sizeof mine, "%s", text_of(&problem));
  snprintf(its, sizeof its, "%s", text_of(&back));
  EXPECT(strcmp(mine, its) == 0 && strstr(mine, "--clamp-max 6") != NULL);
  EXPECT(strstr(mine, "--f32 bf16x9") != NULL);
  EXPECT(strstr(mine, "--steps multiply:t2,activate:elu:0.25") != NULL);
  EXPECT(strstr(mine, "shared") != NULL && strstr(mine, "per_matrix") != NULL);

  double ms = 0.0;
  uint32_t dispatches = 0;
  size_t size = 0;
  EXPECT_SUCCESS(vkgemm_plan_estimated_ms(plan, &ms));
  EXPECT(ms > 0.0);
  EXPECT_SUCCESS(vkgemm_plan_dispatch_count(plan, &dispatches));
  EXPECT(dispatches >= 1);
  EXPECT_SUCCESS(vkgemm_plan_explain(plan, NULL, &size));
  EXPECT(size > 100);
  size = sizeof its;
  EXPECT_SUCCESS(vkgemm_plan_command_line(plan, its, &size));
  EXPECT(strstr(its, "vkgemm run") == its && strstr(its, "--clamp-max 6") != NULL);
  EXPECT_SUCCESS(vkgemm_plan_destroy(plan));
}

static void expect_line(const Device* device, const VkgemmProblem* problem, const char* words) {
  EXPECT(strstr(text_of(problem), words) != NULL || (fprintf(stderr, "%s\n", text_of(problem)), 0));
  VkgemmPlan* plan = NULL;
  EXPECT_SUCCESS(vkgemm_plan_create(device->context, problem, NULL, &plan, error));
  VkgemmProblem back = {.struct_size = sizeof back};
  EXPECT_SUCCESS(vkgemm_plan_problem(plan, &back));
  EXPECT((back.gated != NULL) == (problem->gated != NULL));
  EXPECT(back.gated == NULL || memcmp(back.gated, problem->gated, sizeof *back.gated) == 0);
  EXPECT((back.grouping != NULL) == (problem->grouping != NULL));
  EXPECT(back.grouping == NULL ||
         memcmp(back.grouping, problem->grouping, sizeof *back.grouping) == 0);
  EXPECT((back.row_reduction != NULL) == (problem->row_reduction != NULL));
  EXPECT(back.row_reduction == NULL ||
         memcmp(back.row_reduction, problem->row_reduction, sizeof *back.row_reduction) == 0);
  EXPECT(problem->split_k == NULL ||
         memcmp(back.split_k, problem->split_k, sizeof *back.split_k) == 0);
  EXPECT_SUCCESS(vkgemm_plan_destroy(plan));
}

void test_parts(const Device* device) {
  INIT(VkgemmProblem, plain, vkgemm_problem_init);
  INIT(VkgemmMatrix, f32, vkgemm_matrix_init);
  f32.type = VKGEMM_DATA_TYPE_F32;
  plain.m = plain.n = plain.k = 64;
  plain.a = plain.b = plain.d = &f32;

  INIT(VkgemmGated, gated, vkgemm_gated_init);
  gated.gate = VKGEMM_GATE_REGLU;
  gated.b = VKGEMM_GATED_B_INTERLEAVED;
  VkgemmProblem problem = plain;
  problem.gated = &gated;
  expect_line(device, &problem, "reglu");

  INIT(VkgemmGrouping, grouping, vkgemm_grouping_init);
  grouping.groups = 5;
  grouping.offsets = VKGEMM_OFFSET_TYPE_INT64;
  grouping.b = VKGEMM_GROUPED_B_PER_GROUP;
  problem = plain;
  problem.grouping = &grouping;
  expect_line(device, &problem, "--group-count 5");
  grouping.along = VKGEMM_GROUP_ALONG_K;
  grouping.b = VKGEMM_GROUPED_B_SHARED;
  expect_line(device, &problem, "--group-count 5");

  INIT(VkgemmRowReduction, rows, vkgemm_row_reduction_init);
  rows.op = VKGEMM_ROW_OP_LAYER_NORM;
  rows.eps = 0.5f;
  rows.gamma = VK_TRUE;
  rows.beta = VK_TRUE;
  rows.vector_type = VKGEMM_DATA_TYPE_BF16;
  problem = plain;
  problem.row_reduction = &rows;
  expect_line(device, &problem, "--row-eps 0.5");
  EXPECT_SUCCESS(vkgemm_row_reduction_init(&rows, sizeof rows));
  rows.op = VKGEMM_ROW_OP_LOGSUMEXP;
  rows.value_type = VKGEMM_DATA_TYPE_F16;
  rows.store_d = VK_FALSE;
  expect_line(device, &problem, "logsumexp");

  INIT(VkgemmSplitK, split_k, vkgemm_split_k_init);
  split_k.slices = 3;
  split_k.reduction_mode = VKGEMM_REDUCTION_MODE_LAST_ARRIVER;
  problem = plain;
  problem.k = 4096;
  problem.split_k = &split_k;
  expect_line(device, &problem, "last_arriver");

  problem = plain;
  problem.gated = &gated;
  problem.row_reduction = &rows;
  VkgemmPlan* plan = NULL;
  EXPECT_ERROR(vkgemm_plan_create(device->context, &problem, NULL, &plan, error),
               VKGEMM_ERROR_UNSUPPORTED, "gated");
  INIT(VkgemmEpilogue, epilogue, vkgemm_epilogue_init);
  epilogue.row_scales = VKGEMM_SCALES_SHARED;
  problem = plain;
  problem.epilogue = &epilogue;
  problem.f32_arithmetic = VKGEMM_F32_ARITHMETIC_F16X3;
  EXPECT_ERROR(vkgemm_plan_create(device->context, &problem, NULL, &plan, error),
               VKGEMM_ERROR_UNSUPPORTED,
               "f32_arithmetic is f16x3 and epilogue.row_scales is shared");
  problem.a = problem.b = NULL;  // f16
  EXPECT_ERROR(vkgemm_plan_create(device->context, &problem, NULL, &plan, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "f32_arithmetic is f16x3 and a.type is f16");
  f32.ld = 12;
  EXPECT_ERROR(vkgemm_plan_create(device->context, &plain, NULL, &plan, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "a.ld is 12");
  EXPECT(plan == NULL);
}

void test_candidates(const Device* device) {
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  INIT(VkgemmMatrix, f32, vkgemm_matrix_init);
  f32.type = VKGEMM_DATA_TYPE_F32;
  problem.m = problem.n = problem.k = 64;
  problem.a = problem.b = problem.d = &f32;
  VkgemmCandidates* candidates = NULL;
  EXPECT_SUCCESS(vkgemm_candidates_create(device->context, &problem, &candidates, error));
  uint32_t count = 0;
  EXPECT_SUCCESS(vkgemm_candidates_count(candidates, &count));
  EXPECT(count >= 2);
  const char *config = NULL, *provenance = NULL, *planned = NULL;
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_SUCCESS(vkgemm_candidates_get(candidates, i, &config, &provenance));
    EXPECT(provenance[0] != '\0');
    VkgemmConfig parsed = {.struct_size = sizeof parsed};
    EXPECT_SUCCESS(vkgemm_config_parse(config, &parsed, error));
    EXPECT(parsed.path == VKGEMM_PATH_FMA && parsed.tile_m != 0);
  }
  EXPECT_STATUS(vkgemm_candidates_get(candidates, count, &config, &provenance),
                VKGEMM_ERROR_INVALID_ARGUMENT);
  EXPECT_SUCCESS(vkgemm_candidates_get(candidates, 1, &config, &provenance));
  VkgemmPlan* plan = NULL;
  EXPECT_SUCCESS(vkgemm_plan_create(device->context, &problem, config, &plan, error));
  EXPECT_SUCCESS(vkgemm_plan_config(plan, &planned));
  EXPECT(strcmp(planned, config) == 0);
  refuse_everywhere(plan, PLAN);
  refuse_everywhere(candidates, CANDIDATES);
  EXPECT_SUCCESS(vkgemm_plan_destroy(plan));
  EXPECT_SUCCESS(vkgemm_candidates_destroy(candidates));
  EXPECT_ERROR(vkgemm_plan_create(device->context, &problem, "fma:tile=32x32", &plan, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "tile");
}
