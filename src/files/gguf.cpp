#include "files/gguf.hpp"

#include <algorithm>
#include <array>
#include <istream>
#include <iterator>
#include <limits>
#include <new>
#include <span>
#include <system_error>
#include <utility>

#include "base/arithmetic.hpp"
#include "base/bytes.hpp"
#include "base/errors.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "files/npy.hpp"
#include "lib/quantised.h"

namespace vkgemm::files {
namespace {

constexpr std::string_view gguf_magic = "GGUF";
constexpr std::string_view gguf_separator = ".gguf:";
constexpr std::string_view alignment_key = "general.alignment";
// Models have some thousand tensors. The limit keeps a hostile file from filling the memory.
constexpr std::uint64_t most_entries = std::uint64_t{1} << 20;
// The format has this limit for keys, and 64 for tensors. Diffusion models have longer names.
constexpr std::uint64_t most_name_bytes = 65535;
constexpr std::uint32_t most_dimensions = 4;
constexpr unsigned most_nested_arrays = 4;
constexpr std::uint64_t scratch_bytes = 4096;
constexpr std::uint64_t tensor_piece_bytes = std::uint64_t{64} << 20;

#define VKGEMM_BLOCK(name, NAME) \
  { GgmlType::name, #NAME, BLOCK_CODES(SOURCE_##NAME), BLOCK_SIZE(SOURCE_##NAME) }
constexpr GgmlTypeRow ggml_types[] = {
    {GgmlType::f32, "F32", 1, 4}, {GgmlType::f16, "F16", 1, 2}, {GgmlType::bf16, "BF16", 1, 2},
    VKGEMM_BLOCK(q4_0, Q4_0),     VKGEMM_BLOCK(q4_1, Q4_1),     VKGEMM_BLOCK(q5_0, Q5_0),
    VKGEMM_BLOCK(q5_1, Q5_1),     VKGEMM_BLOCK(q8_0, Q8_0),     VKGEMM_BLOCK(q2_k, Q2_K),
    VKGEMM_BLOCK(q3_k, Q3_K),     VKGEMM_BLOCK(q4_k, Q4_K),     VKGEMM_BLOCK(q5_k, Q5_K),
    VKGEMM_BLOCK(q6_k, Q6_K),     VKGEMM_BLOCK(iq4_nl, IQ4_NL), VKGEMM_BLOCK(iq4_xs, IQ4_XS),
    VKGEMM_BLOCK(mxfp4, MXFP4),   VKGEMM_BLOCK(nvfp4, NVFP4),   VKGEMM_BLOCK(q1_0, Q1_0),
    VKGEMM_BLOCK(q2_0, Q2_0),     VKGEMM_BLOCK(tq2_0, TQ2_0),
};
#undef VKGEMM_BLOCK

// The types of metadata, in the order of their numbers, and the fewest bytes of a value.
struct ValueType {
  std::string_view name;
  std::uint64_t least_bytes;
};
enum ValueTypeNumber : std::uint32_t {
  uint32_value = 4,
  bool_value = 7,
  string_value = 8,
  array_value = 9,
};
constexpr ValueType value_types[] = {
    {"uint8", 1},  {"int8", 1},    {"uint16", 2},  {"int16", 2},  {"uint32", 4},
    {"int32", 4},  {"float32", 4}, {"bool", 1},    {"string", 8}, {"array", 12},
    {"uint64", 8}, {"int64", 8},   {"float64", 8},
};

// The fewest bytes of an entry: a name of one byte, a value of one byte, one dimension.
constexpr std::uint64_t least_metadata_bytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t least_tensor_bytes = 8 + 1 + 4 + 8 + 4 + 8;

// The product, or nothing if it needs more than 64 bits.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}

std::optional<std::uint64_t> element_count(const std::vector<std::uint64_t>& ne) {
  if (std::ranges::count(ne, std::uint64_t{0}) != 0) return 0;
  std::optional<std::uint64_t> count = 1;
  for (const std::uint64_t dimension : ne) count = count ? product(*count, dimension) : count;
  return count;
}

// A name that appears more than once, or nothing.
std::optional<std::string_view> repeated_name(std::vector<std::string_view> names) {
  std::ranges::sort(names);
  const auto found = std::ranges::adjacent_find(names);
  return found == names.end() ? std::nullopt : std::optional(*found);
}

// Reads a header from the beginning of a file. It keeps the first failure. After a failure every
// number is 0 and every name empty, so loops must check ok().
class GgufParser {
 public:
  GgufParser(std::istream& file, std::uint64_t file_bytes) : file_(file), file_bytes_(file_bytes) {}

  Result<GgufHeader> parse() {
    read_magic();
    read_version();
    const auto tensors = number<std::uint64_t>("tensor count");
    const auto metadata = number<std::uint64_t>("metadata count");
    check_count("tensor count", tensors, least_tensor_bytes);
    check_count("metadata count", metadata, least_metadata_bytes);
    read_metadata(metadata);
    read_tensors(tensors);
    place_tensors();
    if (error_) return *error_;
    return std::move(header_);
  }

 private:
  bool ok() const { return !error_; }
  std::uint64_t left() const { return file_bytes_ - position_; }

  template <class... Parts>
  void fail(const Parts&... parts) {
    if (ok()) error_ = Error{Status::io_error, concat(where_, parts...)};
  }

  // Fails if the file has fewer bytes left.
  bool has(std::uint64_t bytes, std::string_view field) {
    if (ok() && bytes > left()) {
      fail(field, " needs ", bytes, " bytes, the file has ", left(), " left: it is cut short");
    }
    return ok();
  }

  void read(std::span<char> bytes, std::string_view field) {
    if (!has(bytes.size(), field)) return;
    file_.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file_) fail(field, " cannot be read");
    position_ += bytes.size();
  }

  // Reads short fields instead of a seek, which discards the stream's buffer.
  void skip(std::uint64_t bytes, std::string_view field) {
    std::array<char, scratch_bytes> scratch;
    if (bytes <= scratch.size()) return read(std::span(scratch).first(bytes), field);
    if (!has(bytes, field)) return;
    file_.seekg(static_cast<std::streamoff>(bytes), std::ios::cur);
    position_ += bytes;
  }

  template <class T>
  T number(std::string_view field) {
    std::array<char, sizeof(T)> bytes{};
    read(bytes, field);
    return ok() ? read_number<T>(std::as_bytes(std::span(bytes)), 0) : T{0};
  }

  std::string name(std::string_view field) {
    const auto length = number<std::uint64_t>(field);
    if (ok() && (length == 0 || length > most_name_bytes)) {
      fail("length of the ", field, " is ", length, ": 1 to ", most_name_bytes, " is possible");
    }
    if (!has(length, field)) return {};
    std::string text(length, '\0');
    read(text, field);
    return text;
  }

  std::uint32_t value_type(std::string_view field) {
    const auto type = number<std::uint32_t>(field);
    if (type < std::size(value_types)) return type;
    fail(field, " is ", type, ": 0 to ", std::size(value_types) - 1, " are known");
    return 0;
  }

  void read_magic() {
    std::array<char, gguf_magic.size()> found{};
    if (left() >= found.size()) read(found, "magic");
    if (!std::ranges::equal(found, gguf_magic)) {
      fail("not a GGUF file: it does not begin with ", gguf_magic);
    }
  }

  void read_version() {
    header_.version = number<std::uint32_t>("version");
    if (header_.version == 2 || header_.version == 3) return;
    const bool is_reversed = header_.version != 0 && (header_.version & 0xffff) == 0;
    fail("version is ", header_.version,
         is_reversed
             ? ", with reversed bytes: the file is big-endian, only little-endian files are "
               "supported"
             : ": only 2 and 3 are supported");
  }

  // Refuses a count before anything is read or allocated for it.
  void check_count(std::string_view field, std::uint64_t count, std::uint64_t least_bytes) {
    if (count > left() / least_bytes) {
      fail(field, " is ", count, ", but the file has only ", left(), " bytes left");
    } else if (count > most_entries) {
      fail(field, " is ", count, ": at most ", most_entries, " is supported");
    }
  }

  void read_metadata(std::uint64_t count) {
    std::vector<std::string> keys;
    for (std::uint64_t i = 0; i < count && ok(); ++i) {
      where_ = concat("metadata ", i, ": ");
      const std::string& key = keys.emplace_back(name("key"));
      where_ = concat("metadata ", in_quotes(key), ": ");
      const std::uint32_t type = value_type("type");
      if (key == alignment_key) {
        read_alignment(type);
      } else {
        skip_values(type, 1, 0);
      }
    }
    if (!ok()) return;
    where_.clear();
    if (const auto repeated = repeated_name({keys.begin(), keys.end()})) {
      fail("metadata ", in_quotes(*repeated), " appears twice");
    }
  }

  void read_alignment(std::uint32_t type) {
    if (type != uint32_value) return fail("type is ", value_types[type].name, ": uint32 is needed");
    header_.alignment = number<std::uint32_t>("value");
    if (header_.alignment == 0 || header_.alignment % 8 != 0) {
      fail("value is ", header_.alignment, ": a multiple of 8 is needed");
    }
  }

  void skip_values(std::uint32_t type, std::uint64_t count, unsigned depth) {
    if (type != bool_value && type != string_value && type != array_value) {
      return skip(count * value_types[type].least_bytes, "value");
    }
    for (std::uint64_t i = 0; i < count && ok(); ++i) skip_value(type, depth);
  }

  void skip_value(std::uint32_t type, unsigned depth) {
    if (type == array_value) return skip_array(depth + 1);
    if (type == string_value) return skip(number<std::uint64_t>("length of a string"), "a string");
    const unsigned value = number<std::uint8_t>("value");
    if (value > 1) fail("a bool is ", value, ": 0 or 1 is possible");
  }

  void skip_array(unsigned depth) {
    if (depth > most_nested_arrays) {
      return fail("arrays are nested more than ", most_nested_arrays, " deep");
    }
    const std::uint32_t type = value_type("type of elements");
    const auto count = number<std::uint64_t>("length of an array");
    if (count > left() / value_types[type].least_bytes) {
      return fail("an array has ", count, " elements of type ", value_types[type].name,
                  ", but the file has only ", left(), " bytes left");
    }
    skip_values(type, count, depth);
  }

  void read_tensors(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count && ok(); ++i) {
      where_ = concat("tensor ", i, ": ");
      header_.tensors.push_back({.name = name("name")});
      where_ = in_tensor(header_.tensors.back());
      read_tensor(header_.tensors.back());
    }
    if (!ok()) return;
    where_.clear();
    std::vector<std::string_view> names;
    for (const GgufTensor& tensor : header_.tensors) names.push_back(tensor.name);
    if (const auto repeated = repeated_name(std::move(names))) {
      fail("tensor ", in_quotes(*repeated), " appears twice");
    }
  }

  static std::string in_tensor(const GgufTensor& tensor) {
    return concat("tensor ", in_quotes(tensor.name), ": ");
  }

  void read_tensor(GgufTensor& tensor) {
    const auto dimensions = number<std::uint32_t>("n_dims");
    if (ok() && (dimensions == 0 || dimensions > most_dimensions)) {
      fail("n_dims is ", dimensions, ": 1 to ", most_dimensions, " is possible");
    }
    for (std::uint32_t i = 0; i < dimensions && ok(); ++i) {
      tensor.ne.push_back(number<std::uint64_t>("ne"));
    }
    tensor.type = static_cast<GgmlType>(number<std::uint32_t>("type"));
    tensor.offset = number<std::uint64_t>("offset");
    if (ok()) set_bytes(tensor);
  }

  void set_bytes(GgufTensor& tensor) {
    const auto elements = element_count(tensor.ne);
    const auto too_many = [&] {
      fail("ne is ", print_shape(tensor.ne), ": more elements or bytes than 64 bits count");
    };
    if (!elements) return too_many();
    const GgmlTypeRow* const row = find_ggml_type(tensor.type);
    if (row == nullptr) return;
    if (tensor.ne[0] % row->block_elements != 0) {
      return fail("ne is ", print_shape(tensor.ne), ": blocks of ", row->name, " have ",
                  row->block_elements, " elements, which do not divide ", tensor.ne[0]);
    }
    const auto bytes = product(*elements / row->block_elements, row->block_bytes);
    if (!bytes) return too_many();
    tensor.bytes = *bytes;
  }

  // Tensors begin at the next multiple of the alignment. Their offsets count from there.
  void place_tensors() {
    if (!ok() || header_.tensors.empty()) return;
    const std::uint64_t begin = rounded_up(position_, header_.alignment);
    if (begin > file_bytes_) {
      return fail("tensors begin at byte ", begin, ", the file has ", file_bytes_,
                  ": it is cut short");
    }
    const std::uint64_t present = file_bytes_ - begin;
    for (GgufTensor& tensor : header_.tensors) {
      where_ = in_tensor(tensor);
      if (tensor.offset % header_.alignment != 0) {
        fail("offset is ", tensor.offset, ": a multiple of the alignment, ", header_.alignment,
             ", is needed");
      }
      if (tensor.offset > present || tensor.bytes > present - tensor.offset) {
        fail(tensor.bytes, " bytes at offset ", tensor.offset, ", but the file has ", present,
             " bytes of tensors: it is cut short");
      }
      tensor.offset += begin;
    }
  }

  std::istream& file_;
  const std::uint64_t file_bytes_;
  std::uint64_t position_ = 0;
  std::string where_;  // prefix of messages: the entry that is read
  std::optional<Error> error_;
  GgufHeader header_;
};

// Counts equal characters at both ends. A name that contains the word counts as equal to it.
std::size_t similarity(std::string_view word, std::string_view name) {
  if (name.find(word) != std::string_view::npos) return word.size();
  const auto prefix =
      static_cast<std::size_t>(std::ranges::mismatch(word, name).in1 - word.begin());
  word.remove_prefix(prefix);
  name.remove_prefix(prefix);
  const auto suffix = std::mismatch(word.rbegin(), word.rend(), name.rbegin(), name.rend()).first;
  return prefix + static_cast<std::size_t>(suffix - word.rbegin());
}

// At most five names that have half of the word or more, the most similar first.
std::vector<std::string_view> similar_names(std::string_view word,
                                            const std::vector<GgufTensor>& tensors) {
  constexpr std::size_t most = 5;
  std::vector<std::pair<std::size_t, std::string_view>> found;
  for (const GgufTensor& tensor : tensors) {
    const std::size_t alike = similarity(word, tensor.name);
    if (alike * 2 >= word.size()) found.emplace_back(alike, tensor.name);
  }
  std::ranges::stable_sort(found, std::ranges::greater{},
                           [](const auto& pair) { return pair.first; });
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < std::min(most, found.size()); ++i) names.push_back(found[i].second);
  return names;
}

Error with_path(const std::filesystem::path& path, const Error& error) {
  return {error.status, utf8(path) + ": " + error.message};
}

// Opens a regular file and finds its size.
Result<std::uint64_t> open_regular_file(const std::filesystem::path& path, std::ifstream& file) {
  const auto refuse = [](std::string what) { return Error{Status::io_error, std::move(what)}; };
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return refuse("no such file");
  if (!std::filesystem::is_regular_file(path, code)) return refuse("not a regular file");
  file.open(path, std::ios::binary | std::ios::ate);
  const std::streamoff bytes = file ? std::streamoff{file.tellg()} : -1;
  file.seekg(0);
  if (bytes < 0 || !file) return refuse("cannot be opened for reading");
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

const GgmlTypeRow* find_ggml_type(GgmlType type) noexcept {
  const auto* const row = std::ranges::find(ggml_types, type, &GgmlTypeRow::type);
  return row == std::end(ggml_types) ? nullptr : row;
}

Result<GgufFile> GgufFile::open(const std::filesystem::path& path) {
  GgufFile out;
  out.path_ = path;
  const auto bytes = open_regular_file(path, out.file_);
  if (!bytes) return with_path(path, bytes.error());
  auto header = without_exceptions([&] { return GgufParser(out.file_, *bytes).parse(); });
  if (!header) return with_path(path, header.error());
  out.header_ = std::move(*header);
  return out;
}

Result<const GgufTensor*> GgufFile::find(std::string_view name) const {
  const auto found = std::ranges::find(header_.tensors, name, &GgufTensor::name);
  if (found != header_.tensors.end()) return &*found;
  std::string list;
  for (const std::string_view similar : similar_names(name, header_.tensors)) {
    list += (list.empty() ? "; similar names: " : ", ") + in_quotes(similar);
  }
  return with_path(path_, invalid_argument(concat("none of its ", header_.tensors.size(),
                                                  " tensors is ", in_quotes(name), list)));
}

Result<std::vector<std::byte>> GgufFile::read(const GgufTensor& tensor) {
  const auto fail = [&](Status status, const std::string& what) {
    return with_path(path_, {status, concat("tensor ", in_quotes(tensor.name), ": ", what)});
  };
  if (find_ggml_type(tensor.type) == nullptr) {
    return fail(Status::unsupported, concat("ggml's type ", static_cast<std::uint32_t>(tensor.type),
                                            " is not supported"));
  }
  std::vector<std::byte> data;
  try {
    data.resize(tensor.bytes);
  } catch (const std::bad_alloc&) {
    return fail(Status::out_of_host_memory,
                concat("there is no memory for its ", tensor.bytes, " bytes"));
  }
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(tensor.offset));
  for (std::uint64_t done = 0; done < tensor.bytes; done += tensor_piece_bytes) {
    const std::uint64_t piece = std::min(tensor_piece_bytes, tensor.bytes - done);
    file_.read(reinterpret_cast<char*>(data.data() + done), static_cast<std::streamsize>(piece));
    if (!file_) return fail(Status::io_error, "the data cannot be read");
  }
  return data;
}

std::optional<GgufName> split_gguf_name(std::string_view text) {
  const std::size_t at = text.rfind(gguf_separator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t colon = at + gguf_separator.size() - 1;
  return GgufName{std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

}  // namespace vkgemm::files
