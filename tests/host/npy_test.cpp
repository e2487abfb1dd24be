// .npy files: what is written reads back, what NumPy writes is read, and every kind of malformed
// file is an error that says what is wrong.
#include "files/npy.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>

namespace vkgemm::files {
namespace {

class Npy : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::path(testing::TempDir()) / ("vkgemm_npy_" + std::string(test->name()));
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "x.npy";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write_bytes(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
  }

  // A file of version `major` with this header and this many bytes of data.
  void write_file(const std::string& header, std::size_t data_bytes, int major = 1) {
    std::string bytes = "\x93NUMPY";
    bytes += static_cast<char>(major);
    bytes += '\0';
    const std::size_t length = header.size();
    for (int i = 0; i < (major == 1 ? 2 : 4); ++i) {
      bytes += static_cast<char>((length >> (8 * i)) & 0xff);
    }
    write_bytes(bytes + header + std::string(data_bytes, '\0'));
  }

  std::string error(const NpyReadOptions& options = {}) {
    auto array = read_npy(path_, options);
    if (array) return "no error";
    EXPECT_EQ(array.error().status, Status::io_error);
    EXPECT_NE(array.error().message.find(path_.string()), std::string::npos);
    return array.error().message;
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
};

#define EXPECT_ERROR(text) EXPECT_NE(error().find(text), std::string::npos) << error()

NpyArray make_array(DataType type, std::vector<std::uint64_t> shape) {
  NpyArray array;
  array.type = type;
  array.shape = std::move(shape);
  std::uint64_t bytes = size_in_bytes(type);
  for (const std::uint64_t dimension : array.shape) bytes *= dimension;
  array.data.resize(bytes);
  for (std::size_t i = 0; i < array.data.size(); ++i) array.data[i] = static_cast<std::byte>(i);
  return array;
}

TEST_F(Npy, RoundTrip) {
  for (const DataType type :
       {DataType::f16, DataType::bf16, DataType::f32, DataType::s8, DataType::s32, DataType::u8}) {
    for (const auto& shape :
         std::vector<std::vector<std::uint64_t>>{{5}, {3, 4}, {2, 3, 4}, {0}, {0, 7}, {1, 1, 1}}) {
      NpyArray written = make_array(type, shape);
      written.fortran_order = shape.size() == 2;
      ASSERT_TRUE(write_npy(path_, written));
      auto read = read_npy(path_, {.uint16_is_bf16 = true});
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(read->type, type);
      EXPECT_EQ(read->shape, shape);
      EXPECT_EQ(read->fortran_order, written.fortran_order);
      EXPECT_EQ(read->data, written.data);
    }
  }
}

TEST_F(Npy, DataIsAlignedAndNothingElseIsLeftBehind) {
  ASSERT_TRUE(write_npy(path_, make_array(DataType::f32, {3})));
  EXPECT_EQ((std::filesystem::file_size(path_) - 12) % 64, 0U);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 1);
}

TEST_F(Npy, ReadsAllVersionsAndSpellings) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n";
  for (const int major : {1, 2, 3}) {
    write_file(header, 24, major);
    auto array = read_npy(path_);
    ASSERT_TRUE(array) << array.error().message;
    EXPECT_EQ(array->shape, (std::vector<std::uint64_t>{2, 3}));
  }
  write_file("{\"shape\":(6L,),\"fortran_order\":True,\"descr\":\"<f2\"}\n", 12);
  auto array = read_npy(path_);
  ASSERT_TRUE(array) << array.error().message;
  EXPECT_TRUE(array->fortran_order);
  EXPECT_EQ(array->type, DataType::f16);
}

TEST_F(Npy, NotANpyFile) {
  EXPECT_ERROR("no such file");
  write_bytes("");
  EXPECT_ERROR("does not begin with");
  write_bytes("PK\x03\x04 something else altogether");
  EXPECT_ERROR("does not begin with");
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_ERROR("not a regular file");
}

TEST_F(Npy, DamagedPrefix) {
  write_bytes(std::string("\x93NUMPY\x01", 7));
  EXPECT_ERROR("ends within the first 10 bytes");
  write_bytes(std::string("\x93NUMPY\x04\x00\x00\x00\x00\x00", 12));
  EXPECT_ERROR("version 4.0");
  write_bytes(std::string("\x93NUMPY\x01\x07\x00\x00", 10));
  EXPECT_ERROR("version 1.7");
  write_bytes(std::string("\x93NUMPY\x02\x00\x10\x00", 10));
  EXPECT_ERROR("ends within the header's length");
  write_bytes(std::string("\x93NUMPY\x01\x00\x76\x00{'descr'", 18));
  EXPECT_ERROR("should have 118 bytes, the file has 8 left");
  write_bytes(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14));
  EXPECT_ERROR("should have 4294967295 bytes");
  write_file(std::string(100000, ' '), 0, 2);
  EXPECT_ERROR("claims 100000 bytes");
}

TEST_F(Npy, DamagedHeader) {
  const auto expect = [&](const std::string& header, const std::string& message) {
    write_file(header, 24);
    EXPECT_ERROR(message) << " for " << header;
  };
  const std::string good = "'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)";
  expect("", "expected '{'");
  expect("[1, 2]", "expected '{'");
  expect("{" + good, "expected ',' or '}'");
  expect("{" + good + "} x", "expected nothing after '}'");
  expect("{" + good + ", 'extra': 1}", "unknown key 'extra'");
  expect("{" + good + ", 'shape': (2, 3)}", "key 'shape' stands twice");
  expect("{'descr' '<f4'}", "expected ':'");
  expect("{descr: '<f4'}", "expected a key in quotes");
  expect("{'descr: ", "expected a key in quotes");
  expect("{}", "key 'descr' is missing");
  expect("{'descr': '<f4', 'shape': (2, 3)}", "key 'fortran_order' is missing");
  expect("{'descr': '<f4', 'fortran_order': False}", "key 'shape' is missing");
  expect("{'descr': [('x', '<f4')], ", "no structured types");
  expect("{'descr': '<f4', 'fortran_order': 0,", "expected True or False");
  expect("{'descr': '<f4', 'shape': 6}", "expected '('");
  expect("{'descr': '<f4', 'shape': (2 3)}", "expected ',' or ')'");
  expect("{'descr': '<f4', 'shape': (two,)}", "expected a dimension");
  expect("{'descr': '<f4', 'shape': (2,", "expected a dimension");
  expect("{'descr': '<f4', 'shape': (-1, 3)}", "negative dimension");
  expect("{'descr': '<f4', 'shape': (18446744073709551616,)}", "beyond 64 bits");
  expect(std::string("{'descr': '<f4'\0}", 17), "expected ',' or '}'");
}

TEST_F(Npy, UnsupportedTypes) {
  const auto header = [](const std::string& descr) {
    return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (6,)}\n";
  };
  write_file(header(">f4"), 24);
  EXPECT_ERROR("big-endian");
  for (const char* descr : {"<f8", "<i2", "|b1", "|O", "", "<f44"}) {
    write_file(header(descr), 24);
    EXPECT_ERROR("is not supported");
  }
  write_file(header("<u2"), 12);
  EXPECT_ERROR("--bf16");
  EXPECT_EQ(error({.uint16_is_bf16 = true}), "no error");
}

TEST_F(Npy, ShapeAgainstData) {
  const auto header = [](const std::string& shape) {
    return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}\n";
  };
  write_file(header("(2, 3)"), 23);
  EXPECT_ERROR("needs 24 bytes of data, the file has 23: it is cut short");
  write_file(header("(2, 3)"), 25);
  EXPECT_ERROR("something stands after the data");
  write_file(header("()"), 4);
  EXPECT_ERROR("0 dimensions");
  write_file(header("(1, 1, 1, 1)"), 4);
  EXPECT_ERROR("4 dimensions");
  write_file(header("(4611686018427387904,)"), 0);
  EXPECT_ERROR("more bytes than 64 bits count");
  write_file(header("(4294967296, 4294967296, 4)"), 0);
  EXPECT_ERROR("more bytes than 64 bits count");
  // Claims 4 TiB; must fail without an attempt to allocate them.
  write_file(header("(1048576, 1048576)"), 100);
  EXPECT_ERROR("the file has 100");
}

TEST_F(Npy, WritingFails) {
  NpyArray wrong = make_array(DataType::f32, {3});
  wrong.shape = {4};
  auto written = write_npy(path_, wrong);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().status, Status::invalid_argument);

  written = write_npy(folder_ / "nowhere" / "x.npy", make_array(DataType::f32, {3}));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().status, Status::io_error);
  EXPECT_NE(written.error().message.find("cannot be written"), std::string::npos);
}

TEST_F(Npy, Offsets) {
  const auto offsets = [&](const std::string& header, const std::string& data) {
    write_file(header, 0);
    std::ofstream(path_, std::ios::binary | std::ios::app) << data;
    return read_npy_offsets(path_);
  };
  const std::string four("\x02\0\0\0\xff\xff\xff\xff", 8);
  const auto narrow = offsets("{'descr': '<i4', 'fortran_order': False, 'shape': (2,)}", four);
  ASSERT_TRUE(narrow) << narrow.error().message;
  EXPECT_EQ(narrow->type, OffsetType::int32);
  EXPECT_EQ(narrow->values, (std::vector<std::int64_t>{2, -1}));
  const auto wide = offsets("{'descr': '<i8', 'fortran_order': False, 'shape': (1,)}", four);
  ASSERT_TRUE(wide) << wide.error().message;
  EXPECT_EQ(wide->type, OffsetType::int64);
  EXPECT_EQ(wide->values, (std::vector<std::int64_t>{-4294967294}));
  const auto expect_error = [&](const std::string& header, const char* part) {
    const auto read = offsets(header, four);
    ASSERT_FALSE(read) << header;
    EXPECT_EQ(read.error().status, Status::io_error);
    EXPECT_NE(read.error().message.find(part), std::string::npos) << read.error().message;
  };
  expect_error("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "descr '<f4'");
  expect_error("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}", "needs 12 bytes");
  expect_error("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2)}",
               "shape (1, 2): offsets have one dimension");
}

}  // namespace
}  // namespace vkgemm::files
