// Tests files of tuning tables: read, refused with line and field, and loaded before the built-in
// tables.
#include "tuning/table_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/json.hpp"
#include "base/text.hpp"
#include "test_devices.hpp"
#include "tuning/device_tables.hpp"

namespace vkgemm {
namespace {

using test::contains;
using test::gemm;
using test::large_tile;
using test::resolved;
using test::small_tile;

TEST(JsonLines, FindValues) {
  const std::string_view text =
      "{\n \"rows\": [\n  {\"a\": 1},\n  {\"a\":\n 2, \"b\": [3,\n 4]}\n ],\n \"x\": 5\n}";
  EXPECT_EQ(line_of(text, "rows"), 2u);
  EXPECT_EQ(line_of(text, "rows[0].a"), 3u);
  EXPECT_EQ(line_of(text, "rows[1].a"), 4u);  // where the key stands
  EXPECT_EQ(line_of(text, "rows[1].b"), 5u);
  EXPECT_EQ(line_of(text, "rows[1].b[1]"), 6u);
  EXPECT_EQ(line_of(text, "rows[1].missing"), 4u);
  EXPECT_EQ(line_of(text, "rows[10].a"), 2u);  // not rows[1]
  EXPECT_EQ(line_of(text, "x"), 8u);
  EXPECT_EQ(line_of(text, ""), 1u);
  EXPECT_EQ(line_of("", "x"), 1u);
}

class TuningFile : public testing::Test {
 protected:
  std::filesystem::path write(std::string_view name, std::string_view text) {
    const auto path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }
  ~TuningFile() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string table(std::string_view architecture, std::string_view config,
                    std::string_view more = "") {
    return concat(R"({"architecture": ")", architecture, "\"", more, R"(,
 "rows": [],
 "tuned": [
  {"family": "gemm", "input_type": "f16", "a_layout": "row_major", "b_layout": "row_major",
   "aligned": true, "m": 4096, "n": 4096, "k": 4096,
   "config": ")",
                  config, R"(", "microseconds": 441.5,
   "provenance": "measured: here"}]})");
  }

  std::filesystem::path folder_ = [] {
    auto path =
        std::filesystem::temp_directory_path() / ("vkgemm_tuning_" + std::to_string(getpid()));
    std::filesystem::create_directories(path);
    return path;
  }();
};

TEST_F(TuningFile, IsRead) {
  const auto path = write("good.json", table("nvidia_sm90", small_tile));
  const auto loaded = load_tables({.file = path}, test::h200());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE(loaded->warnings.empty());
  ASSERT_EQ(loaded->tables.size(), 1u);
  const TuningTable& read = loaded->tables[0];
  EXPECT_EQ(read.source, path.string());
  ASSERT_EQ(read.tuned.size(), 1u);
  EXPECT_EQ(read.tuned[0].problem, tuned_problem(resolved(gemm(4096, 4096, 4096))));
  EXPECT_NEAR(read.tuned[0].row.rate, 311.3, 0.1);
  // The device's own model, since the file has none.
  EXPECT_EQ(read.timing.provenance, built_in_table("nvidia_sm90").timing.provenance);
  EXPECT_EQ(to_string(DeviceTables(test::h200(), {read})
                          .best(resolved(gemm(4096, 4096, 4096)), test::h200())
                          ->config),
            small_tile);
}

TEST_F(TuningFile, ErrorsNameFileLineAndField) {
  const std::string good = table("nvidia_sm90", small_tile);
  const auto replaced = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  const std::pair<std::string, std::string_view> cases[] = {
      {replaced("\"m\": 4096", "\"m\": 0"), "line 5: tuned[0].m is '0'"},
      {replaced("\"m\": 4096, ", ""), "line 4: tuned[0].m is missing"},
      {replaced("\"k\": 4096", "\"k\": -1"), "line 5: tuned[0].k is '-1'"},
      {replaced("441.5", "0"), "line 6: tuned[0].microseconds is '0'"},
      {replaced("\"gemm\"", "\"conv\""), "line 4: tuned[0].family is 'conv'"},
      {replaced("true", "1"), "line 5: tuned[0].aligned is number"},
      {replaced("khr:", "cuda:"), "line 6: tuned[0].config: configuration"},
      {replaced("measured: here", "quick"), "line 7: tuned[0].provenance is 'quick'"},
      {replaced("\"aligned\"", "\"epilogue\": \"d\", \"aligned\""), "line 5: tuned[0].epilogue"},
      {replaced("\"aligned\"", "\"d_type\": \"f8\", \"aligned\""),
       "line 5: tuned[0].d_type is 'f8'"},
      {replaced("\"aligned\"", "\"f32_arithmetic\": \"tf32\", \"aligned\""),
       "line 5: tuned[0].f32_arithmetic is 'tf32'"},
      {replaced("\"aligned\"", "\"complete\": 0, \"aligned\""),
       "line 5: tuned[0].complete is number"},
      {replaced("\"rows\": []",
                R"("rows": [], "denied": [{"config": "fma:tile=32x32x16,fragment=4x4",
                "verdict": "bad", "reason": "x"}])"),
       "line 3: denied[0].verdict is 'bad'"},
      {replaced("\"tuned\"", "\"tuna\""), "line 3: unknown key 'tuna'"},
      {replaced("\"n\"", "\"m\""), "line 5: key 'm' appears twice"},
      {replaced("\"rows\": []", "\"rows\": [3]"), "line 2: rows[0] is number"},
      {replaced("}]}", "}"), "line 7"},
      {good.substr(0, 200), "line 5"},
  };
  for (const auto& [text, expected] : cases) {
    const auto path = write("bad.json", text);
    const auto loaded = load_tables({.file = path}, test::h200());
    ASSERT_FALSE(loaded) << text;
    EXPECT_EQ(loaded.error().status, Status::invalid_argument);
    EXPECT_TRUE(contains(loaded.error().message, path.string())) << loaded.error().message;
    EXPECT_TRUE(contains(loaded.error().message, expected))
        << expected << ": " << loaded.error().message;
    // The variable's file is left out, with the same words.
    const auto variable = load_tables({.variable = path.string()}, test::h200());
    ASSERT_TRUE(variable);
    EXPECT_TRUE(variable->tables.empty());
    ASSERT_EQ(variable->warnings.size(), 1u);
    EXPECT_TRUE(contains(variable->warnings[0], expected)) << variable->warnings[0];
    EXPECT_TRUE(contains(variable->warnings[0], "VKGEMM_TUNING is left out"));
  }
}

TEST_F(TuningFile, WhatIsNoFileForThisDevice) {
  const DeviceCaps h200 = test::h200();
  const auto refused = [&](const std::filesystem::path& path, Status status,
                           std::string_view text) {
    const auto loaded = load_tables({.file = path}, h200);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().status, status);
    EXPECT_TRUE(contains(loaded.error().message, text)) << loaded.error().message;
  };
  refused(folder_ / "none.json", Status::io_error, "none.json: ");
  refused(folder_, Status::io_error, "is no file");
#ifndef _WIN32
  refused("/dev/zero", Status::io_error, "is no file");
#endif
  refused(write("rdna.json", table("amd_rdna3", small_tile)), Status::invalid_argument,
          "architecture is 'amd_rdna3', NVIDIA H200 is 'nvidia_sm90'");
  std::filesystem::resize_file(write("long.json", "{"), longest_tuning_table + 1);
  refused(folder_ / "long.json", Status::io_error, "long.json: more than 16777216 bytes");
  std::string rows = R"({"architecture":"nvidia_sm90","rows":[0)";
  for (int i = 0; i < 5000; ++i) rows += ",0";
  refused(write("many.json", rows + "]}"), Status::invalid_argument, "rows has 5001 elements");

  const auto path =
      write("h100.json", table("nvidia_sm90", small_tile, R"(, "device": "NVIDIA H100")"));
  const auto loaded = load_tables({.file = path}, h200);
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->warnings.size(), 1u);
  EXPECT_TRUE(contains(loaded->warnings[0], "'NVIDIA H100', this is 'NVIDIA H200'"));
}

TEST_F(TuningFile, TheVariableComesFirst) {
  const auto small = write("small.json", table("nvidia_sm90", small_tile));
  const auto large = write("large.json", table("nvidia_sm90", large_tile));
  const auto chosen = [&](const std::filesystem::path& file, const std::string& variable) {
    auto loaded = load_tables({.variable = variable, .file = file}, test::h200());
    EXPECT_TRUE(loaded);
    const DeviceTables tables(test::h200(), std::move(loaded->tables));
    return to_string(tables.best(resolved(gemm(4096, 4096, 4096)), test::h200())->config);
  };
  EXPECT_EQ(chosen(small, ""), small_tile);
  EXPECT_EQ(chosen({}, small.string()), small_tile);
  EXPECT_EQ(chosen(large, small.string()), small_tile);
  EXPECT_EQ(chosen(small, large.string()), large_tile);
  EXPECT_EQ(chosen(small, (folder_ / "none.json").string()), small_tile);
}

}  // namespace
}  // namespace vkgemm
