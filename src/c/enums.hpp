// enums.hpp: which enumerator of the C API is which of the C++ API. The values of the former are
// for good; those of the latter may change.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

#include "kernels/loops/list.hpp"
#include "lib/constants.h"
#include "lib/epilogue/activation.h"
#include "vkgemm/context.hpp"
#include "vkgemm/vkgemm.h"

namespace vkgemm::c {

// The pairs of an enumeration of the C++ API, with what the C API calls it.
template <class Cpp>
struct EnumTable;

template <class Cpp, class C>
struct EnumPair {
  Cpp cpp;
  C c;
};

// The table of an enumeration of the same name in both APIs, from its pairs.
#define VKGEMM_ENUM_TABLE(Cpp, NAME, ...)                                       \
  template <>                                                                   \
  struct EnumTable<Cpp> {                                                       \
    using C = Vkgemm##Cpp;                                                      \
    static constexpr const char* name = "Vkgemm" #Cpp;                          \
    static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_##NAME; \
    static constexpr EnumPair<Cpp, C> pairs[] = {__VA_ARGS__};                  \
  };

VKGEMM_ENUM_TABLE(Status, STATUS, {Status::invalid_argument, VKGEMM_ERROR_INVALID_ARGUMENT},
                  {Status::unsupported, VKGEMM_ERROR_UNSUPPORTED},
                  {Status::misaligned, VKGEMM_ERROR_MISALIGNED},
                  {Status::span_too_small, VKGEMM_ERROR_SPAN_TOO_SMALL},
                  {Status::overlapping_operands, VKGEMM_ERROR_OVERLAPPING_OPERANDS},
                  {Status::workspace_too_small, VKGEMM_ERROR_WORKSPACE_TOO_SMALL},
                  {Status::wrong_fingerprint, VKGEMM_ERROR_WRONG_FINGERPRINT},
                  {Status::wrong_context, VKGEMM_ERROR_WRONG_CONTEXT},
                  {Status::missing_feature, VKGEMM_ERROR_MISSING_FEATURE},
                  {Status::io_error, VKGEMM_ERROR_IO},
                  {Status::out_of_host_memory, VKGEMM_ERROR_OUT_OF_HOST_MEMORY},
                  {Status::out_of_device_memory, VKGEMM_ERROR_OUT_OF_DEVICE_MEMORY},
                  {Status::device_lost, VKGEMM_ERROR_DEVICE_LOST},
                  {Status::driver_error, VKGEMM_ERROR_DRIVER})

VKGEMM_ENUM_TABLE(LogLevel, LOG_LEVEL, {LogLevel::info, VKGEMM_LOG_LEVEL_INFO},
                  {LogLevel::warning, VKGEMM_LOG_LEVEL_WARNING},
                  {LogLevel::error, VKGEMM_LOG_LEVEL_ERROR})

#define VKGEMM_PAIR(name, NAME, bytes) {DataType::name, VKGEMM_DATA_TYPE_##NAME},
VKGEMM_ENUM_TABLE(DataType, DATA_TYPE, VKGEMM_TYPES(VKGEMM_PAIR))
#undef VKGEMM_PAIR

VKGEMM_ENUM_TABLE(F32Arithmetic, F32_ARITHMETIC, {F32Arithmetic::ieee, VKGEMM_F32_ARITHMETIC_IEEE},
                  {F32Arithmetic::bf16x9, VKGEMM_F32_ARITHMETIC_BF16X9},
                  {F32Arithmetic::bf16x6, VKGEMM_F32_ARITHMETIC_BF16X6},
                  {F32Arithmetic::f16x3, VKGEMM_F32_ARITHMETIC_F16X3})

VKGEMM_ENUM_TABLE(Layout, LAYOUT, {Layout::row_major, VKGEMM_LAYOUT_ROW_MAJOR},
                  {Layout::col_major, VKGEMM_LAYOUT_COL_MAJOR})

VKGEMM_ENUM_TABLE(Packing, PACKING, {Packing::plain, VKGEMM_PACKING_PLAIN},
                  {Packing::packed, VKGEMM_PACKING_PACKED},
                  {Packing::packed_rows, VKGEMM_PACKING_PACKED_ROWS},
                  {Packing::packed_fragments, VKGEMM_PACKING_PACKED_FRAGMENTS})

#define VKGEMM_PAIR(name, NAME, value) {Activation::name, VKGEMM_ACTIVATION_##NAME},
VKGEMM_ENUM_TABLE(Activation, ACTIVATION, {Activation::none, VKGEMM_ACTIVATION_NONE},
                  VKGEMM_ACTIVATIONS(VKGEMM_PAIR))
#undef VKGEMM_PAIR

#define VKGEMM_PAIR(name, NAME) {StepOp::name, VKGEMM_STEP_OP_##NAME},
VKGEMM_ENUM_TABLE(StepOp, STEP_OP, {StepOp::none, VKGEMM_STEP_OP_NONE},
                  VKGEMM_STEP_OPS(VKGEMM_PAIR))
#undef VKGEMM_PAIR

VKGEMM_ENUM_TABLE(StepOperand, STEP_OPERAND, {StepOperand::number, VKGEMM_STEP_OPERAND_NUMBER},
                  {StepOperand::t0, VKGEMM_STEP_OPERAND_T0},
                  {StepOperand::t1, VKGEMM_STEP_OPERAND_T1},
                  {StepOperand::t2, VKGEMM_STEP_OPERAND_T2},
                  {StepOperand::t3, VKGEMM_STEP_OPERAND_T3})

VKGEMM_ENUM_TABLE(TensorShape, TENSOR_SHAPE, {TensorShape::none, VKGEMM_TENSOR_SHAPE_NONE},
                  {TensorShape::scalar, VKGEMM_TENSOR_SHAPE_SCALAR},
                  {TensorShape::along_n, VKGEMM_TENSOR_SHAPE_ALONG_N},
                  {TensorShape::along_m, VKGEMM_TENSOR_SHAPE_ALONG_M},
                  {TensorShape::matrix, VKGEMM_TENSOR_SHAPE_MATRIX},
                  {TensorShape::mask, VKGEMM_TENSOR_SHAPE_MASK})

VKGEMM_ENUM_TABLE(Bias, BIAS, {Bias::none, VKGEMM_BIAS_NONE}, {Bias::along_n, VKGEMM_BIAS_ALONG_N},
                  {Bias::along_m, VKGEMM_BIAS_ALONG_M})

VKGEMM_ENUM_TABLE(Scales, SCALES, {Scales::none, VKGEMM_SCALES_NONE},
                  {Scales::shared, VKGEMM_SCALES_SHARED},
                  {Scales::per_matrix, VKGEMM_SCALES_PER_MATRIX})

VKGEMM_ENUM_TABLE(Gate, GATE, {Gate::sigmoid_tanh, VKGEMM_GATE_SIGMOID_TANH},
                  {Gate::geglu_erf, VKGEMM_GATE_GEGLU_ERF},
                  {Gate::geglu_tanh, VKGEMM_GATE_GEGLU_TANH}, {Gate::swiglu, VKGEMM_GATE_SWIGLU},
                  {Gate::reglu, VKGEMM_GATE_REGLU}, {Gate::glu, VKGEMM_GATE_GLU})

VKGEMM_ENUM_TABLE(GatedB, GATED_B, {GatedB::halves, VKGEMM_GATED_B_HALVES},
                  {GatedB::separate, VKGEMM_GATED_B_SEPARATE},
                  {GatedB::interleaved, VKGEMM_GATED_B_INTERLEAVED})

VKGEMM_ENUM_TABLE(OffsetType, OFFSET_TYPE, {OffsetType::int32, VKGEMM_OFFSET_TYPE_INT32},
                  {OffsetType::int64, VKGEMM_OFFSET_TYPE_INT64})

VKGEMM_ENUM_TABLE(GroupAlong, GROUP_ALONG, {GroupAlong::m, VKGEMM_GROUP_ALONG_M},
                  {GroupAlong::k, VKGEMM_GROUP_ALONG_K})

VKGEMM_ENUM_TABLE(GroupedB, GROUPED_B, {GroupedB::shared, VKGEMM_GROUPED_B_SHARED},
                  {GroupedB::per_group, VKGEMM_GROUPED_B_PER_GROUP})

VKGEMM_ENUM_TABLE(GroupBounds, GROUP_BOUNDS, {GroupBounds::offsets, VKGEMM_GROUP_BOUNDS_OFFSETS},
                  {GroupBounds::sizes, VKGEMM_GROUP_BOUNDS_SIZES},
                  {GroupBounds::starts_and_sizes, VKGEMM_GROUP_BOUNDS_STARTS_AND_SIZES})

#define VKGEMM_PAIR(name, NAME) {RowOp::name, VKGEMM_ROW_OP_##NAME},
VKGEMM_ENUM_TABLE(RowOp, ROW_OP, VKGEMM_ROW_OPS(VKGEMM_PAIR))
#undef VKGEMM_PAIR

VKGEMM_ENUM_TABLE(Path, PATH, {Path::nv, VKGEMM_PATH_NV}, {Path::khr, VKGEMM_PATH_KHR},
                  {Path::fma, VKGEMM_PATH_FMA})

#define VKGEMM_PAIR(name, NAME) {MainLoop::name, VKGEMM_MAIN_LOOP_##NAME},
VKGEMM_ENUM_TABLE(MainLoop, MAIN_LOOP, VKGEMM_MAIN_LOOPS(VKGEMM_PAIR))
#undef VKGEMM_PAIR

VKGEMM_ENUM_TABLE(Schedule, SCHEDULE, {Schedule::simple, VKGEMM_SCHEDULE_SIMPLE},
                  {Schedule::persistent, VKGEMM_SCHEDULE_PERSISTENT})

VKGEMM_ENUM_TABLE(ReductionMode, REDUCTION_MODE,
                  {ReductionMode::two_dispatches, VKGEMM_REDUCTION_MODE_TWO_DISPATCHES},
                  {ReductionMode::last_arriver, VKGEMM_REDUCTION_MODE_LAST_ARRIVER},
                  {ReductionMode::device_barrier, VKGEMM_REDUCTION_MODE_DEVICE_BARRIER})

VKGEMM_ENUM_TABLE(RowStrategy, ROW_STRATEGY, {RowStrategy::none, VKGEMM_ROW_STRATEGY_NONE},
                  {RowStrategy::resident, VKGEMM_ROW_STRATEGY_RESIDENT},
                  {RowStrategy::panel, VKGEMM_ROW_STRATEGY_PANEL},
                  {RowStrategy::recompute, VKGEMM_ROW_STRATEGY_RECOMPUTE},
                  {RowStrategy::two_pass, VKGEMM_ROW_STRATEGY_TWO_PASS})

VKGEMM_ENUM_TABLE(MatrixScope, MATRIX_SCOPE, {MatrixScope::subgroup, VKGEMM_MATRIX_SCOPE_SUBGROUP},
                  {MatrixScope::workgroup, VKGEMM_MATRIX_SCOPE_WORKGROUP})

VKGEMM_ENUM_TABLE(Outcome, OUTCOME, {Outcome::passed, VKGEMM_OUTCOME_PASSED},
                  {Outcome::wrong_result, VKGEMM_OUTCOME_WRONG_RESULT},
                  {Outcome::driver_error, VKGEMM_OUTCOME_DRIVER_ERROR},
                  {Outcome::device_lost, VKGEMM_OUTCOME_DEVICE_LOST},
                  {Outcome::timed_out, VKGEMM_OUTCOME_TIMED_OUT},
                  {Outcome::crashed, VKGEMM_OUTCOME_CRASHED},
                  {Outcome::unusable, VKGEMM_OUTCOME_UNUSABLE},
                  {Outcome::untested, VKGEMM_OUTCOME_UNTESTED})

VKGEMM_ENUM_TABLE(PackedOperand, PACKED_OPERAND, {PackedOperand::a, VKGEMM_PACKED_OPERAND_A},
                  {PackedOperand::b, VKGEMM_PACKED_OPERAND_B})

#define VKGEMM_PAIR(name, NAME) {CodeType::name, VKGEMM_CODE_TYPE_##NAME},
VKGEMM_ENUM_TABLE(CodeType, CODE_TYPE, VKGEMM_CODE_TYPES(VKGEMM_PAIR))
#undef VKGEMM_PAIR

VKGEMM_ENUM_TABLE(CodeLayout, CODE_LAYOUT, {CodeLayout::separate, VKGEMM_CODE_LAYOUT_SEPARATE},
                  {CodeLayout::ggml_blocks, VKGEMM_CODE_LAYOUT_GGML_BLOCKS},
                  {CodeLayout::gptq, VKGEMM_CODE_LAYOUT_GPTQ},
                  {CodeLayout::gptq_v2, VKGEMM_CODE_LAYOUT_GPTQ_V2},
                  {CodeLayout::awq, VKGEMM_CODE_LAYOUT_AWQ})

#undef VKGEMM_ENUM_TABLE

template <class Cpp>
using CEnum = typename EnumTable<Cpp>::C;

// The value of an enumerator that may be none: enumerations of C hold what they are given.
template <class C>
std::int32_t value_of(const C& enumerator) noexcept {
  static_assert(std::is_enum_v<C> && sizeof(C) == sizeof(std::int32_t));
  std::int32_t value = 0;
  std::memcpy(&value, &enumerator, sizeof value);
  return value;
}

// The enumerator of the other API; nothing if the table holds none.
template <class Cpp>
constexpr std::optional<CEnum<Cpp>> to_c(Cpp enumerator) noexcept {
  for (const auto& pair : EnumTable<Cpp>::pairs) {
    if (pair.cpp == enumerator) return pair.c;
  }
  return std::nullopt;
}
template <class Cpp>
constexpr std::optional<Cpp> to_cpp(std::int32_t value) noexcept {
  for (const auto& pair : EnumTable<Cpp>::pairs) {
    if (pair.c == value) return pair.cpp;
  }
  return std::nullopt;
}

// True if each side of the table leads to the other, and so stands there once.
template <class Cpp>
constexpr bool is_one_to_one() noexcept {
  for (const auto& pair : EnumTable<Cpp>::pairs) {
    if (to_c(pair.cpp) != pair.c || to_cpp<Cpp>(pair.c) != pair.cpp) return false;
  }
  return true;
}

// Every table, once. Calls visit.template operator()<Cpp>() for each.
template <class Visit>
constexpr void for_each_enumeration(Visit&& visit) {
  const auto each = [&]<class... Cpp>() {
    static_assert((is_one_to_one<Cpp>() && ...));
    (visit.template operator()<Cpp>(), ...);
  };
  each.template
  operator()<Status, LogLevel, DataType, Layout, Packing, Activation, Bias, Gate, GatedB,
             OffsetType, GroupAlong, GroupedB, RowOp, Path, MainLoop, Schedule, ReductionMode,
             RowStrategy, MatrixScope, Outcome, PackedOperand, CodeType, CodeLayout, Scales,
             F32Arithmetic, StepOp, StepOperand, TensorShape, GroupBounds>();
}

}  // namespace vkgemm::c
