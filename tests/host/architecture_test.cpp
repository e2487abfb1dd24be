#include "architecture.hpp"

#include <gtest/gtest.h>

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
      {0x10de, 0x2901, "nvidia_sm100"},  // B200
      {0x10de, 0x2941, "nvidia_sm100"},  // GB200
      {0x10de, 0x3182, "nvidia_sm100"},  // B300
      {0x10de, 0x2b85, "nvidia_sm120"},  // RTX 5090
      {0x10de, 0x2f04, "nvidia_sm120"},  // RTX 5070
      {0x10de, 0x2684, "nvidia_sm89"},   // RTX 4090
      {0x10de, 0x28e0, "nvidia_sm89"},   // RTX 4060 mobile
      {0x10de, 0x2204, "nvidia_sm86"},   // RTX 3090
      {0x10de, 0x2503, "nvidia_sm86"},   // RTX 3060
      {0x10de, 0x20b0, "nvidia_sm80"},   // A100
      {0x10de, 0x1e04, "nvidia_sm75"},   // RTX 2080 Ti
      {0x10de, 0x2184, "nvidia_sm75"},   // GTX 1660
      {0x10de, 0x1db1, "nvidia_sm70"},   // V100
      {0x1002, 0x73bf, "amd_rdna2"},     // RX 6900 XT
      {0x1002, 0x73f0, "amd_rdna3"},     // RX 7600M XT, among the ids of Navi 23
      {0x1002, 0x73ff, "amd_rdna2"},     // RX 6600
      {0x1002, 0x744c, "amd_rdna3"},     // RX 7900 XTX
      {0x1002, 0x7480, "amd_rdna3"},     // RX 7600
      {0x1002, 0x150e, "amd_rdna35"},    // Strix Point
      {0x1002, 0x1586, "amd_rdna35"},    // Strix Halo
      {0x1002, 0x7550, "amd_rdna4"},     // RX 9070 XT
      {0x1002, 0x7590, "amd_rdna4"},     // RX 9060 XT
      {0x8086, 0x56a0, "intel_xe_hpg"},  // Arc A770
      {0x8086, 0x5690, "intel_xe_hpg"},  // Arc A770M, and the stub dg2
      {0x8086, 0x56c0, "intel_xe_hpg"},  // Flex 170
      {0x8086, 0x64a0, "intel_xe2"},     // Lunar Lake, and the stub lnl
      {0x8086, 0xe202, "intel_xe2"},     // the stub bmg
      {0x8086, 0xe20b, "intel_xe2"},     // Arc B580
  };
  for (const Case& c : cases) {
    EXPECT_EQ(recognise_architecture(c.vendor, c.device), c.architecture) << std::hex << c.device;
  }
}

TEST(Architecture, LeavesTheRestGeneric) {
  struct Case {
    std::uint32_t vendor, device;
  };
  const Case cases[] = {
      {0x10005, 0},                        // lavapipe
      {0x10de, 0x13c0},                    // GTX 980
      {0x10de, 0x1b06},                    // GTX 1080 Ti
      {0x10de, 0x2b00},                    // Jetson Thor
      {0x10de, 0xffff}, {0x1002, 0x731f},  // RDNA1
      {0x1002, 0x74a1},                    // CDNA3
      {0x1002, 0x75a0},                    // CDNA4
      {0x1002, 0x2335},                    // an id of NVIDIA's at the wrong vendor
      {0x8086, 0x7d55},                    // Meteor Lake: no matrix engines
      {0x8086, 0xb080},                    // Panther Lake
      {0, 0},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(recognise_architecture(c.vendor, c.device), "generic") << std::hex << c.device;
  }
}

}  // namespace
}  // namespace vkgemm
