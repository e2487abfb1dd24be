// vkp.hpp: files of packed operands (.vkp): what Context::plan_pack() has written, with what it was
// packed for. The hash and the fingerprint stop accidents, not an adversary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "vkgemm/context.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm::files {

// The file, little-endian; the hash is FNV-1a over everything that follows it. What is not named is
// zero.
//    0  "vkgemmVP"         8  u32 version    12  u32 0
//   16  u64 payload bytes 24  u64 hash
//   32  u32 operand: 0 A, 1 B                36  u32 type: 0 f16, 1 bf16, 2 f32, 3 s8
//   40  u64 width: M of A, N of B            48  u64 K
//   56  u64 matrices      64  u64 bytes from one matrix to the next
//  128  u8[64] fingerprint
//  192  the device's name, 352 the driver's: 160 bytes each, with zeros behind
//  512  payload
inline constexpr std::size_t packed_header_bytes = 512;
inline constexpr std::uint32_t packed_file_version = 1;

struct PackedHeader {
  PackedOperand operand = PackedOperand::a;
  DataType type = DataType::f16;
  std::uint64_t width = 0;  // of a gated product with one B: N, not 2N
  std::uint64_t k = 0;
  std::uint64_t matrices = 0;      // one behind the other
  std::uint64_t matrix_bytes = 0;  // from one to the next
  Fingerprint fingerprint = {};
  std::string device, driver;  // for messages
  bool operator==(const PackedHeader&) const = default;
};

// What a file holds. Pure; any bytes may be given. An error says which field is wrong.
struct PackedView {
  PackedHeader header;
  std::span<const std::byte> payload;
};
Result<PackedView> parse_packed_file(std::span<const std::byte> file);

// The bytes that stand before this payload.
std::array<std::byte, packed_header_bytes> make_packed_header(const PackedHeader& header,
                                                              std::span<const std::byte> payload);

// Errors begin with the file's path.
struct PackedFile {
  PackedHeader header;
  std::vector<std::byte> payload;
};
Result<PackedFile> read_packed_file(const std::filesystem::path& path);

// Replaces the file at once, so that no half-written one is left.
Result<void> write_packed_file(OutputFile& file, const PackedHeader& header,
                               std::span<const std::byte> payload);

// True if the name ends in .vkp, as that of such a file does.
bool is_packed_file(const std::filesystem::path& path);

}  // namespace vkgemm::files
