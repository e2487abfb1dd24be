// A complete application in C: D = gelu(1.25 * A·B + 0.5 * C + bias), compared with a sum in double
// precision. tests/examples/minimal.c makes the context and the plan and records it; app.c is the
// Vulkan part: instance, device, memory, submission.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <vkgemm/vkgemm.h>

#include "app.h"

// tests/examples/minimal.c
VkgemmRequirements* ask(VkInstance instance, VkPhysicalDevice gpu,
                        PFN_vkGetInstanceProcAddr get_instance_proc_addr, VkgemmError* error);
VkgemmContext* make_context(VkInstance instance, VkPhysicalDevice gpu, VkDevice device,
                            PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                            const VkgemmRequirements* needs, VkgemmError* error);
VkgemmPlan* plan_layer(const VkgemmContext* context, VkgemmError* error);
VkgemmStatus record_layer(const VkgemmPlan* plan, VkCommandBuffer commands, VkgemmDeviceSpan a,
                          VkgemmDeviceSpan b, VkgemmDeviceSpan c, VkgemmDeviceSpan d,
                          VkgemmDeviceSpan bias, VkgemmDeviceSpan workspace, VkgemmError* error);
enum { m = 512, n = 4096, k = 1024 };

static VkgemmError* error;

static void check(VkgemmStatus status) {
  if (status == VKGEMM_SUCCESS) return;
  const char* message = "";
  vkgemm_error_message(error, &message);
  fail("vkgemm: status %d: %s", (int)status, message);
}

// Ends the program if a call made no handle.
static void check_last(const void* handle) {
  VkgemmStatus status = VKGEMM_SUCCESS;
  if (handle == NULL) vkgemm_error_status(error, &status);
  check(status);
}

// Multiples of 1/16 from -1/2 to 1/2, by their number, as f16.
static double value_of(uint32_t i) { return ((double)(i * 2654435761u >> 28) - 8.0) / 16.0; }
static uint16_t to_f16(double value) {
  int exponent = 0;
  if (value == 0.0) return 0;
  const double fraction = frexp(fabs(value), &exponent);  // [1/2, 1)
  const uint32_t mantissa = (uint32_t)(fraction * 2048.0) - 1024;
  const uint32_t sign = value < 0 ? 0x8000 : 0;
  return (uint16_t)(sign | (uint32_t)(exponent + 14) << 10 | mantissa);
}
static double from_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double size = exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

static VkgemmDeviceSpan span_of(Buffer buffer) {
  return (VkgemmDeviceSpan){buffer.address, buffer.bytes};
}

static Buffer f16_matrix(App* app, uint32_t count, uint32_t seed) {
  const Buffer buffer = app_create_buffer(app, 2 * (VkDeviceSize)count);
  for (uint32_t i = 0; i < count; ++i) ((uint16_t*)buffer.data)[i] = to_f16(value_of(seed + i));
  return buffer;
}

int main(void) {
  App* app = app_open();
  check(vkgemm_error_create(&error));
  VkgemmRequirements* needs =
      ask(app->instance, app->physical_device, app->get_instance_proc_addr, error);
  check_last(needs);
  uint32_t extension_count = 0;
  const char* const* extensions = NULL;
  const VkPhysicalDeviceFeatures2* features = NULL;
  check(vkgemm_requirements_extensions(needs, &extension_count, &extensions));
  check(vkgemm_requirements_features(needs, &features));
  app_create_device(app, extension_count, extensions, features);
  VkgemmContext* context = make_context(app->instance, app->physical_device, app->device,
                                        app->get_instance_proc_addr, needs, error);
  check_last(context);
  check(vkgemm_requirements_destroy(needs));
  VkgemmPlan* plan = plan_layer(context, error);
  check_last(plan);

  size_t size = 0;
  check(vkgemm_plan_explain(plan, NULL, &size));
  char* text = malloc(size);
  if (text == NULL) fail("no memory");
  check(vkgemm_plan_explain(plan, text, &size));
  puts(text);
  free(text);

  enum { seed_a = 0, seed_b = 1u << 20, seed_c = 5u << 20, seed_bias = 9u << 20 };
  Buffer a = f16_matrix(app, m * k, seed_a), b = f16_matrix(app, k * n, seed_b);
  Buffer c = f16_matrix(app, m * n, seed_c), d = app_create_buffer(app, 2 * m * n);
  Buffer bias = app_create_buffer(app, 4 * n);
  for (uint32_t i = 0; i < n; ++i) ((float*)bias.data)[i] = (float)value_of(seed_bias + i);
  uint64_t workspace_bytes = 0;
  check(vkgemm_plan_workspace_bytes(plan, &workspace_bytes));
  Buffer workspace = app_create_buffer(app, workspace_bytes);

  VkCommandBuffer commands = app_begin(app);
  check(record_layer(plan, commands, span_of(a), span_of(b), span_of(c), span_of(d), span_of(bias),
                     span_of(workspace), error));
  app_run(app, commands);

  double worst = 0.0;
  uint32_t checked = 0;
  for (uint32_t i = 0; i < m; ++i) {
    for (uint32_t j = i % 61; j < n; j += 61, ++checked) {
      double sum = 0.0;
      for (uint32_t l = 0; l < k; ++l) {
        sum += value_of(seed_a + i * k + l) * value_of(seed_b + l * n + j);
      }
      const double pre = 1.25 * sum + 0.5 * value_of(seed_c + i * n + j) + value_of(seed_bias + j);
      const double expected = 0.5 * pre * (1.0 + erf(pre / sqrt(2.0)));
      // Sums of multiples of 1/256 are exact; gelu and the rounding to f16 are not.
      const double bound = fabs(expected) / 2048.0 + 1e-5 * (1.0 + fabs(pre));
      const double got = from_f16(((const uint16_t*)d.data)[i * n + j]);
      if (!(fabs(got - expected) <= bound)) fail("D[%u, %u] is %g, not %g", i, j, got, expected);
      worst = fmax(worst, fabs(got - expected) / bound);
    }
  }
  printf("example: %u elements of %u x %u x %u are right, at worst %.2f of the bound\n", checked, m,
         n, k, worst);

  check(vkgemm_plan_destroy(plan));
  check(vkgemm_context_destroy(context));
  check(vkgemm_error_destroy(error));
  Buffer* const buffers[] = {&a, &b, &c, &d, &bias, &workspace};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; ++i) app_destroy_buffer(app, buffers[i]);
  app_close(app);
  return 0;
}
