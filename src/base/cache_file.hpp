// cache_file.hpp: the file that keeps a pipeline cache from one run to the next.
//
// Drivers are told to check their own data, and some crash on what they are given all the same. So
// a hash and the device's identity keep damaged and foreign files from the driver. They stop
// accidents, not an adversary: whoever can write the file decides what reaches the driver.
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vkgemm/result.hpp"

namespace vkgemm {

// Whose data it is.
struct CacheIdentity {
  std::uint32_t vendor_id = 0;
  std::uint32_t device_id = 0;
  std::uint32_t driver_version = 0;
  std::array<std::uint8_t, VK_UUID_SIZE> uuid{};
  bool operator==(const CacheIdentity&) const = default;
};

// The file, little-endian; the hash is FNV-1a over everything that follows it.
//    0  "vkgemmPC"         8  u32 version      12  u32 0
//   16  u64 payload bytes  24  u64 hash
//   32  u32 vendor_id      36  u32 device_id   40  u32 driver_version  44  u32 0   48  u8[16] uuid
//   64  payload, as vkGetPipelineCacheData returned it
inline constexpr std::size_t cache_header_bytes = 64;
inline constexpr std::uint32_t cache_file_version = 1;

// Larger files are not read: not even a cache of every kernel for hundreds of shapes comes near.
inline constexpr std::uint64_t cache_file_max_bytes = std::uint64_t{1} << 30;

// The payload within `file`, maybe empty, or why it must not be used. Pure; any bytes may be given.
Result<std::span<const std::byte>> parse_cache_file(std::span<const std::byte> file,
                                                    const CacheIdentity& expected);

// True if the data starts with the header that Vulkan prescribes, of this device. Not all drivers'
// data does: lavapipe 26.2.6 announces 32 bytes, writes 32 and then says that it wrote 20.
bool is_pipeline_cache_data(std::span<const std::byte> data,
                            const CacheIdentity& identity) noexcept;

// The content of a file that parse_cache_file accepts for this identity.
std::vector<std::byte> make_cache_file(std::span<const std::byte> payload,
                                       const CacheIdentity& identity);

// `before`: the hash of the bytes that stand before these, if there are any.
inline constexpr std::uint64_t fnv1a_of_nothing = 0xcbf29ce484222325;
std::uint64_t fnv1a(std::span<const std::byte> bytes,
                    std::uint64_t before = fnv1a_of_nothing) noexcept;

}  // namespace vkgemm
