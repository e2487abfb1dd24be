// gguf_tensor.hpp: tensors of GGUF files as matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "files/gguf.hpp"
#include "vkgemm/matrix.hpp"

namespace vkgemm::tool {

// Column-major matrices: ggml's first dimension is K.
struct GgufMatrix {
  std::string text;  // "model.gguf:blk.0.ffn_up.weight"
  DataType type = DataType::f16;
  std::uint64_t batch = 1, rows = 0, cols = 0;
  std::vector<std::byte> data;
  // Of codes: their blocks, whose elements, rounded to `type`, are `data`.
  std::optional<Quantisation> quantisation;
  std::vector<std::byte> blocks;
};

// A tensor of two dimensions, or three: a batch. `codes_as`: the type of the elements of codes.
GgufMatrix load_gguf_tensor(const files::GgufName& name, DataType codes_as);

}  // namespace vkgemm::tool
