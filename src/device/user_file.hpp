// user_file.hpp: the files of a user that vkgemm reads unasked, one for each device.
#pragma once

#include <filesystem>
#include <string_view>

#include "vkgemm/device.hpp"

namespace vkgemm {

// <cache>/vkgemm/<kind>-<vendor>-<device>-<hash of identity>.json, where <cache> is
// $XDG_CACHE_HOME, %LOCALAPPDATA% or ~/.cache. Empty if the environment names none of them.
std::filesystem::path user_file(std::string_view kind, const DeviceCaps& caps,
                                std::string_view identity);

}  // namespace vkgemm
