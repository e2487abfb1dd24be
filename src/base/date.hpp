// date.hpp: dates as results have them.
#pragma once

#include <string>

namespace vkgemm {

// Today in UTC: "2026-11-27".
std::string today();

}  // namespace vkgemm
