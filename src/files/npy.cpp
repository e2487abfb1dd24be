#include "files/npy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/paths.hpp"
#include "oracle/groups.hpp"

#include "problem/data_type.hpp"

namespace vkgemm::files {
namespace {

static_assert(std::endian::native == std::endian::little, "data is read and written as it lies");

constexpr std::string_view kMagic("\x93NUMPY", 6);
// NumPy's own headers are 118 or some hundred bytes long; a longer one is damaged or hostile.
constexpr std::uint64_t kMaxHeaderBytes = 64 * 1024;
constexpr std::uint64_t kPieceBytes = 256ULL * 1024 * 1024;

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::uint64_t>> shape;
};

// The header is a Python dict literal of three known keys. Anything else is refused; the message
// says what was expected and at which byte of the header.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<Header> parse() {
    Header header;
    if (!accept('{')) return expected("'{'");
    while (!accept('}')) {
      const std::size_t at = position_;
      const auto key = string();
      if (!key) return expected("a key in quotes");
      if (!accept(':')) return expected("':' after key '" + *key + "'");
      if (!is_new(header, *key)) return fail("key '" + *key + "' stands twice", at);
      if (*key == "descr") {
        header.descr = string();
        if (!header.descr) return expected("a type in quotes for 'descr' (no structured types)");
      } else if (*key == "fortran_order") {
        header.fortran_order = boolean();
        if (!header.fortran_order) return expected("True or False for 'fortran_order'");
      } else if (*key == "shape") {
        auto shape = tuple();
        if (!shape) return shape.error();
        header.shape = std::move(*shape);
      } else {
        return fail("unknown key '" + *key + "'", at);
      }
      if (!accept(',') && !next_is('}')) return expected("',' or '}' after key '" + *key + "'");
    }
    skip_space();
    if (position_ != text_.size()) return expected("nothing after '}'");
    if (!header.descr) return fail("key 'descr' is missing", position_);
    if (!header.fortran_order) return fail("key 'fortran_order' is missing", position_);
    if (!header.shape) return fail("key 'shape' is missing", position_);
    return header;
  }

 private:
  static bool is_new(const Header& header, const std::string& key) {
    return !((key == "descr" && header.descr) || (key == "fortran_order" && header.fortran_order) ||
             (key == "shape" && header.shape));
  }

  Error fail(const std::string& what, std::size_t at) const {
    return {Status::io_error, what + " (byte " + std::to_string(at) + " of the header)"};
  }
  Error expected(const std::string& what) const { return fail("expected " + what, position_); }

  void skip_space() {
    while (position_ < text_.size() && std::strchr(" \t\n\r", text_[position_]) != nullptr &&
           text_[position_] != '\0') {
      ++position_;
    }
  }
  bool next_is(char c) {
    skip_space();
    return position_ < text_.size() && text_[position_] == c;
  }
  bool accept(char c) {
    if (!next_is(c)) return false;
    ++position_;
    return true;
  }
  bool accept(std::string_view word) {
    skip_space();
    if (text_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }

  std::optional<std::string> string() {
    skip_space();
    if (position_ >= text_.size()) return std::nullopt;
    const char quote = text_[position_];
    if (quote != '\'' && quote != '"') return std::nullopt;
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return value;
  }

  std::optional<bool> boolean() {
    if (accept("True")) return true;
    if (accept("False")) return false;
    return std::nullopt;
  }

  Result<std::vector<std::uint64_t>> tuple() {
    std::vector<std::uint64_t> values;
    if (!accept('(')) return expected("'(' for 'shape'");
    while (!accept(')')) {
      if (next_is('-')) return fail("'shape' has a negative dimension", position_);
      const std::size_t at = position_;
      std::uint64_t value = 0;
      const auto [end, code] =
          std::from_chars(text_.data() + at, text_.data() + text_.size(), value);
      if (code == std::errc::invalid_argument) return expected("a dimension in 'shape'");
      if (code != std::errc()) return fail("'shape' has a dimension beyond 64 bits", at);
      position_ = static_cast<std::size_t>(end - text_.data());
      accept('L');  // Python 2 wrote its long integers so
      values.push_back(value);
      if (!accept(',') && !next_is(')')) return expected("',' or ')' in 'shape'");
    }
    return values;
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

Result<DataType> parse_descr(const std::string& descr, bool uint16_is_bf16) {
  for (const DataTypeRow& row : data_types) {
    if (row.npy != descr) continue;
    if (row.type != DataType::bf16 || uint16_is_bf16) return row.type;
    return Error{Status::io_error,
                 "descr '<u2' (uint16): say --bf16 if these are the bits of bf16 values"};
  }
  if (!descr.empty() && descr[0] == '>') {
    return Error{Status::io_error, "descr '" + descr + "' is big-endian: only little-endian files"};
  }
  return Error{
      Status::io_error,
      "descr '" + descr +
          "' is not supported: only '<f2', '<f4', '|i1', '|u1', '<i4' and, as bf16, '<u2'"};
}

Result<OffsetType> parse_offset_descr(const std::string& descr) {
  if (descr == "<i4") return OffsetType::int32;
  if (descr == "<i8") return OffsetType::int64;
  return Error{Status::io_error,
               "descr '" + descr + "' is not supported: offsets are '<i4', '<i8'"};
}

// The number of bytes that a shape makes, nothing if that is beyond 64 bits.
std::optional<std::uint64_t> data_bytes(const std::vector<std::uint64_t>& shape,
                                        std::uint64_t element) {
  std::uint64_t bytes = element;
  for (const std::uint64_t dimension : shape) {
    if (dimension == 0) return 0;
  }
  for (const std::uint64_t dimension : shape) {
    if (dimension > std::numeric_limits<std::uint64_t>::max() / bytes) return std::nullopt;
    bytes *= dimension;
  }
  return bytes;
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path) {}

  Result<NpyArray> read(const NpyReadOptions& options) {
    auto header = read_header();
    if (!header) return header.error();
    const auto type = parse_descr(*header->descr, options.uint16_is_bf16);
    if (!type) return fail(type.error().message);
    auto data = read_data(*header, size_in_bytes(*type));
    if (!data) return data.error();
    return NpyArray{.type = *type,
                    .fortran_order = *header->fortran_order,
                    .shape = std::move(*header->shape),
                    .data = std::move(*data)};
  }

  Result<NpyOffsets> read_offsets() {
    auto header = read_header();
    if (!header) return header.error();
    const auto type = parse_offset_descr(*header->descr);
    if (!type) return fail(type.error().message);
    const auto data = read_data(*header, size_in_bytes(*type));
    if (!data) return data.error();
    if (header->shape->size() != 1) {
      return fail("shape " + print_shape(*header->shape) + ": offsets have one dimension");
    }
    const std::size_t count = data->size() / size_in_bytes(*type);
    return NpyOffsets{.type = *type, .values = oracle::decode_offsets(data->data(), count, *type)};
  }

 private:
  Error fail(const std::string& what) const {
    return {Status::io_error, utf8(path_) + ": " + what};
  }

  Result<Header> read_header() {
    std::error_code code;
    if (!std::filesystem::exists(path_, code)) return fail("no such file");
    if (!std::filesystem::is_regular_file(path_, code)) return fail("not a regular file");
    file_bytes_ = std::filesystem::file_size(path_, code);
    file_.open(path_, std::ios::binary);
    if (code || !file_) return fail("cannot be opened for reading");

    auto text = read_header_text();
    if (!text) return text.error();
    auto header = HeaderParser(*text).parse();
    if (!header) return fail(header.error().message);
    return header;
  }

  // Leaves the file at the first byte of data and data_begin_ at its offset.
  Result<std::string> read_header_text() {
    std::array<unsigned char, 12> prefix{};
    const std::uint64_t readable = std::min<std::uint64_t>(prefix.size(), file_bytes_);
    file_.read(reinterpret_cast<char*>(prefix.data()), static_cast<std::streamsize>(readable));
    if (!file_) return fail("cannot be read");
    if (readable < kMagic.size() || std::memcmp(prefix.data(), kMagic.data(), kMagic.size()) != 0) {
      return fail("not a .npy file: it does not begin with \\x93NUMPY");
    }
    if (readable < 10) return fail("ends within the first 10 bytes");
    const unsigned major = prefix[6];
    const unsigned minor = prefix[7];
    if (major < 1 || major > 3 || minor != 0) {
      return fail("version " + std::to_string(major) + "." + std::to_string(minor) +
                  " of the format: only 1.0, 2.0 and 3.0 are known");
    }
    const std::uint64_t length_bytes = major == 1 ? 2 : 4;
    const std::uint64_t header_begin = 8 + length_bytes;
    if (file_bytes_ < header_begin) return fail("ends within the header's length");
    std::uint64_t length = 0;
    for (std::uint64_t i = 0; i < length_bytes; ++i) {
      length |= static_cast<std::uint64_t>(prefix[8 + i]) << (8 * i);
    }
    if (length > file_bytes_ - header_begin) {
      return fail("the header should have " + std::to_string(length) + " bytes, the file has " +
                  std::to_string(file_bytes_ - header_begin) + " left");
    }
    if (length > kMaxHeaderBytes) {
      return fail("the header claims " + std::to_string(length) + " bytes, more than " +
                  std::to_string(kMaxHeaderBytes));
    }
    std::string text(length, '\0');
    file_.seekg(static_cast<std::streamoff>(header_begin));
    file_.read(text.data(), static_cast<std::streamsize>(length));
    if (!file_) return fail("the header cannot be read");
    data_begin_ = header_begin + length;
    return text;
  }

  Result<std::vector<std::byte>> read_data(const Header& header, std::uint64_t element) {
    const std::string shape = print_shape(*header.shape);
    if (header.shape->empty() || header.shape->size() > 3) {
      return fail("shape " + shape + " has " + std::to_string(header.shape->size()) +
                  " dimensions: only one, two or three are supported");
    }
    const auto bytes = data_bytes(*header.shape, element);
    if (!bytes) return fail("shape " + shape + " has more bytes than 64 bits count");

    // Before anything is allocated: a header may claim what it likes, the file's size is a fact.
    const std::uint64_t present = file_bytes_ - data_begin_;
    if (present != *bytes) {
      return fail("shape " + shape + " of '" + *header.descr + "' needs " + std::to_string(*bytes) +
                  " bytes of data, the file has " + std::to_string(present) +
                  (present < *bytes ? ": it is cut short" : ": something stands after the data"));
    }

    std::vector<std::byte> data(*bytes);
    for (std::uint64_t done = 0; done < *bytes; done += kPieceBytes) {
      const std::uint64_t piece = std::min(kPieceBytes, *bytes - done);
      file_.read(reinterpret_cast<char*>(data.data() + done), static_cast<std::streamsize>(piece));
      if (!file_) return fail("the data cannot be read");
    }
    return data;
  }

  const std::filesystem::path& path_;
  std::ifstream file_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t data_begin_ = 0;
};

// Everything before the data.
std::string header_of(const NpyArray& array) {
  std::string text = "{'descr': '" + std::string(row_of(array.type).npy) +
                     "', 'fortran_order': " + (array.fortran_order ? "True" : "False") +
                     ", 'shape': " + print_shape(array.shape) + ", }";
  const std::size_t unpadded = kMagic.size() + 4 + text.size() + 1;
  text.append((64 - unpadded % 64) % 64, ' ');  // so that the data can be mapped, aligned
  text += '\n';
  const std::array<char, 4> version_and_length = {1, 0, static_cast<char>(text.size() & 0xff),
                                                  static_cast<char>(text.size() >> 8)};
  std::string header(kMagic);
  header.append(version_and_length.data(), version_and_length.size());
  return header + text;
}

}  // namespace

std::string print_shape(const std::vector<std::uint64_t>& shape) {
  std::string text = "(";
  for (const std::uint64_t dimension : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(dimension);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

Result<NpyArray> read_npy(const std::filesystem::path& path, const NpyReadOptions& options) {
  return Reader(path).read(options);
}

Result<NpyOffsets> read_npy_offsets(const std::filesystem::path& path) {
  return Reader(path).read_offsets();
}

Result<void> write_npy(OutputFile& file, const NpyArray& array) {
  const auto bytes = data_bytes(array.shape, size_in_bytes(array.type));
  if (array.shape.empty() || array.shape.size() > 3 || !bytes || *bytes != array.data.size()) {
    return Error{Status::invalid_argument,
                 "shape " + print_shape(array.shape) + " does not describe " +
                     std::to_string(array.data.size()) + " bytes of data"};
  }
  const std::string header = header_of(array);
  return file.write({std::as_bytes(std::span(header)), array.data});
}

Result<void> write_npy(const std::filesystem::path& path, const NpyArray& array) {
  Result<OutputFile> file = OutputFile::open(path);
  if (!file) return file.error();
  return write_npy(*file, array);
}

}  // namespace vkgemm::files
