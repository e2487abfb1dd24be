#include "tool/gguf_tensor.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/paths.hpp"
#include "base/text.hpp"
#include "problem/inputs/codes.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

// ggml's names of types are ours in capitals.
std::string lower_case(std::string_view name) {
  std::string out(name);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

}  // namespace

GgufMatrix load_gguf_tensor(const files::GgufName& name) {
  files::GgufFile file = unwrap(files::GgufFile::open(path_of(name.path)));
  const files::GgufTensor& tensor = *unwrap(file.find(name.tensor));
  std::vector<std::uint64_t> ne = tensor.ne;
  while (ne.size() > 2 && ne.back() == 1) ne.pop_back();
  GgufMatrix out{.text = concat(name.path, ":", name.tensor)};
  if (ne.size() != 2 && ne.size() != 3) {
    usage(concat(out.text, ": dimensions are ", ne.size(), ", a matrix has 2, a batch of them 3"));
  }
  out.batch = ne.size() == 3 ? ne[2] : 1;
  out.rows = ne[0];
  out.cols = ne[1];
  out.data = unwrap(file.read(tensor));
  const std::string type = lower_case(files::find_ggml_type(tensor.type)->name);
  if (const auto elements = parse_data_type(type)) {
    out.type = *elements;
    return out;
  }
  Quantisation codes = parse_quantisation(type).value();
  codes.layout = CodeLayout::ggml_blocks;
  out.quantisation = with_group(codes);
  return out;
}

}  // namespace vkgemm::tool
