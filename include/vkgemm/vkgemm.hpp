// vkgemm: matrix products on cooperative matrices for any Vulkan application.
// The whole public API. One call's way: Problem -> Context::plan -> Plan::record.
#pragma once

#include "vkgemm/config.hpp"     // IWYU pragma: export
#include "vkgemm/context.hpp"    // IWYU pragma: export
#include "vkgemm/convert.hpp"    // IWYU pragma: export
#include "vkgemm/device.hpp"     // IWYU pragma: export
#include "vkgemm/epilogue.hpp"   // IWYU pragma: export
#include "vkgemm/matrix.hpp"     // IWYU pragma: export
#include "vkgemm/problem.hpp"    // IWYU pragma: export
#include "vkgemm/result.hpp"     // IWYU pragma: export
#include "vkgemm/self_test.hpp"  // IWYU pragma: export
#include "vkgemm/tune.hpp"       // IWYU pragma: export
#include "vkgemm/version.h"      // IWYU pragma: export
