// .npy files: refused with the file's name, or as large as they say that they are.
#include "files/npy.hpp"

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vkgemm;
  static const fuzz::TemporaryFile file("vkgemm_fuzz_npy");
  file.write(data, size);
  const std::string name = file.path.string() + ": ";
  for (const bool bf16 : {false, true}) {
    const auto array = files::read_npy(file.path, {.uint16_is_bf16 = bf16});
    if (!array) {
      fuzz::require_message(array.error().message, name);
      continue;
    }
    ++fuzz::accepted;
    std::uint64_t bytes = size_in_bytes(array->type);
    for (const std::uint64_t dimension : array->shape) bytes *= dimension;
    fuzz::require(array->data.size() == bytes, "the data is of the shape");
    fuzz::require(array->data.size() < size, "the data was in the file");
  }
  const auto offsets = files::read_npy_offsets(file.path);
  if (offsets) {
    fuzz::require(offsets->values.size() < size, "the offsets were in the file");
  } else {
    fuzz::require_message(offsets.error().message, name);
  }
  return 0;
}
