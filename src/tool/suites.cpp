// suites.cpp: the suites of `vkgemm bench`, as data, and how they become cases.
#include <algorithm>
#include <array>
#include <cstdio>

#include "tool/cases.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

struct Suite {
  std::string_view name;
  std::string_view what;
};
constexpr std::array<Suite, 9> suites = {
    {{"dense", "plain products: squares, layers of transformers, few rows, nothing aligned"},
     {"epilogue", "the same with a bias, an activation, a residual, aux"},
     {"splitk", "few tiles and a long K"},
     {"grouped", "groups of rows: equal, ragged, experts in training and while decoding"},
     {"rowred", "rows normalised or reduced"},
     {"gated", "two products and a gate, beside one product of as much work"},
     {"packed", "operands that are packed once, before: both, or weights alone"},
     {"quantised", "weights of 4 and 8 bits, from one row to as many as columns"},
     {"seeds", "problems from the test suites of other libraries: tails, long K, 8.8 GB of A"}}};

// Options as on the command line. The groups and the sizes of rowred and gated are those of
// bench/peers/peers.py, so that results of both can be joined.
struct Entry {
  std::string_view suite;
  std::string_view options;
};
#define EXPERTS /* in training */                                                           \
  "--groups "                                                                               \
  "788,861,82,530,995,829,621,976,733,447,285,577,286,194,513,300,635,202,151,676,966,206," \
  "724,889,647,418,976,906,533,127,28,191,816,2,1010,682,499,666,128,391,454,488,291,917,"  \
  "186,164,655,1002,223,617,596,255,681,416,589,911,187,788,649,495,594,376,387,382"
#define DECODED_EXPERTS                                                                      \
  "--groups "                                                                                \
  "0,4,2,3,0,0,1,1,0,0,4,3,4,2,4,1,1,4,3,4,2,3,3,2,0,2,4,0,3,4,2,1,1,0,2,0,1,2,1,2,3,0,0,1," \
  "1,0,4,4,4,0,0,0,1,4,4,0,3,0,2,0,0,4,0,1,1,0,3,1,0,0,4,3,4,0,2,0,1,0,2,2,3,1,0,4,3,0,4,0," \
  "3,1,2,2,3,4,1,1,0,1,1,2,4,2,0,4,3,1,0,3,3,4,4,2,2,3,2,1,4,0,3,0,2,0,4,2,1,1,3,2"
constexpr Entry entries[] = {
    {"dense", "--shapes 512,1024,2048,4096,8192,8192x28672x4096"},
    {"dense", "--shapes 16x4096x4096,64x8192x8192,1x12288x4096,4097x4095x4093"},
    {"dense", "--shapes 1024,2048,4096,8192,8192x28672x4096 --layout-b col_major"},
    {"dense", "--shapes 4096 --layout-a col_major"},
    {"dense", "--shapes 4096,8192 --dtype bf16"},
    {"dense", "--shapes 1024,2048,4096 --dtype f32"},
    {"epilogue", "--shapes 4096,8192,4097x4095x4093 --epilogue heavy"},
    {"epilogue", "--shapes 4096 --dtype f32 --epilogue heavy"},
    {"epilogue", "--shapes 4096 --epilogue bias"},
    {"epilogue", "--shapes 4096 --epilogue bias+gelu_tanh"},
    {"epilogue", "--shapes 4096 --epilogue residual"},
    {"splitk", "--shapes 16x16x4096,64x64x16384,128x128x65536 --dtype f32 --dtype f16"},
    {"splitk",
     "--shapes 16x16x4096,64x64x16384,128x128x65536 --dtype f32 --dtype f16 --layout-b col_major"},
    {"splitk", "--shapes 64x64x8192,128x128x8192,256x256x8192,512x512x8192"},
    {"grouped", "--dtype bf16 --shapes 128x256 --groups 64,128,192,256"},
    {"grouped",
     "--dtype bf16 --shapes 1024x1024 --groups "
     "64,128,192,256,320,384,448,512,576,640,704,768,832,896,960,1024,1088,1152,1216,1280,1344,"
     "1408,1472,1536,1600,1664,1728,1792,1856,1920,1984,2048"},
    {"grouped", "--dtype bf16 --shapes 4096x4096 --b-per-group --layout-b col_major " EXPERTS},
    {"grouped", "--dtype bf16 --shapes 4096x4096 --b-per-group " EXPERTS},
    {"grouped",
     "--dtype bf16 --shapes 768x2048 --b-per-group --layout-b col_major " DECODED_EXPERTS},
    {"rowred",
     "--row-op layer_norm --dtype bf16 --shapes "
     "131072x512x512,131072x2048x512,131072x4096x512,131072x2048x4096,512,1024"},
    {"rowred", "--row-op layer_norm --dtype f32 --shapes 131072x512x512,1024"},
    {"rowred",
     "--row-op rms_norm --dtype bf16 --shapes "
     "131072x4096x512,131072x2048x8192,1024,131072x256x256"},
    {"rowred", "--row-op softmax --dtype bf16 --shapes 131072x2048x2048"},
    {"rowred", "--row-op softmax --dtype f32 --shapes 131072x2048x512,1024"},
    {"rowred", "--row-op l2_normalize --dtype bf16 --shapes 131072x4096x512,2048,131072x1024x6144"},
    {"rowred",
     "--row-op logsumexp --dtype bf16 --without-d --dtype-row-values bf16 --shapes "
     "131072x4096x512,1024,131072x2048x3072"},
    // each beside the plain product of as much work
    {"gated", "--shapes 1024x2048x2048 --dtype f32 --dtype f16 --gated sigmoid_tanh"},
    {"gated", "--shapes 1024x4096x2048 --dtype f32 --dtype f16"},
    {"gated", "--shapes 4096x14336x4096 --dtype bf16 --gated geglu_erf"},
    {"gated", "--shapes 4096x28672x4096 --dtype bf16"},
    {"packed", "--shapes 1024,2048,4096,8192 --packed-a --packed-b"},
    {"packed", "--shapes 1024,2048,4096,8192 --packed-b"},
    {"packed",
     "--shapes 8192x28672x4096,512x4096x14336,1024x8192x8192,16x4096x4096,64x8192x8192 --packed-b"},
    {"packed", "--dtype bf16 --shapes 4096x4096 --b-per-group --packed-b " EXPERTS},
    {"packed", "--shapes 4096x14336x4096 --dtype bf16 --gated geglu_erf --packed-b"},
    {"packed", "--shapes 1024x2048x2048 --gated sigmoid_tanh --packed-b"},
    {"packed", "--row-op layer_norm --dtype bf16 --shapes 131072x2048x4096 --packed-b"},
    {"packed",
     "--row-op layer_norm --dtype bf16 --shapes 131072x512x512,131072x2048x512,131072x4096x512 "
     "--packed-a --packed-b"},
    {"packed",
     "--row-op layer_norm --dtype bf16 --shapes 131072x512x512,131072x2048x512,131072x4096x512 "
     "--packed-b"},
    {"packed", "--dtype bf16 --batch 16 --shapes 4096x4096x64 --packed-a --packed-b"},
    {"quantised",
     "--shapes "
     "1x4096x4096,16x4096x4096,64x4096x4096,512x4096x4096,1x16384x16384,16x16384x16384,8192 "
     "--quantised-b int4:group=128"},
    {"quantised", "--shapes 1x16384x16384,16x16384x16384,8192 --quantised-b int8"},
    {"quantised",
     "--shapes 1x16384x16384,16x16384x16384,8192 --quantised-b "
     "e4m3:group=128:columns=128:scales=f32"},
    {"quantised", "--shapes 1x16384x16384,16x16384x16384 --quantised-b mxfp4"},
    {"quantised", "--shapes 16x4096x4096,1x16384x16384,16x16384x16384 --quantised-b q4_k"},
    {"quantised", "--shapes 16x4096x4096,1x16384x16384,16x16384x16384 --quantised-b q6_k"},
    {"quantised", "--shapes 16x4096x4096 --dtype bf16 --quantised-b int4:group=128:zeros"},
    {"quantised", "--shapes 768x2048 --b-per-group --quantised-b int4:group=128 " DECODED_EXPERTS},
    {"quantised", "--shapes 8x14336x4096 --gated swiglu --quantised-b int4:group=128"},
    // all but the two that have no products
    {"seeds", "--shapes 1x1x1,1x200x1,1x1x300,2x47x30,129x127x63,128x128x64,500x501x502,64x32x588"},
    {"seeds", "--shapes 9x16x23040,16x16x32768,1x12288x4096"},
    {"seeds", "--shapes 8x256x2664 --dtype bf16"},
    {"seeds", "--shapes 16x16x4096 --dtype f32"},
    {"seeds", "--shapes 30x14336x4096 --dtype bf16 --gated swiglu"},
    {"seeds", "--shapes 8192x30522x768 --epilogue bias"},
    {"seeds", "--shapes 20x24 --dtype bf16 --groups 0,1,2,0,3,0"},
    {"seeds", "--shapes 128x256 --dtype bf16 --groups 64,128,192,256"},
    {"seeds", "--shapes 1700000x96x2592"},
};

}  // namespace

void list_suites() {
  for (const Suite& suite : suites) {
    std::printf("%.*s: %.*s\n", static_cast<int>(suite.name.size()), suite.name.data(),
                static_cast<int>(suite.what.size()), suite.what.data());
    for (const Entry& entry : entries) {
      if (entry.suite != suite.name) continue;
      std::printf("  %.*s\n", static_cast<int>(entry.options.size()), entry.options.data());
    }
  }
}

std::vector<BenchCase> suite_cases(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool known = std::any_of(suites.begin(), suites.end(),
                                   [&](const Suite& suite) { return suite.name == name; });
    if (known) continue;
    std::string all;
    for (const Suite& suite : suites) all += (all.empty() ? "" : ", ") + std::string(suite.name);
    throw Failure(usage_error, "--suite is '" + name + "': one of " + all + " is needed");
  }
  std::vector<BenchCase> cases;
  for (const std::string& name : names) {
    for (const Entry& entry : entries) {
      if (entry.suite != name) continue;
      CaseOptions options;
      CLI::App app;
      options.add(app);
      app.parse(std::string(entry.options));
      for (BenchCase& one : options.cases()) {
        one.suite = name;
        cases.push_back(std::move(one));
      }
    }
  }
  return cases;
}

}  // namespace vkgemm::tool
