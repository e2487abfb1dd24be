// Tests of rules that the kernels' GLSL keeps, and of their SPIR-V.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embedded/embedded.hpp"
#include "source_files.hpp"
#include "specialise/module.hpp"

namespace vkgemm {
namespace {

namespace fs = std::filesystem;

// The memory semantics of a module's control barriers.
std::vector<std::uint32_t> barrier_semantics(std::span<const std::uint32_t> words) {
  const spirv::Module module = spirv::Module::parse(words).value();
  std::vector<std::uint32_t> semantics;
  for (const spirv::Instruction& instruction : module.instructions()) {
    if (instruction.op != spv::Op::OpControlBarrier) continue;
    semantics.push_back(module.definition(instruction.operand(2))->operand(0));
  }
  return semantics;
}

// GLSL without its comments: blanks replace them, and lines stay lines.
std::string without_comments(std::string text) {
  for (std::size_t at = 0; at + 1 < text.size(); ++at) {
    const std::string_view begin = std::string_view(text).substr(at, 2);
    if (begin != "//" && begin != "/*") continue;
    const bool is_line = begin == "//";
    std::size_t end = text.find(is_line ? "\n" : "*/", at + 2);
    end = end == std::string::npos ? text.size() : is_line ? end : end + 2;
    for (; at < end; ++at) {
      if (text[at] != '\n') text[at] = ' ';
    }
    --at;
  }
  return text;
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The numbers of the lines where the keyword `out` is.
std::vector<std::size_t> lines_with_out(const std::string& glsl) {
  constexpr std::string_view keyword = "out";
  const std::string text = without_comments(glsl);
  std::vector<std::size_t> lines;
  for (std::size_t at = text.find(keyword); at != std::string::npos;
       at = text.find(keyword, at + keyword.size())) {
    const std::size_t end = at + keyword.size();
    if (at != 0 && is_word_character(text[at - 1])) continue;
    if (end != text.size() && is_word_character(text[end])) continue;
    lines.push_back(static_cast<std::size_t>(std::count(
                        text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
                    1);
  }
  return lines;
}

// A function that leaves a part of an `out` parameter unwritten makes the caller's value of that
// part undefined. Optimisers hide this error, so shaders have no such parameters
// (shaders/README.md).
TEST(Shaders, HaveNoOutParameters) {
  const fs::path folder = test::source_folder() / ".." / "shaders";
  std::size_t files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path extension = entry.path().extension();
    if (extension != ".comp" && extension != ".glsl" && extension != ".h") continue;
    ++files;
    for (const std::size_t line : lines_with_out(test::read_source(entry.path()))) {
      ADD_FAILURE() << "shaders/" << fs::relative(entry.path(), folder).generic_string() << ":"
                    << line << ": an out parameter; inout keeps what the function doesn't write";
    }
  }
  EXPECT_GT(files, 50u);
}

TEST(Shaders, OutParametersAreSeen) {
  const auto lines = [](const char* glsl) { return lines_with_out(glsl); };
  using Lines = std::vector<std::size_t>;
  EXPECT_EQ(lines("void f(out Acc acc) {}"), Lines{1});
  EXPECT_EQ(lines("// out\n/* out\n */ void f(const uint n,\n  out uint all);"), Lines{4});
  EXPECT_EQ(lines("#define F(x) void f(out x y)\nvoid g(highp out\tfloat v);"), (Lines{1, 2}));
  EXPECT_EQ(lines("void f(inout Acc acc, float out_, uint without) { a/b; }  // out"), Lines{});
  EXPECT_EQ(lines("out"), Lines{1});
}

// D may be C, and another invocation may hold the element that this one has read: the barrier
// between them is one of buffers, which a plain barrier() is not.
TEST(Shaders, NvReadsAllOfCBeforeItStoresD) {
  constexpr std::uint32_t acquire_release = 0x8, buffers = 0x40;
  std::size_t modules = 0;
  for (const embedded::Module& module : embedded::modules()) {
    if (!std::string_view(module.name).starts_with("gemm_nv_")) continue;
    ++modules;
    const std::vector<std::uint32_t> words = embedded::spirv(module);
    EXPECT_TRUE(std::ranges::any_of(barrier_semantics(words), [](std::uint32_t semantics) {
      return (semantics & acquire_release) != 0 && (semantics & buffers) != 0;
    })) << module.name;
  }
  EXPECT_GT(modules, 0u);
}

}  // namespace
}  // namespace vkgemm
