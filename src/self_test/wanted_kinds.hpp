// wanted_kinds.hpp: the kinds of kernel that a plan would use if they passed the self-test. Pure.
#pragma once

#include <vector>

#include "problem/resolved_problem.hpp"
#include "tuning/device_tables.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm {

// The device as if every kind that has no verdict, and that no list denies, had passed.
DeviceCaps hopeful(const DeviceCaps& caps);

// The kinds without a verdict that kernels of the problem's best configuration, or of the given
// one, belong to. Kinds that the deny list names are not among them.
std::vector<KernelKind> wanted_kinds(const ResolvedProblem& problem, const Config* config,
                                     const DeviceTables& tables, const DeviceCaps& caps);

// The kinds without a verdict that decide on the order of the problem's packed operands.
std::vector<KernelKind> wanted_by_orders(const ResolvedProblem& problem, const DeviceTables& tables,
                                         const DeviceCaps& caps);

}  // namespace vkgemm
