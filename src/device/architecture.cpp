// architecture.cpp: device ids of products that have, or are meant to have, a tuning table.
//
// Sources, read 2026-11-20: the PCI ID repository (pci.ids 2026.08.22, github.com/pciutils/pciids)
// for which id is which chip; for Intel also Linux' include/drm/intel/pciids.h. NVIDIA gives each
// chip an aligned block of ids, so its ranges are whole blocks; AMD and Intel do not, so theirs are
// what is listed. Chip to compute capability: NVIDIA's CUDA GPU list.
//
// Not recognised on purpose, so "generic" unless the properties say more: chips whose matrix
// instructions differ and that have no table planned (Intel's Meteor, Arrow and Panther Lake;
// Jetson Thor; AMD before RDNA2 and CDNA).
#include "device/architecture.hpp"

#include <algorithm>

namespace vkgemm {
namespace {

constexpr std::uint32_t nvidia = 0x10de;
constexpr std::uint32_t amd = 0x1002;
constexpr std::uint32_t intel = 0x8086;

// GR100. Between the blocks below it there is nothing newer.
constexpr std::uint32_t first_unknown_nvidia = 0x3000;

struct IdRange {
  std::uint32_t vendor_id;
  std::uint32_t first;
  std::uint32_t last;  // included
  std::string_view architecture;
};

constexpr IdRange id_ranges[] = {
    {nvidia, 0x1d80, 0x1dff, "nvidia_sm70"},   // GV100
    {nvidia, 0x1e00, 0x1fff, "nvidia_sm75"},   // TU102, TU104, TU106, TU117
    {nvidia, 0x2080, 0x20ff, "nvidia_sm80"},   // GA100
    {nvidia, 0x2180, 0x21ff, "nvidia_sm75"},   // TU116
    {nvidia, 0x2200, 0x227f, "nvidia_sm86"},   // GA102
    {nvidia, 0x2300, 0x23ff, "nvidia_sm90"},   // GH100: H100, H200 (0x2335), GH200
    {nvidia, 0x2400, 0x25ff, "nvidia_sm86"},   // GA103, GA104, GA106, GA107
    {nvidia, 0x2680, 0x28ff, "nvidia_sm89"},   // AD102, AD103, AD104, AD106, AD107
    {nvidia, 0x2900, 0x29ff, "nvidia_sm100"},  // GB100, GB102: B100, B200, GB200
    {nvidia, 0x2b80, 0x2dff, "nvidia_sm120"},  // GB202, GB203, GB206, GB207
    {nvidia, 0x2e00, 0x2e7f, "nvidia_sm120"},  // GB20B: GB10, sm_121
    {nvidia, 0x2f00, 0x2f7f, "nvidia_sm120"},  // GB205
    {nvidia, 0x3180, 0x327f, "nvidia_sm100"},  // GB110, GB112: B300, GB300, sm_103

    {amd, 0x1435, 0x1435, "amd_rdna2"},   // Sephiroth
    {amd, 0x1506, 0x1506, "amd_rdna2"},   // Mendocino
    {amd, 0x163f, 0x163f, "amd_rdna2"},   // Van Gogh
    {amd, 0x164d, 0x164e, "amd_rdna2"},   // Rembrandt, Raphael
    {amd, 0x1681, 0x1681, "amd_rdna2"},   // Rembrandt
    {amd, 0x13c0, 0x13c0, "amd_rdna2"},   // Granite Ridge
    {amd, 0x73a0, 0x73ef, "amd_rdna2"},   // Navi 21, 22, 23
    {amd, 0x73f1, 0x73ff, "amd_rdna2"},   // Navi 23
    {amd, 0x7420, 0x743f, "amd_rdna2"},   // Navi 24
    {amd, 0x73f0, 0x73f0, "amd_rdna3"},   // Navi 33, among the ids of Navi 23
    {amd, 0x15bf, 0x15bf, "amd_rdna3"},   // Phoenix
    {amd, 0x15c8, 0x15c8, "amd_rdna3"},   // Phoenix 2
    {amd, 0x164f, 0x164f, "amd_rdna3"},   // Phoenix
    {amd, 0x1900, 0x1901, "amd_rdna3"},   // Hawk Point
    {amd, 0x7440, 0x749f, "amd_rdna3"},   // Navi 31 (0x744c), 32, 33
    {amd, 0x1114, 0x1114, "amd_rdna35"},  // Krackan
    {amd, 0x150e, 0x150e, "amd_rdna35"},  // Strix Point
    {amd, 0x1586, 0x1586, "amd_rdna35"},  // Strix Halo
    {amd, 0x1902, 0x1902, "amd_rdna35"},  // Krackan 2
    {amd, 0x7550, 0x755f, "amd_rdna4"},   // Navi 48
    {amd, 0x7590, 0x759f, "amd_rdna4"},   // Navi 44

    {intel, 0x5690, 0x5698, "intel_xe_hpg"},  // DG2: Arc A, mobile
    {intel, 0x56a0, 0x56a9, "intel_xe_hpg"},  // DG2: Arc A, desktop
    {intel, 0x56b0, 0x56b3, "intel_xe_hpg"},  // DG2: Arc Pro A
    {intel, 0x56ba, 0x56bf, "intel_xe_hpg"},  // DG2: embedded
    {intel, 0x56c0, 0x56c2, "intel_xe_hpg"},  // Data Center GPU Flex
    {intel, 0x6420, 0x6420, "intel_xe2"},     // Lunar Lake
    {intel, 0x64a0, 0x64a0, "intel_xe2"},     // Lunar Lake
    {intel, 0x64b0, 0x64b0, "intel_xe2"},     // Lunar Lake
    {intel, 0xe202, 0xe223, "intel_xe2"},     // Battlemage: Arc B, Arc Pro B
};

}  // namespace

std::string_view recognise_architecture(VkPhysicalDeviceType type, std::uint32_t vendor_id,
                                        std::uint32_t device_id) noexcept {
  if (type == VK_PHYSICAL_DEVICE_TYPE_CPU) return "cpu";
  for (const IdRange& range : id_ranges) {
    if (vendor_id == range.vendor_id && device_id >= range.first && device_id <= range.last) {
      return range.architecture;
    }
  }
  return "generic";
}

// A table that is not meant for a device costs it speed, never the result: legality asks for shapes
// and limits. Beside the generic one it has the right sizes of subgroups and fragments.
//
// NVIDIA: warps of an SM as CUDA's guide has them (compute capability 7.5: 32, 8.6, 8.9 and 12.x:
// 48, 8.0, 9.0 and 10.x: 64). Only for ids above those of the products known to be older.
// Intel: shapes and subgroups as ANV 26.2 lists them for DG2, Lunar Lake and Battlemage.
// AMD: nothing that is asked for tells RDNA3 from RDNA4, whose registers and rates differ; both
// list 16x16x16, and whether bf16 is listed is a matter of the driver. So its ids have to be
// listed.
std::string_view nearest_architecture(std::uint32_t vendor_id, std::uint32_t device_id,
                                      const ArchitectureHints& hints) noexcept {
  if (vendor_id == nvidia && device_id >= first_unknown_nvidia) {
    if (hints.warps_per_compute_unit == 48) return "nvidia_sm120";
    if (hints.warps_per_compute_unit == 64) return "nvidia_sm100";
  }
  if (vendor_id == intel) {
    const auto lists = [&hints](std::uint32_t m, std::uint32_t n, std::uint32_t k) {
      return std::ranges::any_of(hints.fragment_shapes, [&](const FragmentShape& shape) {
        return shape.m == m && shape.n == n && shape.k == k;
      });
    };
    if (hints.min_subgroup_size == 16 && lists(8, 16, 16)) return "intel_xe2";
    if (hints.min_subgroup_size == 8 && lists(8, 8, 16)) return "intel_xe_hpg";
  }
  return "generic";
}

// Studies of occupancy-bound progress saw it on NVIDIA and Intel, not on Apple and Mali (Sorensen
// et al., OOPSLA 2016 and 2021); AMD is not on the list because nobody here tried, software devices
// because they run a workgroup to its end before they begin another.
bool workgroups_make_progress(VkDriverId driver) noexcept {
  return driver == VK_DRIVER_ID_NVIDIA_PROPRIETARY ||
         driver == VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS ||
         driver == VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA;
}

// As vulkan.gpuinfo.org decodes it (SaschaWillems/vulkan.gpuinfo.org, getDriverVersion): NVIDIA
// packs 10, 8, 8 and 6 bits, Intel on Windows 18 and 14, which are the last two parts of what
// Windows shows (32.0.101.8826); all others use VK_MAKE_VERSION.
DriverVersion decode_driver_version(VkDriverId driver, std::uint32_t version) noexcept {
  switch (driver) {
    case VK_DRIVER_ID_NVIDIA_PROPRIETARY:
      return {version >> 22, version >> 14 & 0xff, version >> 6 & 0xff, version & 0x3f};
    case VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS:
      return {version >> 14, version & 0x3fff, 0, 0};
    default:
      return {version >> 22, version >> 12 & 0x3ff, version & 0xfff, 0};
  }
}

}  // namespace vkgemm
