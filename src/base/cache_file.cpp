#include "base/cache_file.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/bytes.hpp"

namespace vkgemm {

namespace {

constexpr char magic[] = {'v', 'k', 'g', 'e', 'm', 'm', 'P', 'C'};

enum Offset : std::size_t {
  version_offset = 8,
  payload_bytes_offset = 16,
  hash_offset = 24,
  hashed_offset = 32,  // the hash covers everything from here
  vendor_offset = 32,
  device_offset = 36,
  driver_version_offset = 40,
  uuid_offset = 48,
};

// Vulkan's own header at the start of the payload (VkPipelineCacheHeaderVersionOne): u32 size,
// u32 version, u32 vendor, u32 device, u8[16] uuid.
constexpr std::size_t vulkan_header_bytes = 32;

Error discard(std::string reason) { return Error{Status::io_error, std::move(reason)}; }

Error discard_number(std::string_view what, std::uint64_t found, std::uint64_t expected) {
  return discard(std::string(what) + " is " + std::to_string(found) + ", expected " +
                 std::to_string(expected));
}

}  // namespace

std::uint64_t fnv1a(std::span<const std::byte> bytes, std::uint64_t before) noexcept {
  std::uint64_t hash = before;
  for (const std::byte byte : bytes) {
    hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
  }
  return hash;
}

Result<std::span<const std::byte>> parse_cache_file(std::span<const std::byte> file,
                                                    const CacheIdentity& expected) {
  if (file.size() < cache_header_bytes) {
    return discard("it has " + std::to_string(file.size()) + " bytes, fewer than its header");
  }
  if (std::memcmp(file.data(), magic, sizeof(magic)) != 0) {
    return discard("it is not a pipeline cache of vkgemm");
  }
  if (const auto version = read_number<std::uint32_t>(file, version_offset);
      version != cache_file_version) {
    return discard_number("its version", version, cache_file_version);
  }
  const std::span<const std::byte> payload = file.subspan(cache_header_bytes);
  if (const auto bytes = read_number<std::uint64_t>(file, payload_bytes_offset);
      bytes != payload.size()) {
    return discard_number("its payload in bytes", payload.size(), bytes);
  }
  if (read_number<std::uint64_t>(file, hash_offset) != fnv1a(file.subspan(hashed_offset))) {
    return discard("its hash does not match its content");
  }
  if (const auto vendor = read_number<std::uint32_t>(file, vendor_offset);
      vendor != expected.vendor_id) {
    return discard_number("its vendor id", vendor, expected.vendor_id);
  }
  if (const auto device = read_number<std::uint32_t>(file, device_offset);
      device != expected.device_id) {
    return discard_number("its device id", device, expected.device_id);
  }
  if (const auto driver = read_number<std::uint32_t>(file, driver_version_offset);
      driver != expected.driver_version) {
    return discard_number("its driver version", driver, expected.driver_version);
  }
  if (std::memcmp(file.data() + uuid_offset, expected.uuid.data(), VK_UUID_SIZE) != 0) {
    return discard("its pipeline cache UUID is another one");
  }
  if (!payload.empty() && !is_pipeline_cache_data(payload, expected)) {
    return discard("its payload does not start with this device's VkPipelineCacheHeader");
  }
  return payload;
}

bool is_pipeline_cache_data(std::span<const std::byte> data,
                            const CacheIdentity& identity) noexcept {
  return data.size() >= vulkan_header_bytes &&
         read_number<std::uint32_t>(data, 0) >= vulkan_header_bytes &&
         read_number<std::uint32_t>(data, 0) <= data.size() &&
         read_number<std::uint32_t>(data, 4) == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
         read_number<std::uint32_t>(data, 8) == identity.vendor_id &&
         read_number<std::uint32_t>(data, 12) == identity.device_id &&
         std::memcmp(data.data() + 16, identity.uuid.data(), VK_UUID_SIZE) == 0;
}

std::vector<std::byte> make_cache_file(std::span<const std::byte> payload,
                                       const CacheIdentity& identity) {
  std::vector<std::byte> file(cache_header_bytes + payload.size());
  const std::span<std::byte> bytes(file);
  std::memcpy(file.data(), magic, sizeof(magic));
  write_number<std::uint32_t>(bytes, version_offset, cache_file_version);
  write_number<std::uint64_t>(bytes, payload_bytes_offset, payload.size());
  write_number<std::uint32_t>(bytes, vendor_offset, identity.vendor_id);
  write_number<std::uint32_t>(bytes, device_offset, identity.device_id);
  write_number<std::uint32_t>(bytes, driver_version_offset, identity.driver_version);
  std::memcpy(file.data() + uuid_offset, identity.uuid.data(), VK_UUID_SIZE);
  std::copy(payload.begin(), payload.end(), file.begin() + cache_header_bytes);
  write_number<std::uint64_t>(bytes, hash_offset, fnv1a(bytes.subspan(hashed_offset)));
  return file;
}

}  // namespace vkgemm
