// What vkgemm.h promises beyond the C++ API: sizes of structures, handles that are none, texts,
// names, defaults. And that every function does what its C++ counterpart does, on the first device
// there is. Its argument is a folder to write to.
#include "expect.h"

int failures;
VkgemmError* error;

const char* message_of_error(void) {
  const char* message = "";
  EXPECT(vkgemm_error_message(error, &message) == VKGEMM_SUCCESS);
  return message;
}

void expect_status(VkgemmStatus status, VkgemmStatus expected, const char* file, int line,
                   const char* call) {
  if (status == expected) return;
  ++failures;
  fprintf(stderr, "%s:%d: %s gave %d, not %d; the last message: %s\n", file, line, call,
          (int)status, (int)expected, message_of_error());
}

VkgemmDeviceSpan span_of(Buffer buffer) { return (VkgemmDeviceSpan){buffer.address, buffer.bytes}; }

VkgemmDeviceCaps caps_of(const Device* device) {
  const VkgemmCaps* caps = NULL;
  EXPECT_SUCCESS(vkgemm_context_caps(device->context, &caps));
  VkgemmDeviceCaps is = {.struct_size = sizeof is};
  EXPECT_SUCCESS(vkgemm_caps_device(caps, &is));
  return is;
}

const char* text_of(const VkgemmProblem* problem) {
  static char text[1024];
  size_t size = sizeof text;
  text[0] = '\0';
  EXPECT_SUCCESS(vkgemm_problem_command_line(problem, text, &size, error));
  return text;
}

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

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: %s FOLDER", argv[0]);
  if (vkgemm_error_create(&error) != VKGEMM_SUCCESS) fail("no error");
  test_without_device();
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
  test_integers(&device);
  test_steps(&device);
  test_quantised_rows(&device);
  test_tune(&device, argv[1]);
  test_lifetimes(&device, argv[1]);
  EXPECT(device.messages > 0);
  close_device(&device);
  EXPECT_SUCCESS(vkgemm_error_destroy(error));
  if (failures != 0) fail("%d expectations failed", failures);
  puts("api_test: all is as vkgemm.h says");
  return 0;
}
