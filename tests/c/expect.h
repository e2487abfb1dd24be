// expect.h: what the files of api_test.c share.
#ifndef VKGEMM_TESTS_C_EXPECT_H
#define VKGEMM_TESTS_C_EXPECT_H

#include <stdio.h>
#include <string.h>
#include <vkgemm/vkgemm.h>

#include "app.h"

extern int failures;
extern VkgemmError* error;

const char* message_of_error(void);
void expect_status(VkgemmStatus status, VkgemmStatus expected, const char* file, int line,
                   const char* call);

#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      ++failures;                                                             \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                         \
  } while (0)

#define EXPECT_STATUS(call, expected) expect_status((call), (expected), __FILE__, __LINE__, #call)
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

// The text of a problem, which shows what of it arrived.
const char* text_of(const VkgemmProblem* problem);

typedef enum Kind { NO_KIND, ERRORS, REQUIREMENTS, CAPS, VERDICTS, CONTEXT, CANDIDATES, PLAN } Kind;

// All of a buffer.
VkgemmDeviceSpan span_of(Buffer buffer);

// Hands something to every function that takes a handle; `kind` is what it is.
void refuse_everywhere(void* bad, Kind kind);

typedef struct Device {
  App* app;
  VkgemmRequirements* needs;
  VkgemmContextCreateInfo info;
  VkgemmContext* context;
  int messages;
} Device;

// What the device says of itself.
VkgemmDeviceCaps caps_of(const Device* device);

void test_without_device(void);
void test_no_handles(void);
void test_no_pointers(void);
void test_create_info(const Device* device);
void test_caps(const Device* device);
void test_self_test(const Device* device, const char* folder);
void test_problem(const Device* device);
void test_parts(const Device* device);
void test_candidates(const Device* device);
void test_products(const Device* device);
void test_integers(const Device* device);
void test_steps(const Device* device);
void test_quantised_rows(const Device* device);
void test_tune(const Device* device, const char* folder);
void test_lifetimes(const Device* device, const char* folder);

#endif  // VKGEMM_TESTS_C_EXPECT_H
