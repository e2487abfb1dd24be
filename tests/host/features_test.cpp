// Feature bits are found wherever an application put them, and count only with their extension.
#include "device/features.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "source_files.hpp"

namespace vkgemm {
namespace {

template <class Structure>
Structure structure(VkStructureType type, void* next) {
  Structure s{};
  s.sType = type;
  s.pNext = next;
  return s;
}

// All but the one that query_requirements() leaves to developers.
TEST(Features, StandInThePage) {
  const std::string page =
      test::read_source(test::source_folder().parent_path() / "include/API.md");
  for (std::size_t i = 0; i < static_cast<std::size_t>(Feature::count); ++i) {
    const auto feature = static_cast<Feature>(i);
    if (feature == Feature::pipeline_executable_info) continue;
    EXPECT_NE(page.find(concat("`", to_string(feature), "`")), std::string::npos)
        << to_string(feature);
  }
}

TEST(Features, AreReadFromTheStructuresOfVersions) {
  auto v13 = structure<VkPhysicalDeviceVulkan13Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES, nullptr);
  v13.maintenance4 = VK_TRUE;
  auto v12 = structure<VkPhysicalDeviceVulkan12Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, &v13);
  v12.bufferDeviceAddress = VK_TRUE;
  auto v11 = structure<VkPhysicalDeviceVulkan11Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &v12);
  v11.storageBuffer16BitAccess = VK_TRUE;
  auto head =
      structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v11);
  head.features.shaderInt64 = VK_TRUE;

  FeatureSet expected;
  expected.add(Feature::maintenance4);
  expected.add(Feature::buffer_device_address);
  expected.add(Feature::storage_buffer_16bit_access);
  expected.add(Feature::shader_int64);
  EXPECT_EQ(read_features(&head), expected);
}

TEST(Features, AreReadFromTheStructuresOfExtensions) {
  auto maintenance4 = structure<VkPhysicalDeviceMaintenance4Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES, nullptr);
  maintenance4.maintenance4 = VK_TRUE;
  auto size_control = structure<VkPhysicalDeviceSubgroupSizeControlFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, &maintenance4);
  size_control.computeFullSubgroups = VK_TRUE;
  auto float16 = structure<VkPhysicalDeviceShaderFloat16Int8Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, &size_control);
  float16.shaderFloat16 = VK_TRUE;
  auto dot_product = structure<VkPhysicalDeviceShaderIntegerDotProductFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, &float16);
  dot_product.shaderIntegerDotProduct = VK_TRUE;
  auto unknown = structure<VkPhysicalDeviceRobustness2FeaturesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT, &dot_product);
  auto head =
      structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &unknown);

  FeatureSet expected;
  expected.add(Feature::maintenance4);
  expected.add(Feature::compute_full_subgroups);
  expected.add(Feature::shader_float16);
  expected.add(Feature::shader_integer_dot_product);
  EXPECT_EQ(read_features(&head), expected);
}

FeatureSet all_features() {
  FeatureSet all;
  for (int i = 0; i < static_cast<int>(Feature::count); ++i) all.add(static_cast<Feature>(i));
  return all;
}

TEST(Features, ComeBackFromAChain) {
  ExtensionSet extensions;
  for (int i = 0; i < static_cast<int>(Feature::count); ++i) {
    extensions.emplace(extension_of(static_cast<Feature>(i)));
  }
  FeatureChain chain(extensions);
  EXPECT_EQ(read_features(chain.head()), FeatureSet{});
  for (int i = 0; i < static_cast<int>(Feature::count); ++i) {
    FeatureSet one;
    one.add(static_cast<Feature>(i));
    chain.write(one);
    EXPECT_EQ(read_features(chain.head()), one) << to_string(static_cast<Feature>(i));
  }
  chain.write(all_features());
  EXPECT_EQ(read_features(chain.head()), all_features());
}

TEST(Features, OfExtensionsThatAreNotListedAreNotAskedFor) {
  FeatureChain chain({});
  chain.write(all_features());
  const FeatureSet found = read_features(chain.head());
  for (int i = 0; i < static_cast<int>(Feature::count); ++i) {
    const auto feature = static_cast<Feature>(i);
    EXPECT_EQ(found.has(feature), extension_of(feature).empty()) << to_string(feature);
  }
}

// The types of the structures of a chain, without its head.
std::vector<VkStructureType> types_behind(const VkPhysicalDeviceFeatures2& head) {
  std::vector<VkStructureType> types;
  for (const auto* s = static_cast<const VkBaseInStructure*>(head.pNext); s != nullptr;
       s = s->pNext) {
    types.push_back(s->sType);
  }
  return types;
}

TEST(Features, MergeIntoAChainThatHasNone) {
  auto head =
      structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, nullptr);
  head.features.samplerAnisotropy = VK_TRUE;
  FeatureAdditions additions;
  for (int i = 0; i < static_cast<int>(Feature::count); ++i) {
    FeatureSet one;
    one.add(static_cast<Feature>(i));
    head.pNext = nullptr;
    head.features.shaderInt64 = head.features.shaderInt16 = VK_FALSE;
    additions.merge_into(head, one);
    EXPECT_EQ(read_features(&head), one) << to_string(static_cast<Feature>(i));
    EXPECT_LE(types_behind(head).size(), 1u);
  }
  additions.merge_into(head, all_features());
  EXPECT_EQ(read_features(&head), all_features());
  EXPECT_EQ(head.features.samplerAnisotropy, VK_TRUE);
}

// Bits of the application stay. No structure comes twice, or together with one that took it over.
TEST(Features, MergeIntoAChainThatHasSome) {
  auto v13 = structure<VkPhysicalDeviceVulkan13Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES, nullptr);
  v13.synchronization2 = v13.dynamicRendering = VK_TRUE;
  auto storage = structure<VkPhysicalDevice16BitStorageFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, &v13);
  storage.storagePushConstant16 = VK_TRUE;
  auto semaphores = structure<VkPhysicalDeviceTimelineSemaphoreFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, &storage);
  auto head = structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                                   &semaphores);
  FeatureAdditions additions;
  additions.merge_into(head, all_features());
  EXPECT_EQ(read_features(&head), all_features());
  EXPECT_EQ(v13.synchronization2, VK_TRUE);
  EXPECT_EQ(v13.dynamicRendering, VK_TRUE);
  EXPECT_EQ(v13.maintenance4, VK_TRUE);
  EXPECT_EQ(storage.storagePushConstant16, VK_TRUE);
  EXPECT_EQ(storage.storageBuffer16BitAccess, VK_TRUE);
  const std::vector<VkStructureType> types = types_behind(head);
  EXPECT_EQ(std::set(types.begin(), types.end()).size(), types.size());
  for (const VkStructureType type : types) {
    EXPECT_NE(type, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
    EXPECT_NE(type, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
    EXPECT_NE(type, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES);
  }
}

TEST(Features, MergeLeavesBitsThatAreNotWanted) {
  auto v12 = structure<VkPhysicalDeviceVulkan12Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, nullptr);
  v12.shaderFloat16 = VK_TRUE;
  auto head =
      structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v12);
  FeatureSet wanted;
  wanted.add(Feature::buffer_device_address);
  FeatureAdditions additions;
  additions.merge_into(head, wanted);
  EXPECT_EQ(v12.shaderFloat16, VK_TRUE);
  EXPECT_EQ(v12.bufferDeviceAddress, VK_TRUE);
  EXPECT_EQ(v12.shaderInt8, VK_FALSE);
  EXPECT_EQ(v12.pNext, nullptr);
}

TEST(Features, CountOnlyWithTheirExtension) {
  Facilities device;
  device.features = all_features();
  EXPECT_TRUE(device.has(Feature::shader_int64));
  EXPECT_FALSE(device.has(Feature::bfloat16_type));  // as on RADV's navi31 stub
  device.extensions.emplace(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
  EXPECT_TRUE(device.has(Feature::bfloat16_type));
  EXPECT_FALSE(device.has(Feature::float8_type));
}

}  // namespace
}  // namespace vkgemm
