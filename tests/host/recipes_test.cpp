// Tests that the recipes of src/RECIPES.md are true: each names the files whose code names its
// sample, and no others.
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/quantised.h"
#include "lib/types.h"
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

const std::filesystem::path& root() {
  static const std::filesystem::path folder = test::source_folder().parent_path();
  return folder;
}

// Calls visit(file, code) for the files of these folders, by their names from the root, but for the
// Python package.
template <class Visit>
void for_each_file(std::initializer_list<const char*> folders, const Visit& visit) {
  const std::set<std::string> suffixes = {".cpp", ".hpp", ".h", ".glsl", ".comp", ".txt", ".cmake"};
  for (const char* folder : folders) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root() / folder)) {
      const std::string file = entry.path().lexically_relative(root()).generic_string();
      if (!suffixes.contains(entry.path().extension().string()) || file.starts_with("src/python"))
        continue;
      visit(file, code_of(read(entry.path())));
    }
  }
}

struct Recipe {
  std::string name;
  std::regex pattern;
  std::set<std::string> files;
};

std::vector<Recipe> recipes() {
  std::ifstream page(root() / "src/RECIPES.md");
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
  const std::vector<Recipe> all = recipes();
  ASSERT_GE(all.size(), 7u);
  std::vector<std::set<std::string>> found(all.size());
  for_each_file({"include", "shaders", "src"},
                [&](const std::string& file, const std::string& code) {
                  for (std::size_t i = 0; i < all.size(); ++i) {
                    if (std::regex_search(code, all[i].pattern)) found[i].insert(file);
                  }
                });
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(found[i], all[i].files) << all[i].name;
}

// Files of the library whose code names an element type or a type of codes, besides the inputs'. A
// format is known to few.
TEST(Recipes, FewFilesKnowFormats) {
#define VKGEMM_OR(name, ...) "|" #name
  const std::regex formats("\\b(DataType::(0" VKGEMM_TYPES(
      VKGEMM_OR) ")|CodeType::(0" VKGEMM_CODE_TYPES(VKGEMM_OR) "))\\b");
#undef VKGEMM_OR
  const std::regex apart("src/(problem/inputs|report|oracle|files|headless|tuner|tool)/.*");
  std::set<std::string> found;
  for_each_file({"include", "src"}, [&](const std::string& file, const std::string& code) {
    if (!std::regex_match(file, apart) && std::regex_search(code, formats)) found.insert(file);
  });
  EXPECT_EQ(found, (std::set<std::string>{
                       "include/vkgemm/device.hpp",         // defaults
                       "include/vkgemm/epilogue.hpp",       // a default
                       "include/vkgemm/matrix.hpp",         // the enumerations, defaults
                       "include/vkgemm/problem.hpp",        // defaults
                       "include/vkgemm/self_test.hpp",      // a default
                       "src/kernels/loops/khr_direct.cpp",  // what fragments hold
                       "src/kernels/loops/nv.cpp",          // results as whole matrices
                       "src/kernels/parts/quantised.cpp",   // the name of a family's variant
                       "src/kernels/parts/rows.cpp",        // values between passes are f32
                       "src/problem/data_type.hpp",         // the rows
                       "src/problem/operands.cpp",          // scales are f32
                       "src/problem/resolved_problem.cpp",  // a message
                       "src/self_test/exact_product.cpp",   // numbers that a type holds exactly
                       "src/self_test/self_test.cpp",       // which codes are tried
                   }));
}

}  // namespace
}  // namespace vkgemm
