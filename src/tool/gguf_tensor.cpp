#include "tool/gguf_tensor.hpp"

#include <utility>

#include "base/paths.hpp"
#include "base/text.hpp"
#include "oracle/quantised.hpp"
#include "problem/convert.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

struct Element {
  DataType type = DataType::f16;
  std::optional<Quantisation> codes = std::nullopt;
};

Element element_of(files::GgmlType type, DataType codes_as) {
  const auto blocks = [&](CodeType code) {
    return Element{codes_as, with_group({.type = code, .layout = CodeLayout::ggml_blocks})};
  };
  switch (type) {
    case files::GgmlType::f32:
      return {DataType::f32};
    case files::GgmlType::f16:
      return {DataType::f16};
    case files::GgmlType::bf16:
      return {DataType::bf16};
    case files::GgmlType::q4_0:
      return blocks(CodeType::int4);
    case files::GgmlType::q8_0:
      return blocks(CodeType::int8);
    case files::GgmlType::mxfp4:
      return blocks(CodeType::mxfp4);
    case files::GgmlType::nvfp4:
      return blocks(CodeType::nvfp4);
    case files::GgmlType::q4_1:
      return blocks(CodeType::q4_1);
    case files::GgmlType::q5_0:
      return blocks(CodeType::q5_0);
    case files::GgmlType::q5_1:
      return blocks(CodeType::q5_1);
    case files::GgmlType::q2_k:
      return blocks(CodeType::q2_k);
    case files::GgmlType::q3_k:
      return blocks(CodeType::q3_k);
    case files::GgmlType::q4_k:
      return blocks(CodeType::q4_k);
    case files::GgmlType::q5_k:
      return blocks(CodeType::q5_k);
    case files::GgmlType::q6_k:
      return blocks(CodeType::q6_k);
    case files::GgmlType::iq4_nl:
      return blocks(CodeType::iq4_nl);
    case files::GgmlType::iq4_xs:
      return blocks(CodeType::iq4_xs);
    case files::GgmlType::q1_0:
      return blocks(CodeType::q1_0);
    case files::GgmlType::q2_0:
      return blocks(CodeType::q2_0);
    case files::GgmlType::tq2_0:
      return blocks(CodeType::tq2_0);
  }
  return {};
}

// The elements that blocks stand for, rounded.
std::vector<std::byte> elements_of(const GgufMatrix& matrix) {
  Problem problem{.m = 1, .n = matrix.cols, .k = matrix.rows, .batch = matrix.batch};
  problem.b = {.type = matrix.type, .layout = Layout::col_major};
  problem.quantised_b = matrix.quantisation;
  unwrap(code_source(problem, matrix.batch));
  oracle::CodeMatrix codes(problem);
  codes.codes = matrix.blocks;
  const std::vector<float> numbers = codes.elements(problem);
  std::vector<std::byte> out(numbers.size() * size_in_bytes(matrix.type));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    store_element(out.data(), matrix.type, i, static_cast<double>(numbers[i]));
  }
  return out;
}

}  // namespace

GgufMatrix load_gguf_tensor(const files::GgufName& name, DataType codes_as) {
  files::GgufFile file = unwrap(files::GgufFile::open(path_of(name.path)));
  const files::GgufTensor& tensor = *unwrap(file.find(name.tensor));
  std::vector<std::uint64_t> ne = tensor.ne;
  while (ne.size() > 2 && ne.back() == 1) ne.pop_back();
  GgufMatrix out{.text = concat(name.path, ":", name.tensor)};
  if (ne.size() != 2 && ne.size() != 3) {
    usage(concat(out.text, ": dimensions are ", ne.size(), ", a matrix has 2, a batch of them 3"));
  }
  std::vector<std::byte> bytes = unwrap(file.read(tensor));
  const Element element = element_of(tensor.type, codes_as);
  out.type = element.type;
  out.quantisation = element.codes;
  out.batch = ne.size() == 3 ? ne[2] : 1;
  out.rows = ne[0];
  out.cols = ne[1];
  if (!out.quantisation) {
    out.data = std::move(bytes);
    return out;
  }
  out.blocks = std::move(bytes);
  out.data = elements_of(out);
  return out;
}

}  // namespace vkgemm::tool
