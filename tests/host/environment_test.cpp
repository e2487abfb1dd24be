// Tests of how the library and the tool read the environment.
#include "base/environment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "source_files.hpp"

#ifdef __linux__
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace vkgemm {
namespace {

namespace fs = std::filesystem;

TEST(Environment, OnlyOneFunctionReadsIt) {
  std::set<std::string> readers;
  for (const auto& entry : fs::recursive_directory_iterator(test::source_folder())) {
    const std::string kind = entry.path().extension().string();
    if (kind != ".cpp" && kind != ".hpp") continue;
    const std::string text = test::read_source(entry.path());
    for (const char* const word : {"getenv(", "os::environment("}) {
      if (text.find(word) != std::string::npos) readers.insert(entry.path().filename().string());
    }
  }
  EXPECT_EQ(readers,
            (std::set<std::string>{"environment.cpp", "system_posix.cpp", "system_windows.cpp"}));
}

#ifdef __linux__
// This test starts itself once more, as a program whose group is not that of who started it.
TEST(Environment, IsClosedToProcessesWithMoreRights) {
  constexpr const char* variable = "VKGEMM_TEST_MORE_RIGHTS";
  if (std::getenv(variable) != nullptr) {
    EXPECT_EQ(environment_variable(variable), "");
    return;
  }
  ASSERT_EQ(setenv(variable, "1", 1), 0);
  EXPECT_EQ(environment_variable(variable), "1");
  constexpr int no_rights_to_give = 77;
  const pid_t child = fork();
  if (child == 0) {
    if (setregid(getegid() + 1, getegid()) != 0) _exit(no_rights_to_give);
    unsetenv("GTEST_TOTAL_SHARDS");
    unsetenv("GTEST_SHARD_INDEX");
    execl("/proc/self/exe", "tests", "--gtest_filter=Environment.IsClosedToProcessesWithMoreRights",
          nullptr);
    _exit(no_rights_to_give);
  }
  unsetenv(variable);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == no_rights_to_give) GTEST_SKIP() << "needs CAP_SETGID, and no emulator";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
}  // namespace vkgemm
