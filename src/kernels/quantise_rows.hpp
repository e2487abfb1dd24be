// quantise_rows.hpp: rows that become codes, as one step of its own. Pure.
#pragma once

#include <optional>
#include <string>

#include "kernels/dispatch_plan.hpp"
#include "problem/row_quantisation.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// Why this device can't; nothing: it can.
std::optional<std::string> why_not_quantised(const ResolvedRowQuantisation& quantisation,
                                             const DeviceCaps& caps);

// Without dispatches if there are no rows.
Step quantise_rows_step(const ResolvedRowQuantisation& quantisation, const Limits& limits);

}  // namespace vkgemm
