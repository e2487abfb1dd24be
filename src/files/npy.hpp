// npy.hpp: NumPy's .npy files, versions 1.0 to 3.0, C and Fortran order, f16, f32, s8, s32, and
// bf16 stored as uint16 (NumPy has no bf16); offsets of groups as int32 or int64. Files above 4 GiB
// work. Every malformed header is an Error that says what is wrong and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "vkgemm/problem.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm::files {

struct NpyArray {
  DataType type = DataType::f32;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;  // one, two or three (batch first) dimensions
  std::vector<std::byte> data;       // packed, little-endian
};

// "(3, 512, 256)", as NumPy has it
std::string print_shape(const std::vector<std::uint64_t>& shape);

struct NpyReadOptions {
  bool uint16_is_bf16 = false;  // otherwise '<u2' is an error that names the flag
};

Result<NpyArray> read_npy(const std::filesystem::path& path, const NpyReadOptions& options = {});

// One dimension of '<i4' or '<i8'.
struct NpyOffsets {
  OffsetType type = OffsetType::int32;
  std::vector<std::int64_t> values;
};
Result<NpyOffsets> read_npy_offsets(const std::filesystem::path& path);

// Replaces the file at once, so that no half-written one is left.
Result<void> write_npy(OutputFile& file, const NpyArray& array);
Result<void> write_npy(const std::filesystem::path& path, const NpyArray& array);

}  // namespace vkgemm::files
