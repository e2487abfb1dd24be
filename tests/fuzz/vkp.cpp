// Files of packed operands: refused with a short reason, or what was read is what is written.
// Inputs are files, and payloads of files whose hash is right.
#include "files/vkp.hpp"

#include <algorithm>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vkgemm;
  using namespace vkgemm::files;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);

  const auto check = [](std::span<const std::byte> file) {
    const auto parsed = parse_packed_file(file);
    if (!parsed) {
      fuzz::require(parsed.error().message.size() < 200, "the reason is a short one");
      return false;
    }
    const PackedHeader& header = parsed->header;
    fuzz::require(parsed->payload.size() + packed_header_bytes == file.size(),
                  "nothing is left over");
    fuzz::require(header.matrices * header.matrix_bytes <= parsed->payload.size(),
                  "the matrices are in the payload");
    fuzz::require(header.device.size() <= 160 && header.driver.size() <= 160, "names are short");
    return true;
  };
  if (check(bytes)) ++fuzz::accepted;

  if (size == 0) return 0;
  const PackedHeader header{.operand = data[0] % 2 == 0 ? PackedOperand::a : PackedOperand::b,
                            .width = 1 + std::uint64_t{data[0]},
                            .k = size,
                            .matrices = 1,
                            .matrix_bytes = size,
                            .device = "a card"};
  const auto begin = make_packed_header(header, bytes);
  std::vector<std::byte> file(begin.begin(), begin.end());
  file.insert(file.end(), bytes.begin(), bytes.end());
  fuzz::require(check(file), "what is written is read");
  fuzz::require(parse_packed_file(file)->header == header, "as it was");
  file[(data[0] + 256U * data[size - 1]) % file.size()] ^= std::byte{0x10};
  fuzz::require(!check(file), "a flipped bit is seen");
  return 0;
}
