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

template <>
struct EnumTable<Status> {
  using C = VkgemmStatus;
  static constexpr const char* name = "VkgemmStatus";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_STATUS;
  static constexpr EnumPair<Status, C> pairs[] = {
      {Status::invalid_argument, VKGEMM_ERROR_INVALID_ARGUMENT},
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
      {Status::driver_error, VKGEMM_ERROR_DRIVER},
  };
};

template <>
struct EnumTable<LogLevel> {
  using C = VkgemmLogLevel;
  static constexpr const char* name = "VkgemmLogLevel";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_LOG_LEVEL;
  static constexpr EnumPair<LogLevel, C> pairs[] = {
      {LogLevel::info, VKGEMM_LOG_LEVEL_INFO},
      {LogLevel::warning, VKGEMM_LOG_LEVEL_WARNING},
      {LogLevel::error, VKGEMM_LOG_LEVEL_ERROR},
  };
};

template <>
struct EnumTable<DataType> {
  using C = VkgemmDataType;
  static constexpr const char* name = "VkgemmDataType";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_DATA_TYPE;
  static constexpr EnumPair<DataType, C> pairs[] = {
#define VKGEMM_PAIR(name, NAME, bytes) {DataType::name, VKGEMM_DATA_TYPE_##NAME},
      VKGEMM_TYPES(VKGEMM_PAIR)
#undef VKGEMM_PAIR
  };
};

template <>
struct EnumTable<F32Arithmetic> {
  using C = VkgemmF32Arithmetic;
  static constexpr const char* name = "VkgemmF32Arithmetic";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_F32_ARITHMETIC;
  static constexpr EnumPair<F32Arithmetic, C> pairs[] = {
      {F32Arithmetic::ieee, VKGEMM_F32_ARITHMETIC_IEEE},
      {F32Arithmetic::bf16x9, VKGEMM_F32_ARITHMETIC_BF16X9},
      {F32Arithmetic::bf16x6, VKGEMM_F32_ARITHMETIC_BF16X6},
      {F32Arithmetic::f16x3, VKGEMM_F32_ARITHMETIC_F16X3},
  };
};

template <>
struct EnumTable<Layout> {
  using C = VkgemmLayout;
  static constexpr const char* name = "VkgemmLayout";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_LAYOUT;
  static constexpr EnumPair<Layout, C> pairs[] = {
      {Layout::row_major, VKGEMM_LAYOUT_ROW_MAJOR},
      {Layout::col_major, VKGEMM_LAYOUT_COL_MAJOR},
  };
};

template <>
struct EnumTable<Packing> {
  using C = VkgemmPacking;
  static constexpr const char* name = "VkgemmPacking";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_PACKING;
  static constexpr EnumPair<Packing, C> pairs[] = {
      {Packing::plain, VKGEMM_PACKING_PLAIN},
      {Packing::packed, VKGEMM_PACKING_PACKED},
  };
};

template <>
struct EnumTable<Activation> {
  using C = VkgemmActivation;
  static constexpr const char* name = "VkgemmActivation";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_ACTIVATION;
  static constexpr EnumPair<Activation, C> pairs[] = {
#define VKGEMM_PAIR(name, NAME, value) {Activation::name, VKGEMM_ACTIVATION_##NAME},
      {Activation::none, VKGEMM_ACTIVATION_NONE}, VKGEMM_ACTIVATIONS(VKGEMM_PAIR)
#undef VKGEMM_PAIR
  };
};

template <>
struct EnumTable<Bias> {
  using C = VkgemmBias;
  static constexpr const char* name = "VkgemmBias";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_BIAS;
  static constexpr EnumPair<Bias, C> pairs[] = {
      {Bias::none, VKGEMM_BIAS_NONE},
      {Bias::along_n, VKGEMM_BIAS_ALONG_N},
      {Bias::along_m, VKGEMM_BIAS_ALONG_M},
  };
};

template <>
struct EnumTable<Scales> {
  using C = VkgemmScales;
  static constexpr const char* name = "VkgemmScales";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_SCALES;
  static constexpr EnumPair<Scales, C> pairs[] = {
      {Scales::none, VKGEMM_SCALES_NONE},
      {Scales::shared, VKGEMM_SCALES_SHARED},
      {Scales::per_matrix, VKGEMM_SCALES_PER_MATRIX},
  };
};

template <>
struct EnumTable<Gate> {
  using C = VkgemmGate;
  static constexpr const char* name = "VkgemmGate";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_GATE;
  static constexpr EnumPair<Gate, C> pairs[] = {
      {Gate::sigmoid_tanh, VKGEMM_GATE_SIGMOID_TANH},
      {Gate::geglu_erf, VKGEMM_GATE_GEGLU_ERF},
      {Gate::geglu_tanh, VKGEMM_GATE_GEGLU_TANH},
      {Gate::swiglu, VKGEMM_GATE_SWIGLU},
      {Gate::reglu, VKGEMM_GATE_REGLU},
      {Gate::glu, VKGEMM_GATE_GLU},
  };
};

template <>
struct EnumTable<GatedB> {
  using C = VkgemmGatedB;
  static constexpr const char* name = "VkgemmGatedB";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_GATED_B;
  static constexpr EnumPair<GatedB, C> pairs[] = {
      {GatedB::halves, VKGEMM_GATED_B_HALVES},
      {GatedB::separate, VKGEMM_GATED_B_SEPARATE},
      {GatedB::interleaved, VKGEMM_GATED_B_INTERLEAVED},
  };
};

template <>
struct EnumTable<OffsetType> {
  using C = VkgemmOffsetType;
  static constexpr const char* name = "VkgemmOffsetType";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_OFFSET_TYPE;
  static constexpr EnumPair<OffsetType, C> pairs[] = {
      {OffsetType::int32, VKGEMM_OFFSET_TYPE_INT32},
      {OffsetType::int64, VKGEMM_OFFSET_TYPE_INT64},
  };
};

template <>
struct EnumTable<GroupAlong> {
  using C = VkgemmGroupAlong;
  static constexpr const char* name = "VkgemmGroupAlong";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_GROUP_ALONG;
  static constexpr EnumPair<GroupAlong, C> pairs[] = {
      {GroupAlong::m, VKGEMM_GROUP_ALONG_M},
      {GroupAlong::k, VKGEMM_GROUP_ALONG_K},
  };
};

template <>
struct EnumTable<GroupedB> {
  using C = VkgemmGroupedB;
  static constexpr const char* name = "VkgemmGroupedB";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_GROUPED_B;
  static constexpr EnumPair<GroupedB, C> pairs[] = {
      {GroupedB::shared, VKGEMM_GROUPED_B_SHARED},
      {GroupedB::per_group, VKGEMM_GROUPED_B_PER_GROUP},
  };
};

template <>
struct EnumTable<RowOp> {
  using C = VkgemmRowOp;
  static constexpr const char* name = "VkgemmRowOp";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_ROW_OP;
  static constexpr EnumPair<RowOp, C> pairs[] = {
#define VKGEMM_PAIR(name, NAME) {RowOp::name, VKGEMM_ROW_OP_##NAME},
      VKGEMM_ROW_OPS(VKGEMM_PAIR)
#undef VKGEMM_PAIR
  };
};

template <>
struct EnumTable<Path> {
  using C = VkgemmPath;
  static constexpr const char* name = "VkgemmPath";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_PATH;
  static constexpr EnumPair<Path, C> pairs[] = {
      {Path::nv, VKGEMM_PATH_NV},
      {Path::khr, VKGEMM_PATH_KHR},
      {Path::fma, VKGEMM_PATH_FMA},
  };
};

template <>
struct EnumTable<MainLoop> {
  using C = VkgemmMainLoop;
  static constexpr const char* name = "VkgemmMainLoop";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_MAIN_LOOP;
  static constexpr EnumPair<MainLoop, C> pairs[] = {
#define VKGEMM_PAIR(name, NAME) {MainLoop::name, VKGEMM_MAIN_LOOP_##NAME},
      VKGEMM_MAIN_LOOPS(VKGEMM_PAIR)
#undef VKGEMM_PAIR
  };
};

template <>
struct EnumTable<Schedule> {
  using C = VkgemmSchedule;
  static constexpr const char* name = "VkgemmSchedule";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_SCHEDULE;
  static constexpr EnumPair<Schedule, C> pairs[] = {
      {Schedule::simple, VKGEMM_SCHEDULE_SIMPLE},
      {Schedule::persistent, VKGEMM_SCHEDULE_PERSISTENT},
  };
};

template <>
struct EnumTable<ReductionMode> {
  using C = VkgemmReductionMode;
  static constexpr const char* name = "VkgemmReductionMode";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_REDUCTION_MODE;
  static constexpr EnumPair<ReductionMode, C> pairs[] = {
      {ReductionMode::two_dispatches, VKGEMM_REDUCTION_MODE_TWO_DISPATCHES},
      {ReductionMode::last_arriver, VKGEMM_REDUCTION_MODE_LAST_ARRIVER},
      {ReductionMode::device_barrier, VKGEMM_REDUCTION_MODE_DEVICE_BARRIER},
  };
};

template <>
struct EnumTable<RowStrategy> {
  using C = VkgemmRowStrategy;
  static constexpr const char* name = "VkgemmRowStrategy";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_ROW_STRATEGY;
  static constexpr EnumPair<RowStrategy, C> pairs[] = {
      {RowStrategy::none, VKGEMM_ROW_STRATEGY_NONE},
      {RowStrategy::resident, VKGEMM_ROW_STRATEGY_RESIDENT},
      {RowStrategy::panel, VKGEMM_ROW_STRATEGY_PANEL},
      {RowStrategy::recompute, VKGEMM_ROW_STRATEGY_RECOMPUTE},
      {RowStrategy::two_pass, VKGEMM_ROW_STRATEGY_TWO_PASS},
  };
};

template <>
struct EnumTable<MatrixScope> {
  using C = VkgemmMatrixScope;
  static constexpr const char* name = "VkgemmMatrixScope";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_MATRIX_SCOPE;
  static constexpr EnumPair<MatrixScope, C> pairs[] = {
      {MatrixScope::subgroup, VKGEMM_MATRIX_SCOPE_SUBGROUP},
      {MatrixScope::workgroup, VKGEMM_MATRIX_SCOPE_WORKGROUP},
  };
};

template <>
struct EnumTable<Outcome> {
  using C = VkgemmOutcome;
  static constexpr const char* name = "VkgemmOutcome";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_OUTCOME;
  static constexpr EnumPair<Outcome, C> pairs[] = {
      {Outcome::passed, VKGEMM_OUTCOME_PASSED},
      {Outcome::wrong_result, VKGEMM_OUTCOME_WRONG_RESULT},
      {Outcome::driver_error, VKGEMM_OUTCOME_DRIVER_ERROR},
      {Outcome::device_lost, VKGEMM_OUTCOME_DEVICE_LOST},
      {Outcome::timed_out, VKGEMM_OUTCOME_TIMED_OUT},
      {Outcome::crashed, VKGEMM_OUTCOME_CRASHED},
      {Outcome::unusable, VKGEMM_OUTCOME_UNUSABLE},
      {Outcome::untested, VKGEMM_OUTCOME_UNTESTED},
  };
};

template <>
struct EnumTable<PackedOperand> {
  using C = VkgemmPackedOperand;
  static constexpr const char* name = "VkgemmPackedOperand";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_PACKED_OPERAND;
  static constexpr EnumPair<PackedOperand, C> pairs[] = {
      {PackedOperand::a, VKGEMM_PACKED_OPERAND_A},
      {PackedOperand::b, VKGEMM_PACKED_OPERAND_B},
  };
};

template <>
struct EnumTable<CodeType> {
  using C = VkgemmCodeType;
  static constexpr const char* name = "VkgemmCodeType";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_CODE_TYPE;
  static constexpr EnumPair<CodeType, C> pairs[] = {
#define VKGEMM_PAIR(name, NAME) {CodeType::name, VKGEMM_CODE_TYPE_##NAME},
      VKGEMM_CODE_TYPES(VKGEMM_PAIR)
#undef VKGEMM_PAIR
  };
};

template <>
struct EnumTable<CodeLayout> {
  using C = VkgemmCodeLayout;
  static constexpr const char* name = "VkgemmCodeLayout";
  static constexpr VkgemmEnumeration enumeration = VKGEMM_ENUMERATION_CODE_LAYOUT;
  static constexpr EnumPair<CodeLayout, C> pairs[] = {
      {CodeLayout::separate, VKGEMM_CODE_LAYOUT_SEPARATE},
      {CodeLayout::ggml_blocks, VKGEMM_CODE_LAYOUT_GGML_BLOCKS},
  };
};

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
  each.template operator()<Status, LogLevel, DataType, Layout, Packing, Activation, Bias, Gate,
                           GatedB, OffsetType, GroupAlong, GroupedB, RowOp, Path, MainLoop,
                           Schedule, ReductionMode, RowStrategy, MatrixScope, Outcome,
                           PackedOperand, CodeType, CodeLayout, Scales, F32Arithmetic>();
}

}  // namespace vkgemm::c
