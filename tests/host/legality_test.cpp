#include "kernels/legality.hpp"

#include "kernels/main_loop.hpp"
#include "legality_cases.hpp"
#include "lib/abi.h"

namespace vkgemm {
namespace {

using test::expect_cases;
using test::fma_config;
using test::gemm;
using test::khr_config;
using test::nv_config;
using test::resolved;
using test::set;
using test::Setting;

TEST(Legality, EveryPath) {
  for (const Config& config : {khr_config, nv_config, fma_config}) {
    expect_cases(
        config,
        {
            {"as it is", [](Setting&) {}, ""},
            {"path off",
             [](Setting& s) {
               for (PathSupport* support : {&s.caps.nv, &s.caps.khr, &s.caps.fma}) {
                 *support = {.available = false, .reason = "feature bit missing"};
               }
             },
             "is off: feature bit missing"},
            {"tile_m 0", [](Setting& s) { s.config.tile_m = 0; }, "tile_m is 0"},
            {"tile_n 0", [](Setting& s) { s.config.tile_n = 0; }, "tile_n is 0"},
            {"tile_k 0", [](Setting& s) { s.config.tile_k = 0; }, "tile_k is 0"},
            {"tile_m huge", [](Setting& s) { s.config.tile_m = 0x80000000u; },
             "tile_m is 2147483648"},
            {"swizzle 0", [](Setting& s) { s.config.swizzle = 0; }, "swizzle is 0"},
            {"push constants exact",
             [](Setting& s) { s.caps.limits.max_push_constant_bytes = gpu::most_parameter_bytes; },
             ""},
            {"push constants one short",
             [](Setting& s) {
               s.caps.limits.max_push_constant_bytes = gpu::most_parameter_bytes - 1;
             },
             config.path() == Path::fma ? "" : "doesn't read them in memory"},
            {"slices 0", [](Setting& s) { s.config.slices = 0; }, "slices is 0"},
            {"most slices", [](Setting& s) { s.config.slices = 512; }, ""},
            {"slices huge", [](Setting& s) { s.config.slices = 513; }, "slices is 513"},
            {"more slices than workgroups in z",
             [](Setting& s) { s.config.slices = 64, s.caps.limits.max_workgroup_count[2] = 63; },
             "slices is 64, the device has at most 63 workgroups in z"},
            {"partial results that no device holds",
             [](Setting& s) { s.config.slices = 512, s.problem = gemm(1 << 20, 1 << 20, 64); },
             "slices is 512: partial results of 1048576 rows of 4194304 bytes"},
            {"a reduction mode of no slices",
             [](Setting& s) { s.config.reduction_mode = ReductionMode::last_arriver; },
             "reduction_mode is last_arriver: slices is 1"},
            {"a reduction mode that is switched off",
             [](Setting& s) {
               if (s.config.path() == Path::nv) s.config = khr_config;
               s.config.slices = 2, s.config.reduction_mode = ReductionMode::device_barrier;
               s.caps.device_barrier = {false, "switched off"};
             },
             "reduction_mode is device_barrier: switched off"},
            {"a spin limit without a barrier", [](Setting& s) { s.config.spin_limit = 5; },
             "spin_limit is 5"},
            {"a spin limit for hours",
             [](Setting& s) {
               if (s.config.path() == Path::nv) s.config = khr_config;
               s.config.slices = 2, s.config.reduction_mode = ReductionMode::device_barrier;
               s.config.spin_limit = 0xffffffffu;
             },
             "spin_limit is 4294967295"},
            {"more tiles than can be counted",
             [](Setting& s) {
               if (s.config.path() == Path::nv) s.config = khr_config;
               s.config.slices = 2, s.config.reduction_mode = ReductionMode::last_arriver;
               s.problem = gemm(1 << 20, 1 << 20, 64);
             },
             "are too many to count"},
            {"no such reduction mode",
             [](Setting& s) {
               s.config.slices = 2, s.config.reduction_mode = static_cast<ReductionMode>(7);
             },
             "reduction_mode is 7: no such enumerator"},
            {"workgroups without a barrier",
             [](Setting& s) {
               s.config.slices = 2, s.config.reduction_mode = ReductionMode::last_arriver;
               s.config.workgroups = 1;
             },
             "workgroups is 1"},
            {"too many dispatches",
             [](Setting& s) {
               s.problem.batch = 2147483647;
               s.caps.limits.max_workgroup_count = {65535, 1, 1};
             },
             "2147483647 dispatches"},
            {"K = 0", [](Setting& s) { s.problem.k = 0; }, ""},
            {"misaligned",
             [](Setting& s) {
               s.problem = gemm(127, 131, 137);
               s.problem.a.alignment = s.problem.b.alignment = s.problem.d.alignment = 2;
             },
             ""},
        });
  }
}

TEST(Legality, GridsThatCannotBeNumbered) {
  for (const Config& config : {khr_config, fma_config}) {
    expect_cases(
        config,
        {
            {"too many tiles", [](Setting& s) { s.problem = gemm(2147483647, 2147483647, 1); },
             "tiles, at most 2147483647"},
            {"bands of tiles beyond 32 bits",
             [](Setting& s) { s.problem = gemm(64, 2147483647, 1), s.config.swizzle = 65536; },
             "swizzle is 65536: a band of"},
            {"bands of tiles within 32 bits",
             [](Setting& s) { s.problem = gemm(64, 2147483647, 1), s.config.swizzle = 64; }, ""},
        });
  }
}

TEST(Legality, Khr) {
  expect_cases(
      khr_config,
      {
          {"bf16", [](Setting& s) { s.problem = gemm(64, 64, 64, DataType::bf16); }, ""},
          {"bf16 off",
           [](Setting& s) {
             s.problem = gemm(64, 64, 64, DataType::bf16);
             s.caps.bf16_matrices = false;
           },
           "input type bf16 on path khr needs bf16 cooperative matrices"},
          {"bf16 on, shape not listed",
           [](Setting& s) {
             s.problem = gemm(64, 64, 64, DataType::bf16);
             set(s.config, "fragment_n", 8);
           },
           "fragment 16x8x16 with bf16 inputs and f32 accumulators is not listed"},
          {"f32", [](Setting& s) { s.problem = gemm(64, 64, 64, DataType::f32); },
           "input type f32 needs true f32 arithmetic"},
          {"any output type", [](Setting& s) { s.problem.d.type = DataType::bf16; }, ""},
          {"f16 16x8x16", [](Setting& s) { set(s.config, "fragment_n", 8); }, ""},
          {"f16 8x8x8",
           [](Setting& s) { set(s.config, "fragment_m", 8), set(s.config, "fragment_n", 8); },
           "fragment 8x8x16"},
          {"only f16 accumulators listed",
           [](Setting& s) {
             for (FragmentShape& shape : s.caps.fragment_shapes) shape.accumulator = DataType::f16;
           },
           "is not listed"},
          {"workgroup-scope flexible shapes don't count",
           [](Setting& s) { s.caps.fragment_shapes.clear(); }, "is not listed"},
          {"subgroup-scope flexible shapes do",
           [](Setting& s) {
             s.caps.fragment_shapes.clear();
             s.caps.flexible_shapes = {
                 {DataType::f16, DataType::f32, MatrixScope::subgroup, 16, 8, 16, 0}};
           },
           ""},
          {"flexible, as large as may be",
           [](Setting& s) {
             s.caps.fragment_shapes.clear();
             s.caps.flexible_shapes = {
                 {DataType::f16, DataType::f32, MatrixScope::subgroup, 16, 8, 16, 0}};
             s.caps.limits.nv_max_dimension = 16;
           },
           ""},
          {"flexible and too large",
           [](Setting& s) {
             s.caps.fragment_shapes.clear();
             s.caps.flexible_shapes = {
                 {DataType::f16, DataType::f32, MatrixScope::subgroup, 16, 8, 16, 0}};
             s.caps.limits.nv_max_dimension = 15;
           },
           "fragment 16x16x16: matrices of flexible dimensions have at most 15 rows or columns"},
          {"listed as it is, the flexible limit counts for nothing",
           [](Setting& s) { s.caps.limits.nv_max_dimension = 15; }, ""},
          {"not a multiple of the granularity",
           [](Setting& s) {
             s.caps.fragment_shapes.clear();
             s.caps.flexible_shapes = {
                 {DataType::f16, DataType::f32, MatrixScope::subgroup, 16, 8, 32, 0}};
           },
           "is not listed"},
          {"granularity of zero",
           [](Setting& s) {
             s.caps.fragment_shapes.clear();
             s.caps.flexible_shapes = {
                 {DataType::f16, DataType::f32, MatrixScope::subgroup, 0, 0, 0, 0}};
           },
           "is not listed"},
          {"subgroup size too large", [](Setting& s) { set(s.config, "subgroup_size", 64); },
           "subgroup_size is 64, the device has 32 to 32"},
          {"subgroup size not a power of two",
           [](Setting& s) {
             s.caps.limits.max_subgroup_size = 64;
             set(s.config, "subgroup_size", 48);
           },
           "subgroup_size is 48"},
          {"no size control, one size",
           [](Setting& s) { s.caps.limits.subgroup_size_control = false; }, ""},
          {"no size control, two sizes",
           [](Setting& s) {
             s.caps.limits.subgroup_size_control = false;
             s.caps.limits.max_subgroup_size = 64;
           },
           "subgroup_size 32 cannot be required"},
          {"most invocations", [](Setting& s) { s.caps.limits.max_invocations = 128; }, ""},
          {"one invocation too many", [](Setting& s) { s.caps.limits.max_invocations = 127; },
           "invocations is 128, the device has at most 127"},
          {"one subgroup too many",
           [](Setting& s) { s.caps.limits.max_subgroups_per_workgroup = 3; },
           "subgroups 2x2 are 4, the device has at most 3"},
          {"tile does not divide", [](Setting& s) { s.config.tile_m = 120; },
           "tile 120x128x32 does not divide into subgroups 2x2 of fragment 16x16x16"},
          {"tile_k does not divide", [](Setting& s) { s.config.tile_k = 24; }, "tile 128x128x24"},
          {"subtiles", [](Setting& s) { set(s.config, "subtiles", 3); },
           "subtiles is 3: does not divide the 4 fragments"},
          {"subtiles beyond the fragments", [](Setting& s) { set(s.config, "subtiles", 8); },
           "subtiles is 8"},
          {"subtiles 0", [](Setting& s) { set(s.config, "subtiles", 0); },
           "subtiles is 0: main loop khr takes 1 to 1024"},
          {"rotated", [](Setting& s) { set(s.config, "rotate", 1); }, ""},
          {"rotated, not peeled",
           [](Setting& s) { set(s.config, "rotate", 1), set(s.config, "peel", 0); },
           "rotate is 1: only khr with peel=1 rotates its loop"},
          {"a ring that was rotated",
           [](Setting& s) {
             set(s.config, "rotate", 1);
             descriptor(MainLoop::khr_ring).enter(s.config);
           },
           ""},
          {"a rotated ring",
           [](Setting& s) {
             descriptor(MainLoop::khr_ring).enter(s.config);
             std::get<KhrRingLoop>(s.config.loop).rotate = true;
           },
           "rotate is 1: only khr"},
          {"a ring", [](Setting& s) { descriptor(MainLoop::khr_ring).enter(s.config); }, ""},
          {"a ring, 80x64 per subgroup",
           [](Setting& s) {
             descriptor(MainLoop::khr_ring).enter(s.config);
             s.config.tile_m = 160, set(s.config, "subtiles", 5);
           },
           "needs 160 accumulators in each of 128 invocations, at most 128"},
          {"a ring of halves that are no fragment",
           [](Setting& s) { descriptor(MainLoop::khr_ring).enter(s.config), s.config.tile_k = 64; },
           "tile_k is 64: main loop khr_ring takes twice fragment_k, 32"},
          {"registers, 80x64 per subgroup",
           [](Setting& s) { s.config.tile_m = 160, set(s.config, "subtiles", 5); }, ""},
          {"registers, 96x64 per subgroup",
           [](Setting& s) { s.config.tile_m = 192, set(s.config, "subtiles", 6); },
           "tile 192x128x32 needs 192 accumulators in each of 128 invocations, at most 160"},
      });
}

// 8-bit activations.
void set_codes(Setting& s, std::string_view config) {
  s.problem = gemm(64, 64, 64, DataType::s8);
  s.problem.d.type = DataType::f16;
  s.problem.b = {.type = DataType::s8, .packing = Packing::packed};
  s.problem.quantised_b = {.type = CodeType::int4, .group_k = 32};
  s.config = test::config(config);
}

TEST(Legality, Fma) {
  expect_cases(
      fma_config,
      {
          {"f32", [](Setting& s) { s.problem = gemm(64, 64, 64, DataType::f32); }, ""},
          {"bf16 needs no bf16 matrices",
           [](Setting& s) {
             s.problem = gemm(64, 64, 64, DataType::bf16);
             s.caps.bf16_matrices = false;
           },
           ""},
          {"fragment_m", [](Setting& s) { set(s.config, "fragment_m", 2); },
           "fragment 2x8: not multiples of 4"},
          {"few rows", [](Setting& s) { s.config = test::config("skinny:tile=8x64x64"); }, ""},
          {"few rows, too many", [](Setting& s) { s.config = test::config("skinny:tile=9x64x64"); },
           "tile 9x64x64 has 9 rows"},
          {"few rows, tile", [](Setting& s) { s.config = test::config("skinny:tile=4x60x64"); },
           "tile 4x60x64 does not divide into pieces of 8x8"},
          {"few rows of s8", [](Setting& s) { set_codes(s, "skinny:tile=4x64x64,pack=b"); }, ""},
          {"few rows of s8, half a piece",
           [](Setting& s) { set_codes(s, "skinny:tile=4x64x72,pack=b"); },
           "tile 4x64x72 does not divide into pieces of 4x16"},
          {"few rows of s8, without codes",
           [](Setting& s) {
             s.problem = gemm(64, 64, 64, DataType::s8);
             s.problem.d.type = DataType::s32;
             s.config = test::config("skinny:tile=4x64x64");
           },
           "main loop skinny"},
          {"fragment 0", [](Setting& s) { set(s.config, "fragment_n", 0); }, "fragment_n is 0"},
          {"tile", [](Setting& s) { s.config.tile_m = 68; },
           "tile 68x64x16 does not divide into fragments of 8x8"},
          {"tile_k 12, f16", [](Setting& s) { s.config.tile_k = 12; },
           "rows of 12 elements of A to load: not a multiple of 8"},
          {"tile_k 12, f32",
           [](Setting& s) {
             s.problem = gemm(64, 64, 64, DataType::f32);
             s.config.tile_k = 12;
           },
           ""},
          {"tile_k 12, f16, K not adjacent",
           [](Setting& s) {
             s.problem.a.layout = Layout::col_major;
             s.config.tile_k = 12;
           },
           ""},
          {"tile_k 18, s8, K not adjacent",
           [](Setting& s) {
             s.problem = gemm(64, 64, 64, DataType::s8);
             s.problem.d.type = DataType::s32;
             s.problem.a.layout = Layout::col_major;
             s.config.tile_k = 18;
           },
           "tile 64x64x18 is 18 deep: not a multiple of 4"},
          {"registers",
           [](Setting& s) { s.config = test::config("fma:tile=64x64x16,fragment=16x12"); },
           "does not divide"},
          {"128 accumulators",
           [](Setting& s) { s.config = test::config("fma:tile=64x64x16,fragment=16x8"); }, ""},
          {"256 accumulators",
           [](Setting& s) { s.config = test::config("fma:tile=64x64x16,fragment=16x16"); },
           "needs 256 accumulators in each of 16 invocations, at most 128"},
      });
}

TEST(Legality, Nv) {
  expect_cases(
      nv_config,
      {
          {"f32", [](Setting& s) { s.problem = gemm(64, 64, 64, DataType::f32); },
           "input type f32 needs true f32 arithmetic, which path nv does not have"},
          {"bf16", [](Setting& s) { s.problem = gemm(64, 64, 64, DataType::bf16); }, ""},
          {"bf16 not listed",
           [](Setting& s) {
             s.problem = gemm(64, 64, 64, DataType::bf16);
             s.caps.flexible_shapes.resize(2);
           },
           "tile 128x256x32 with bf16 inputs at 256 invocations"},
          {"f32 out", [](Setting& s) { s.problem.d.type = DataType::f32; }, ""},
          {"bf16 out of f16", [](Setting& s) { s.problem.d.type = DataType::bf16; },
           "d.type is bf16 with f16 inputs: not built on path nv"},
          {"bf16 C",
           [](Setting& s) { s.problem.c.type = DataType::bf16, s.problem.epilogue.beta = 1.0f; },
           ""},
          {"bf16 C unused", [](Setting& s) { s.problem.c.type = DataType::bf16; }, ""},
          {"bf16 aux",
           [](Setting& s) { s.problem.aux.type = DataType::bf16, s.problem.epilogue.aux = true; },
           "aux.type is bf16"},
          {"invocations 0", [](Setting& s) { set(s.config, "invocations", 0); },
           "invocations is 0"},
          {"unroll_k 0", [](Setting& s) { set(s.config, "unroll_k", 0); }, "unroll_k is 0"},
          {"unroll_k huge", [](Setting& s) { set(s.config, "unroll_k", 65); }, "unroll_k is 65"},
          {"256 invocations at most", [](Setting& s) { set(s.config, "invocations", 512); },
           "invocations is 512: workgroup matrices take at most 256"},
          {"invocations not listed", [](Setting& s) { set(s.config, "invocations", 64); },
           "at 64 invocations is no multiple"},
          {"granularity M", [](Setting& s) { s.config.tile_m = 48; }, "tile 48x256x32"},
          {"granularity N at 256", [](Setting& s) { s.config.tile_n = 48; }, "tile 128x48x32"},
          {"granularity N at 128",
           [](Setting& s) { s.config.tile_n = 48, set(s.config, "invocations", 128); }, ""},
          {"granularity K", [](Setting& s) { s.config.tile_k = 24; }, "tile 128x256x24"},
          {"dimension", [](Setting& s) { s.caps.limits.nv_max_dimension = 255; },
           "workgroup matrices have at most 255"},
          {"256x256 spills", [](Setting& s) { s.config.tile_m = 256; },
           "tile 256x256x32 needs 256 accumulators in each of 256 invocations, at most 160"},
          {"reserved memory",
           [](Setting& s) { s.caps.limits.nv_reserved_shared_memory_bytes = 49137; },
           "needs 49153 bytes of shared memory, the device has 49152"},
          {"large, but not within a tile", [](Setting& s) { s.problem = gemm(1700000, 96, 2592); },
           ""},
          // 2^31 bytes: 32 rows of 2^26 for A, so 128 rows of 2^23 f16.
          {"last ld that fits",
           [](Setting& s) { s.problem = gemm(128, 64, 64), s.problem.a.ld = (1 << 23) - 1; }, ""},
          {"first ld that does not",
           [](Setting& s) { s.problem = gemm(128, 64, 64), s.problem.a.ld = 1 << 23; },
           "part of a takes 128 rows or columns of 16777216 bytes: path nv addresses at most"},
          {"all of K counts where it is not adjacent",
           [](Setting& s) { s.problem = gemm(8, 65536, 16384); },
           "part of b takes 16384 rows or columns"},
          {"unless it is adjacent",
           [](Setting& s) {
             s.problem = gemm(8, 65536, 16384);
             s.problem.b.layout = Layout::col_major;
           },
           ""},
          {"ld of D", [](Setting& s) { s.problem = gemm(128, 64, 64), s.problem.d.ld = 1 << 23; },
           "part of d"},
          {"ld of aux",
           [](Setting& s) {
             s.problem = gemm(128, 64, 64);
             s.problem.aux.ld = 1 << 23, s.problem.epilogue.aux = true;
           },
           "part of aux"},
      });
}

TEST(Legality, DevicesListWhatTheyList) {
  const ResolvedProblem f16 = resolved(gemm(64, 64, 64));
  const ResolvedProblem bf16 = resolved(gemm(64, 64, 64, DataType::bf16));
  const Config intel =
      test::config("khr:tile=64x64x32,fragment=8x16x16,subgroups=4x4,subgroup_size=16,subtiles=2");
  EXPECT_TRUE(is_legal(intel, f16, test::battlemage()));
  EXPECT_TRUE(is_legal(intel, bf16, test::battlemage()));
  EXPECT_FALSE(is_legal(intel, f16, test::dg2()));
  EXPECT_FALSE(is_legal(intel, f16, test::h200()));
  const Config amd =
      test::config("khr:tile=64x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=2");
  EXPECT_TRUE(is_legal(amd, f16, test::navi31()));
  EXPECT_FALSE(is_legal(amd, bf16, test::navi31()));
  EXPECT_FALSE(is_legal(khr_config, f16, test::lavapipe()));
  EXPECT_FALSE(is_legal(nv_config, f16, test::navi31()));
  const Config fma = test::config("fma:tile=64x64x16,fragment=4x4");  // no table refuses it
  for (const DeviceCaps& caps : test::all_devices()) {
    EXPECT_TRUE(is_legal(fma, bf16, caps)) << caps.name;
  }
}

}  // namespace
}  // namespace vkgemm
