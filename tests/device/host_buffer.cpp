#include "host_buffer.hpp"

#include <algorithm>

#include "problem/convert.hpp"

namespace vkgemm::test {

HostBuffer make_buffer(std::uint64_t size, std::uint64_t shift) {
  HostBuffer buffer;
  buffer.begin = margin + shift;
  buffer.size = size;
  buffer.bytes.assign((buffer.begin + size + margin + 3) / 4 * 4, nan_byte);
  return buffer;
}

testing::AssertionResult same_bytes(std::string_view name, const HostBuffer& got,
                                    const HostBuffer& expected, DataType type) {
  const auto [at, other] = std::ranges::mismatch(got.bytes, expected.bytes);
  if (at == got.bytes.end()) return testing::AssertionSuccess();
  const std::int64_t byte = at - got.bytes.begin();
  const std::int64_t size = size_in_bytes(type);
  const std::int64_t inside = byte - static_cast<std::int64_t>(got.begin);
  const std::int64_t element = inside >= 0 ? inside / size : (inside - size + 1) / size;
  std::int64_t differences = 0;
  for (std::size_t i = 0; i < got.bytes.size(); ++i)
    differences += got.bytes[i] != expected.bytes[i];
  const auto show = [&](const HostBuffer& buffer) {
    return load_element(buffer.data() + element * size, type, 0);
  };
  return testing::AssertionFailure()
         << name << " differs in " << differences << " bytes, first at element offset " << element
         << " of " << got.size / static_cast<std::uint64_t>(size) << ": " << show(got)
         << ", expected " << show(expected);
}

}  // namespace vkgemm::test
