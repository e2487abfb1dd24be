// Tests that the recipes of src/RECIPES.md are true: each names the files whose code names its
// sample, and no others.
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "source_files.hpp"

namespace vkgemm {
namespace {

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The code of a file, without comments and texts.
std::string code_of(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto skip_to = [&](std::string_view end) {
      const std::size_t found = text.find(end, i + 1);
      i = found == std::string::npos ? text.size() : found + end.size();
    };
    if (text.compare(i, 2, "//") == 0) {
      skip_to("\n");
    } else if (text.compare(i, 2, "/*") == 0) {
      skip_to("*/");
    } else if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i) {
        if (text[i] == '\\') ++i;
      }
      ++i;
    } else {
      out += text[i++];
    }
  }
  return out;
}

struct Recipe {
  std::string name;
  std::regex pattern;
  std::set<std::string> files;
};

std::vector<Recipe> recipes(const std::filesystem::path& root) {
  std::ifstream page(root / "src/RECIPES.md");
  const std::regex heading("## (.*)"), sample(".*Pattern: `(.*)`"), row(R"(\| `([^`]+)` \|.*)");
  std::vector<Recipe> out;
  std::smatch match;
  for (std::string line; std::getline(page, line);) {
    if (std::regex_match(line, match, heading)) out.push_back({.name = match[1]});
    if (out.empty()) continue;
    if (std::regex_match(line, match, sample)) out.back().pattern = match[1].str();
    if (std::regex_match(line, match, row)) out.back().files.insert(match[1]);
  }
  return out;
}

TEST(Recipes, NameTheFilesOfTheirSamples) {
  const std::set<std::string> suffixes = {".cpp", ".hpp", ".h", ".glsl", ".comp", ".txt", ".cmake"};
  const std::filesystem::path root = test::source_folder().parent_path();
  const std::vector<Recipe> all = recipes(root);
  ASSERT_GE(all.size(), 7u);
  std::vector<std::set<std::string>> found(all.size());
  for (const char* folder : {"include", "shaders", "src"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string file = entry.path().lexically_relative(root).generic_string();
      if (!suffixes.contains(entry.path().extension().string()) || file.starts_with("src/python"))
        continue;
      const std::string code = code_of(read(entry.path()));
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (std::regex_search(code, all[i].pattern)) found[i].insert(file);
      }
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(found[i], all[i].files) << all[i].name;
}

}  // namespace
}  // namespace vkgemm
