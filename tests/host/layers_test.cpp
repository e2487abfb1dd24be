// The layers of src/: src/README.md says which folder may include which, and this holds the code to
// it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "source_files.hpp"

namespace vkgemm {
namespace {

namespace fs = std::filesystem;

using test::read_source;
using test::source_folder;

// "a ← b ← c" behind each of these words, in one list.
std::vector<std::string> layers_of(const std::string& readme) {
  std::vector<std::string> layers;
  for (const char* const label : {"library:", "apart:"}) {
    const std::size_t begin = readme.find(label);
    if (begin == std::string::npos) return {};
    const std::string line = readme.substr(begin, readme.find('\n', begin) - begin);
    const std::regex name("[a-z_]+(?!:|[a-z_])");
    std::copy(std::sregex_token_iterator(line.begin(), line.end(), name),
              std::sregex_token_iterator(), std::back_inserter(layers));
  }
  return layers;
}

struct Include {
  std::string from, to;  // as includes are written: "kernels/legality.cpp"
};

// False for an include that hides where it leads: "rows.hpp", "../runtime/plan.hpp". Known are
// files below src/ by their whole path; and, left of all folders, the API, headers of the shaders,
// and files that the build writes.
bool is_known(const fs::path& folder, const std::string& to) {
  if (fs::path(to).lexically_normal() != fs::path(to)) return false;
  return to.starts_with("vkgemm/") || to.starts_with("lib/") || to == "commit.hpp" ||
         (to.find('/') != std::string::npos && fs::exists(folder / to));
}

std::vector<Include> includes_below(const fs::path& folder) {
  std::vector<Include> includes;
  const std::regex include("# *include *([\"<])([^\">]+)");
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".hpp") continue;
    const std::string text = read_source(entry.path());
    for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end;
         ++match) {
      const std::string to = (*match)[2];
      if ((*match)[1] == "<" && !fs::exists(folder / to)) continue;  // no file of ours
      includes.push_back({fs::relative(entry.path(), folder).generic_string(), to});
    }
  }
  return includes;
}

// Includes between folders that run from a layer to a later one, and circles of files, where a
// .cpp and its .hpp are one.
std::vector<std::string> violations(const std::vector<Include>& includes,
                                    const std::vector<std::string>& layers) {
  std::vector<std::string> found;
  std::map<std::string, std::set<std::string>> graph;
  const auto layer = [&](const std::string& file) {
    return std::ranges::find(layers, file.substr(0, file.find('/'))) - layers.begin();
  };
  for (const Include& include : includes) {
    if (include.from.find('/') == std::string::npos) continue;  // a tool of the build
    if (std::ranges::find(layers, include.to.substr(0, include.to.find('/'))) == layers.end()) {
      continue;  // left of all
    }
    if (layer(include.to) > layer(include.from)) {
      found.push_back(include.from + " includes " + include.to + ", which stands right of it");
    }
    const std::string from = fs::path(include.from).replace_extension().generic_string();
    const std::string to = fs::path(include.to).replace_extension().generic_string();
    if (from != to) graph[from].insert(to);
  }
  enum class State { unseen, open, done };
  std::map<std::string, State> states;
  std::vector<std::string> path;
  const std::function<void(const std::string&)> visit = [&](const std::string& file) {
    states[file] = State::open;
    path.push_back(file);
    for (const std::string& next : graph[file]) {
      if (states[next] == State::unseen) visit(next);
      if (states[next] != State::open) continue;
      std::string circle;
      for (auto at = std::ranges::find(path, next); at != path.end(); ++at) circle += *at + " → ";
      found.push_back("a circle: " + circle + next);
    }
    path.pop_back();
    states[file] = State::done;
  };
  const auto files = graph;
  for (const auto& [file, included] : files) {
    if (states[file] == State::unseen) visit(file);
  }
  return found;
}

TEST(Layers, RunOneWay) {
  const std::vector<std::string> layers = layers_of(read_source(source_folder() / "README.md"));
  ASSERT_GE(layers.size(), 10u) << "the diagram is not found in " << source_folder() / "README.md";
  for (const std::string& layer : layers) {
    EXPECT_TRUE(fs::is_directory(source_folder() / layer)) << layer;
  }
  const std::vector<Include> includes = includes_below(source_folder());
  EXPECT_GT(includes.size(), 200u);
  for (const Include& include : includes) {
    EXPECT_TRUE(is_known(source_folder(), include.to))
        << include.from << " includes " << include.to << ": written as src/ sees it?";
    const std::string folder = include.from.substr(0, include.from.find('/'));
    if (folder == include.from) continue;
    EXPECT_NE(std::ranges::find(layers, folder), layers.end()) << folder << " is in no layer";
  }
  for (const std::string& violation : violations(includes, layers)) ADD_FAILURE() << violation;
}

TEST(Layers, IncludesThatHideAreSeen) {
  for (const char* const to : {"base/text.hpp", "vkgemm/config.hpp", "lib/abi.h", "commit.hpp"}) {
    EXPECT_TRUE(is_known(source_folder(), to)) << to;
  }
  for (const char* const to : {"text.hpp", "../base/text.hpp", "base/../base/text.hpp",
                               "base/none.hpp", "CMakeLists.txt"}) {
    EXPECT_FALSE(is_known(source_folder(), to)) << to;
  }
}

TEST(Layers, ViolationsAreSeen) {
  const std::vector<std::string> layers{"base", "top"};
  EXPECT_TRUE(
      violations({{"top/a.cpp", "base/b.hpp"}, {"top/a.cpp", "top/a.hpp"}}, layers).empty());
  EXPECT_EQ(violations({{"base/b.cpp", "top/a.hpp"}}, layers).size(), 1u);
  EXPECT_EQ(violations({{"top/a.cpp", "top/b.hpp"}, {"top/b.cpp", "top/a.hpp"}}, layers).size(),
            1u);
}

}  // namespace
}  // namespace vkgemm
