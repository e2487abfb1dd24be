#include "device/user_file.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "base/cache_file.hpp"
#include "base/environment.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"

namespace vkgemm {
namespace {

// The lowest `digits` hexadecimal digits.
std::string hex(std::uint64_t value, int digits) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text + 16 - digits;
}

// PCI ids have 16 bits, other vendors' 32.
std::string hex_id(std::uint32_t id) { return hex(id, id > 0xffff ? 8 : 4); }

}  // namespace

std::filesystem::path user_file(std::string_view kind, const DeviceCaps& caps,
                                std::string_view identity) {
  std::filesystem::path folder = path_of(environment_variable("XDG_CACHE_HOME"));
  // By its specification a relative one is none.
  if (!folder.is_absolute()) folder.clear();
  if (folder.empty()) folder = path_of(environment_variable("LOCALAPPDATA"));
  if (const std::string home = environment_variable("HOME"); folder.empty() && !home.empty()) {
    folder = path_of(home) / ".cache";
  }
  if (folder.empty()) return {};
  return folder / "vkgemm" /
         concat(kind, "-", hex_id(caps.vendor_id), "-", hex_id(caps.device_id), "-",
                hex(fnv1a(std::as_bytes(std::span(identity))), 16), ".json");
}

}  // namespace vkgemm
