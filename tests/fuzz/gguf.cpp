// GGUF files: refused with the name of the file, or every tensor is in the file and can be read.
#include "files/gguf.hpp"

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vkgemm;
  static const fuzz::TemporaryFile temporary("vkgemm_fuzz_gguf");
  temporary.write(data, size);
  const std::string name = temporary.path.string() + ": ";
  auto file = files::GgufFile::open(temporary.path);
  if (!file) {
    fuzz::require_message(file.error().message, name);
    return 0;
  }
  const files::GgufHeader& header = file->header();
  if (!header.tensors.empty()) ++fuzz::accepted;
  fuzz::require(header.tensors.size() < size, "the tensors are in the file");
  for (const files::GgufTensor& tensor : header.tensors) {
    fuzz::require(!tensor.ne.empty() && tensor.ne.size() <= 4, "there are 1 to 4 dimensions");
    fuzz::require(tensor.offset <= size && tensor.bytes <= size - tensor.offset,
                  "the tensor is in the file");
    const auto found = file->find(tensor.name);
    fuzz::require(found && *found == &tensor, "a tensor is found by its name");
    const auto bytes = file->read(tensor);
    const bool is_known = files::find_ggml_type(tensor.type) != nullptr;
    fuzz::require(bytes.has_value() == is_known, "a tensor of a known type can be read");
    if (!bytes) {
      fuzz::require_message(bytes.error().message, name);
      continue;
    }
    fuzz::require(bytes->size() == tensor.bytes, "all bytes are read");
    for (std::size_t i = 0; i < bytes->size(); ++i) {
      fuzz::require((*bytes)[i] == std::byte{data[tensor.offset + i]}, "the bytes are the file's");
    }
  }
  const auto missing = file->find(fuzz::as_text(data, size));
  fuzz::require(!missing, "no tensor is named like a file");
  fuzz::require_message(missing.error().message, name);
  return 0;
}
