// What vkgemm.h promises beyond the C++ API: sizes of structures, handles that are none, texts,
// names, defaults. And that every function does what its C++ counterpart does, on the first device
// there is. Its argument is a folder to write to.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vkgemm/vkgemm.h>

#include "app.h"

static int failures;
static VkgemmError* error;

#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      ++failures;                                                             \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                         \
  } while (0)

static const char* message_of_error(void) {
  const char* message = "";
  EXPECT(vkgemm_error_message(error, &message) == VKGEMM_SUCCESS);
  return message;
}

static void expect_status(VkgemmStatus status, VkgemmStatus expected, int line, const char* call) {
  if (status == expected) return;
  ++failures;
  fprintf(stderr, "%s:%d: %s gave %d, not %d; the last message: %s\n", __FILE__, line, call,
          (int)status, (int)expected, message_of_error());
}
#define EXPECT_STATUS(call, expected) expect_status((call), (expected), __LINE__, #call)
#define EXPECT_SUCCESS(call) EXPECT_STATUS(call, VKGEMM_SUCCESS)

// A call that takes `error` fails so, and says so.
#define EXPECT_ERROR(call, expected, text)                                     \
  do {                                                                         \
    EXPECT_STATUS(call, expected);                                             \
    VkgemmStatus told = VKGEMM_SUCCESS;                                        \
    EXPECT_SUCCESS(vkgemm_error_status(error, &told));                         \
    EXPECT(told == (expected));                                                \
    if (strstr(message_of_error(), text) == NULL) {                            \
      ++failures;                                                              \
      fprintf(stderr, "%s:%d: '%s' is not in: %s\n", __FILE__, __LINE__, text, \
              message_of_error());                                             \
    }                                                                          \
  } while (0)

// A structure of `type` at its defaults.
#define INIT(type, variable, init) \
  type variable;                   \
  EXPECT_SUCCESS(init(&variable, sizeof variable))

// --- Without a device
// ------------------------------------------------------------------------------

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
  for (int32_t e = 0; e <= VKGEMM_ENUMERATION_PACKED_OPERAND; ++e) {
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
  EXPECT(isnan(epilogue.clamp_min) && isnan(epilogue.clamp_max));
  INIT(VkgemmGated, gated, vkgemm_gated_init);
  EXPECT(gated.gate == VKGEMM_GATE_SWIGLU && gated.b == VKGEMM_GATED_B_HALVES);
  INIT(VkgemmGrouping, grouping, vkgemm_grouping_init);
  EXPECT(grouping.groups == 0 && grouping.along == VKGEMM_GROUP_ALONG_M);
  INIT(VkgemmRowReduction, rows, vkgemm_row_reduction_init);
  EXPECT(rows.op == VKGEMM_ROW_OP_RMS_NORM && isnan(rows.eps) && rows.store_d == VK_TRUE);
  INIT(VkgemmSplitK, split_k, vkgemm_split_k_init);
  EXPECT(split_k.slices == 0 && split_k.reduction_mode == VKGEMM_REDUCTION_MODE_ANY);
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  EXPECT(problem.batch == 1 && problem.a == NULL && problem.epilogue == NULL);
  EXPECT(problem.max_workspace_bytes == 256u << 20 && problem.estimate_scale == 1.0);
  INIT(VkgemmOperands, operands, vkgemm_operands_init);
  EXPECT(operands.a.address == 0 && operands.workspace.bytes == 0);
  INIT(VkgemmDispatchRange, range, vkgemm_dispatch_range_init);
  EXPECT(range.first == 0 && range.count == UINT32_MAX);
  INIT(VkgemmKernelKind, kind, vkgemm_kernel_kind_init);
  EXPECT(kind.loop == VKGEMM_MAIN_LOOP_FMA && kind.input == VKGEMM_DATA_TYPE_F32);
  INIT(VkgemmVerdict, verdict, vkgemm_verdict_init);
  EXPECT(verdict.outcome == VKGEMM_OUTCOME_UNTESTED && strcmp(verdict.detail, "") == 0);
  INIT(VkgemmSelfTest, self_test, vkgemm_self_test_init);
  EXPECT(self_test.timeout_ms == 10000 && self_test.use_deny_list == VK_TRUE);
  INIT(VkgemmContextCreateInfo, info, vkgemm_context_create_info_init);
  EXPECT(info.struct_size == sizeof info && info.device == VK_NULL_HANDLE && info.log == NULL);
}

// The text of a problem, which shows what of it arrived.
static const char* text_of(const VkgemmProblem* problem) {
  static char text[1024];
  size_t size = sizeof text;
  text[0] = '\0';
  EXPECT_SUCCESS(vkgemm_problem_command_line(problem, text, &size, error));
  return text;
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
  EXPECT(strstr(text_of(&problem), "--ld-a 24 --alignment-a 4") != NULL);

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
               "a.struct_size is 48, and byte 41 is 5");

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
  REFUSED(problem.reserved, 3, "problem.reserved is 3: 0 is needed");
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

// --- Handles that are none
// -------------------------------------------------------------------------

typedef enum Kind {
  NO_KIND,
  ERRORS,
  REQUIREMENTS,
  CAPS,
  VERDICTS,
  CONTEXT,
  CANDIDATES,
  PLAN,
  PACK
} Kind;

// Hands something to every function that takes a handle; `kind` is what it is.
static void refuse_everywhere(void* bad, Kind kind) {
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
  const VkPhysicalDeviceFeatures2* features = NULL;
  const char* const* names = NULL;
  const VkgemmCaps* caps = NULL;
  VkgemmVerdicts* verdicts = NULL;
  VkgemmCandidates* candidates = NULL;
  VkgemmPlan* plan = NULL;
  VkgemmPackPlan* pack_plan = NULL;
  VkgemmStatus status = VKGEMM_SUCCESS;
  VkResult result = VK_SUCCESS;
  VkBool32 boolean = VK_FALSE;
  const char *text = NULL, *other = NULL;
  uint32_t count = 0;
  uint64_t bytes = 0;
  double ms = 0.0;
  size_t size = 0;
  const VkgemmPackedOperand b = VKGEMM_PACKED_OPERAND_B;
  const VkgemmDeviceSpan span = {0, 0};

#define NONE_OF(of, call) \
  if (kind != of) EXPECT_STATUS(call, VKGEMM_ERROR_INVALID_HANDLE)
  NONE_OF(ERRORS, vkgemm_error_status(bad, &status));
  NONE_OF(ERRORS, vkgemm_error_message(bad, &text));
  NONE_OF(ERRORS, vkgemm_error_vk_result(bad, &result));
  NONE_OF(REQUIREMENTS, vkgemm_requirements_extensions(bad, &count, &names));
  NONE_OF(REQUIREMENTS, vkgemm_requirements_features(bad, &features));
  NONE_OF(REQUIREMENTS, vkgemm_requirements_caps(bad, &caps));
  NONE_OF(CAPS, vkgemm_caps_device(bad, &device));
  NONE_OF(CAPS, vkgemm_caps_limits(bad, &limits));
  NONE_OF(CAPS, vkgemm_caps_path(bad, VKGEMM_PATH_FMA, &boolean, &text));
  NONE_OF(CAPS, vkgemm_caps_fragment_shape(bad, 0, &fragment));
  NONE_OF(CAPS, vkgemm_caps_flexible_shape(bad, 0, &flexible));
  NONE_OF(CAPS, vkgemm_caps_denial(bad, 0, &denial));
  NONE_OF(CAPS, vkgemm_caps_kernel_kind(bad, 0, &kernel_kind));
  NONE_OF(CAPS, vkgemm_default_verdict_file(bad, NULL, &size));
  NONE_OF(CAPS, vkgemm_verdicts_load(bad, "none", &verdicts, error));
  NONE_OF(VERDICTS, vkgemm_verdicts_save(bad, NULL, "none", error));
  NONE_OF(VERDICTS, vkgemm_verdicts_add(bad, &verdict, error));
  NONE_OF(VERDICTS, vkgemm_verdicts_count(bad, &count));
  NONE_OF(VERDICTS, vkgemm_verdicts_get(bad, 0, &verdict));
  NONE_OF(CONTEXT, vkgemm_context_caps(bad, &caps));
  NONE_OF(CONTEXT, vkgemm_context_verdicts(bad, &verdicts));
  NONE_OF(CONTEXT, vkgemm_context_barrier_aborts(bad, &count));
  NONE_OF(CONTEXT, vkgemm_context_notify_device_lost(bad));
  NONE_OF(CONTEXT, vkgemm_context_device_lost(bad, &boolean));
  NONE_OF(CONTEXT, vkgemm_context_save_pipeline_cache(bad, error));
  NONE_OF(CONTEXT, vkgemm_candidates_create(bad, &problem, &candidates, error));
  NONE_OF(CONTEXT, vkgemm_plan_create(bad, &problem, NULL, &plan, error));
  NONE_OF(CONTEXT, vkgemm_packed_layout(bad, &problem, b, &layout, error));
  NONE_OF(CONTEXT, vkgemm_pack_plan_create(bad, &problem, b, &pack_plan, error));
  NONE_OF(CONTEXT, vkgemm_context_record(bad, bad, VK_NULL_HANDLE, &operands, NULL, error));
  NONE_OF(CANDIDATES, vkgemm_candidates_count(bad, &count));
  NONE_OF(CANDIDATES, vkgemm_candidates_get(bad, 0, &text, &other));
  NONE_OF(PLAN, vkgemm_plan_problem(bad, &problem));
  NONE_OF(PLAN, vkgemm_plan_config(bad, &text));
  NONE_OF(PLAN, vkgemm_plan_workspace_bytes(bad, &bytes));
  NONE_OF(PLAN, vkgemm_plan_dispatch_count(bad, &count));
  NONE_OF(PLAN, vkgemm_plan_estimated_ms(bad, &ms));
  NONE_OF(PLAN, vkgemm_plan_explain(bad, NULL, &size));
  NONE_OF(PLAN, vkgemm_plan_command_line(bad, NULL, &size));
  NONE_OF(PLAN, vkgemm_plan_record(bad, VK_NULL_HANDLE, &operands, NULL, error));
  NONE_OF(PACK, vkgemm_pack_plan_layout(bad, &layout));
  NONE_OF(PACK, vkgemm_pack_plan_source_bytes(bad, &bytes));
  NONE_OF(PACK, vkgemm_pack_plan_record(bad, VK_NULL_HANDLE, span, span, error));
  if (bad != NULL) {  // destroying null does nothing, an error may be null
    NONE_OF(ERRORS, vkgemm_verdicts_count(NULL, &count));
    NONE_OF(ERRORS, vkgemm_error_destroy(bad));
    NONE_OF(ERRORS, vkgemm_config_parse("fma", NULL, bad));
    NONE_OF(REQUIREMENTS, vkgemm_requirements_destroy(bad));
    NONE_OF(VERDICTS, vkgemm_verdicts_destroy(bad));
    NONE_OF(CONTEXT, vkgemm_context_destroy(bad));
    NONE_OF(CANDIDATES, vkgemm_candidates_destroy(bad));
    NONE_OF(PLAN, vkgemm_plan_destroy(bad));
    NONE_OF(PACK, vkgemm_pack_plan_destroy(bad));
  }
}

static void test_no_handles(void) {
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
  EXPECT_SUCCESS(vkgemm_pack_plan_destroy(NULL));

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

static void test_no_pointers(void) {
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

// --- On a device
// -----------------------------------------------------------------------------------

typedef struct Device {
  App* app;
  VkgemmRequirements* needs;
  VkgemmContextCreateInfo info;
  VkgemmContext* context;
  int messages;
} Device;

static void VKAPI_PTR count_message(VkgemmLogLevel level, const char* message, void* user_data) {
  EXPECT(level >= VKGEMM_LOG_LEVEL_INFO && level <= VKGEMM_LOG_LEVEL_ERROR);
  EXPECT(message[0] != '\0');
  ++*(int*)user_data;
}

static void open_device(Device* device) {
  App* const app = device->app = app_open();
  if (vkgemm_requirements_query(app->instance, app->physical_device, app->get_instance_proc_addr,
                                &device->needs, error) != VKGEMM_SUCCESS) {
    fail("no requirements: %s", message_of_error());
  }
  VkgemmContextCreateInfo* const info = &device->info;
  EXPECT_SUCCESS(vkgemm_context_create_info_init(info, sizeof *info));
  EXPECT_SUCCESS(vkgemm_requirements_extensions(device->needs, &info->enabled_extension_count,
                                                &info->enabled_extensions));
  EXPECT_SUCCESS(vkgemm_requirements_features(device->needs, &info->enabled_features));
  app_create_device(app, info->enabled_extension_count, info->enabled_extensions,
                    info->enabled_features);
  info->instance = app->instance;
  info->physical_device = app->physical_device;
  info->device = app->device;
  info->get_instance_proc_addr = app->get_instance_proc_addr;
  info->log = count_message;
  info->log_user_data = &device->messages;
  if (vkgemm_context_create(info, &device->context, error) != VKGEMM_SUCCESS) {
    fail("no context: %s", message_of_error());
  }
}

static void close_device(Device* device) {
  EXPECT_SUCCESS(vkgemm_context_destroy(device->context));
  EXPECT_SUCCESS(vkgemm_requirements_destroy(device->needs));
  app_close(device->app);
}

static void test_create_info(const Device* device) {
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
  self_test.only_count = 0;
  self_test.verdicts = (const VkgemmVerdicts*)error;
  EXPECT_ERROR(vkgemm_context_create(&info, &context, error), VKGEMM_ERROR_INVALID_HANDLE,
               "self_test.verdicts");
  EXPECT(context == NULL);
}

static void test_caps(const Device* device) {
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
static void test_self_test(const Device* device, const char* folder) {
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

// Every field of a problem and its parts reaches the plan, and comes back from it.
static void test_problem(const Device* device) {
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
  problem.epilogue = &epilogue;
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
  EXPECT(memcmp(back.epilogue, &epilogue, sizeof epilogue) == 0);
  EXPECT(back.gated == NULL && back.grouping == NULL && back.row_reduction == NULL);
  EXPECT(back.split_k != NULL && back.split_k->slices == 0);
  EXPECT(back.max_workspace_bytes == 1u << 20 && back.max_dispatch_ms == 5.0);
  EXPECT(back.estimate_scale == 2.0);
  char mine[1024], its[1024];
  snprintf(mine, sizeof mine, "%s", text_of(&problem));
  snprintf(its, sizeof its, "%s", text_of(&back));
  EXPECT(strcmp(mine, its) == 0 && strstr(mine, "--clamp-max 6") != NULL);

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

static void test_parts(const Device* device) {
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
  f32.ld = 12;
  EXPECT_ERROR(vkgemm_plan_create(device->context, &plain, NULL, &plan, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "a.ld is 12");
  EXPECT(plan == NULL);
}

static void test_candidates(const Device* device) {
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

// Products of small integers are exact: A·B + C, plain, with a packed B, cut into dispatches.
enum { m = 40, n = 48, k = 32 };

static VkgemmDeviceSpan span_of(Buffer buffer) {
  return (VkgemmDeviceSpan){buffer.address, buffer.bytes};
}

// -3 to 3, as f16
static const uint16_t f16_integers[7] = {0xC200, 0xC000, 0xBC00, 0, 0x3C00, 0x4000, 0x4200};
static int a_of(int i, int l) { return (i * 5 + l * 3) % 7; }
static int b_of(int l, int j) { return (l * 2 + j * 11) % 7; }

static void expect_product(const float* d, int line) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      int sum = 0;
      for (int l = 0; l < k; ++l) sum += (a_of(i, l) - 3) * (b_of(l, j) - 3);
      if (d[i * n + j] == (float)sum) continue;
      ++failures;
      fprintf(stderr, "%s:%d: D[%d, %d] is %g, not %d\n", __FILE__, line, i, j,
              (double)d[i * n + j], sum);
      return;
    }
  }
}

static void test_products(const Device* device) {
  App* const app = device->app;
  Buffer a = app_create_buffer(app, 2 * m * k), b = app_create_buffer(app, 2 * k * n);
  Buffer d = app_create_buffer(app, 4 * m * n);
  for (int i = 0; i < m * k; ++i) {
    ((uint16_t*)a.data)[i] = f16_integers[a_of(i / k, i % k)];
  }
  for (int i = 0; i < k * n; ++i) {
    ((uint16_t*)b.data)[i] = f16_integers[b_of(i / n, i % n)];
  }
  INIT(VkgemmMatrix, f32, vkgemm_matrix_init);
  f32.type = VKGEMM_DATA_TYPE_F32;
  INIT(VkgemmMatrix, plain_b, vkgemm_matrix_init);
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.b = &plain_b;
  problem.d = &f32;
  VkgemmPlan* plan = NULL;
  EXPECT_SUCCESS(vkgemm_plan_create(device->context, &problem, NULL, &plan, error));
  uint64_t bytes = 0;
  EXPECT_SUCCESS(vkgemm_plan_workspace_bytes(plan, &bytes));
  Buffer workspace = app_create_buffer(app, bytes);
  INIT(VkgemmOperands, operands, vkgemm_operands_init);
  operands.a = span_of(a);
  operands.b = span_of(b);
  operands.d = span_of(d);
  operands.workspace = span_of(workspace);

  VkCommandBuffer commands = app_begin(app);
  operands.d.bytes -= 4;
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, &operands, NULL, error),
               VKGEMM_ERROR_SPAN_TOO_SMALL, "d.bytes is 7676");
  operands.d.bytes += 4;
  operands.a.address += 2;
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, &operands, NULL, error), VKGEMM_ERROR_MISALIGNED,
               "a.address");
  operands.a.address -= 2;
  operands.reserved = 1;
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, &operands, NULL, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "operands.reserved is 1");
  operands.reserved = 0;
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, NULL, NULL, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "operands is null");
  EXPECT_ERROR(vkgemm_plan_record(plan, VK_NULL_HANDLE, &operands, NULL, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "command_buffer is VK_NULL_HANDLE");
  INIT(VkgemmDispatchRange, range, vkgemm_dispatch_range_init);
  range.first = 77;
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, &operands, &range, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "77");
  VkgemmContext* other = NULL;
  EXPECT_SUCCESS(vkgemm_context_create(&device->info, &other, error));
  EXPECT_ERROR(vkgemm_context_record(other, plan, commands, &operands, NULL, error),
               VKGEMM_ERROR_WRONG_CONTEXT, "");
  EXPECT_SUCCESS(vkgemm_context_destroy(other));
  // An older caller's, without fingerprints.
  operands.struct_size = offsetof(VkgemmOperands, a_fingerprint);
  EXPECT_SUCCESS(vkgemm_context_record(device->context, plan, commands, &operands, NULL, error));
  app_run(app, commands);
  expect_product(d.data, __LINE__);
  EXPECT_SUCCESS(vkgemm_plan_destroy(plan));

  // Dispatches one by one.
  problem.estimate_scale = INFINITY;
  problem.max_dispatch_ms = 0.001;
  EXPECT_SUCCESS(
      vkgemm_plan_create(device->context, &problem, "fma:tile=8x16x16,fragment=4x4", &plan, error));
  uint32_t count = 0;
  EXPECT_SUCCESS(vkgemm_plan_dispatch_count(plan, &count));
  EXPECT(count > 1);
  memset(d.data, 0xFF, d.bytes);
  commands = app_begin(app);
  for (uint32_t i = 0; i < count; ++i) {
    range.first = i;
    range.count = 1;
    EXPECT_SUCCESS(vkgemm_plan_record(plan, commands, &operands, &range, error));
  }
  app_run(app, commands);
  expect_product(d.data, __LINE__);
  EXPECT_SUCCESS(vkgemm_plan_destroy(plan));
  EXPECT_SUCCESS(vkgemm_problem_init(&problem, sizeof problem));

  // B, packed once.
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.b = &plain_b;
  problem.d = &f32;
  const VkgemmPackedOperand operand = VKGEMM_PACKED_OPERAND_B;
  VkgemmPackedLayout layout = {.struct_size = sizeof layout};
  EXPECT_SUCCESS(vkgemm_packed_layout(device->context, &problem, operand, &layout, error));
  EXPECT_STATUS(
      vkgemm_packed_layout(device->context, &problem, (VkgemmPackedOperand)5, &layout, error),
      VKGEMM_ERROR_INVALID_ARGUMENT);
  VkgemmPackPlan* pack = NULL;
  EXPECT_SUCCESS(vkgemm_pack_plan_create(device->context, &problem, operand, &pack, error));
  VkgemmPackedLayout planned = {.struct_size = sizeof planned};
  EXPECT_SUCCESS(vkgemm_pack_plan_layout(pack, &planned));
  EXPECT(memcmp(&layout, &planned, sizeof layout) == 0);
  refuse_everywhere(pack, PACK);
  if (layout.bytes != 0) {
    EXPECT_SUCCESS(vkgemm_pack_plan_source_bytes(pack, &bytes));
    EXPECT(bytes == 2 * k * n);
    Buffer packed = app_create_buffer(app, layout.bytes);
    VkgemmMatrix packed_b = plain_b;
    packed_b.packing = VKGEMM_PACKING_PACKED;
    problem.b = &packed_b;
    EXPECT_SUCCESS(vkgemm_plan_create(device->context, &problem, NULL, &plan, error));
    EXPECT_SUCCESS(vkgemm_plan_workspace_bytes(plan, &bytes));
    app_destroy_buffer(app, &workspace);
    workspace = app_create_buffer(app, bytes);
    commands = app_begin(app);
    EXPECT_SUCCESS(vkgemm_pack_plan_record(pack, commands, span_of(b), span_of(packed), error));
    app_barrier(app, commands);
    operands.struct_size = sizeof operands;
    operands.b = span_of(packed);
    operands.workspace = span_of(workspace);
    EXPECT_ERROR(vkgemm_plan_record(plan, commands, &operands, NULL, error),
                 VKGEMM_ERROR_WRONG_FINGERPRINT, "b_fingerprint: is not given");
    operands.b_fingerprint = layout.fingerprint;
    memset(d.data, 0xFF, d.bytes);
    EXPECT_SUCCESS(vkgemm_plan_record(plan, commands, &operands, NULL, error));
    app_run(app, commands);
    expect_product(d.data, __LINE__);
    EXPECT_SUCCESS(vkgemm_plan_destroy(plan));
    app_destroy_buffer(app, &packed);
  } else {
    puts("packing was not tried: this device gains nothing");
  }
  EXPECT_SUCCESS(vkgemm_pack_plan_destroy(pack));
  app_destroy_buffer(app, &a);
  app_destroy_buffer(app, &b);
  app_destroy_buffer(app, &d);
  app_destroy_buffer(app, &workspace);
}

// Plans outlive their context; a lost device is told everywhere.
static void test_lifetimes(const Device* device, const char* folder) {
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

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: %s FOLDER", argv[0]);
  if (vkgemm_error_create(&error) != VKGEMM_SUCCESS) fail("no error");
  test_version();
  test_names();
  test_defaults();
  test_older_callers();
  test_newer_callers();
  test_impossible_structures();
  test_texts();
  test_verdict_lists();
  test_no_handles();
  test_no_pointers();

  Device device = {0};
  open_device(&device);
  refuse_everywhere(device.needs, REQUIREMENTS);
  refuse_everywhere(device.context, CONTEXT);
  test_create_info(&device);
  test_caps(&device);
  test_self_test(&device, argv[1]);
  test_problem(&device);
  test_parts(&device);
  test_candidates(&device);
  test_products(&device);
  test_lifetimes(&device, argv[1]);
  EXPECT(device.messages > 0);
  close_device(&device);
  EXPECT_SUCCESS(vkgemm_error_destroy(error));
  if (failures != 0) fail("%d expectations failed", failures);
  puts("api_test: all is as vkgemm.h says");
  return 0;
}
