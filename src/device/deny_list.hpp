// deny_list.hpp: drivers that are known to be bad, as data: src/device/deny_list.json. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/architecture.hpp"
#include "vkgemm/device.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// One entry: which drivers, what of them, and who says so.
struct DenyEntry {
  VkDriverId driver_id{};
  std::uint32_t vendor_id = 0;
  std::vector<std::uint32_t> device_ids;  // empty: any
  std::string device_name;                // a part of it; empty: any
  // Both included, as the driver's own tools print them: "580.159.4", "101.8826". The last one
  // counts with as many parts as it has: 580 means all of 580.
  std::optional<DriverVersion> first_version;
  std::optional<DriverVersion> last_version;
  Denial denial;  // its reason names driver, versions, source and date

  bool matches(const DeviceCaps& caps) const;
};

// The format, where all but the two versions, the devices, the input and the shape is required:
//   {"entries": [{"driver": "…", "driver_id": 1, "vendor_id": 4098, "device_ids": [4372],
//                 "device_name": "…", "first_version": "2.0.388", "last_version": "2.0.388",
//                 "path": "khr", "input": "f16", "m": 16, "n": 16, "k": 16,
//                 "shapes_unknown": true, "reason": "…", "source": "https://…",
//                 "date": "2026-05-06"}]}
// driver_id is VkDriverId's number. Errors name the entry.
Result<std::vector<DenyEntry>> parse_deny_list(std::string_view json);

// The one that is built in. Parsed once per process.
const std::vector<DenyEntry>& built_in_deny_list();

// The list's denials for this driver and device. Reads no shapes: it comes before those.
std::vector<Denial> denials_of(const std::vector<DenyEntry>& list, const DeviceCaps& caps);

}  // namespace vkgemm
