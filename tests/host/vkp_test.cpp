// .vkp files: what is written reads back, and every file that is cut short, foreign or altered is
// an error that names the file and the field.
#include "files/vkp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/cache_file.hpp"

namespace vkgemm::files {
namespace {

using FileBytes = std::vector<std::byte>;

PackedHeader some_header() {
  PackedHeader header{.operand = PackedOperand::b,
                      .type = DataType::bf16,
                      .width = 70,
                      .k = 71,
                      .matrices = 3,
                      .matrix_bytes = 256,
                      .device = "a card",
                      .driver = "a driver 1.2"};
  for (std::size_t i = 0; i < header.fingerprint.bytes.size(); ++i) {
    header.fingerprint.bytes[i] = static_cast<std::uint8_t>(i + 1);
  }
  return header;
}

FileBytes some_payload(std::size_t bytes = 1000) {
  FileBytes payload(bytes);
  for (std::size_t i = 0; i < bytes; ++i) payload[i] = static_cast<std::byte>(i * 7);
  return payload;
}

FileBytes some_file(const PackedHeader& header = some_header(),
                    const FileBytes& payload = some_payload()) {
  const auto begin = make_packed_header(header, payload);
  FileBytes file(begin.begin(), begin.end());
  file.insert(file.end(), payload.begin(), payload.end());
  return file;
}

std::string error(const FileBytes& file) {
  const auto parsed = parse_packed_file(file);
  if (parsed) return "no error";
  EXPECT_EQ(parsed.error().status, Status::io_error);
  return parsed.error().message;
}

// The same bytes with a hash that fits.
FileBytes hashed(FileBytes file) {
  const std::uint64_t hash = fnv1a(std::span<const std::byte>(file).subspan(32));
  for (std::size_t i = 0; i < 8; ++i) file[24 + i] = static_cast<std::byte>(hash >> (8 * i));
  return file;
}

std::string error_of_field(std::size_t offset, std::uint8_t value) {
  FileBytes file = some_file();
  file[offset] = std::byte{value};
  return error(hashed(std::move(file)));
}

TEST(Vkp, IsReadAsItWasWritten) {
  const FileBytes file = some_file(), payload = some_payload();
  const auto parsed = parse_packed_file(file);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->header, some_header());
  EXPECT_TRUE(std::ranges::equal(parsed->payload, payload));
  PackedHeader other = some_header();
  other.operand = PackedOperand::a;
  other.device.assign(400, 'x');
  const FileBytes long_name = some_file(other);
  const auto cut = parse_packed_file(long_name);
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_EQ(cut->header.operand, PackedOperand::a);
  EXPECT_EQ(cut->header.device, std::string(159, 'x'));
}

TEST(Vkp, TheHashIsThatOfTheWholeAndOfItsParts) {
  const FileBytes bytes = some_payload();
  const std::span<const std::byte> all(bytes);
  EXPECT_EQ(fnv1a(all.subspan(300), fnv1a(all.first(300))), fnv1a(all));
  EXPECT_EQ(fnv1a({}), fnv1a_of_nothing);
}

TEST(Vkp, WhatIsCutShortOrForeignIsRefused) {
  const FileBytes file = some_file();
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
    EXPECT_NE(error(FileBytes(file.begin(), file.begin() + static_cast<long>(bytes))), "no error");
  }
  EXPECT_EQ(error(FileBytes(file.begin(), file.begin() + 100)),
            "header is 100 bytes, 512 are needed: the file is cut short");
  EXPECT_EQ(error(FileBytes(file.begin(), file.end() - 1)),
            "payload is 999 bytes, the header says 1000");
  FileBytes longer = file;
  longer.push_back(std::byte{0});
  EXPECT_EQ(error(longer), "payload is 1001 bytes, the header says 1000");
  EXPECT_EQ(error({}), "not a .vkp file: it does not begin with vkgemmVP");
  EXPECT_EQ(error(some_payload()), "not a .vkp file: it does not begin with vkgemmVP");
}

TEST(Vkp, EveryFlippedBitIsSeen) {
  for (std::size_t i = 0; i < some_file().size(); ++i) {
    FileBytes file = some_file();
    file[i] ^= std::byte{0x10};
    EXPECT_NE(error(file), "no error") << "byte " << i;
  }
  FileBytes file = some_file();
  file.back() ^= std::byte{1};
  EXPECT_EQ(error(file), "hash differs: the file was altered");
}

TEST(Vkp, FieldsAreNamed) {
  EXPECT_EQ(error_of_field(8, 2), "version is 2: only 1 is known");
  EXPECT_EQ(error_of_field(12, 1), "the word behind the version is 1, not 0");
  EXPECT_EQ(error_of_field(32, 7), "operand is 7: 0 (A) or 1 (B) is needed");
  EXPECT_EQ(error_of_field(36, 2), "no error");
  const std::string types =
      "one of 0 (f16), 1 (bf16), 2 (f32), 3 (s8), 5 (u8), 6 (e4m3), 7 (e5m2) is needed";
  EXPECT_EQ(error_of_field(37, 1), "type is 257: " + types);
  EXPECT_EQ(error_of_field(36, 4), "type is 4: " + types);
  EXPECT_EQ(error_of_field(40, 0), "width is 0: from 1 to 2147483647 is possible");
  EXPECT_EQ(error_of_field(52, 1), "K is 4294967367: from 1 to 2147483647 is possible");
  EXPECT_EQ(error_of_field(56, 0), "matrices is 0: from 1 to 2147483647 is possible");
  EXPECT_EQ(error_of_field(56, 4), "payload is 1000 bytes, too few for 4 matrices of 256");
  EXPECT_EQ(error_of_field(100, 7), "byte 100 of the header is 7, not 0");
  EXPECT_EQ(error_of_field(65, 0), "payload is 1000 bytes, too few for 3 matrices of 0");
}

TEST(Vkp, FilesAreNamed) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "vkgemm_vkp_files";
  std::filesystem::create_directories(folder);
  const std::filesystem::path path = folder / "w.vkp";
  const auto message = [&] {
    const auto file = read_packed_file(path);
    return file ? std::string("no error") : file.error().message;
  };
  const auto write = [&](const FileBytes& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  };
  EXPECT_EQ(message(), path.string() + ": no such file");
  auto out = OutputFile::open(path);
  ASSERT_TRUE(out);
  ASSERT_TRUE(write_packed_file(*out, some_header(), some_payload()));
  const auto file = read_packed_file(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->header, some_header());
  EXPECT_EQ(file->payload, some_payload());
  for (const FileBytes& bytes : {FileBytes{}, some_payload(100), some_payload()}) {
    write(bytes);
    EXPECT_EQ(message(), path.string() + ": " + error(bytes));
  }
  FileBytes altered = some_file();
  altered.back() ^= std::byte{1};
  write(altered);
  EXPECT_EQ(message(), path.string() + ": hash differs: the file was altered");
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(is_packed_file("x/w.vkp"));
  EXPECT_FALSE(is_packed_file("x.vkp/w.npy"));
}

}  // namespace
}  // namespace vkgemm::files
