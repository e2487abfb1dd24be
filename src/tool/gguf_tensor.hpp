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
  std::uint64_t batch = 1, rows = 0, cols = 0;
  std::vector<std::byte> data;  // elements, or blocks of codes
  DataType type = DataType::f16;
  std::optional<Quantisation> quantisation;  // not set: `data` has elements of `type`
};

// A tensor of two dimensions, or three: a batch.
GgufMatrix load_gguf_tensor(const files::GgufName& name);

}  // namespace vkgemm::tool
