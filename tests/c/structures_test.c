// Structures of callers who know fewer fields or more, defaults, names, texts: all that needs no
// device.
#include <math.h>
#include <string.h>

#include "expect.h"

static void test_version(void) {
  uint32_t major = 9, minor = 9, patch = 9;
  EXPECT_SUCCESS(vkgemm_version(&major, &minor, &patch));
  EXPECT(major == VKGEMM_VERSION_MAJOR && minor == VKGEMM_VERSION_MINOR);
  EXPECT(patch == VKGEMM_VERSION_PATCH);
  EXPECT_STATUS(vkgemm_version(NULL, &minor, &patch), VKGEMM_ERROR_INVALID_ARGUMENT);
}

static void test_names(void) {
  const char* name = NULL;
  EXPECT_SUCCESS(
      vkgemm_enumerator_name(VKGEMM_ENUMERATION_ACTIVATION, VKGEMM_ACTIVATION_GELU_ERF, &name));
  EXPECT(name != NULL && strcmp(name, "gelu_erf") == 0);
  int32_t value = -1;
  EXPECT_SUCCESS(vkgemm_enumerator_parse(VKGEMM_ENUMERATION_DATA_TYPE, "bf16", &value));
  EXPECT(value == VKGEMM_DATA_TYPE_BF16);

  // Each name leads back, and no enumeration is without names.
  for (int32_t e = 0; e <= VKGEMM_ENUMERATION_GROUP_BOUNDS; ++e) {
    int count = 0;
    for (int32_t v = 0; v < 64; ++v) {
      if (vkgemm_enumerator_name((VkgemmEnumeration)e, v, &name) != VKGEMM_SUCCESS) continue;
      ++count;
      int32_t back = -1;
      EXPECT_SUCCESS(vkgemm_enumerator_parse((VkgemmEnumeration)e, name, &back));
      EXPECT(back == v);
    }
    EXPECT(count >= 2);
  }

  value = 7;
  EXPECT_STATUS(vkgemm_enumerator_name(VKGEMM_ENUMERATION_BIAS, 77, &name),
                VKGEMM_ERROR_INVALID_ARGUMENT);
  EXPECT_STATUS(vkgemm_enumerator_parse(VKGEMM_ENUMERATION_BIAS, "along_z", &value),
                VKGEMM_ERROR_INVALID_ARGUMENT);
  EXPECT_STATUS(
      vkgemm_enumerator_name((VkgemmEnumeration)(VKGEMM_ENUMERATION_GROUP_BOUNDS + 1), 0, &name),
      VKGEMM_ERROR_INVALID_ARGUMENT);
  EXPECT_STATUS(vkgemm_enumerator_parse((VkgemmEnumeration)77, "none", &value),
                VKGEMM_ERROR_INVALID_ARGUMENT);
  EXPECT_STATUS(vkgemm_enumerator_parse((VkgemmEnumeration)-1, "none", &value),
                VKGEMM_ERROR_INVALID_ARGUMENT);
  EXPECT(value == 7);
}

static void test_defaults(void) {
  INIT(VkgemmMatrix, matrix, vkgemm_matrix_init);
  EXPECT(matrix.struct_size == sizeof matrix && matrix.type == VKGEMM_DATA_TYPE_F16);
  EXPECT(matrix.layout == VKGEMM_LAYOUT_ROW_MAJOR && matrix.packing == VKGEMM_PACKING_PLAIN);
  EXPECT(matrix.ld == VKGEMM_NOT_SET && matrix.batch_stride == VKGEMM_NOT_SET);
  EXPECT(matrix.alignment == 16 && matrix.reserved == 0);
  INIT(VkgemmEpilogue, epilogue, vkgemm_epilogue_init);
  EXPECT(epilogue.alpha == 1.0f && epilogue.beta == 0.0f && epilogue.aux == VK_FALSE);
  EXPECT(epilogue.bias == VKGEMM_BIAS_NONE && epilogue.bias_type == VKGEMM_DATA_TYPE_F32);
  EXPECT(epilogue.row_scales == VKGEMM_SCALES_NONE);
  EXPECT(epilogue.column_scales == VKGEMM_SCALES_NONE);
  EXPECT(isnan(epilogue.clamp_min) && isnan(epilogue.clamp_max));
  EXPECT(epilogue.zero_point == 0);
  for (int i = 0; i < 4; ++i) EXPECT(epilogue.tensors[i] == VKGEMM_TENSOR_SHAPE_NONE);
  for (int i = 0; i < 8; ++i) {
    const VkgemmEpilogueStep* const step = &epilogue.steps[i];
    EXPECT(step->op == VKGEMM_STEP_OP_NONE && step->activation == VKGEMM_ACTIVATION_NONE);
    EXPECT(step->operand == VKGEMM_STEP_OPERAND_NUMBER && step->number == 0.0f);
  }
  INIT(VkgemmGated, gated, vkgemm_gated_init);
  EXPECT(gated.gate == VKGEMM_GATE_SWIGLU && gated.b == VKGEMM_GATED_B_HALVES);
  INIT(VkgemmGrouping, grouping, vkgemm_grouping_init);
  EXPECT(grouping.groups == 0 && grouping.along == VKGEMM_GROUP_ALONG_M);
  INIT(VkgemmRowReduction, rows, vkgemm_row_reduction_init);
  EXPECT(rows.op == VKGEMM_ROW_OP_RMS_NORM && isnan(rows.eps) && rows.store_d == VK_TRUE);
  INIT(VkgemmQuantisation, codes, vkgemm_quantisation_init);
  EXPECT(codes.type == VKGEMM_CODE_TYPE_INT8 && codes.group_k == 0 && codes.group_n == 1);
  INIT(VkgemmSplitK, split_k, vkgemm_split_k_init);
  EXPECT(split_k.slices == 0 && split_k.reduction_mode == VKGEMM_REDUCTION_MODE_ANY);
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  EXPECT(problem.batch == 1 && problem.quantised_b == NULL);
  EXPECT(problem.a == NULL && problem.epilogue == NULL);
  EXPECT(problem.t0 == NULL && problem.t1 == NULL && problem.t2 == NULL && problem.t3 == NULL);
  EXPECT(problem.f32_arithmetic == VKGEMM_F32_ARITHMETIC_IEEE);
  EXPECT(problem.multiply_as == VKGEMM_DATA_TYPE_ANY && !problem.sum_batch);
  EXPECT(problem.outer_batch == 1 && problem.a_group_k == 0);
  EXPECT(problem.max_workspace_bytes == 256u << 20 && problem.estimate_scale == 1.0);
  INIT(VkgemmOperands, operands, vkgemm_operands_init);
  EXPECT(operands.a.address == 0 && operands.workspace.bytes == 0 && operands.packed.bytes == 0);
  EXPECT(operands.t0.address == 0 && operands.t3.bytes == 0);
  INIT(VkgemmDispatchRange, range, vkgemm_dispatch_range_init);
  EXPECT(range.first == 0 && range.count == UINT32_MAX);
  INIT(VkgemmRowQuantisation, quantisation, vkgemm_row_quantisation_init);
  EXPECT(quantisation.rows == 0 && quantisation.columns == 0 && quantisation.batch == 1);
  EXPECT(quantisation.source == NULL && quantisation.codes == NULL);
  INIT(VkgemmKernelKind, kind, vkgemm_kernel_kind_init);
  EXPECT(kind.loop == VKGEMM_MAIN_LOOP_FMA && kind.input == VKGEMM_DATA_TYPE_F32);
  INIT(VkgemmVerdict, verdict, vkgemm_verdict_init);
  EXPECT(verdict.outcome == VKGEMM_OUTCOME_UNTESTED && strcmp(verdict.detail, "") == 0);
  INIT(VkgemmSelfTest, self_test, vkgemm_self_test_init);
  EXPECT(self_test.timeout_ms == 10000 && self_test.use_deny_list == VK_TRUE);
  EXPECT(self_test.read_default_file == VK_TRUE && self_test.use_trusted_list == VK_TRUE);
  INIT(VkgemmContextCreateInfo, info, vkgemm_context_create_info_init);
  EXPECT(info.struct_size == sizeof info && info.device == VK_NULL_HANDLE && info.log == NULL);
  EXPECT(info.read_default_tuning_file == VK_TRUE);
  INIT(VkgemmTuneInfo, tune, vkgemm_tune_info_init);
  EXPECT(tune.queue == VK_NULL_HANDLE && tune.budget_ms == 1000.0 && tune.max_candidates == 48);
  EXPECT(tune.threads == 0 && tune.warm_l2 == VK_FALSE && tune.skip_timed == VK_FALSE);
  EXPECT(tune.file == NULL && tune.progress == NULL && tune.progress_user_data == NULL);
}

static void test_older_callers(void) {
  // A matrix of a caller who knows no field behind `packing`: what stands there is not read.
  VkgemmMatrix a;
  memset(&a, 0xEE, sizeof a);
  a.struct_size = offsetof(VkgemmMatrix, ld);
  a.type = VKGEMM_DATA_TYPE_F32;
  a.layout = VKGEMM_LAYOUT_COL_MAJOR;
  a.packing = VKGEMM_PACKING_PLAIN;
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  problem.m = problem.n = problem.k = 8;
  problem.a = &a;
  EXPECT(strstr(text_of(&problem), "--layout-a col_major") != NULL);
  EXPECT(strstr(text_of(&problem), "--ld-a") == NULL);
  EXPECT(strstr(text_of(&problem), "--alignment-a") == NULL);
  // With them they are read.
  a.struct_size = sizeof a;
  a.ld = 24;
  a.batch_stride = VKGEMM_NOT_SET;
  a.alignment = 4;
  a.reserved = 0;
  a.outer_batch_stride = VKGEMM_NOT_SET;
  EXPECT(strstr(text_of(&problem), "--ld-a 24 --alignment-a 4") != NULL);

  // An epilogue of a caller who knows no column scales has none.
  VkgemmEpilogue epilogue;
  EXPECT_SUCCESS(vkgemm_epilogue_init(&epilogue, sizeof epilogue));
  epilogue.column_scales = VKGEMM_SCALES_SHARED;
  epilogue.zero_point = -3;
  problem.epilogue = &epilogue;
  EXPECT(strstr(text_of(&problem), "--column-scales") != NULL);
  EXPECT(strstr(text_of(&problem), "--zero-point -3") != NULL);
  epilogue.struct_size = offsetof(VkgemmEpilogue, column_scales);
  EXPECT(strstr(text_of(&problem), "--column-scales") == NULL);

  // The epilogue and the problem of a caller who knows no steps: the bytes after them are not read.
  epilogue.struct_size = offsetof(VkgemmEpilogue, tensors);
  memset((char*)&epilogue + epilogue.struct_size, 0xEE, sizeof epilogue - epilogue.struct_size);
  problem.struct_size = offsetof(VkgemmProblem, t0);
  memset((char*)&problem + problem.struct_size, 0xEE, sizeof problem - problem.struct_size);
  EXPECT(strstr(text_of(&problem), "--column-scales") != NULL);
  EXPECT(strstr(text_of(&problem), "--steps") == NULL);
  EXPECT(strstr(text_of(&problem), "--tensors") == NULL);
  problem.struct_size = sizeof problem;
  problem.t0 = problem.t1 = problem.t2 = problem.t3 = NULL;
  problem.multiply_as = VKGEMM_DATA_TYPE_ANY;
  problem.sum_batch = VK_FALSE;
  problem.outer_batch = 1;
  problem.a_group_k = problem.reserved = 0;
  EXPECT(strstr(text_of(&problem), "--multiply-as") == NULL);
  problem.outer_batch = 5;
  a.outer_batch_stride = 7;
  EXPECT(strstr(text_of(&problem), "--outer-batch 5") != NULL);
  EXPECT(strstr(text_of(&problem), "--outer-batch-stride-a 7") != NULL);
  problem.outer_batch = 1;
  problem.a_group_k = 64;
  EXPECT(strstr(text_of(&problem), "--a-group 64") != NULL);
  problem.a_group_k = 0;
  problem.multiply_as = VKGEMM_DATA_TYPE_BF16;
  EXPECT(strstr(text_of(&problem), "--multiply-as bf16") != NULL);

  // With the size of tensors and one step, the other steps are none.
  for (int i = 0; i < 4; ++i) epilogue.tensors[i] = VKGEMM_TENSOR_SHAPE_NONE;
  epilogue.tensors[1] = VKGEMM_TENSOR_SHAPE_ALONG_N;
  epilogue.steps[0] =
      (VkgemmEpilogueStep){.op = VKGEMM_STEP_OP_ADD, .operand = VKGEMM_STEP_OPERAND_T1};
  epilogue.struct_size = offsetof(VkgemmEpilogue, steps) + sizeof *epilogue.steps;
  EXPECT(strstr(text_of(&problem), "--tensors none,along_n ") != NULL);
  EXPECT(strstr(text_of(&problem), "--steps add:t1") != NULL);

  // What vkgemm fills in ends where the caller's structure ends.
  VkgemmConfig config;
  memset(&config, 0xEE, sizeof config);
  config.struct_size = offsetof(VkgemmConfig, swizzle) + sizeof config.swizzle;
  EXPECT_SUCCESS(vkgemm_config_parse("fma:tile=16x64x32,fragment=4x4,slices=5", &config, error));
  EXPECT(config.tile_n == 64 && config.swizzle == 8);
  EXPECT(config.slices == 0xEEEEEEEE && config.rows == (VkgemmRowStrategy)0xEEEEEEEE);
  memset(&config, 0xEE, sizeof config);
  EXPECT_SUCCESS(vkgemm_split_k_init((VkgemmSplitK*)&config, 8));
  EXPECT(config.struct_size == 8 && config.path == 0 && config.main_loop == 0xEEEEEEEE);
}

static void test_newer_callers(void) {
  struct {
    VkgemmMatrix known;
    uint64_t future;
  } a;
  EXPECT_SUCCESS(vkgemm_matrix_init(&a.known, sizeof a));
  EXPECT(a.known.struct_size == sizeof a && a.future == 0);
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  problem.a = &a.known;
  char text[256];
  size_t size = sizeof text;
  EXPECT_SUCCESS(vkgemm_problem_command_line(&problem, text, &size, error));
  a.future = 0x500;
  EXPECT_ERROR(vkgemm_problem_command_line(&problem, text, &size, error), VKGEMM_ERROR_UNSUPPORTED,
               "a.struct_size is 56, and byte 49 is 5");

  struct {
    VkgemmConfig known;
    uint64_t future;
  } config;
  memset(&config, 0xEE, sizeof config);
  config.known.struct_size = sizeof config;
  EXPECT_SUCCESS(vkgemm_config_parse("fma:tile=16x64x32,fragment=4x4", &config.known, error));
  EXPECT(config.known.struct_size == sizeof config && config.future == 0);
}

static void test_impossible_structures(void) {
  INIT(VkgemmMatrix, a, vkgemm_matrix_init);
  INIT(VkgemmEpilogue, epilogue, vkgemm_epilogue_init);
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  problem.a = &a;
  problem.epilogue = &epilogue;
  size_t size = 0;
  const uint32_t sizes[] = {0, 3, 4, 13, 36, 41, 5000, 0xCCCCCCCC};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    a.struct_size = sizes[i];
    EXPECT_ERROR(vkgemm_problem_command_line(&problem, NULL, &size, error),
                 VKGEMM_ERROR_INVALID_ARGUMENT, "a.struct_size is ");
    EXPECT_STATUS(vkgemm_matrix_init(&a, sizes[i]), VKGEMM_ERROR_INVALID_ARGUMENT);
  }
  EXPECT_SUCCESS(vkgemm_matrix_init(&a, sizeof a));

#define REFUSED(field, value, text)                                         \
  do {                                                                      \
    const uint32_t kept = (uint32_t)(field);                                \
    memcpy(&(field), &(uint32_t){value}, 4);                                \
    EXPECT_ERROR(vkgemm_problem_command_line(&problem, NULL, &size, error), \
                 VKGEMM_ERROR_INVALID_ARGUMENT, text);                      \
    memcpy(&(field), &kept, 4);                                             \
  } while (0)
  REFUSED(a.type, 99, "a.type is 99: no VkgemmDataType");
  REFUSED(a.type, 0, "a.type is 0: no VkgemmDataType");  // of memory that nobody initialised
  REFUSED(a.layout, 0xFFFFFFFF, "a.layout is -1: no VkgemmLayout");
  REFUSED(a.reserved, 1, "a.reserved is 1: 0 is needed");
  REFUSED(epilogue.aux, 2, "epilogue.aux is 2: VK_FALSE or VK_TRUE is needed");
  REFUSED(epilogue.row_scales, 3, "epilogue.row_scales is 3: no VkgemmScales");
  REFUSED(epilogue.column_scales, 4, "epilogue.column_scales is 4: no VkgemmScales");
  REFUSED(epilogue.tensors[3], 9, "epilogue.tensors[3] is 9: no VkgemmTensorShape");
  REFUSED(epilogue.steps[1].op, 77, "epilogue.steps[1].op is 77: no VkgemmStepOp");
  REFUSED(epilogue.steps[7].activation, 15, "epilogue.steps[7].activation is 15: no Vkgemm");
  REFUSED(epilogue.steps[0].operand, 0xFFFFFFFF,
          "epilogue.steps[0].operand is -1: no VkgemmStepOperand");
  REFUSED(problem.sum_batch, 2, "problem.sum_batch is 2: VK_FALSE or VK_TRUE is needed");
  REFUSED(problem.multiply_as, 9, "problem.multiply_as is 9: no VkgemmDataType");
  REFUSED(problem.f32_arithmetic, 4, "problem.f32_arithmetic is 4: no VkgemmF32Arithmetic");
  EXPECT_SUCCESS(vkgemm_problem_command_line(&problem, NULL, &size, error));
  EXPECT(strcmp(message_of_error(), "") == 0);
}

static void test_texts(void) {
  const char* const config = "fma:fragment=4x4,tile=16x64x32,swizzle=8";
  size_t size = 0;
  EXPECT_SUCCESS(vkgemm_config_normalize(config, NULL, &size, error));
  char text[64];
  EXPECT(size > 1 && size < sizeof text);
  const size_t needed = size;
  memset(text, '#', sizeof text);
  size = needed - 1;
  EXPECT_ERROR(vkgemm_config_normalize(config, text, &size, error), VKGEMM_ERROR_BUFFER_TOO_SMALL,
               "does not fit");
  EXPECT(size == needed && text[0] == '#');
  EXPECT_SUCCESS(vkgemm_config_normalize(config, text, &size, error));
  EXPECT(strlen(text) == needed - 1 && text[needed] == '#');
  EXPECT(strcmp(text, "fma:tile=16x64x32,fragment=4x4") == 0);
  EXPECT_ERROR(
      vkgemm_config_normalize("fma:tile=16x64x32,fragment=4x4,slice=2", NULL, &size, error),
      VKGEMM_ERROR_INVALID_ARGUMENT, "slice");
  EXPECT_ERROR(vkgemm_config_normalize(config, text, NULL, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "size is null");

  VkgemmConfig parsed = {.struct_size = sizeof parsed};
  EXPECT_SUCCESS(vkgemm_config_parse(
      "khr:tile=128x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,slices=3,"
      "reduction_mode=last_arriver,pack=b",
      &parsed, error));
  EXPECT(parsed.path == VKGEMM_PATH_KHR && parsed.main_loop == VKGEMM_MAIN_LOOP_KHR);
  EXPECT(parsed.tile_m == 128 && parsed.tile_n == 64 && parsed.tile_k == 32 && parsed.slices == 3);
  EXPECT(parsed.reduction_mode == VKGEMM_REDUCTION_MODE_LAST_ARRIVER);
  EXPECT(parsed.pack_a == VK_FALSE && parsed.pack_b == VK_TRUE);

  INIT(VkgemmKernelKind, kind, vkgemm_kernel_kind_init);
  size = sizeof text;
  EXPECT_SUCCESS(vkgemm_kernel_kind_text(&kind, text, &size, error));
  EXPECT(strstr(text, "fma") != NULL);

  VkgemmFingerprint given = {{0}}, wanted = {{0}};
  size = sizeof text;
  EXPECT_SUCCESS(vkgemm_fingerprint_difference(&given, &wanted, text, &size));
  EXPECT(size == 1 && text[0] == '\0');
  VkgemmPacking packing = VKGEMM_PACKING_PLAIN;
  EXPECT_SUCCESS(vkgemm_packing_of(&given, &packing));
  EXPECT(packing == VKGEMM_PACKING_PACKED_ROWS);
  given.bytes[0] = 1;
  wanted.bytes[0] = 2;
  size = sizeof text;
  EXPECT_SUCCESS(vkgemm_fingerprint_difference(&given, &wanted, text, &size));
  EXPECT(strcmp(text, "layout_version is 1, wanted is 2") == 0);
}

static void test_verdict_lists(void) {
  VkgemmVerdicts* list = NULL;
  EXPECT_SUCCESS(vkgemm_verdicts_create(&list));
  INIT(VkgemmVerdict, verdict, vkgemm_verdict_init);
  verdict.outcome = VKGEMM_OUTCOME_WRONG_RESULT;
  verdict.loop = VKGEMM_MAIN_LOOP_KHR;
  verdict.input = VKGEMM_DATA_TYPE_BF16;
  verdict.m = 16;
  verdict.detail = "expected 12, got 13";
  EXPECT_SUCCESS(vkgemm_verdicts_add(list, &verdict, error));
  verdict.outcome = VKGEMM_OUTCOME_PASSED;
  verdict.detail = NULL;
  EXPECT_SUCCESS(vkgemm_verdicts_add(list, &verdict, error));
  verdict.outcome = (VkgemmOutcome)50;
  EXPECT_ERROR(vkgemm_verdicts_add(list, &verdict, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "verdict.outcome is 50: no VkgemmOutcome");
  uint32_t count = 0;
  EXPECT_SUCCESS(vkgemm_verdicts_count(list, &count));
  EXPECT(count == 2);
  VkgemmVerdict back = {.struct_size = sizeof back};
  EXPECT_SUCCESS(vkgemm_verdicts_get(list, 0, &back));
  EXPECT(back.outcome == VKGEMM_OUTCOME_WRONG_RESULT && back.failed == VK_TRUE && back.m == 16);
  EXPECT(back.loop == VKGEMM_MAIN_LOOP_KHR && back.input == VKGEMM_DATA_TYPE_BF16);
  EXPECT(strcmp(back.detail, "expected 12, got 13") == 0 && strcmp(back.config, "") == 0);
  EXPECT_SUCCESS(vkgemm_verdicts_get(list, 1, &back));
  EXPECT(back.failed == VK_FALSE && strcmp(back.detail, "") == 0);
  EXPECT_STATUS(vkgemm_verdicts_get(list, 2, &back), VKGEMM_ERROR_INVALID_ARGUMENT);
  EXPECT_SUCCESS(vkgemm_verdicts_destroy(list));
}

void test_without_device(void) {
  test_version();
  test_names();
  test_defaults();
  test_older_callers();
  test_newer_callers();
  test_impossible_structures();
  test_texts();
  test_verdict_lists();
}
