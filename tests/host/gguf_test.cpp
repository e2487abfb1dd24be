// GGUF files: every type of metadata is skipped, tensors are found and read, and every kind of
// malformed file is an error that names the file, the field and its value.
#include "files/gguf.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/paths.hpp"
#include "tool/matrices.hpp"
#include "tool/tool.hpp"

namespace vkgemm::files {
namespace {

std::string gguf_number(std::uint64_t value, unsigned bytes) {
  std::string out;
  for (unsigned i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}
std::string gguf_u32(std::uint64_t value) { return gguf_number(value, 4); }
std::string gguf_u64(std::uint64_t value) { return gguf_number(value, 8); }
std::string gguf_string(const std::string& text) { return gguf_u64(text.size()) + text; }

std::string gguf_metadata(const std::string& key, unsigned type, const std::string& value) {
  return gguf_string(key) + gguf_u32(type) + value;
}
std::string gguf_array(unsigned type, std::uint64_t count, const std::string& elements) {
  return gguf_u32(type) + gguf_u64(count) + elements;
}

// The parts of a file. The text of each part may be anything.
struct GgufParts {
  std::uint32_t version = 3;
  std::vector<std::string> metadata, tensors;
  std::string data;
  std::size_t alignment = 32;

  GgufParts& add(const std::string& key, unsigned type, const std::string& value) {
    metadata.push_back(gguf_metadata(key, type, value));
    return *this;
  }
  GgufParts& align(unsigned bytes) {
    alignment = bytes;
    return add("general.alignment", 4, gguf_u32(bytes));
  }
  GgufParts& tensor(const std::string& name, const std::vector<std::uint64_t>& ne, unsigned type,
                    std::uint64_t offset) {
    std::string text = gguf_string(name) + gguf_u32(ne.size());
    for (const std::uint64_t dimension : ne) text += gguf_u64(dimension);
    tensors.push_back(text + gguf_u32(type) + gguf_u64(offset));
    return *this;
  }
  // Adds the bytes of a tensor to the data, where it begins at the alignment.
  GgufParts& filled(const std::string& name, const std::vector<std::uint64_t>& ne, unsigned type,
                    const std::string& bytes) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    tensor(name, ne, type, data.size());
    data += bytes;
    return *this;
  }

  std::string header() const {
    std::string out =
        "GGUF" + gguf_u32(version) + gguf_u64(tensors.size()) + gguf_u64(metadata.size());
    for (const std::string& entry : metadata) out += entry;
    for (const std::string& entry : tensors) out += entry;
    return out;
  }
  std::string bytes() const {
    std::string out = header();
    if (!tensors.empty()) out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + data;
  }
};

// Bytes that tell their places.
std::string gguf_data(std::size_t bytes, unsigned seed = 0) {
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(i * 7 + seed);
  return out;
}

class Gguf : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::path(testing::TempDir()) / ("vkgemm_gguf_" + std::string(test->name()));
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "model.gguf";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
  }

  GgufFile opened(const GgufParts& parts) const {
    write(parts.bytes());
    return opened();
  }
  GgufFile opened() const {
    Result<GgufFile> file = GgufFile::open(path_);
    if (!file) throw std::runtime_error(file.error().message);
    return std::move(*file);
  }

  static std::string read(GgufFile& file, std::string_view name) {
    const auto tensor = file.find(name);
    if (!tensor) return tensor.error().message;
    const auto data = file.read(**tensor);
    if (!data) return data.error().message;
    return {reinterpret_cast<const char*>(data->data()), data->size()};
  }

  std::string error() const {
    const auto file = GgufFile::open(path_);
    if (file) return "no error";
    EXPECT_EQ(file.error().status, Status::io_error);
    EXPECT_TRUE(file.error().message.starts_with(utf8(path_) + ": ")) << file.error().message;
    return file.error().message;
  }
  void expect_refused(const std::string& bytes, std::string_view reason) const {
    write(bytes);
    const std::string message = error();
    EXPECT_NE(message.find(reason), std::string::npos) << message << "\n  expected: " << reason;
  }
  void expect_refused(const GgufParts& parts, std::string_view reason) const {
    expect_refused(parts.bytes(), reason);
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
};

constexpr unsigned gguf_value_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// Metadata of every type, alone and in arrays.
GgufParts gguf_with_all_metadata() {
  GgufParts parts;
  for (unsigned type = 0; type < std::size(gguf_value_bytes); ++type) {
    const std::string name = "a.type_" + std::to_string(type);
    const unsigned bytes = gguf_value_bytes[type];
    if (bytes == 0) continue;
    parts.add(name, type, gguf_number(1, bytes));
    parts.add(name + ".array", 9, gguf_array(type, 3, std::string(3 * bytes, '\1')));
    parts.add(name + ".empty", 9, gguf_array(type, 0, ""));
  }
  const std::string strings = gguf_string("") + gguf_string("two") + gguf_string("three");
  const std::string inner = gguf_array(5, 2, gguf_data(8));
  const std::string outer = gguf_array(9, 2, inner + gguf_array(8, 3, strings));
  parts.add("a.string", 8, gguf_string("text"));
  parts.add("a.string.empty", 8, gguf_string(""));
  parts.add("a.strings", 9, gguf_array(8, 3, strings));
  parts.add("a.no_strings", 9, gguf_array(8, 0, ""));
  parts.add("a.nested", 9, outer);
  parts.add("a.nested_4", 9, gguf_array(9, 1, gguf_array(9, 1, inner)));
  return parts;
}

TEST_F(Gguf, SkipsMetadataOfEveryType) {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufParts parts = gguf_with_all_metadata();
    parts.version = version;
    GgufFile file = opened(parts.filled("w", {8, 2}, 0, gguf_data(64)));
    EXPECT_EQ(file.header().version, version);
    EXPECT_EQ(file.header().alignment, 32U);
    ASSERT_EQ(file.header().tensors.size(), 1U);
    EXPECT_EQ(read(file, "w"), gguf_data(64));
  }
}

TEST_F(Gguf, SkipsLongMetadata) {
  std::string tokens;
  for (int i = 0; i < 5000; ++i) tokens += gguf_string("token " + std::to_string(i));
  GgufParts parts;
  parts.add("a.text", 8, gguf_string(std::string(100'000, 'x')));
  parts.add("a.scores", 9, gguf_array(6, 20'000, std::string(80'000, '\xff')));
  parts.add("a.tokens", 9, gguf_array(8, 5000, tokens));
  GgufFile file = opened(parts.filled("w", {2}, 0, gguf_data(8)));
  EXPECT_EQ(read(file, "w"), gguf_data(8));
}

TEST_F(Gguf, OneToFourDimensions) {
  GgufParts parts;
  parts.filled("one", {6}, 0, gguf_data(24, 1)).filled("two", {2, 3}, 1, gguf_data(12, 2));
  parts.filled("three", {32, 3, 2}, 8, gguf_data(204, 3));
  parts.filled("four", {1, 2, 3, 4}, 30, gguf_data(48, 4)).filled("none", {4, 0}, 0, "");
  GgufFile file = opened(parts);
  const auto expect = [&](std::size_t index, const std::string& name,
                          const std::vector<std::uint64_t>& ne, GgmlType type, std::size_t bytes) {
    const GgufTensor& tensor = file.header().tensors[index];
    EXPECT_EQ(tensor.name, name);
    EXPECT_EQ(tensor.ne, ne);
    EXPECT_EQ(tensor.type, type);
    EXPECT_EQ(tensor.bytes, bytes);
    EXPECT_EQ(tensor.offset % 32, 0U);
    EXPECT_EQ(read(file, name), gguf_data(bytes, static_cast<unsigned>(index + 1)));
  };
  ASSERT_EQ(file.header().tensors.size(), 5U);
  expect(0, "one", {6}, GgmlType::f32, 24);
  expect(3, "four", {1, 2, 3, 4}, GgmlType::bf16, 48);
  expect(1, "two", {2, 3}, GgmlType::f16, 12);
  expect(2, "three", {32, 3, 2}, GgmlType::q8_0, 204);
  expect(4, "none", {4, 0}, GgmlType::f32, 0);
}

TEST_F(Gguf, BlocksOfEveryType) {
  const struct {
    GgmlType type;
    unsigned number;
    std::string_view name;
    std::uint64_t elements, bytes;
  } rows[] = {
      {GgmlType::f32, 0, "F32", 1, 4},          {GgmlType::f16, 1, "F16", 1, 2},
      {GgmlType::q4_0, 2, "Q4_0", 32, 18},      {GgmlType::q4_1, 3, "Q4_1", 32, 20},
      {GgmlType::q5_0, 6, "Q5_0", 32, 22},      {GgmlType::q5_1, 7, "Q5_1", 32, 24},
      {GgmlType::q8_0, 8, "Q8_0", 32, 34},      {GgmlType::q2_k, 10, "Q2_K", 256, 84},
      {GgmlType::q3_k, 11, "Q3_K", 256, 110},   {GgmlType::q4_k, 12, "Q4_K", 256, 144},
      {GgmlType::q5_k, 13, "Q5_K", 256, 176},   {GgmlType::q6_k, 14, "Q6_K", 256, 210},
      {GgmlType::iq4_nl, 20, "IQ4_NL", 32, 18}, {GgmlType::iq4_xs, 23, "IQ4_XS", 256, 136},
      {GgmlType::bf16, 30, "BF16", 1, 2},       {GgmlType::mxfp4, 39, "MXFP4", 32, 17},
      {GgmlType::nvfp4, 40, "NVFP4", 64, 36},   {GgmlType::q1_0, 41, "Q1_0", 128, 18},
      {GgmlType::q2_0, 42, "Q2_0", 64, 18},     {GgmlType::tq2_0, 35, "TQ2_0", 256, 66},
  };
  for (const auto& row : rows) {
    const GgmlTypeRow* const found = find_ggml_type(row.type);
    ASSERT_NE(found, nullptr) << row.name;
    EXPECT_EQ(found->name, row.name);
    GgufParts parts;
    const std::string data = gguf_data(6 * row.bytes, row.number);
    GgufFile file = opened(parts.filled("w", {2 * row.elements, 3}, row.number, data));
    EXPECT_EQ(file.header().tensors[0].type, row.type);
    EXPECT_EQ(read(file, "w"), data) << row.name;
    if (row.elements == 1) continue;
    expect_refused(GgufParts().filled("w", {row.elements / 2, 4}, row.number, data),
                   "tensor 'w': ne is (" + std::to_string(row.elements / 2) + ", 4): blocks of " +
                       std::string(row.name) + " have " + std::to_string(row.elements) +
                       " elements");
  }
  for (const unsigned number : {4U, 5U, 9U, 15U, 16U, 29U, 31U, 38U, 43U, 4000000000U}) {
    EXPECT_EQ(find_ggml_type(static_cast<GgmlType>(number)), nullptr) << number;
  }
}

// The tool's matrices: K is the first dimension, codes become f16.
TEST_F(Gguf, TensorsAreMatrices) {
  GgufParts parts;
  parts.filled("q4_k", {512, 3}, 12, gguf_data(3 * 2 * 144));
  parts.filled("batch", {2, 3, 4}, 0, gguf_data(2 * 3 * 4 * 4));
  parts.filled("vector", {8}, 0, gguf_data(32));
  parts.filled("wide", {std::uint64_t{1} << 32, 0}, 12, "");
  write(parts.bytes());
  const auto load = [&](const char* name) {
    return tool::load_weights(utf8(path_) + ":" + name, false);
  };
  const tool::LoadedMatrix codes = load("q4_k");
  EXPECT_EQ(codes.rows, 512u);
  EXPECT_EQ(codes.cols, 3u);
  EXPECT_EQ(codes.type, DataType::f16);
  EXPECT_EQ(codes.layout, Layout::col_major);
  ASSERT_TRUE(codes.quantisation);
  EXPECT_EQ(to_string(*codes.quantisation), "q4_k");
  EXPECT_EQ(codes.data.size(), 3u * 2 * 144);
  EXPECT_EQ(tool::elements_of_blocks(codes).size(), 512u * 3 * 2);
  EXPECT_THROW(tool::load_matrix(utf8(path_) + ":q4_k", false), tool::Failure);
  const tool::LoadedMatrix batch = load("batch");
  EXPECT_EQ(batch.batch, 4u);
  EXPECT_EQ(batch.rows, 2u);
  EXPECT_EQ(batch.cols, 3u);
  EXPECT_EQ(batch.type, DataType::f32);
  EXPECT_FALSE(batch.quantisation);
  EXPECT_THROW(load("vector"), tool::Failure);
  EXPECT_THROW(load("other"), tool::Failure);
  EXPECT_THROW(tool::elements_of_blocks(load("wide")), tool::Failure);
}

TEST_F(Gguf, Alignments) {
  for (const unsigned alignment : {8U, 24U, 32U, 64U, 4096U}) {
    GgufParts parts;
    parts.align(alignment).add("last", 0, "\1");
    parts.filled("first", {5}, 0, gguf_data(20, 1)).filled("second", {3}, 0, gguf_data(12, 2));
    GgufFile file = opened(parts);
    EXPECT_EQ(file.header().alignment, alignment);
    const std::vector<GgufTensor>& tensors = file.header().tensors;
    EXPECT_EQ(tensors[0].offset % alignment, 0U);
    EXPECT_EQ(tensors[1].offset, tensors[0].offset + (alignment < 24 ? 24 : alignment));
    EXPECT_EQ(read(file, "first"), gguf_data(20, 1));
    EXPECT_EQ(read(file, "second"), gguf_data(12, 2));
  }
  expect_refused(GgufParts().add("general.alignment", 10, gguf_u64(32)),
                 "metadata 'general.alignment': type is uint64: uint32 is needed");
  for (const unsigned alignment : {0U, 4U, 33U}) {
    expect_refused(GgufParts().add("general.alignment", 4, gguf_u32(alignment)),
                   "metadata 'general.alignment': value is " + std::to_string(alignment) +
                       ": a multiple of 8 is needed");
  }
}

TEST_F(Gguf, NoTensors) {
  EXPECT_TRUE(opened(GgufParts()).header().tensors.empty());
  EXPECT_TRUE(opened(GgufParts().align(64)).header().tensors.empty());
  EXPECT_EQ(std::filesystem::file_size(path_) % 64, 57U);  // padding is for tensors
}

TEST_F(Gguf, UnknownTypesAreRefusedWhenRead) {
  GgufParts parts;
  parts.filled("codes", {100, 2}, 16, gguf_data(66, 1)).filled("norm", {4}, 0, gguf_data(16, 2));
  GgufFile file = opened(parts);
  const auto codes = file.find("codes");
  ASSERT_TRUE(codes) << codes.error().message;
  EXPECT_EQ((*codes)->bytes, 0U);
  EXPECT_EQ((*codes)->ne, (std::vector<std::uint64_t>{100, 2}));
  const auto data = file.read(**codes);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().status, Status::unsupported);
  EXPECT_EQ(data.error().message,
            utf8(path_) + ": tensor 'codes': ggml's type 16 is not supported");
  EXPECT_EQ(read(file, "norm"), gguf_data(16, 2));
}

TEST_F(Gguf, NamesThatAreMissing) {
  GgufParts parts;
  for (int layer = 0; layer < 12; ++layer) {
    for (const char* name : {"attn_q", "ffn_up", "ffn_down"}) {
      parts.tensor("blk." + std::to_string(layer) + "." + name + ".weight", {0}, 0, 0);
    }
  }
  const GgufFile file = opened(parts);
  const auto message = [&](std::string_view name) {
    const auto tensor = file.find(name);
    if (tensor) return std::string("found");
    EXPECT_EQ(tensor.error().status, Status::invalid_argument);
    EXPECT_TRUE(tensor.error().message.starts_with(utf8(path_) + ": none of its 36 tensors is '"));
    return tensor.error().message.substr(utf8(path_).size() + 2);
  };
  EXPECT_EQ(message("blk.11.ffn_up.weight"), "found");
  EXPECT_EQ(message("xyz"), "none of its 36 tensors is 'xyz'");
  EXPECT_EQ(message("blk.11.ffn_up"),
            "none of its 36 tensors is 'blk.11.ffn_up'; similar names: 'blk.11.ffn_up.weight', "
            "'blk.11.ffn_down.weight', 'blk.11.attn_q.weight'");
  EXPECT_NE(message("blk.12.ffn_up.weight").find("similar names: 'blk.1.ffn_up.weight', 'blk.2."),
            std::string::npos);
  EXPECT_NE(message("ffn_down").find("similar names: 'blk.0.ffn_down.weight', "),
            std::string::npos);
  EXPECT_NE(message("blk.3.fnn_up.weight").find("'blk.3.ffn_up.weight'"), std::string::npos);
  EXPECT_NE(message("").find("''; similar names: 'blk.0.attn_q.weight', "), std::string::npos);
  EXPECT_LT(message(std::string(100'000, 'b')).size(), 200U);
}

TEST_F(Gguf, NotAGgufFile) {
  EXPECT_NE(error().find("no such file"), std::string::npos);
  for (const char* bytes : {"", "GGU", "GGML and more", "\x93NUMPY"}) {
    expect_refused(std::string(bytes), "not a GGUF file: it does not begin with GGUF");
  }
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_NE(error().find("not a regular file"), std::string::npos);
}

TEST_F(Gguf, Versions) {
  for (const std::uint32_t version : {0U, 1U, 4U, 0x30003U}) {
    GgufParts parts;
    parts.version = version;
    expect_refused(parts, "version is " + std::to_string(version) + ": only 2 and 3 are supported");
  }
  GgufParts reversed;
  reversed.version = 0x03000000;
  expect_refused(reversed, "version is 50331648, with reversed bytes: the file is big-endian");
}

TEST_F(Gguf, CutShort) {
  GgufParts parts = gguf_with_all_metadata();
  parts.align(64).filled("w", {32, 2}, 2, gguf_data(36)).filled("v", {3}, 0, gguf_data(12));
  const std::string bytes = parts.bytes();
  GgufFile file = opened(parts);
  EXPECT_EQ(read(file, "v"), gguf_data(12));
  for (std::size_t length = bytes.size(); length-- > 0;) {
    std::filesystem::resize_file(path_, length);
    EXPECT_NE(error(), "no error") << length;
  }
  expect_refused(bytes.substr(0, 6), "version needs 4 bytes, the file has 2 left: it is cut short");
  expect_refused(bytes.substr(0, bytes.size() - 1),
                 "tensor 'v': 12 bytes at offset 64, but the file has 75 bytes of tensors");
}

TEST_F(Gguf, HostileCounts) {
  const std::string begin = "GGUF" + gguf_u32(3);
  for (const std::uint64_t count : {std::uint64_t{4}, std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    const std::string text = std::to_string(count);
    expect_refused(begin + gguf_u64(count) + gguf_u64(0) + std::string(100, '\0'),
                   "tensor count is " + text + ", but the file has only 100 bytes left");
    expect_refused(begin + gguf_u64(0) + gguf_u64(count) + std::string(50, '\0'),
                   "metadata count is " + text + ", but the file has only 50 bytes left");
  }
  write(begin + gguf_u64(1'048'577) + gguf_u64(0));
  std::filesystem::resize_file(path_, 40'000'000);
  EXPECT_NE(error().find("tensor count is 1048577: at most 1048576 is supported"),
            std::string::npos);
}

TEST_F(Gguf, DamagedMetadata) {
  const auto expect = [&](const std::string& entry, std::string_view reason) {
    GgufParts parts;
    parts.metadata = {entry + std::string(16, '\0')};
    expect_refused(parts, reason);
  };
  expect(gguf_string(""), "metadata 0: length of the key is 0: 1 to 65535 is possible");
  expect(gguf_string(std::string(65'536, 'x')), "metadata 0: length of the key is 65536");
  expect(gguf_u64(~std::uint64_t{0}), "length of the key is 18446744073709551615");
  expect(gguf_u64(60'000) + "x", "metadata 0: key needs 60000 bytes, the file has 17 left");
  expect(gguf_metadata("k", 13, ""), "metadata 'k': type is 13: 0 to 12 are known");
  expect(gguf_metadata("k", 0xffffffff, ""), "metadata 'k': type is 4294967295");
  expect(gguf_metadata("k", 7, "\2"), "metadata 'k': a bool is 2: 0 or 1 is possible");
  expect(gguf_metadata("k", 9, gguf_array(7, 3, "\1\1\3")), "metadata 'k': a bool is 3");
  expect(gguf_metadata("k", 8, gguf_u64(18) + "x"),
         "metadata 'k': a string needs 18 bytes, the file has 17 left");
}

TEST_F(Gguf, DamagedStringsAndArrays) {
  const auto expect = [&](unsigned type, const std::string& value, std::string_view reason) {
    GgufParts parts;
    expect_refused(parts.add("k", type, value), reason);
  };
  expect(8, gguf_u64(3) + "xy", "a string needs 3 bytes, the file has 2 left: it is cut short");
  expect(8, gguf_u64(~std::uint64_t{0}) + "x", "a string needs 18446744073709551615 bytes");
  expect(9, gguf_array(13, 0, ""), "metadata 'k': type of elements is 13: 0 to 12 are known");
  expect(9, gguf_array(10, 3, std::string(23, '\0')),
         "an array has 3 elements of type uint64, but the file has only 23 bytes left");
  for (const unsigned type : {0U, 1U, 7U, 8U, 9U, 12U}) {
    expect(9, gguf_array(type, std::uint64_t{1} << 61, "x"), "has 2305843009213693952 elements");
  }
  expect(9, gguf_array(8, 2, gguf_string("x") + gguf_u64(9) + "x"), "a string needs 9 bytes");
  std::string nested = gguf_array(0, 0, "");
  for (int i = 0; i < 4; ++i) nested = gguf_array(9, 1, nested);
  expect(9, nested, "metadata 'k': arrays are nested more than 4 deep");
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += gguf_array(9, 1, "");
  expect(9, deep + nested, "arrays are nested more than 4 deep");
}

TEST_F(Gguf, RepeatedNames) {
  expect_refused(GgufParts().add("k", 0, "x").add("l", 0, "x").add("k", 0, "x"),
                 "metadata 'k' appears twice");
  expect_refused(GgufParts().align(64).align(64), "metadata 'general.alignment' appears twice");
  GgufParts parts;
  parts.tensor("w", {0}, 0, 0).tensor("v", {0}, 0, 0).tensor("w", {0}, 0, 0);
  expect_refused(parts, "tensor 'w' appears twice");
}

TEST_F(Gguf, DamagedTensors) {
  const auto expect = [&](const std::string& entry, std::string_view reason) {
    GgufParts parts;
    parts.tensors = {entry + std::string(32, '\0')};
    expect_refused(parts, reason);
  };
  expect(gguf_string(""), "tensor 0: length of the name is 0: 1 to 65535 is possible");
  expect(gguf_string("w") + gguf_u32(0), "tensor 'w': n_dims is 0: 1 to 4 is possible");
  expect(gguf_string("w") + gguf_u32(5), "tensor 'w': n_dims is 5: 1 to 4 is possible");
  expect(gguf_string("w\n") + gguf_u32(5), "tensor 'w?': n_dims");
}

TEST_F(Gguf, SizesAndOffsets) {
  const auto expect = [&](const std::vector<std::uint64_t>& ne, unsigned type, std::uint64_t offset,
                          std::string_view reason) {
    GgufParts parts;
    parts.data = gguf_data(128);
    expect_refused(parts.tensor("w", ne, type, offset), reason);
  };
  constexpr std::uint64_t half = std::uint64_t{1} << 32, most = ~std::uint64_t{0};
  const std::string_view wraps = "more elements or bytes than 64 bits count";
  expect({half, half}, 2, 0, wraps);
  expect({half, half}, 16, 0, wraps);
  expect({256, half, half, half}, 12, 0, wraps);
  expect({half, half / 4}, 0, 0, wraps);
  expect({most}, 1, 0, "tensor 'w': ne is (18446744073709551615,): more elements or bytes");
  expect({33}, 2, 0, "blocks of Q4_0 have 32 elements, which do not divide 33");
  expect({half, half / 8}, 0, 0, "9223372036854775808 bytes at offset 0");
  expect({33}, 0, 0, "132 bytes at offset 0, but the file has 128 bytes of tensors");
  expect({9}, 0, 96, "36 bytes at offset 96, but the file has 128 bytes");
  expect({1}, 0, 33, "tensor 'w': offset is 33: a multiple of the alignment, 32, is needed");
  expect({1}, 0, 128, "4 bytes at offset 128, but the file has 128 bytes");
  expect({8}, 0, most - 31, "32 bytes at offset 18446744073709551584, but the file has 128");
  expect({8}, 16, 160, "bytes at offset 160, but the file has 128");
  GgufParts parts;
  parts.data = gguf_data(128);
  GgufFile file = opened(parts.tensor("w", {8}, 0, 96));
  EXPECT_EQ(read(file, "w"), gguf_data(128).substr(96));
  for (const std::uint64_t elements : {0U, 8U}) {
    expect_refused(GgufParts().tensor("w", {elements}, 0, 0).header(),
                   "tensors begin at byte 64, the file has 57: it is cut short");
  }
}

TEST_F(Gguf, FilesThatShrinkMeanwhile) {
  GgufParts parts;
  parts.filled("v", {2}, 0, gguf_data(8)).filled("w", {1 << 15}, 0, gguf_data(1 << 17));
  GgufFile file = opened(parts);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  EXPECT_EQ(read(file, "w"), utf8(path_) + ": tensor 'w': the data cannot be read");
  EXPECT_EQ(read(file, "v"), gguf_data(8));
}

// The file is sparse where the file system has such files.
TEST_F(Gguf, TensorsBeyond4GiB) {
  constexpr std::uint64_t offset = std::uint64_t{5} << 30;
  GgufParts parts;
  parts.tensor("far", {8}, 0, offset).tensor("large", {1 << 10, 1 << 20}, 0, 64);
  const std::string begin = parts.bytes();
  write(begin);
  std::fstream stream(path_, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(begin.size() + offset));
  stream << gguf_data(32) << std::flush;
  if (!stream) GTEST_SKIP() << "there is no place for such a file";
  GgufFile file = opened();
  EXPECT_EQ(file.header().tensors[0].offset, begin.size() + offset);
  EXPECT_EQ(file.header().tensors[1].bytes, std::uint64_t{4} << 30);
  EXPECT_EQ(read(file, "far"), gguf_data(32));
}

TEST_F(Gguf, SplitNames) {
  const auto expect = [](std::string_view text, const std::string& path,
                         const std::string& tensor) {
    EXPECT_EQ(split_gguf_name(text), (GgufName{path, tensor})) << text;
  };
  expect("model.gguf:blk.0.ffn_up.weight", "model.gguf", "blk.0.ffn_up.weight");
  expect("/a/model.gguf:w:0", "/a/model.gguf", "w:0");
  expect("C:\\models\\m.gguf:w", "C:\\models\\m.gguf", "w");
  expect("C:m.gguf:w", "C:m.gguf", "w");
  expect("old.gguf:s/model.gguf:w", "old.gguf:s/model.gguf", "w");
  expect("model.gguf:", "model.gguf", "");
  for (const char* text :
       {"", "model.gguf", "C:\\model.gguf", "model.npy:w", "gguf:w", "a.GGUF:w"}) {
    EXPECT_FALSE(split_gguf_name(text)) << text;
  }
}

}  // namespace
}  // namespace vkgemm::files
