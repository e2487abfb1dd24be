#include "files/vkp.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"
#include "base/cache_file.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "problem/data_type.hpp"

namespace vkgemm::files {
namespace {

constexpr std::string_view magic = "vkgemmVP";
constexpr std::uint64_t most_size = (std::uint64_t{1} << 31) - 1;
constexpr std::uint64_t piece_bytes = std::uint64_t{64} << 20;

enum Offset : std::size_t {
  version_offset = 8,
  zero_offset = 12,
  payload_bytes_offset = 16,
  hash_offset = 24,
  hashed_offset = 32,  // the hash covers everything from here
  operand_offset = 32,
  type_offset = 36,
  width_offset = 40,
  k_offset = 48,
  matrices_offset = 56,
  matrix_bytes_offset = 64,
  reserved_offset = 72,  // zeros up to the fingerprint
  fingerprint_offset = 128,
  device_offset = 192,
  driver_offset = 352,
};
constexpr std::size_t name_bytes = 160;

using Bytes = std::span<const std::byte>;

std::string read_name(Bytes bytes, std::size_t offset) {
  const std::string_view field(reinterpret_cast<const char*>(bytes.data()) + offset, name_bytes);
  return excerpt(field.substr(0, field.find('\0')));
}

void write_name(std::span<std::byte> bytes, std::size_t offset, std::string_view name) {
  name = name.substr(0, name_bytes - 1);
  std::ranges::copy(std::as_bytes(std::span(name)),
                    bytes.begin() + static_cast<std::ptrdiff_t>(offset));
}

Error refuse(std::string what) { return {Status::io_error, std::move(what)}; }

// What there must be before the payload is read, in a file of so many bytes. The payload's bytes.
Result<std::uint64_t> check_frame(Bytes begin, std::uint64_t file_bytes) {
  const Bytes read_magic = begin.first(std::min(begin.size(), magic.size()));
  if (!std::ranges::equal(read_magic, std::as_bytes(std::span(magic)))) {
    return refuse("not a .vkp file: it does not begin with vkgemmVP");
  }
  if (begin.size() < packed_header_bytes) {
    return refuse(concat("header is ", begin.size(), " bytes, ", packed_header_bytes,
                         " are needed: the file is cut short"));
  }
  if (const auto version = read_number<std::uint32_t>(begin, version_offset);
      version != packed_file_version) {
    return refuse(concat("version is ", version, ": only ", packed_file_version, " is known"));
  }
  if (const auto zero = read_number<std::uint32_t>(begin, zero_offset); zero != 0) {
    return refuse(concat("the word behind the version is ", zero, ", not 0"));
  }
  const auto said = read_number<std::uint64_t>(begin, payload_bytes_offset);
  const std::uint64_t present = file_bytes - packed_header_bytes;
  if (present != said) {
    return refuse(concat("payload is ", present, " bytes, the header says ", said));
  }
  return present;
}

Result<PackedHeader> parse_header(Bytes header, std::uint64_t payload_bytes) {
  const auto operand = read_number<std::uint32_t>(header, operand_offset);
  const auto type = read_number<std::uint32_t>(header, type_offset);
  if (operand > 1) return refuse(concat("operand is ", operand, ": 0 (A) or 1 (B) is needed"));
  if (type >= std::size(data_types) || !is_element(static_cast<DataType>(type))) {
    std::string known;
    for (std::size_t i = 0; i < std::size(data_types); ++i) {
      if (is_element(data_types[i].type))
        known += concat(known.empty() ? "" : ", ", i, " (", data_types[i].name, ")");
    }
    return refuse(concat("type is ", type, ": one of ", known, " is needed"));
  }
  PackedHeader out{.operand = operand == 0 ? PackedOperand::a : PackedOperand::b,
                   .type = static_cast<DataType>(type),
                   .width = read_number<std::uint64_t>(header, width_offset),
                   .k = read_number<std::uint64_t>(header, k_offset),
                   .matrices = read_number<std::uint64_t>(header, matrices_offset),
                   .matrix_bytes = read_number<std::uint64_t>(header, matrix_bytes_offset),
                   .device = read_name(header, device_offset),
                   .driver = read_name(header, driver_offset)};
  std::memcpy(&out.fingerprint, header.data() + fingerprint_offset, sizeof out.fingerprint);
  const std::pair<std::string_view, std::uint64_t> sizes[] = {
      {"width", out.width}, {"K", out.k}, {"matrices", out.matrices}};
  for (const auto& [name, size] : sizes) {
    if (size != 0 && size <= most_size) continue;
    return refuse(concat(name, " is ", size, ": from 1 to ", most_size, " is possible"));
  }
  for (std::size_t i = reserved_offset; i < fingerprint_offset; ++i) {
    if (header[i] == std::byte{0}) continue;
    return refuse(
        concat("byte ", i, " of the header is ", std::to_integer<int>(header[i]), ", not 0"));
  }
  if (out.matrix_bytes == 0 || out.matrices > payload_bytes / out.matrix_bytes) {
    return refuse(concat("payload is ", payload_bytes, " bytes, too few for ", out.matrices,
                         " matrices of ", out.matrix_bytes));
  }
  return out;
}

Result<void> check_hash(Bytes header, std::uint64_t hash) {
  if (read_number<std::uint64_t>(header, hash_offset) == hash) return {};
  return refuse("hash differs: the file was altered");
}

// A file that is read by and by: what its header says is refused before there is memory for the
// rest.
Result<PackedFile> read_stream(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return refuse("no such file");
  if (!std::filesystem::is_regular_file(path, code)) return refuse("not a regular file");
  const std::uint64_t file_bytes = std::filesystem::file_size(path, code);
  std::ifstream stream(path, std::ios::binary);
  if (code || !stream) return refuse("cannot be opened for reading");
  std::vector<std::byte> header(std::min<std::uint64_t>(packed_header_bytes, file_bytes));
  const auto fill = [&stream](std::span<std::byte> bytes) {
    stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return stream.good();
  };
  if (!fill(header)) return refuse("header cannot be read");
  const auto payload_bytes = check_frame(header, file_bytes);
  if (!payload_bytes) return payload_bytes.error();

  auto parsed = parse_header(header, *payload_bytes);
  if (!parsed) return parsed.error();
  PackedFile file{.header = std::move(*parsed)};
  try {
    file.payload.resize(*payload_bytes);
  } catch (const std::bad_alloc&) {
    return Error{Status::out_of_host_memory,
                 concat("there is no memory for its ", *payload_bytes, " bytes")};
  }
  std::uint64_t hash = fnv1a(Bytes(header).subspan(hashed_offset));
  for (std::uint64_t done = 0; done < *payload_bytes; done += piece_bytes) {
    const std::uint64_t bytes = std::min(piece_bytes, *payload_bytes - done);
    const std::span<std::byte> piece(file.payload.data() + done, bytes);
    if (!fill(piece)) return refuse("payload cannot be read");
    hash = fnv1a(piece, hash);
  }
  if (auto checked = check_hash(header, hash); !checked) return checked.error();
  return file;
}

}  // namespace

Result<PackedView> parse_packed_file(std::span<const std::byte> file) {
  const auto payload_bytes =
      check_frame(file.first(std::min(file.size(), packed_header_bytes)), file.size());
  if (!payload_bytes) return payload_bytes.error();
  auto header = parse_header(file, *payload_bytes);
  if (!header) return header.error();
  if (auto checked = check_hash(file, fnv1a(file.subspan(hashed_offset))); !checked) {
    return checked.error();
  }
  return PackedView{std::move(*header), file.subspan(packed_header_bytes)};
}

std::array<std::byte, packed_header_bytes> make_packed_header(const PackedHeader& header,
                                                              std::span<const std::byte> payload) {
  std::array<std::byte, packed_header_bytes> bytes{};
  write_name(bytes, 0, magic);
  write_number(bytes, version_offset, packed_file_version);
  write_number(bytes, payload_bytes_offset, std::uint64_t{payload.size()});
  write_number(bytes, operand_offset, std::uint32_t{header.operand == PackedOperand::b});
  write_number(bytes, type_offset, static_cast<std::uint32_t>(header.type));
  write_number(bytes, width_offset, header.width);
  write_number(bytes, k_offset, header.k);
  write_number(bytes, matrices_offset, header.matrices);
  write_number(bytes, matrix_bytes_offset, header.matrix_bytes);
  std::memcpy(bytes.data() + fingerprint_offset, &header.fingerprint, sizeof header.fingerprint);
  write_name(bytes, device_offset, header.device);
  write_name(bytes, driver_offset, header.driver);
  write_number(bytes, hash_offset, fnv1a(payload, fnv1a(Bytes(bytes).subspan(hashed_offset))));
  return bytes;
}

Result<PackedFile> read_packed_file(const std::filesystem::path& path) {
  Result<PackedFile> file = read_stream(path);
  if (!file) return Error{file.error().status, utf8(path) + ": " + file.error().message};
  return file;
}

Result<void> write_packed_file(OutputFile& file, const PackedHeader& header,
                               std::span<const std::byte> payload) {
  return file.write({make_packed_header(header, payload), payload});
}

bool is_packed_file(const std::filesystem::path& path) { return path.extension() == ".vkp"; }

}  // namespace vkgemm::files
