// gguf.hpp: GGUF files, in which llama.cpp and others keep a model: its metadata, which is skipped,
// and named tensors. Versions 2 and 3, little-endian. A file is never read whole: open() reads the
// header, read() the bytes of one tensor. Malformed files are Errors that name file, field and
// value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vkgemm/result.hpp"

namespace vkgemm::files {

// ggml's types of elements, by ggml's numbers. Files may hold other numbers, too.
enum class GgmlType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq4_nl = 20,
  iq4_xs = 23,
  bf16 = 30,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
  q1_0 = 41,
  q2_0 = 42,
};

// A type, and the elements and bytes of one of its blocks.
struct GgmlTypeRow {
  GgmlType type = GgmlType::f32;
  std::string_view name;  // "Q4_K", as ggml spells it
  std::uint32_t block_elements = 1;
  std::uint32_t block_bytes = 0;
};

// The row of a type. Null if the number is no enumerator.
const GgmlTypeRow* find_ggml_type(GgmlType type) noexcept;

struct GgufTensor {
  std::string name;
  // One to four dimensions. The first is contiguous and divides into blocks. So the weight of a
  // linear layer is {K, N}, a column-major B.
  std::vector<std::uint64_t> ne;
  GgmlType type = GgmlType::f32;
  std::uint64_t offset = 0;  // from the beginning of the file
  std::uint64_t bytes = 0;   // 0 if the type is no enumerator
};

struct GgufHeader {
  std::uint32_t version = 3;
  std::uint32_t alignment = 32;  // of tensors, in bytes
  std::vector<GgufTensor> tensors;
};

// A file that stays open: if another process replaces it meanwhile, this is the old one.
class GgufFile {
 public:
  // Reads and validates the header. Sizes of tensors whose type is no enumerator are not validated.
  static Result<GgufFile> open(const std::filesystem::path& path);

  const GgufHeader& header() const noexcept { return header_; }

  // The tensor of this name, an element of header(). An error lists at most five similar names.
  Result<const GgufTensor*> find(std::string_view name) const;

  // The bytes of a tensor of this file. Fails if its type is no enumerator.
  Result<std::vector<std::byte>> read(const GgufTensor& tensor);

 private:
  GgufFile() = default;

  std::filesystem::path path_;
  std::ifstream file_;
  GgufHeader header_;
};

// "model.gguf:blk.0.ffn_up.weight" as a file and the name of a tensor, which may be empty. Nothing
// if the text has no ".gguf:". The last one counts.
struct GgufName {
  std::string path;
  std::string tensor;
  bool operator==(const GgufName&) const = default;
};
std::optional<GgufName> split_gguf_name(std::string_view text);

}  // namespace vkgemm::files
