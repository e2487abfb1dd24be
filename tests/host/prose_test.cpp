// Tests the rules for prose that a program can check, on pages and public headers: sentences have
// at most 30 words, begin with a noun or a verb, and hold no commit hashes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "source_files.hpp"

namespace vkgemm {
namespace {

namespace fs = std::filesystem;

using test::read_source;
using test::source_folder;

constexpr std::ptrdiff_t most_words = 30;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Paragraphs without code, headings and tables. Each item of a list is a paragraph.
std::vector<std::string> paragraphs_of_page(const std::string& text) {
  const std::regex item(R"(\s*(?:[-*]|\d+\.)\s+(.*))"), other(R"(\s*(?:#|\||<!--).*)");
  std::vector<std::string> out(1);
  bool in_code = false;
  for (const std::string& line : lines_of(text)) {
    std::smatch match;
    if (line.starts_with("```")) in_code = !in_code;
    if (in_code || line.starts_with("```") || line.empty() || std::regex_match(line, other)) {
      out.emplace_back();
    } else if (std::regex_match(line, match, item)) {
      out.push_back(match[1]);
    } else {
      out.back() += ' ' + line;
    }
  }
  return out;
}

// Paragraphs of comments that begin lines. Each item of a list, and what is indented, is one.
std::vector<std::string> paragraphs_of_header(const std::string& text) {
  const std::regex comment(R"(\s*//( *(?:[-*] )?)(.*))");
  std::vector<std::string> out(1);
  for (const std::string& line : lines_of(text)) {
    std::smatch match;
    if (!std::regex_match(line, match, comment) || match[2].length() == 0) {
      out.emplace_back();
    } else if (match[1].length() > 1) {
      out.push_back(match[2]);
    } else {
      out.back() += ' ' + match[2].str();
    }
  }
  return out;
}

// The line under a table that says where its figures are from is no sentence.
constexpr std::string_view provenance = " Provenance:";

// Sentences, with a word in place of code, and links without their targets.
std::vector<std::string> sentences_of(std::string paragraph) {
  paragraph = std::regex_replace(paragraph, std::regex(R"(\[([^\]]*)\]\([^)]*\))"), "$1");
  paragraph = std::regex_replace(paragraph, std::regex("`[^`]*`"), "X");
  paragraph = std::regex_replace(paragraph, std::regex(R"(([.!?]\**) +)"), "$1\n");
  paragraph = std::regex_replace(paragraph, std::regex("([:;]) +(?=[A-Z])"), "$1\n");
  return lines_of(paragraph);
}

// Nothing, or the rule that a sentence breaks.
std::string fault_of(const std::string& sentence) {
  static const std::regex word(R"(\S+)");
  static const std::regex opening(R"(\s*\**(Of|What|In which|Where|Beside|With what|Who)\b.*)");
  static const std::regex hash(R"(.*\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,12}\b.*)");
  const auto words = std::distance(std::sregex_iterator(sentence.begin(), sentence.end(), word),
                                   std::sregex_iterator());
  if (words > most_words) return std::to_string(words) + " words";
  std::smatch match;
  if (std::regex_match(sentence, match, opening)) return "begins with " + match[1].str();
  if (std::regex_match(sentence, hash)) return "holds a hash";
  return {};
}

std::vector<std::string> faults_of(const std::vector<std::string>& paragraphs) {
  std::vector<std::string> faults;
  for (const std::string& paragraph : paragraphs) {
    if (paragraph.starts_with(provenance)) continue;
    for (const std::string& sentence : sentences_of(paragraph)) {
      const std::string fault = fault_of(sentence);
      if (!fault.empty()) faults.push_back(fault + ": " + sentence);
    }
  }
  return faults;
}

// Notes and results are records of experiments, which name the commits that they measured.
bool is_record(const fs::path& page) {
  return page.filename() == "NOTES.md" || page.filename() == "CHANGELOG.md" ||
         page.parent_path().filename() == "results";
}

TEST(Prose, PagesFollowTheRules) {
  const fs::path root = source_folder().parent_path();
  std::size_t pages = 0;
  const auto check = [&](const fs::path& page) {
    if (page.extension() != ".md" || is_record(page)) return;
    ++pages;
    for (const std::string& fault : faults_of(paragraphs_of_page(read_source(page)))) {
      ADD_FAILURE() << page.lexically_relative(root).generic_string() << ": " << fault;
    }
  };
  check(root / "README.md");
  for (const char* folder : {"bench", "include", "shaders", "src", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) check(entry.path());
  }
  EXPECT_GE(pages, 12u);
}

TEST(Prose, PublicHeadersFollowTheRules) {
  const fs::path folder = source_folder().parent_path() / "include/vkgemm";
  std::size_t headers = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    ++headers;
    for (const std::string& fault : faults_of(paragraphs_of_header(read_source(entry.path())))) {
      ADD_FAILURE() << entry.path().filename() << ": " << fault;
    }
  }
  EXPECT_GE(headers, 8u);
}

TEST(Prose, FaultsAreSeen) {
  EXPECT_EQ(faults_of(paragraphs_of_page("plan() fails. What fails is named.\n")).size(), 1u);
  EXPECT_EQ(faults_of(paragraphs_of_page("- It was right at 7128aac, too.\n")).size(), 1u);
  std::string words;
  for (int i = 0; i < 31; ++i) words += "word ";
  EXPECT_EQ(faults_of(paragraphs_of_page("A page.\n\n" + words + "\n")).size(), 1u);
  EXPECT_EQ(faults_of(paragraphs_of_header("int a;\n// One.\n// " + words + "\n")).size(), 1u);
  EXPECT_TRUE(faults_of(paragraphs_of_page("```\n" + words + "\n```\n| " + words + "|\n")).empty());
}

}  // namespace
}  // namespace vkgemm
