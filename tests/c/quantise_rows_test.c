// Rows that become codes, s8, with a factor each.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"

// Odd sizes, and rows that are further apart than they are long.
enum { rows = 5, columns = 37, batch = 2, source_ld = 40, codes_ld = 48, all = batch * rows };

static float source_of(int row, int column) {
  if (row == 1) return 0.0f;
  if (row == 2 && column == 36) return NAN;
  if (row == 3 && column == 0) return -INFINITY;
  return ldexpf((float)((row * 31 + column * 17) % 101 - 50), row - 4);
}

// Codes of a row by the definition in vkgemm/problem.hpp; gives its scale. Volatile keeps products
// and quotients in f32.
static float expect_row(int row, const int8_t* codes) {
  float largest = 0.0f;
  int has_nan = 0;
  for (int j = 0; j < columns; ++j) {
    const float x = source_of(row, j);
    has_nan = has_nan || isnan(x);
    largest = fmaxf(largest, fabsf(x));  // which leaves NaN out
  }
  const int is_finite = !has_nan && !isinf(largest);
  const volatile float factor = is_finite && largest != 0.0f ? 127.0f / largest : 0.0f;
  int wrong = 0;
  for (int j = 0; j < columns; ++j) {
    const volatile float product = is_finite ? source_of(row, j) * factor : 0.0f;
    wrong += (float)codes[j] != nearbyintf(product);
  }
  EXPECT(wrong == 0);
  return has_nan ? NAN : largest / 127.0f;
}

static void expect_codes(const int8_t* codes, const float* scales, const int8_t* padding) {
  for (int i = 0; i < all; ++i) {
    const float expected = expect_row(i, codes + i * codes_ld);
    EXPECT(isnan(expected) ? isnan(scales[i]) : scales[i] == expected);
    if (i == all - 1) break;
    EXPECT(memcmp(codes + i * codes_ld + columns, padding, codes_ld - columns) == 0);
  }
}

static void expect_refusals(const Device* device, const VkgemmRowQuantisation* given) {
  VkgemmPlan* plan = NULL;
  const VkgemmContext* const context = device->context;
  VkgemmRowQuantisation wrong = *given;
  VkgemmMatrix matrix = *given->source;
  wrong.rows = UINT64_C(1) << 31;
  EXPECT_ERROR(vkgemm_plan_quantise_rows(context, &wrong, &plan, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "rows is 2147483648");
  wrong.rows = rows;
  wrong.group_k = 3;
  EXPECT_ERROR(vkgemm_plan_quantise_rows(context, &wrong, &plan, error), VKGEMM_ERROR_UNSUPPORTED,
               "group_k is 3: it must be 32, 64, 128, or 0 for all of K");
  wrong.group_k = 0;
  wrong.source = &matrix;
  matrix.ld = columns - 1;
  EXPECT_ERROR(vkgemm_plan_quantise_rows(context, &wrong, &plan, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "source.ld is 36");
  matrix.ld = source_ld;
  matrix.type = (VkgemmDataType)70;
  EXPECT_ERROR(vkgemm_plan_quantise_rows(context, &wrong, &plan, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "source.type is 70: no VkgemmDataType");
  matrix.type = VKGEMM_DATA_TYPE_S32;
  EXPECT_ERROR(vkgemm_plan_quantise_rows(context, &wrong, &plan, error), VKGEMM_ERROR_UNSUPPORTED,
               "source.type is s32");
  wrong.source = given->source;
  wrong.codes = &matrix;
  matrix.type = VKGEMM_DATA_TYPE_F16;
  EXPECT_ERROR(vkgemm_plan_quantise_rows(context, &wrong, &plan, error), VKGEMM_ERROR_UNSUPPORTED,
               "codes.type is f16: it must be s8");
  matrix.type = VKGEMM_DATA_TYPE_S8;
  matrix.layout = VKGEMM_LAYOUT_COL_MAJOR;
  EXPECT_ERROR(vkgemm_plan_quantise_rows(context, &wrong, &plan, error), VKGEMM_ERROR_UNSUPPORTED,
               "codes.layout is col_major");
  wrong.struct_size = 12;
  EXPECT_ERROR(vkgemm_plan_quantise_rows(context, &wrong, &plan, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "quantisation.struct_size is 12");
  EXPECT_ERROR(vkgemm_plan_quantise_rows(context, NULL, &plan, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "quantisation is null");
  EXPECT_ERROR(vkgemm_plan_quantise_rows(context, given, NULL, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "plan is null");
  EXPECT(plan == NULL);
}

// What a recording is refused for. None of it is recorded.
static void expect_refused_spans(const VkgemmPlan* plan, VkCommandBuffer commands,
                                 const VkgemmOperands* given) {
  VkgemmOperands wrong = *given;
  --wrong.codes.bytes;
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, &wrong, NULL, error), VKGEMM_ERROR_SPAN_TOO_SMALL,
               "codes.bytes");
  wrong = *given;
  wrong.scales.address += 2;
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, &wrong, NULL, error), VKGEMM_ERROR_MISALIGNED,
               "scales.address");
  wrong = *given;
  wrong.codes = given->source;
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, &wrong, NULL, error),
               VKGEMM_ERROR_OVERLAPPING_OPERANDS, "codes [");
  wrong = *given;
  wrong.reserved = 1;
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, &wrong, NULL, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "operands.reserved is 1");
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, NULL, NULL, error), VKGEMM_ERROR_INVALID_ARGUMENT,
               "operands is null");
  EXPECT_ERROR(vkgemm_plan_record(plan, VK_NULL_HANDLE, given, NULL, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, "command_buffer is VK_NULL_HANDLE");
}

// By default f16 becomes s8, densely; nothing to be done is done.
static void test_defaults(const Device* device) {
  INIT(VkgemmRowQuantisation, quantisation, vkgemm_row_quantisation_init);
  quantisation.columns = 8;
  quantisation.rows = 2;
  VkgemmPlan* plan = NULL;
  EXPECT_SUCCESS(vkgemm_plan_quantise_rows(device->context, &quantisation, &plan, error));
  INIT(VkgemmOperands, spans, vkgemm_operands_init);
  EXPECT_SUCCESS(vkgemm_plan_operands(plan, &spans));
  EXPECT(spans.source.bytes == 32 && spans.codes.bytes == 16 && spans.scales.bytes == 8);
  EXPECT_SUCCESS(vkgemm_plan_destroy(plan));

  quantisation.rows = 0;
  EXPECT_SUCCESS(vkgemm_plan_quantise_rows(device->context, &quantisation, &plan, error));
  uint32_t count = 1;
  EXPECT_SUCCESS(vkgemm_plan_dispatch_count(plan, &count));
  EXPECT(count == 0);
  EXPECT_SUCCESS(vkgemm_operands_init(&spans, sizeof spans));
  VkCommandBuffer commands = app_begin(device->app);
  EXPECT_SUCCESS(vkgemm_plan_record(plan, commands, &spans, NULL, error));
  app_run(device->app, commands);
  EXPECT_SUCCESS(vkgemm_plan_destroy(plan));
}

void test_quantised_rows(const Device* device) {
  INIT(VkgemmMatrix, source_matrix, vkgemm_matrix_init);
  source_matrix.type = VKGEMM_DATA_TYPE_F32;
  source_matrix.ld = source_ld;
  INIT(VkgemmMatrix, codes_matrix, vkgemm_matrix_init);
  codes_matrix.type = VKGEMM_DATA_TYPE_S8;
  codes_matrix.ld = codes_ld;
  INIT(VkgemmRowQuantisation, quantisation, vkgemm_row_quantisation_init);
  quantisation.rows = rows;
  quantisation.columns = columns;
  quantisation.batch = batch;
  quantisation.source = &source_matrix;
  quantisation.codes = &codes_matrix;
  VkgemmPlan* plan = NULL;
  if (caps_of(device).int8_arithmetic == VK_FALSE) {
    EXPECT_ERROR(vkgemm_plan_quantise_rows(device->context, &quantisation, &plan, error),
                 VKGEMM_ERROR_UNSUPPORTED, "");
    puts("rows were not quantised: this device has no 8-bit arithmetic");
    return;
  }
  expect_refusals(device, &quantisation);
  EXPECT_SUCCESS(vkgemm_plan_quantise_rows(device->context, &quantisation, &plan, error));
  if (plan == NULL) return;
  refuse_everywhere(plan, PLAN);
  INIT(VkgemmOperands, spans, vkgemm_operands_init);
  EXPECT_SUCCESS(vkgemm_plan_operands(plan, &spans));
  const uint64_t source_bytes = 4 * ((all - 1) * source_ld + columns);
  const uint64_t codes_bytes = (all - 1) * codes_ld + columns, scales_bytes = 4 * all;
  EXPECT(spans.source.bytes == source_bytes && spans.codes.bytes == codes_bytes);
  EXPECT(spans.scales.bytes == scales_bytes && spans.zeros.bytes == 0);
  EXPECT_STATUS(vkgemm_plan_operands(plan, NULL), VKGEMM_ERROR_INVALID_ARGUMENT);

  App* const app = device->app;
  Buffer source = app_create_buffer(app, source_bytes), codes = app_create_buffer(app, codes_bytes);
  Buffer scales = app_create_buffer(app, scales_bytes);
  for (int i = 0; i < all; ++i) {
    for (int j = 0; j < columns; ++j) {
      ((float*)source.data)[i * source_ld + j] = source_of(i, j);
    }
  }
  int8_t padding[codes_ld];
  memset(padding, 0x55, sizeof padding);
  memset(codes.data, 0x55, codes_bytes);
  memset(scales.data, 0xFF, scales_bytes);
  spans.source = (VkgemmDeviceSpan){source.address, source_bytes};
  spans.codes = (VkgemmDeviceSpan){codes.address, codes_bytes};
  spans.scales = span_of(scales);
  VkCommandBuffer commands = app_begin(app);
  expect_refused_spans(plan, commands, &spans);
  EXPECT_SUCCESS(vkgemm_plan_record(plan, commands, &spans, NULL, error));
  app_run(app, commands);
  expect_codes(codes.data, scales.data, padding);
  EXPECT_SUCCESS(vkgemm_plan_destroy(plan));
  app_destroy_buffer(app, &source);
  app_destroy_buffer(app, &codes);
  app_destroy_buffer(app, &scales);
  test_defaults(device);
}
