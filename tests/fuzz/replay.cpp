// replay.cpp: a main for fuzz targets without libFuzzer: every file of a corpus, then mutations of
// them, always the same ones. For compilers that have no libFuzzer, and for every commit.
//
//   fuzz_target FOLDER [MUTATIONS]
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <random>
#include <vector>

#include "fuzz.hpp"

#ifndef VKGEMM_SANITIZED
// No reader has reason to ask for this much of the little that it is given. The address sanitizer
// has a limit of its own: see CMakeLists.txt.
void* operator new(std::size_t bytes) {
  constexpr std::size_t most = std::size_t{256} << 20;
  if (bytes > most) {
    std::fprintf(stderr, "does not hold: %zu bytes at once are asked for\n", bytes);
    std::abort();
  }
  if (void* memory = std::malloc(std::max<std::size_t>(bytes, 1))) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace {

using Input = std::vector<std::uint8_t>;

Input current;

// So that what failed can be looked at, and added to the corpus.
void write_current(int signal) {
  if (std::FILE* file = std::fopen("fuzz-failure", "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
    std::fprintf(stderr, "the input is in ./fuzz-failure\n");
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::vector<Input> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Input> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<Input>& corpus) : corpus_(corpus) {}

  Input next() {
    Input input = corpus_[below(corpus_.size())];
    for (std::size_t i = 0, count = 1 + below(4); i < count; ++i) mutate(input);
    return input;
  }

 private:
  // Not std::uniform_int_distribution, which differs between libraries.
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void insert(Input& input, std::size_t at, const Input& what) {
    input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), what.begin(), what.end());
  }
  Input piece_of(const Input& input) {
    const std::size_t begin = below(input.size()), bytes = below(input.size() - begin + 1);
    const auto first = input.begin() + static_cast<std::ptrdiff_t>(begin);
    return {first, first + static_cast<std::ptrdiff_t>(bytes)};
  }

  void mutate(Input& input) {
    static constexpr std::string_view words[] = {"0",          "-1",
                                                 "1e999",      "18446744073709551615",
                                                 "4294967295", "1152921504606846976",
                                                 "NaN",        "null",
                                                 "[[[[[[[[[[", "{",
                                                 "}",          "\"",
                                                 ",",          ":",
                                                 "=",          "x",
                                                 "(",          "\xff",
                                                 "1e-300"};
    const std::size_t at = below(input.size());
    switch (below(7)) {
      case 0:
        if (!input.empty()) input[at] ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 1:
        if (!input.empty()) input[at] = static_cast<std::uint8_t>(random_());
        break;
      case 2: {
        const std::string_view word = words[below(std::size(words))];
        insert(input, at, Input(word.begin(), word.end()));
        break;
      }
      case 3:
        insert(input, at, piece_of(input));
        break;
      case 4:
        insert(input, at, piece_of(corpus_[below(corpus_.size())]));
        break;
      case 5: {
        const std::size_t bytes = below(std::min<std::size_t>(input.size() - at, 16) + 1);
        const auto first = input.begin() + static_cast<std::ptrdiff_t>(at);
        input.erase(first, first + static_cast<std::ptrdiff_t>(bytes));
        break;
      }
      default:  // another number
        for (std::size_t i = at; i < input.size(); ++i) {
          if (input[i] < '0' || input[i] > '9') continue;
          input[i] = static_cast<std::uint8_t>('0' + below(10));
          if (below(2) == 0) break;
        }
    }
  }

  const std::vector<Input>& corpus_;
  std::mt19937_64 random_{1};
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Input> corpus = argc > 1 ? read_corpus(argv[1]) : std::vector<Input>{};
  if (corpus.empty()) {
    std::fprintf(stderr, "a folder with a corpus is needed\n");
    return 2;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL}) std::signal(signal, write_current);
  const auto run = [](const Input& input) {
    current = input;
    LLVMFuzzerTestOneInput(current.data(), current.size());
  };
  run({});
  vkgemm::fuzz::accepted = 0;
  for (const Input& input : corpus) run(input);
  if (vkgemm::fuzz::accepted == 0) {
    std::fprintf(stderr, "all files of %s are refused: are they written in another way now?\n",
                 argv[1]);
    return 1;
  }
  const long mutations = argc > 2 ? std::atol(argv[2]) : 1000;
  Mutator mutator(corpus);
  for (long i = 0; i < mutations; ++i) run(mutator.next());
  std::printf("%zu files and %ld mutations\n", corpus.size(), mutations);
}
