// A pipeline cache from disk: nothing reaches the driver but what the same driver wrote. Inputs are
// files, and payloads of files whose hash is right.
#include "base/cache_file.hpp"

#include <algorithm>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vkgemm;
  // The identity that the corpus was written for.
  CacheIdentity identity{.vendor_id = 0x10de, .device_id = 0x2335, .driver_version = 0x580159};
  std::fill(identity.uuid.begin(), identity.uuid.end(), std::uint8_t{7});
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);

  const auto check = [&](std::span<const std::byte> file) {
    const auto payload = parse_cache_file(file, identity);
    if (!payload) {
      fuzz::require(payload.error().message.size() < 200, "the reason is a short one");
      return false;
    }
    fuzz::require(payload->empty() || is_pipeline_cache_data(*payload, identity),
                  "what is accepted is this driver's");
    fuzz::require(payload->size() + cache_header_bytes == file.size(), "nothing is left over");
    return true;
  };
  if (check(bytes)) ++fuzz::accepted;

  std::vector<std::byte> file = make_cache_file(bytes, identity);
  fuzz::require(check(file) == (bytes.empty() || is_pipeline_cache_data(bytes, identity)),
                "what is written is read unless Vulkan's own header contradicts");
  if (size == 0) return 0;
  // A flip anywhere but in the eight bytes that nothing reads.
  const std::size_t at = (data[0] + 256U * data[size - 1]) % file.size();
  file[at] ^= std::byte{0x10};
  if (at < 12 || at >= 16) fuzz::require(!check(file), "a flipped bit is seen");
  return 0;
}
