// Tests of pipelines' names. The pipeline cache's file: what fits comes back, whatever else is
// discarded with a reason.
#include "runtime/pipeline_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/cache_file.hpp"
#include "base/text.hpp"
#include "embedded/embedded.hpp"
#include "expectations.hpp"
#include "kernels/steps.hpp"
#include "test_devices.hpp"

namespace vkgemm {
namespace {

using test::lowered;

// A pipeline that fails to compile is named by its configuration, whatever the kernel that it is
// compiled into.
TEST(PipelineName, IsTheConfiguration) {
  const Config& plain = test::khr_config;
  EXPECT_EQ(pipeline_name(lowered(test::gemm(512, 512, 512), plain).product.key, plain),
            to_string(plain));

  Problem grouped = test::gemm(512, 512, 512);
  grouped.grouping = Grouping{.groups = 4, .b = GroupedB::per_group};
  EXPECT_EQ(pipeline_name(lowered(grouped, plain).product.key, plain), to_string(plain));

  Problem reduced = test::gemm(512, 512, 512);
  reduced.row_reduction = RowReduction{.op = RowOp::rms_norm};
  Config twice = plain;
  twice.rows = RowStrategy::recompute;
  const DispatchPlan kernel = lowered(reduced, twice);
  EXPECT_EQ(pipeline_name(kernel.product.key, twice), to_string(twice));
  ASSERT_FALSE(kernel.after.empty());
  EXPECT_EQ(pipeline_name(kernel.after.back().key, twice), to_string(twice)) << "multiplied again";
}

TEST(PipelineName, IsTheModuleOfStepsThatConfigurationsShare) {
  Config config = test::khr_config;
  config.slices = 4;
  config.pack_a = true;
  const DispatchPlan kernel = lowered(test::gemm(512, 512, 4096), config);
  ASSERT_FALSE(kernel.before.empty());
  ASSERT_FALSE(kernel.after.empty());
  EXPECT_EQ(pipeline_name(kernel.before.front().key, config), "pack");
  EXPECT_EQ(pipeline_name(kernel.after.front().key, config), "sum_slices");
}

TEST(PipelineName, IsTheConfigurationOfEveryMainLoop) {
  for (const auto& module : embedded::modules()) {
    if (module.name.starts_with("ceiling") || module.name == "bandwidth") continue;  // of no plan
    const auto is = [&](std::string_view kernel) { return module.name.starts_with(kernel); };
    const bool loop = is("gemm") || is("grouped") || is("reduce_tiles");
    const PipelineKey key{.module = module.name};
    EXPECT_EQ(pipeline_name(key, test::khr_config),
              loop ? to_string(test::khr_config)
              : is("pack_") && input_of_module(module.name) != nullptr
                  ? concat(module.name, " ", to_string(test::khr_config))
                  : std::string(module.name));
  }
}

using Bytes = std::vector<std::byte>;

CacheIdentity identity() {
  CacheIdentity id{.vendor_id = 0x10de, .device_id = 0x2335, .driver_version = 580159};
  for (std::size_t i = 0; i < id.uuid.size(); ++i) id.uuid[i] = static_cast<std::uint8_t>(i + 1);
  return id;
}

// As a driver writes it: VkPipelineCacheHeaderVersionOne and something of its own.
Bytes driver_data(const CacheIdentity& id, std::size_t own_bytes = 100) {
  Bytes data;
  const auto put = [&](std::uint32_t value) {
    for (int i = 0; i < 4; ++i) data.push_back(static_cast<std::byte>(value >> (8 * i)));
  };
  put(32);
  put(VK_PIPELINE_CACHE_HEADER_VERSION_ONE);
  put(id.vendor_id);
  put(id.device_id);
  for (const std::uint8_t byte : id.uuid) data.push_back(static_cast<std::byte>(byte));
  for (std::size_t i = 0; i < own_bytes; ++i) data.push_back(static_cast<std::byte>(i * 37));
  return data;
}

std::string reason(const Bytes& file, const CacheIdentity& id = identity()) {
  const auto parsed = parse_cache_file(file, id);
  return parsed ? "accepted" : parsed.error().message;
}

TEST(PipelineCacheFile, GivesBackWhatWasPutIn) {
  for (const std::size_t own_bytes : {0u, 1u, 100u, 100000u}) {
    const Bytes data = driver_data(identity(), own_bytes);
    const Bytes file = make_cache_file(data, identity());
    const auto parsed = parse_cache_file(file, identity());
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(Bytes(parsed->begin(), parsed->end()), data);
  }
}

TEST(PipelineCacheFile, MayHoldNothing) {
  const auto parsed = parse_cache_file(make_cache_file({}, identity()), identity());
  ASSERT_FALSE(!parsed);
}

TEST(PipelineCacheFile, DiscardsEveryTruncation) {
  const Bytes file = make_cache_file(driver_data(identity()), identity());
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
    const Bytes part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(bytes));
    EXPECT_FALSE(parse_cache_file(part, identity())) << bytes;
  }
}

TEST(PipelineCacheFile, DiscardsTrailingBytes) {
  Bytes file = make_cache_file(driver_data(identity()), identity());
  file.push_back(std::byte{0});
  EXPECT_NE(reason(file).find("payload"), std::string::npos) << reason(file);
}

TEST(PipelineCacheFile, DiscardsEveryFlippedBitThatMatters) {
  const Bytes file = make_cache_file(driver_data(identity()), identity());
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    const std::size_t byte = bit / 8;
    if (byte >= 12 && byte < 16) continue;  // reserved
    Bytes damaged = file;
    damaged[byte] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(parse_cache_file(damaged, identity())) << "bit " << bit;
  }
}

TEST(PipelineCacheFile, DiscardsAnotherDeviceOrDriver) {
  const Bytes file = make_cache_file(driver_data(identity()), identity());
  CacheIdentity other = identity();
  other.vendor_id = 0x1002;
  EXPECT_EQ(reason(file, other), "its vendor id is 4318, expected 4098");
  other = identity();
  other.device_id = 7;
  EXPECT_EQ(reason(file, other), "its device id is 9013, expected 7");
  other = identity();
  ++other.driver_version;
  EXPECT_EQ(reason(file, other), "its driver version is 580159, expected 580160");
  other = identity();
  other.uuid[15] ^= 1;
  EXPECT_EQ(reason(file, other), "its pipeline cache UUID is another one");
}

TEST(PipelineCacheFile, DiscardsWhatVulkansOwnHeaderContradicts) {
  CacheIdentity other = identity();
  other.device_id = 7;
  const Bytes file = make_cache_file(driver_data(other), identity());
  EXPECT_NE(reason(file).find("VkPipelineCacheHeader"), std::string::npos) << reason(file);
  Bytes short_data = driver_data(identity(), 0);
  short_data.pop_back();
  EXPECT_NE(reason(make_cache_file(short_data, identity())), "accepted");
  Bytes long_header = driver_data(identity(), 0);
  long_header[0] = std::byte{33};  // longer than the data
  EXPECT_NE(reason(make_cache_file(long_header, identity())), "accepted");
}

TEST(PipelineCacheFile, SurvivesAnyBytes) {
  std::mt19937 random(1);
  const Bytes good = make_cache_file(driver_data(identity()), identity());
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes(random() % 200);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    // Half of them start like a cache file, so that the later checks are reached as well.
    const std::size_t genuine = round % 2 == 0 ? 0 : random() % 65;
    for (std::size_t i = 0; i < std::min(genuine, bytes.size()); ++i) bytes[i] = good[i];
    EXPECT_FALSE(parse_cache_file(bytes, identity()));
  }
}

}  // namespace
}  // namespace vkgemm
