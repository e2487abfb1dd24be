// The C API's tables against the C++ API: what is added to one and not to the other is seen here.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <string>

#include "c/call.hpp"
#include "c/create_info.hpp"
#include "c/fields.hpp"
#include "kernels/main_loop.hpp"

namespace vkgemm::c {
namespace {

// An enumerator of the C++ API that to_string() names is in the table. That none is there twice,
// the compiler sees (enums.hpp).
TEST(CAbi, EveryEnumeratorHasItsOwn) {
  int enumerations = 0;
  for_each_enumeration([&]<class Cpp>() {
    ++enumerations;
    if constexpr (requires(Cpp cpp) { to_string(cpp); }) {
      std::size_t named = 0;
      for (int i = 0; i < 256; ++i) {
        const std::string_view name = to_string(static_cast<Cpp>(i));
        if (name == "?" || name.empty()) continue;
        ++named;
        EXPECT_TRUE(to_c(static_cast<Cpp>(i))) << EnumTable<Cpp>::name << " lacks " << name;
        // vkgemm_enumerator_name() hands it out.
        EXPECT_EQ(std::strlen(name.data()), name.size()) << name;
      }
      EXPECT_EQ(named, std::size(EnumTable<Cpp>::pairs)) << EnumTable<Cpp>::name;
    }
  });
  EXPECT_EQ(enumerations, VKGEMM_ENUMERATION_GROUP_BOUNDS + 1);
}

// These do not compile when a structure gets a field: give it a place in fields.hpp, device.cpp or
// create_info.cpp, and in vkgemm.h.
[[maybe_unused]] void every_field_has_its_place() {
  [[maybe_unused]] const auto& [m_type, m_layout, m_ld, m_stride, m_alignment, m_packing, m_outer] =
      Matrix{};
  [[maybe_unused]] const auto& [e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11, e12, e13, e14, e15,
                                e16] = Epilogue{};
  [[maybe_unused]] const auto& [es1, es2, es3, es4] = EpilogueStep{};
  [[maybe_unused]] const auto& [g1, g2, g3, g4, g5, g6] = Gated{};
  [[maybe_unused]] const auto& [gr1, gr2, gr3, gr4, gr5, gr6, gr7, gr8, gr9, gr10, gr11] =
      Grouping{};
  [[maybe_unused]] const auto& [r1, r2, r3, r4, r5, r6, r7] = RowReduction{};
  [[maybe_unused]] const auto& [s1, s2] = SplitK{};
  [[maybe_unused]] const auto& [q1, q2, q3, q4, q5, q6, q7] = Quantisation{};
  [[maybe_unused]] const auto& [p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15,
                                p16, p17, p18, p19, p20, p21, p22, p23, p24, p25, p26, p27] =
      Problem{};
  [[maybe_unused]] const auto& [o1, o2, o3, o4, o5, o6, o7, o8, o9, o10, o11, o12, o13, o14, o15,
                                o16, o17, o18, o19, o20, o21, o22, o23, o24, o25, o26, o27, o28,
                                o29, o30] = Operands{};
  [[maybe_unused]] const auto& [d1, d2] = DispatchRange{};
  [[maybe_unused]] const auto& [ti1, ti2, ti3, ti4, ti5, ti6, ti7, ti8, ti9, ti10] = TuneInfo{};
  [[maybe_unused]] const auto& [tp1, tp2, tp3, tp4, tp5] = TuneProgress{};
  [[maybe_unused]] const auto& [tr1, tr2, tr3, tr4, tr5, tr6, tr7] = TuneResult{};
  [[maybe_unused]] const auto& [rq1, rq2, rq3, rq4, rq5, rq6] = RowQuantisation{};
  [[maybe_unused]] const auto& [pl1, pl2, pl3, pl4] = PackedLayout{};
  [[maybe_unused]] const auto& [c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14] =
      Config{};
  [[maybe_unused]] const auto& [f1, f2, f3, f4, f5] = FragmentShape{};
  [[maybe_unused]] const auto& [fl1, fl2, fl3, fl4, fl5, fl6, fl7] = FlexibleShape{};
  [[maybe_unused]] const auto& [l1, l2, l3, l4, l5, l6, l7, l8, l9, l10, l11, l12, l13, l14] =
      Limits{};
  [[maybe_unused]] const auto& [de1, de2, de3, de4, de5, de6, de7] = Denial{};
  [[maybe_unused]] const auto& [k1, k2, k3] = KernelKind{};
  [[maybe_unused]] const auto& [v1, v2, v3, v4] = Verdict{};
  [[maybe_unused]] const auto& [st1, st2, st3, st4, st5, st6, st7, st8, st9] = SelfTest{};
  [[maybe_unused]] const auto& [i1, i2, i3, i4, i5, i6, i7, i8, i9, i10, i11, i12] =
      ContextCreateInfo{};
  [[maybe_unused]] const auto& [dc1, dc2, dc3, dc4, dc5, dc6, dc7, dc8, dc9, dc10, dc11, dc12, dc13,
                                dc14, dc15, dc16, dc17, dc18, dc19, dc20, dc21, dc22, dc23, dc24] =
      DeviceCaps{};
}

template <class C>
void expect_round_trip(const typename Fields<C>::Cpp& cpp) {
  Parts parts;
  const C c = ToC::structure<C>(cpp, &parts);
  EXPECT_EQ(c.struct_size, sizeof(C));
  typename Fields<C>::Cpp back;
  const MaybeFailure failure = ToCpp::read(c, "structure", back);
  EXPECT_FALSE(failure) << failure->message;
  EXPECT_TRUE(back == cpp);
}

// Every field at a value that is not its default, so that one that is lost is missed.
TEST(CAbi, FieldsComeBack) {
  const Matrix matrix{.type = DataType::bf16,
                      .layout = Layout::col_major,
                      .ld = 100,
                      .batch_stride = 0,
                      .alignment = 2,
                      .packing = Packing::packed};
  expect_round_trip<VkgemmMatrix>(matrix);
  expect_round_trip<VkgemmMatrix>({});
  std::array<EpilogueStep, most_steps> steps;
  steps.fill({StepOp::derivative, Activation::elu, StepOperand::t3, 0.0f});
  for (std::size_t i = 0; i < most_steps; ++i) steps[i].number = static_cast<float>(i + 1);
  const Epilogue epilogue{.alpha = 2.0f,
                          .row_scales = Scales::per_matrix,
                          .column_scales = Scales::shared,
                          .beta = 3.0f,
                          .bias = Bias::along_m,
                          .bias_type = DataType::f16,
                          .bias_batch_stride = std::uint64_t{1} << 40,
                          .activation = Activation::tanh,
                          .aux = true,
                          .clamp_min = -1.0f,
                          .clamp_max = 4.0f,
                          .tensors = {TensorShape::scalar, TensorShape::along_n,
                                      TensorShape::along_m, TensorShape::matrix},
                          .steps = steps};
  expect_round_trip<VkgemmEpilogue>(epilogue);
  const Gated gated{.gate = Gate::glu, .b = GatedB::separate};
  expect_round_trip<VkgemmGated>(gated);
  const Quantisation codes{.type = CodeType::int4,
                           .group_k = 128,
                           .group_n = 0,
                           .scale_type = DataType::bf16,
                           .zeros = true,
                           .layout = CodeLayout::ggml_blocks,
                           .float_zeros = true};
  expect_round_trip<VkgemmQuantisation>(codes);
  expect_round_trip<VkgemmQuantisation>({});
  const Grouping grouping{
      .groups = 7, .offsets = OffsetType::int64, .along = GroupAlong::k, .b = GroupedB::per_group};
  expect_round_trip<VkgemmGrouping>(grouping);
  const RowReduction rows{.op = RowOp::variance,
                          .eps = 0.25f,
                          .gamma = true,
                          .beta = true,
                          .vector_type = DataType::bf16,
                          .value_type = DataType::f16,
                          .store_d = false};
  expect_round_trip<VkgemmRowReduction>(rows);
  const SplitK split_k{.slices = 9, .reduction_mode = ReductionMode::device_barrier};
  expect_round_trip<VkgemmSplitK>(split_k);
  expect_round_trip<VkgemmSplitK>({});
  Matrix others[4] = {matrix, matrix, matrix, matrix};
  for (std::uint32_t i = 0; i < 4; ++i) others[i].ld = 200 + i;
  expect_round_trip<VkgemmProblem>({.m = 1,
                                    .n = 2,
                                    .k = 3,
                                    .batch = 4,
                                    .a = matrix,
                                    .b = others[0],
                                    .c = others[1],
                                    .d = others[2],
                                    .aux = others[3],
                                    .epilogue = epilogue,
                                    .quantised_b = codes,
                                    .gated = gated,
                                    .grouping = grouping,
                                    .row_reduction = rows,
                                    .t0 = others[3],
                                    .t1 = others[2],
                                    .t2 = others[1],
                                    .t3 = others[0],
                                    .f32_arithmetic = F32Arithmetic::f16x3,
                                    .a_group_k = 64,
                                    .split_k = split_k,
                                    .max_workspace_bytes = 5,
                                    .max_dispatch_ms = 6.0,
                                    .estimate_scale = 7.0});
  expect_round_trip<VkgemmProblem>({});
  expect_round_trip<VkgemmRowQuantisation>({.rows = 1,
                                            .columns = 2,
                                            .batch = 3,
                                            .source = others[0],
                                            .codes = others[1],
                                            .group_k = 32});
  expect_round_trip<VkgemmRowQuantisation>({});
  for (const LoopDescriptor* const loop : main_loops()) {
    KernelKind kind{.loop = loop->loop, .input = DataType::bf16};
    std::iota(kind.numbers.begin(), kind.numbers.begin() + loop->kind_numbers.size(), 1u);
    if (auto* const a_in_rows = find_number(kind, "a_in_rows")) *a_in_rows = 1;  // a boolean of C
    expect_round_trip<VkgemmKernelKind>(kind);
  }
  expect_round_trip<VkgemmVerdict>({.kind = {.loop = MainLoop::nv, .numbers = {9}},
                                    .outcome = Outcome::timed_out,
                                    .detail = "detail",
                                    .config = "config"});
}

TEST(CAbi, OperandsComeOver) {
  const auto spans_of = [](Operands& o) {
    return std::array{&o.a,
                      &o.b,
                      &o.b_right,
                      &o.c,
                      &o.d,
                      &o.bias,
                      &o.aux,
                      &o.offsets,
                      &o.gamma,
                      &o.beta,
                      &o.source,
                      &o.codes,
                      &o.scales,
                      &o.zeros,
                      &o.packed,
                      &o.row_values,
                      &o.workspace,
                      &o.row_scales,
                      &o.column_scales,
                      &o.t0,
                      &o.t1,
                      &o.t2,
                      &o.t3};
  };
  Operands cpp, back;
  std::uint64_t i = 0;
  for (DeviceSpan* span : spans_of(cpp)) {
    *span = {100 + i, 200 + i};
    ++i;
  }
  cpp.a_fingerprint.bytes[3] = 1;
  cpp.b_fingerprint.bytes[63] = 2;
  cpp.b_right_fingerprint.bytes[1] = 3;
  ASSERT_FALSE(ToCpp::read(ToC::structure<VkgemmOperands>(cpp), "operands", back));
  i = 0;
  for (const DeviceSpan* span : spans_of(back)) {
    EXPECT_EQ(span->address, 100 + i);
    EXPECT_EQ(span->bytes, 200 + i++);
  }
  EXPECT_TRUE(back.a_fingerprint == cpp.a_fingerprint);
  EXPECT_TRUE(back.b_fingerprint == cpp.b_fingerprint);
  EXPECT_TRUE(back.b_right_fingerprint == cpp.b_right_fingerprint);
}

// Fields beside the file and the callback.
TEST(CAbi, TuneInfoComesOver) {
  const TuneInfo cpp{.queue = reinterpret_cast<VkQueue>(std::uintptr_t{64}),
                     .queue_family = 1,
                     .budget_ms = 2.0,
                     .max_candidates = 3,
                     .threads = 4,
                     .warm_l2 = true,
                     .skip_timed = true};
  TuneInfo back;
  ASSERT_FALSE(ToCpp::read(ToC::structure<VkgemmTuneInfo>(cpp), "info", back));
  EXPECT_EQ(back.queue, cpp.queue);
  EXPECT_EQ(back.queue_family, 1u);
  EXPECT_EQ(back.budget_ms, 2.0);
  EXPECT_EQ(back.max_candidates, 3u);
  EXPECT_EQ(back.threads, 4u);
  EXPECT_TRUE(back.warm_l2 && back.skip_timed);
}

TEST(CAbi, NoExceptionGetsOut) {
  VkgemmError error;
  const auto message = [&] {
    const char* text = nullptr;
    EXPECT_EQ(vkgemm_error_message(&error, &text), VKGEMM_SUCCESS);
    return std::string(text);
  };
  EXPECT_EQ(call(&error, {}, [] { throw std::bad_alloc(); }), VKGEMM_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(message(), "no host memory");
  EXPECT_EQ(call(&error, {}, [] { throw 42; }), VKGEMM_ERROR_INTERNAL);
  EXPECT_EQ(message(), "an exception that vkgemm did not expect");
  EXPECT_EQ(call(&error, {},
                 []() -> MaybeFailure {
                   return Failure{VKGEMM_ERROR_DRIVER, "vkFoo failed", VK_ERROR_UNKNOWN};
                 }),
            VKGEMM_ERROR_DRIVER);
  EXPECT_EQ(message(), "vkFoo failed");
  EXPECT_EQ(error.vk_result, VK_ERROR_UNKNOWN);
  // What went wrong before is forgotten.
  EXPECT_EQ(call(&error, {}, [] { throw std::bad_alloc(); }), VKGEMM_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(error.vk_result, VK_SUCCESS);
  EXPECT_EQ(call(&error, {}, [] {}), VKGEMM_SUCCESS);
  EXPECT_EQ(message(), "");
}

// A handle says that it is destroyed while its memory is still there.
TEST(CAbi, DestroyedHandlesAreMarked) {
  const auto memory = std::make_unique<std::byte[]>(sizeof(VkgemmVerdicts));
  auto* const verdicts = new (memory.get()) VkgemmVerdicts;
  void* volatile later = verdicts;  // what a compiler may not look through
  EXPECT_TRUE(is_alive(verdicts));
  EXPECT_FALSE(is_alive(static_cast<const VkgemmPlan*>(later)));
  verdicts->~VkgemmVerdicts();
  EXPECT_FALSE(is_alive(static_cast<const VkgemmVerdicts*>(later)));
}

// The defaults of structures that fields.hpp doesn't map are those of the C++ API.
TEST(CAbi, DefaultsOfSelfTest) {
  const auto c = defaults<VkgemmSelfTest>();
  EXPECT_EQ(c.timeout_ms, SelfTest{}.timeout_ms);
  EXPECT_EQ(c.use_deny_list == VK_TRUE, SelfTest{}.use_deny_list);
  EXPECT_EQ(c.read_default_file == VK_TRUE, SelfTest{}.read_default_file);
  EXPECT_EQ(c.use_trusted_list == VK_TRUE, SelfTest{}.use_trusted_list);
}

}  // namespace
}  // namespace vkgemm::c
