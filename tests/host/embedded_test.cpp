// Tests of the embedded files: each module decompresses, and the decoder exports no symbols.
#include "embedded/embedded.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embedded/zstd.hpp"
#include "specialise/module.hpp"

namespace {
int own_calls = 0;
}
#ifndef VKGEMM_SYSTEM_ZSTD
// An application may define or link zstd. These definitions must neither clash nor be called.
extern "C" {
std::size_t ZSTD_decompress(void*, std::size_t, const void*, std::size_t);
std::size_t ZSTD_decompress(void*, std::size_t, const void*, std::size_t) {
  ++own_calls;
  return 0;
}
unsigned ZSTD_isError(std::size_t);
unsigned ZSTD_isError(std::size_t) {
  ++own_calls;
  return 0;
}
}
#endif

namespace vkgemm {
namespace {

// The name of a module's entry point.
std::string entry_point(const std::vector<std::uint32_t>& words) {
  const auto module = spirv::Module::parse(words);
  if (!module) return module.error().message;
  const auto found =
      std::ranges::find(module->instructions(), spv::Op::OpEntryPoint, &spirv::Instruction::op);
  return std::string(spirv::read_text(found->operands.subspan(2)));
}

TEST(Embedded, ModulesAreSpirvWithTheirNames) {
  EXPECT_FALSE(embedded::modules().empty());
  double slowest_ms = 0.0;
  for (const embedded::Module& module : embedded::modules()) {
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<std::uint32_t> words = embedded::spirv(module);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    slowest_ms = std::max(slowest_ms, took.count());
    ASSERT_EQ(words.size() * sizeof(std::uint32_t), module.bytes) << module.name;
    ASSERT_EQ(words.at(0), 0x07230203u) << module.name;
    EXPECT_EQ(entry_point(words), module.name);
    EXPECT_EQ(embedded::find_module(module.name), &module);
    EXPECT_EQ(module.name.data()[module.name.size()], '\0');
  }
  EXPECT_EQ(embedded::find_module("none"), nullptr);
  EXPECT_EQ(own_calls, 0) << "the decoder calls the application's zstd";
  RecordProperty("slowest_ms", std::to_string(slowest_ms));
  std::printf("slowest module: %.2f ms\n", slowest_ms);
}

// Every application carries all modules and tables: 2.84 MB on 2026-11-29.
TEST(Embedded, IsSmall) {
  std::set<const embedded::Frame*> frames;
  for (const embedded::Module& module : embedded::modules()) frames.insert(&module.frame);
  for (const embedded::File& table : embedded::tables()) frames.insert(&table.frame);
  std::size_t compressed = 0, bytes = 0;
  for (const embedded::Frame* frame : frames) {
    compressed += frame->compressed_bytes;
    bytes += frame->bytes;
  }
  std::printf("%zu modules, %zu frames, %zu bytes, compressed %zu\n", embedded::modules().size(),
              frames.size(), bytes, compressed);
  EXPECT_LE(compressed, std::size_t{VKGEMM_MOST_EMBEDDED_BYTES});
}

TEST(Embedded, DigestNamesAllModules) {
  EXPECT_EQ(embedded::digest().size(), 64u);
  EXPECT_EQ(embedded::digest().find_first_not_of("0123456789abcdef"), std::string_view::npos);
}

TEST(Embedded, NothingIsLeftOutOfWhatIsBuiltIn) {
  for (const embedded::Module& module : embedded::modules()) {
    EXPECT_EQ(embedded::why_left_out(module.name), "") << module.name;
  }
  EXPECT_EQ(embedded::why_left_out("none"), "");
}

TEST(Embedded, DamagedFramesAreRefused) {
  const embedded::Frame& frame = embedded::known_drivers().frame;
  const std::span words(frame.data, frame.compressed_bytes / sizeof(std::uint64_t) + 1);
  const std::span whole = std::as_bytes(words).first(frame.compressed_bytes);
  std::vector<std::byte> out(frame.bytes);
  EXPECT_TRUE(embedded::decompress(whole, out, frame.bytes));
  EXPECT_TRUE(embedded::decompress(whole, out, 1));
  EXPECT_FALSE(embedded::decompress(whole.first(whole.size() / 2), out, frame.bytes));
  EXPECT_FALSE(embedded::decompress(whole.first(0), out, 1));
  EXPECT_FALSE(embedded::decompress(whole, out, frame.bytes + 1)) << "the frame is too short";
  const std::span less = std::span(out).first(frame.bytes - 1);
  EXPECT_FALSE(embedded::decompress(whole, less, frame.bytes)) << "the span is too short";
  std::vector<std::byte> damaged(whole.begin(), whole.end());
  damaged[0] ^= std::byte{1};
  EXPECT_FALSE(embedded::decompress(damaged, out, frame.bytes));
}

}  // namespace
}  // namespace vkgemm
