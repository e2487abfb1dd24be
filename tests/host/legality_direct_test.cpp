#include "kernels/main_loop.hpp"
#include "legality_cases.hpp"

namespace vkgemm {
namespace {

using test::expect_cases;
using test::gemm;
using test::set;
using test::Setting;
using test::trust;

TEST(Legality, KhrDirect) {
  expect_cases(
      test::config("khr_direct:tile=128x128x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,"
                   "subtiles=4,pack=ab"),
      {
          {"without a self-test", [](Setting&) {}, "needs a self-test that passed"},
          {"as it is", trust, ""},
          {"a self-test of another type",
           [](Setting& s) {
             trust(s);
             std::erase_if(s.caps.verdicts, [](const Verdict& verdict) {
               return verdict.kind.input == DataType::f16;
             });
           },
           "needs a self-test that passed"},
          {"a self-test that failed",
           [](Setting& s) {
             trust(s);
             for (Verdict& verdict : s.caps.verdicts) verdict.outcome = Outcome::wrong_result;
           },
           "main loop khr_direct, fragment 16x16x16 f16, subgroups of 32: failed the self-test"},
          {"one operand as it is", [](Setting& s) { trust(s), s.config.pack_b = false; },
           "pack is a: main loop khr_direct takes B packed"},
          {"A in rows", [](Setting& s) { trust(s), s.config.pack_a = false; }, ""},
          {"A in rows, interleaved",
           [](Setting& s) { trust(s), s.config.pack_a = false, set(s.config, "interleave_k", 1); },
           ""},
          {"A in rows, interleaved, without its own self-test",
           [](Setting& s) {
             trust(s), s.config.pack_a = false, set(s.config, "interleave_k", 1);
             std::erase_if(s.caps.verdicts, [](const Verdict& v) {
               return operands_of(v.kind) == KindOperands::a_in_rows;
             });
           },
           "needs a self-test that passed"},
          {"A in rows, with an order of packed words",
           [](Setting& s) { trust(s), s.config.pack_a = false, set(s.config, "swap_a", 1); },
           "swap_a is 1: A is not packed"},
          {"A in rows, not interleaved, which end in a tile",
           [](Setting& s) { trust(s), s.config.pack_a = false, ++s.problem.m; },
           "takes a as it lies without interleave_k only where tile_m divides its rows: 128 does "
           "not divide"},
          {"A in rows, interleaved, which end in a tile",
           [](Setting& s) {
             trust(s), s.config.pack_a = false, set(s.config, "interleave_k", 1), ++s.problem.m;
           },
           ""},
          {"A in rows, in groups along K",
           [](Setting& s) {
             trust(s), s.config.pack_a = false, set(s.config, "interleave_k", 1);
             s.problem.grouping = Grouping{.groups = 3, .along = GroupAlong::k};
           },
           "takes a as it lies only"},
          {"A in rows, too long",
           [](Setting& s) {
             trust(s), s.config.pack_a = false, set(s.config, "interleave_k", 1);
             s.problem.a.ld = 1 << 24;
           },
           "only where tile_m rows take no more than 4 GiB: 128 rows of 16777216"},
          {"an interleaved depth",
           [](Setting& s) {
             trust(s), s.config.tile_k = 48, set(s.config, "ahead", 0);
             set(s.config, "interleave_k", 1);
           },
           "tile_k is 48: K is interleaved in 32s"},
          {"an odd number of steps", [](Setting& s) { trust(s), s.config.tile_k = 48; },
           "tile_k is 48: with loads ahead an even number of steps of 16 is taken at once"},
          {"A in units, of elements", [](Setting& s) { trust(s), set(s.config, "ahead", 2); },
           "ahead is 2: only with a quantised B, and subgroups of at most 32 rows"},
          {"an odd number of steps, not ahead",
           [](Setting& s) { trust(s), s.config.tile_k = 48, set(s.config, "ahead", 0); }, ""},
          {"fragments that are not 16 bytes an invocation",
           [](Setting& s) { trust(s), set(s.config, "fragment_n", 8); },
           "fragment 16x8x16 is not 16 bytes of A and of B for each of 32 invocations"},
          {"bf16", [](Setting& s) { trust(s), s.problem = gemm(512, 512, 512, DataType::bf16); },
           ""},
          {"bf16 without 16-bit arithmetic",
           [](Setting& s) {
             trust(s), s.problem = gemm(512, 512, 512, DataType::bf16);
             s.caps.int16_arithmetic = false;
           },
           "needs shaderInt16"},
          {"no shuffles", [](Setting& s) { trust(s), s.caps.limits.subgroup_shuffles = false; },
           "main loop khr_direct needs subgroup shuffles"},
          {"no votes", [](Setting& s) { trust(s), s.caps.limits.subgroup_votes = false; }, ""},
          {"no votes, f32 in parts",
           [](Setting& s) {
             trust(s), s.problem = gemm(512, 512, 512, DataType::f32);
             s.problem.f32_arithmetic = F32Arithmetic::f16x3;
             s.caps.limits.subgroup_votes = false;
           },
           "main loop khr_direct needs subgroup votes for f32 in parts"},
          {"no room to pack",
           [](Setting& s) { trust(s), s.caps.limits.max_subgroups_per_workgroup = 7; },
           "takes 8 subgroups and 9324 bytes of shared memory, the device has 7"},
      });
}

}  // namespace
}  // namespace vkgemm
