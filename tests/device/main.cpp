// vkgemm_device_tests [--device NAME|INDEX] [--path nv|khr|fma] [GoogleTest flags]
// VKGEMM_VALIDATION=1 in the environment: under the validation layers.
#include <cstdio>
#include <cstring>
#include <string_view>

#include "harness.hpp"

namespace {

int usage(const char* problem, std::string_view argument) {
  std::fprintf(stderr, "%s: %.*s\nusage: [--device NAME|INDEX] [--path nv|khr|fma]\n", problem,
               static_cast<int>(argument.size()), argument.data());
  return 2;
}

constexpr int skipped = 77;  // SKIP_RETURN_CODE in CMakeLists.txt

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  vkgemm::test::Settings& settings = vkgemm::test::settings();
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (i + 1 == argc) return usage("unknown argument or no value", argument);
    const std::string_view value = argv[++i];
    if (argument == "--device") {
      settings.device = value;
    } else if (argument == "--path") {
      for (const vkgemm::Path path : {vkgemm::Path::nv, vkgemm::Path::khr, vkgemm::Path::fma}) {
        if (to_string(path) == value) settings.path = path;
      }
      if (!settings.path) return usage("no such path", value);
    } else {
      return usage("unknown argument", argument);
    }
  }
  vkgemm::test::runner();
  const int result = RUN_ALL_TESTS();
  vkgemm::test::destroy_runner();  // without a test to run, GoogleTest tears nothing down
  if (const std::size_t count = vkgemm::test::left_out_count(); count > 0) {
    std::printf("%zu cases were left to the night: VKGEMM_NIGHTLY=1 runs them\n", count);
  }
  // A machine that can run none of them has passed nothing: ctest shows it as skipped.
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const bool all_skipped = all.skipped_test_count() == all.test_to_run_count();
  return result == 0 && all_skipped ? skipped : result;
}
