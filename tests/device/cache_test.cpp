// The pipeline cache's file: written, read back, and thrown away if anything about it is wrong.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "harness.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

namespace fs = std::filesystem;

class PipelineCacheFile : public testing::Test {
 protected:
  void SetUp() override {
    // Tests of several processes may run at once.
    folder_ = fs::temp_directory_path() /
              ("vkgemm_cache_" + std::to_string(reinterpret_cast<std::uintptr_t>(&runner())) + "_" +
               std::to_string(testing::UnitTest::GetInstance()->random_seed()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    file_ = folder_ / "cache";
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A context with the file, one pipeline planned; what it logged.
  std::string use() {
    std::string log;
    headless::RunnerOptions options;
    options.pipeline_cache_file = file_.string();
    options.log = [&](LogLevel level, std::string_view message) {
      if (level != LogLevel::info) log.append(message).append("\n");
    };
    const auto other = another_runner(std::move(options));
    EXPECT_TRUE(succeeds(other->context().plan(gemm({8, 8, 8}, DataType::f32),
                                               small_configs(Path::fma, DataType::f32).front())));
    EXPECT_TRUE(succeeds(other->context().save_pipeline_cache()));
    return log;
  }
  std::vector<char> read() const {
    std::ifstream stream(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void write(const std::vector<char>& bytes) const {
    std::ofstream(file_, std::ios::binary).write(bytes.data(), std::ssize(bytes));
  }

  fs::path folder_, file_;
};

TEST_F(PipelineCacheFile, RoundTrip) {
  EXPECT_EQ(use(), "");
  const std::vector<char> first = read();
  ASSERT_GE(first.size(), 64u);  // a driver may have nothing to keep: lavapipe has its own cache
  EXPECT_EQ(std::string(first.data(), 8), "vkgemmPC");
  EXPECT_EQ(use(), "");  // accepted
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "temporary files are left";
}

TEST_F(PipelineCacheFile, WhatDoesNotMatchIsDiscardedAndRebuilt) {
  EXPECT_EQ(use(), "");
  const std::vector<char> good = read();
  ASSERT_GE(good.size(), 64u);
  const auto expect_discarded = [&](const char* what, const std::vector<char>& bytes) {
    write(bytes);
    EXPECT_NE(use().find("is discarded and rebuilt"), std::string::npos) << what;
    EXPECT_GE(read().size(), 64u) << what;
    EXPECT_EQ(use(), "") << what << ": the rebuilt file is not accepted";
  };
  const auto flipped = [&](std::size_t at) {
    std::vector<char> bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    return bytes;
  };
  expect_discarded("magic", flipped(0));
  expect_discarded("version", flipped(8));
  expect_discarded("length", flipped(16));
  expect_discarded("hash", flipped(24));
  expect_discarded("vendor", flipped(32));
  expect_discarded("device", flipped(36));
  expect_discarded("driver", flipped(40));
  expect_discarded("UUID", flipped(50));
  expect_discarded("payload", flipped(good.size() - 1));
  expect_discarded("cut off", {good.begin(), good.end() - 1});
  expect_discarded("cut within the header", {good.begin(), good.begin() + 20});
  std::vector<char> longer = good;
  longer.push_back(0);
  expect_discarded("one byte more", longer);
  expect_discarded("text", {'h', 'e', 'l', 'l', 'o'});
}

TEST_F(PipelineCacheFile, UnwritableFolderIsAnError) {
  file_ = folder_ / "missing" / "cache";
  headless::RunnerOptions options;
  options.pipeline_cache_file = file_.string();
  const auto other = another_runner(std::move(options));
  ASSERT_TRUE(succeeds(other->context().plan(gemm({8, 8, 8}, DataType::f32))));
  EXPECT_TRUE(fails_with(other->context().save_pipeline_cache(), Status::io_error, {"cache"}));
}

// The application's own cache is used, and is still there afterwards.
TEST(PipelineCache, OfTheApplication) {
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  const auto device_owner = another_runner();
  VkPipelineCache cache = VK_NULL_HANDLE;
  ASSERT_EQ(vkCreatePipelineCache(device_owner->device(), &info, nullptr, &cache), VK_SUCCESS);
  const auto requirements = query_requirements(
      device_owner->instance(), device_owner->physical_device(), vkGetInstanceProcAddr);
  ASSERT_TRUE(succeeds(requirements));
  {
    const auto made = Context::create({.instance = device_owner->instance(),
                                       .physical_device = device_owner->physical_device(),
                                       .device = device_owner->device(),
                                       .get_instance_proc_addr = vkGetInstanceProcAddr,
                                       .enabled_extensions = requirements->extensions(),
                                       .enabled_features = requirements->features(),
                                       .pipeline_cache = cache});
    ASSERT_TRUE(succeeds(made));
    EXPECT_TRUE(succeeds(made->plan(gemm({8, 8, 8}, DataType::f32))));
  }
  std::size_t bytes = 0;
  EXPECT_EQ(vkGetPipelineCacheData(device_owner->device(), cache, &bytes, nullptr), VK_SUCCESS);
  EXPECT_GT(bytes, 0u);
  vkDestroyPipelineCache(device_owner->device(), cache, nullptr);
}

}  // namespace
}  // namespace vkgemm::test
