#include "device/architecture.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <span>

#include "tuning/table.hpp"

namespace vkgemm {
namespace {

TEST(Architecture, RecognisesProducts) {
  struct Case {
    std::uint32_t vendor, device;
    std::string_view architecture;
  };
  const Case cases[] = {
      {0x10de, 0x2335, "nvidia_sm90"},   // H200 SXM
      {0x10de, 0x2330, "nvidia_sm90"},   // H100 SXM5
      {0x10de, 0x2342, "nvidia_sm90"},   // GH200
      {0x10de, 0x23ff, "nvidia_sm90"},   // the last of its block
      {0x10de, 0x2900, "nvidia_sm100"},  // the first of its block
      {0x10de, 0x2901, "nvidia_sm100"},  // B200
      {0x10de, 0x2941, "nvidia_sm100"},  // GB200
      {0x10de, 0x29bc, "nvidia_sm100"},  // B100
      {0x10de, 0x3182, "nvidia_sm100"},  // B300
      {0x10de, 0x31c2, "nvidia_sm100"},  // GB300
      {0x10de, 0x2b80, "nvidia_sm120"},  // the first of its block
      {0x10de, 0x2b85, "nvidia_sm120"},  // RTX 5090
      {0x10de, 0x2bb1, "nvidia_sm120"},  // RTX PRO 6000 Blackwell
      {0x10de, 0x2c02, "nvidia_sm120"},  // RTX 5080
      {0x10de, 0x2d05, "nvidia_sm120"},  // RTX 5060
      {0x10de, 0x2e12, "nvidia_sm120"},  // GB10
      {0x10de, 0x2f04, "nvidia_sm120"},  // RTX 5070
      {0x10de, 0x2684, "nvidia_sm89"},   // RTX 4090
      {0x10de, 0x26b9, "nvidia_sm89"},   // L40S
      {0x10de, 0x2786, "nvidia_sm89"},   // RTX 4070
      {0x10de, 0x2882, "nvidia_sm89"},   // RTX 4060
      {0x10de, 0x28e0, "nvidia_sm89"},   // RTX 4060 mobile
      {0x10de, 0x2204, "nvidia_sm86"},   // RTX 3090
      {0x10de, 0x2503, "nvidia_sm86"},   // RTX 3060
      {0x10de, 0x25b0, "nvidia_sm86"},   // RTX A1000
      {0x10de, 0x20b0, "nvidia_sm80"},   // A100 SXM4 40GB
      {0x10de, 0x20b2, "nvidia_sm80"},   // A100 SXM4 80GB
      {0x10de, 0x20b7, "nvidia_sm80"},   // A30
      {0x10de, 0x1e04, "nvidia_sm75"},   // RTX 2080 Ti
      {0x10de, 0x1eb8, "nvidia_sm75"},   // T4
      {0x10de, 0x2184, "nvidia_sm75"},   // GTX 1660
      {0x10de, 0x1d81, "nvidia_sm70"},   // Titan V
      {0x10de, 0x1db1, "nvidia_sm70"},   // V100 SXM2 16GB
      {0x10de, 0x1db5, "nvidia_sm70"},   // V100 SXM2 32GB
      {0x1002, 0x73bf, "amd_rdna2"},     // RX 6900 XT
      {0x1002, 0x73f0, "amd_rdna3"},     // RX 7600M XT, among the ids of Navi 23
      {0x1002, 0x73ff, "amd_rdna2"},     // RX 6600
      {0x1002, 0x163f, "amd_rdna2"},     // Steam Deck
      {0x1002, 0x7448, "amd_rdna3"},     // Pro W7900
      {0x1002, 0x744c, "amd_rdna3"},     // RX 7900 XTX
      {0x1002, 0x747e, "amd_rdna3"},     // RX 7800 XT
      {0x1002, 0x15bf, "amd_rdna3"},     // Phoenix
      {0x1002, 0x7480, "amd_rdna3"},     // RX 7600
      {0x1002, 0x150e, "amd_rdna35"},    // Strix Point
      {0x1002, 0x1114, "amd_rdna35"},    // Krackan
      {0x1002, 0x1586, "amd_rdna35"},    // Strix Halo
      {0x1002, 0x7550, "amd_rdna4"},     // RX 9070 XT
      {0x1002, 0x7551, "amd_rdna4"},     // AI PRO R9700
      {0x1002, 0x7590, "amd_rdna4"},     // RX 9060 XT
      {0x8086, 0x56a0, "intel_xe_hpg"},  // Arc A770
      {0x8086, 0x5690, "intel_xe_hpg"},  // Arc A770M, and the stub dg2
      {0x8086, 0x56a5, "intel_xe_hpg"},  // Arc A380
      {0x8086, 0x56c0, "intel_xe_hpg"},  // Flex 170
      {0x8086, 0x64a0, "intel_xe2"},     // Lunar Lake, and the stub lnl
      {0x8086, 0xe202, "intel_xe2"},     // the stub bmg
      {0x8086, 0xe20b, "intel_xe2"},     // Arc B580
  };
  for (const Case& c : cases) {
    EXPECT_EQ(recognise_architecture(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, c.vendor, c.device),
              c.architecture)
        << std::hex << c.device;
  }
}

TEST(Architecture, LeavesTheRestGeneric) {
  struct Case {
    std::uint32_t vendor, device;
  };
  const Case cases[] = {
      {0x10de, 0x13c0},               // GTX 980
      {0x10de, 0x1b06},               // GTX 1080 Ti
      {0x10de, 0x2b00},               // Jetson Thor
      {0x10de, 0x2b7f},               // the last id before RTX 5090's block
      {0x10de, 0x2f80},               // the first one after RTX 5070's
      {0x10de, 0x3021},               // Rubin
      {0x10de, 0x3340},               // GB120
      {0x10de, 0xffff}, {0x10de, 0},  // none
      {0x1002, 0x731f},               // RDNA1
      {0x1002, 0x74a1},               // CDNA3
      {0x1002, 0x75a0},               // CDNA4
      {0x1002, 0x2335},               // an id of NVIDIA's at the wrong vendor
      {0x8086, 0x7d55},               // Meteor Lake: no matrix engines
      {0x8086, 0xb080},               // Panther Lake
      {0, 0},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(recognise_architecture(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, c.vendor, c.device),
              "generic")
        << std::hex << c.device;
  }
}

TEST(Architecture, ACpuIsOneWhateverItsIds) {
  EXPECT_EQ(recognise_architecture(VK_PHYSICAL_DEVICE_TYPE_CPU, 0x10005, 0), "cpu");  // lavapipe
  EXPECT_EQ(recognise_architecture(VK_PHYSICAL_DEVICE_TYPE_CPU, 0x1ae0, 0xc0de), "cpu");
  EXPECT_EQ(recognise_architecture(VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, 0x10005, 0), "generic");
}

TEST(Architecture, NearestByProperties) {
  const FragmentShape f16_16x16x16{DataType::f16, DataType::f32, 16, 16, 16};
  const FragmentShape f16_8x16x16{DataType::f16, DataType::f32, 8, 16, 16};
  const FragmentShape f16_8x8x16{DataType::f16, DataType::f32, 8, 8, 16};
  struct Case {
    std::uint32_t vendor, device, warps, min_subgroup_size;
    std::optional<FragmentShape> shape;
    std::string_view architecture;
  };
  const Case cases[] = {
      {0x10de, 0x3021, 64, 32, f16_16x16x16, "nvidia_sm100"},
      {0x10de, 0x3340, 48, 32, f16_16x16x16, "nvidia_sm120"},
      {0x10de, 0x3340, 48, 32, std::nullopt, "nvidia_sm120"},  // matrices were not enabled
      {0x10de, 0x3340, 32, 32, f16_16x16x16, "generic"},
      {0x10de, 0x3340, 0, 32, f16_16x16x16, "generic"},   // the driver does not tell
      {0x10de, 0x2b00, 48, 32, f16_16x16x16, "generic"},  // Jetson Thor
      {0x10de, 0x13c0, 64, 32, std::nullopt, "generic"},  // GTX 980
      {0x10de, 0x1004, 48, 32, f16_16x16x16, "generic"},  // NVK's stubs
      {0x8086, 0xb080, 0, 16, f16_8x16x16, "intel_xe2"},  // Panther Lake
      {0x8086, 0xb080, 0, 8, f16_8x16x16, "generic"},
      {0x8086, 0xb080, 0, 16, std::nullopt, "generic"},
      {0x8086, 0x7d51, 0, 8, f16_8x8x16, "intel_xe_hpg"},  // Arrow Lake
      {0x8086, 0x7d55, 0, 8, std::nullopt, "generic"},     // Meteor Lake
      {0x8086, 0x7d51, 0, 16, f16_8x8x16, "generic"},
      {0x1002, 0x7fff, 0, 32, f16_16x16x16, "generic"},
      {0x10005, 0, 0, 8, f16_8x8x16, "generic"},
      {0x1002, 0x3340, 48, 32, f16_16x16x16, "generic"},  // NVIDIA's at the wrong vendor
  };
  for (const Case& c : cases) {
    const std::span<const FragmentShape> shapes(c.shape ? &*c.shape : nullptr, c.shape ? 1 : 0);
    EXPECT_EQ(nearest_architecture(c.vendor, c.device,
                                   {.warps_per_compute_unit = c.warps,
                                    .min_subgroup_size = c.min_subgroup_size,
                                    .fragment_shapes = shapes}),
              c.architecture)
        << std::hex << c.device;
  }
}

// Architectures that nearest_architecture() names have tables, or they would be of no use.
TEST(Architecture, NearestOnesHaveTables) {
  for (const std::string_view name :
       {"nvidia_sm100", "nvidia_sm120", "intel_xe2", "intel_xe_hpg"}) {
    EXPECT_EQ(built_in_table(name).architecture, name);
  }
}

}  // namespace
}  // namespace vkgemm
