// target.hpp: a device as kernels are made for it.
#pragma once

#include <span>

#include "kernels/refusals.hpp"
#include "kernels/timing.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// A device's capabilities, with what its tuning tables know beyond them: handed in by the owner of
// the tables. Capabilities alone are a target whose tables know nothing. Points at its parts.
struct Target {
  const DeviceCaps& caps;
  std::span<const RefusedConfig> refused = {};
  const TimingModel& timing = default_timing();

  Target(const DeviceCaps& device_caps) : caps(device_caps) {}  // implicit on purpose
  Target(const DeviceCaps& device_caps, std::span<const RefusedConfig> refused_configs,
         const TimingModel& timing_model)
      : caps(device_caps), refused(refused_configs), timing(timing_model) {}

 private:
  static const TimingModel& default_timing() {
    static const TimingModel timing;
    return timing;
  }
};

}  // namespace vkgemm
