// known_drivers.hpp: drivers that are known to be bad, or good, as data:
// src/device/known_drivers.json. Pure.
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

// Drivers of devices.
struct DriverRange {
  VkDriverId driver_id{};
  std::uint32_t vendor_id = 0;
  std::vector<std::uint32_t> device_ids;  // empty: any
  std::string device_name;                // a part of it; empty: any
  // Both included, as the driver's own tools print them: "580.159.4", "101.8826". The last one
  // counts with as many parts as it has: 580 means all of 580.
  std::optional<DriverVersion> first_version;
  std::optional<DriverVersion> last_version;

  bool matches(const DeviceCaps& caps) const;
};

struct DeniedDriver {
  DriverRange drivers;
  Denial denial;  // its reason names driver, versions, source and date
};

// Kinds of kernels that passed the self-test in every run on these drivers. The list outlives a
// change of shaders: run the self-test on these devices before such a change is released.
struct TrustedDriver {
  DriverRange drivers;
  std::string architecture;        // DeviceCaps::architecture
  std::vector<std::string> kinds;  // as to_string(KernelKind) prints them
  std::string reason;              // names driver, versions, source and date
};

struct KnownDrivers {
  std::vector<DeniedDriver> denied;
  std::vector<TrustedDriver> trusted;
};

// The format. Of an entry only versions, devices, input and shape may be left out:
//   {"denied": [{"driver": "…", "driver_id": 1, "vendor_id": 4098, "device_ids": [4372],
//                "device_name": "…", "first_version": "2.0.388", "last_version": "2.0.388",
//                "path": "khr", "input": "f16", "m": 16, "n": 16, "k": 16,
//                "shapes_unknown": true, "reason": "…", "source": "https://…",
//                "date": "2026-05-06"}],
//    "trusted": [{"driver": "…", "driver_id": 4, "vendor_id": 4318,
//                 "first_version": "580.159.4", "last_version": "580.159.4",
//                 "architecture": "nvidia_sm90", "kinds": ["main loop khr_direct, …"],
//                 "source": "bench/…", "date": "2026-11-27"}]}
// driver_id is VkDriverId's number. Errors name the entry.
Result<KnownDrivers> parse_known_drivers(std::string_view json);

// The list that is built in. Parsed once per process.
const KnownDrivers& known_drivers();

// The list's denials for this driver and device. Reads no shapes: it comes before those.
std::vector<Denial> denials_of(const KnownDrivers& list, const DeviceCaps& caps);

}  // namespace vkgemm
