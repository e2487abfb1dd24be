// Products on the device.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"

// Products of small integers are exact: A·B + C, plain, with a packed B, cut into dispatches.
enum { m = 40, n = 48, k = 32 };

// -3 to 3, as f16
static const uint16_t f16_integers[7] = {0xC200, 0xC000, 0xBC00, 0, 0x3C00, 0x4000, 0x4200};
static int a_of(int i, int l) { return (i * 5 + l * 3) % 7; }
static int b_of(int l, int j) { return (l * 2 + j * 11) % 7; }

static int sum_of(int i, int j) {
  int sum = 0;
  for (int l = 0; l < k; ++l) sum += (a_of(i, l) - 3) * (b_of(l, j) - 3);
  return sum;
}

// A and B, as f16
static void fill(Buffer a, Buffer b) {
  for (int i = 0; i < m * k; ++i) ((uint16_t*)a.data)[i] = f16_integers[a_of(i / k, i % k)];
  for (int i = 0; i < k * n; ++i) ((uint16_t*)b.data)[i] = f16_integers[b_of(i / n, i % n)];
}

static void expect_product(const float* d, int line) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      const int sum = sum_of(i, j);
      if (d[i * n + j] == (float)sum) continue;
      ++failures;
      fprintf(stderr, "%s:%d: D[%d, %d] is %g, not %d\n", __FILE__, line, i, j,
              (double)d[i * n + j], sum);
      return;
    }
  }
}

void test_products(const Device* device) {
  App* const app = device->app;
  Buffer a = app_create_buffer(app, 2 * m * k), b = app_create_buffer(app, 2 * k * n);
  Buffer d = app_create_buffer(app, 4 * m * n);
  fill(a, b);
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
  INIT(VkgemmOperands, wanted, vkgemm_operands_init);
  EXPECT_SUCCESS(vkgemm_plan_operands(plan, &wanted));
  EXPECT(wanted.a.bytes == a.bytes && wanted.b.bytes == b.bytes && wanted.d.bytes == d.bytes);
  EXPECT(wanted.workspace.bytes == bytes && wanted.c.bytes == 0 && wanted.source.bytes == 0);
  VkgemmPackedLayout layout = {.struct_size = sizeof layout, .bytes = 1};
  EXPECT_SUCCESS(vkgemm_plan_layout(plan, &layout));
  EXPECT(layout.bytes == 0);
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
  EXPECT_SUCCESS(vkgemm_packed_layout(device->context, &problem, operand, &layout, error));
  EXPECT_STATUS(
      vkgemm_packed_layout(device->context, &problem, (VkgemmPackedOperand)5, &layout, error),
      VKGEMM_ERROR_INVALID_ARGUMENT);
  VkgemmPlan* pack = NULL;
  EXPECT_SUCCESS(vkgemm_plan_pack(device->context, &problem, operand, &pack, error));
  VkgemmPackedLayout planned = {.struct_size = sizeof planned};
  EXPECT_SUCCESS(vkgemm_plan_layout(pack, &planned));
  EXPECT(memcmp(&layout, &planned, sizeof layout) == 0);
  refuse_everywhere(pack, PLAN);
  if (layout.bytes != 0) {
    INIT(VkgemmOperands, to_pack, vkgemm_operands_init);
    EXPECT_SUCCESS(vkgemm_plan_operands(pack, &to_pack));
    EXPECT(to_pack.source.bytes == 2 * k * n && to_pack.packed.bytes == layout.bytes);
    EXPECT(to_pack.source.address == 0 && to_pack.b.bytes == 0 && to_pack.workspace.bytes == 0);
    Buffer packed = app_create_buffer(app, layout.bytes);
    VkgemmMatrix packed_b = plain_b;
    packed_b.packing = VKGEMM_PACKING_PACKED;
    problem.b = &packed_b;
    EXPECT_SUCCESS(vkgemm_plan_create(device->context, &problem, NULL, &plan, error));
    EXPECT_SUCCESS(vkgemm_plan_workspace_bytes(plan, &bytes));
    app_destroy_buffer(app, &workspace);
    workspace = app_create_buffer(app, bytes);
    commands = app_begin(app);
    to_pack.source = span_of(b);
    to_pack.packed = span_of(packed);
    EXPECT_SUCCESS(vkgemm_plan_record(pack, commands, &to_pack, NULL, error));
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
  EXPECT_SUCCESS(vkgemm_plan_destroy(pack));
  app_destroy_buffer(app, &a);
  app_destroy_buffer(app, &b);
  app_destroy_buffer(app, &d);
  app_destroy_buffer(app, &workspace);
}

// A plan of the problem, run once. The operands have no workspace yet.
static void run_product(const Device* device, const VkgemmProblem* problem,
                        VkgemmOperands operands) {
  VkgemmPlan* plan = NULL;
  EXPECT_SUCCESS(vkgemm_plan_create(device->context, problem, NULL, &plan, error));
  if (plan == NULL) return;
  uint64_t bytes = 0;
  EXPECT_SUCCESS(vkgemm_plan_workspace_bytes(plan, &bytes));
  Buffer workspace = app_create_buffer(device->app, bytes);
  operands.workspace = span_of(workspace);
  VkCommandBuffer commands = app_begin(device->app);
  EXPECT_SUCCESS(vkgemm_plan_record(plan, commands, &operands, NULL, error));
  app_run(device->app, commands);
  EXPECT_SUCCESS(vkgemm_plan_destroy(plan));
  app_destroy_buffer(device->app, &workspace);
}

// The same numbers as s8: their sums in s32, and scaled by powers of two in f32.
void test_integers(const Device* device) {
  if (caps_of(device).int8_arithmetic == VK_FALSE) {
    puts("s8 was not tried: this device has no 8-bit arithmetic");
    return;
  }
  App* const app = device->app;
  Buffer a = app_create_buffer(app, m * k), b = app_create_buffer(app, k * n);
  Buffer d = app_create_buffer(app, 4 * m * n);
  Buffer rows = app_create_buffer(app, 4 * m), columns = app_create_buffer(app, 4 * n);
  for (int i = 0; i < m * k; ++i) ((int8_t*)a.data)[i] = (int8_t)(a_of(i / k, i % k) - 3);
  for (int i = 0; i < k * n; ++i) ((int8_t*)b.data)[i] = (int8_t)(b_of(i / n, i % n) - 3);
  for (int i = 0; i < m; ++i) ((float*)rows.data)[i] = ldexpf(1.0f, i % 5 - 2);
  for (int j = 0; j < n; ++j) ((float*)columns.data)[j] = ldexpf(1.0f, j % 3);
  INIT(VkgemmMatrix, s8, vkgemm_matrix_init);
  s8.type = VKGEMM_DATA_TYPE_S8;
  INIT(VkgemmMatrix, result, vkgemm_matrix_init);
  result.type = VKGEMM_DATA_TYPE_S32;
  INIT(VkgemmEpilogue, epilogue, vkgemm_epilogue_init);
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.a = problem.b = &s8;
  problem.d = &result;
  problem.epilogue = &epilogue;
  INIT(VkgemmOperands, operands, vkgemm_operands_init);
  operands.a = span_of(a);
  operands.b = span_of(b);
  operands.d = span_of(d);
  memset(d.data, 0xFF, d.bytes);
  run_product(device, &problem, operands);
  int wrong = 0;
  for (int i = 0; i < m * n; ++i) wrong += ((int32_t*)d.data)[i] != sum_of(i / n, i % n);
  EXPECT(wrong == 0);

  VkgemmPlan* plan = NULL;
  epilogue.row_scales = epilogue.column_scales = VKGEMM_SCALES_SHARED;
  EXPECT_ERROR(vkgemm_plan_create(device->context, &problem, NULL, &plan, error),
               VKGEMM_ERROR_UNSUPPORTED, "d.type is s32");
  result.type = VKGEMM_DATA_TYPE_F32;
  EXPECT_SUCCESS(vkgemm_plan_create(device->context, &problem, NULL, &plan, error));
  VkCommandBuffer commands = app_begin(app);
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, &operands, NULL, error),
               VKGEMM_ERROR_SPAN_TOO_SMALL, "row_scales");
  operands.row_scales = span_of(rows);
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, &operands, NULL, error),
               VKGEMM_ERROR_SPAN_TOO_SMALL, "column_scales");
  app_run(app, commands);
  EXPECT_SUCCESS(vkgemm_plan_destroy(plan));
  operands.column_scales = span_of(columns);
  memset(d.data, 0xFF, d.bytes);
  run_product(device, &problem, operands);
  wrong = 0;
  for (int i = 0; i < m * n; ++i) {
    const float scale = ((float*)rows.data)[i / n] * ((float*)columns.data)[i % n];
    wrong += ((float*)d.data)[i] != scale * (float)sum_of(i / n, i % n);
  }
  EXPECT(wrong == 0);
  app_destroy_buffer(app, &a);
  app_destroy_buffer(app, &b);
  app_destroy_buffer(app, &d);
  app_destroy_buffer(app, &rows);
  app_destroy_buffer(app, &columns);
}

static void expect_refused(const Device* device, const VkgemmProblem* problem, const char* text) {
  VkgemmPlan* plan = NULL;
  EXPECT_ERROR(vkgemm_plan_create(device->context, problem, NULL, &plan, error),
               VKGEMM_ERROR_INVALID_ARGUMENT, text);
  EXPECT(plan == NULL);
}

// D = T3 · T2, T2 = relu(A·B) · T0 + T1: a matrix, a vector, a stored matrix and a scalar.
void test_steps(const Device* device) {
  App* const app = device->app;
  Buffer a = app_create_buffer(app, 2 * m * k), b = app_create_buffer(app, 2 * k * n);
  Buffer d = app_create_buffer(app, 4 * m * n);
  Buffer t0 = app_create_buffer(app, 4 * m * n), t1 = app_create_buffer(app, 2 * n);
  Buffer t2 = app_create_buffer(app, 4 * m * n), t3 = app_create_buffer(app, 4);
  fill(a, b);
  for (int i = 0; i < m * n; ++i) ((float*)t0.data)[i] = (float)(i % 5 - 2);  // m values a column
  for (int j = 0; j < n; ++j) ((uint16_t*)t1.data)[j] = f16_integers[j % 7];
  *(float*)t3.data = 0.5f;
  memset(t2.data, 0xFF, t2.bytes);
  memset(d.data, 0xFF, d.bytes);

  INIT(VkgemmMatrix, f32, vkgemm_matrix_init);
  f32.type = VKGEMM_DATA_TYPE_F32;
  INIT(VkgemmMatrix, columns, vkgemm_matrix_init);
  columns.type = VKGEMM_DATA_TYPE_F32;
  columns.layout = VKGEMM_LAYOUT_COL_MAJOR;
  INIT(VkgemmEpilogue, epilogue, vkgemm_epilogue_init);
  epilogue.activation = VKGEMM_ACTIVATION_RELU;
  epilogue.tensors[0] = VKGEMM_TENSOR_SHAPE_MATRIX;
  epilogue.tensors[1] = VKGEMM_TENSOR_SHAPE_ALONG_N;
  epilogue.tensors[2] = VKGEMM_TENSOR_SHAPE_MATRIX;
  epilogue.tensors[3] = VKGEMM_TENSOR_SHAPE_SCALAR;
  epilogue.steps[0].op = VKGEMM_STEP_OP_MULTIPLY;
  epilogue.steps[0].operand = VKGEMM_STEP_OPERAND_T0;
  epilogue.steps[1].op = VKGEMM_STEP_OP_ADD;
  epilogue.steps[1].operand = VKGEMM_STEP_OPERAND_T1;
  epilogue.steps[2].op = VKGEMM_STEP_OP_STORE;
  epilogue.steps[2].operand = VKGEMM_STEP_OPERAND_T2;
  epilogue.steps[3].op = VKGEMM_STEP_OP_MULTIPLY;
  epilogue.steps[3].operand = VKGEMM_STEP_OPERAND_T3;
  INIT(VkgemmProblem, problem, vkgemm_problem_init);
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.d = problem.t2 = problem.t3 = &f32;  // t1: f16
  problem.t0 = &columns;
  problem.epilogue = &epilogue;

  VkgemmPlan* plan = NULL;
  EXPECT_SUCCESS(vkgemm_plan_create(device->context, &problem, NULL, &plan, error));
  VkgemmProblem back = {.struct_size = sizeof back};
  EXPECT_SUCCESS(vkgemm_plan_problem(plan, &back));
  EXPECT(memcmp(back.epilogue, &epilogue, sizeof epilogue) == 0);
  EXPECT(memcmp(back.t0, &columns, sizeof columns) == 0);
  EXPECT(back.t1->type == VKGEMM_DATA_TYPE_F16 && memcmp(back.t3, &f32, sizeof f32) == 0);
  INIT(VkgemmOperands, wanted, vkgemm_operands_init);
  EXPECT_SUCCESS(vkgemm_plan_operands(plan, &wanted));
  EXPECT(wanted.t0.bytes == t0.bytes && wanted.t1.bytes == t1.bytes);
  EXPECT(wanted.t2.bytes == t2.bytes && wanted.t3.bytes == t3.bytes);
  Buffer workspace = app_create_buffer(app, wanted.workspace.bytes);
  INIT(VkgemmOperands, operands, vkgemm_operands_init);
  operands.a = span_of(a);
  operands.b = span_of(b);
  operands.d = span_of(d);
  operands.workspace = span_of(workspace);
  operands.t0 = span_of(t0);
  operands.t1 = span_of(t1);
  operands.t2 = span_of(t2);
  operands.t3 = span_of(t3);
  VkCommandBuffer commands = app_begin(app);
  operands.struct_size = offsetof(VkgemmOperands, t0);
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, &operands, NULL, error),
               VKGEMM_ERROR_SPAN_TOO_SMALL, "t0.bytes is 0");
  operands.struct_size = sizeof operands;
  operands.t3.bytes = 3;
  EXPECT_ERROR(vkgemm_plan_record(plan, commands, &operands, NULL, error),
               VKGEMM_ERROR_SPAN_TOO_SMALL, "t3.bytes is 3");
  operands.t3 = span_of(t3);
  EXPECT_SUCCESS(vkgemm_plan_record(plan, commands, &operands, NULL, error));
  app_run(app, commands);
  EXPECT_SUCCESS(vkgemm_plan_destroy(plan));
  int wrong = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      const int sum = sum_of(i, j);
      const int stored = (sum > 0 ? sum : 0) * ((j * m + i) % 5 - 2) + j % 7 - 3;
      wrong += ((float*)t2.data)[i * n + j] != (float)stored;
      wrong += ((float*)d.data)[i * n + j] != 0.5f * (float)stored;
    }
  }
  EXPECT(wrong == 0);

  // Structures of a caller who knows no steps: D = relu(A·B). The bytes after them are not read.
  VkgemmEpilogue old_epilogue = epilogue;
  old_epilogue.struct_size = offsetof(VkgemmEpilogue, tensors);
  VkgemmProblem old_problem = problem;
  old_problem.struct_size = offsetof(VkgemmProblem, t0);
  old_problem.epilogue = &old_epilogue;
  VkgemmOperands old_operands = operands;
  old_operands.struct_size = offsetof(VkgemmOperands, t0);
  memset((char*)&old_operands + old_operands.struct_size, 0xEE,
         sizeof old_operands - old_operands.struct_size);
  run_product(device, &old_problem, old_operands);
  wrong = 0;
  for (int i = 0; i < m * n; ++i) {
    const int sum = sum_of(i / n, i % n);
    wrong += ((float*)d.data)[i] != (float)(sum > 0 ? sum : 0);
  }
  EXPECT(wrong == 0);

  epilogue.steps[1].op = (VkgemmStepOp)77;
  expect_refused(device, &problem, "epilogue.steps[1].op is 77: no VkgemmStepOp");
  epilogue.steps[1].op = VKGEMM_STEP_OP_ADD;
  epilogue.steps[0].operand = VKGEMM_STEP_OPERAND_T1;
  expect_refused(device, &problem, "epilogue.tensors[0] is matrix, but no step names t0");
  app_destroy_buffer(app, &a);
  app_destroy_buffer(app, &b);
  app_destroy_buffer(app, &d);
  app_destroy_buffer(app, &t0);
  app_destroy_buffer(app, &t1);
  app_destroy_buffer(app, &t2);
  app_destroy_buffer(app, &t3);
  app_destroy_buffer(app, &workspace);
}
