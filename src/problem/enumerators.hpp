// enumerators.hpp: the last enumerator of each enumeration of a problem. Larger values are invalid.
#pragma once

#include <iterator>

#include "lib/epilogue/activation.h"
#include "lib/quantised.h"
#include "problem/data_type.hpp"
#include "problem/row_op.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm {

template <class Enum>
inline constexpr Enum last_enumerator = [] {
  static_assert(sizeof(Enum) == 0, "list the last enumerator here");
  return Enum{};
}();
template <>
inline constexpr auto last_enumerator<DataType> = data_types[std::size(data_types) - 1].type;
template <>
inline constexpr auto last_enumerator<F32Arithmetic> = F32Arithmetic::f16x3;
template <>
inline constexpr auto last_enumerator<Layout> = Layout::col_major;
template <>
inline constexpr auto last_enumerator<Packing> = Packing::packed;
#define VKGEMM_NAME(name, NAME) #name,
template <>
inline constexpr auto last_enumerator<CodeType> = [] {
  constexpr const char* names[] = {VKGEMM_CODE_TYPES(VKGEMM_NAME)};
  return static_cast<CodeType>(std::size(names) - 1);
}();
#undef VKGEMM_NAME
template <>
inline constexpr auto last_enumerator<CodeLayout> = CodeLayout::ggml_blocks;
#define VKGEMM_NAME(name, NAME, value) #name,
template <>
inline constexpr auto last_enumerator<Activation> = [] {
  constexpr const char* names[] = {VKGEMM_ACTIVATIONS(VKGEMM_NAME)};
  return static_cast<Activation>(std::size(names));  // after none
}();
#undef VKGEMM_NAME
template <>
inline constexpr auto last_enumerator<Bias> = Bias::along_m;
template <>
inline constexpr auto last_enumerator<Scales> = Scales::per_matrix;
template <>
inline constexpr auto last_enumerator<Gate> = Gate::glu;
template <>
inline constexpr auto last_enumerator<GatedB> = GatedB::interleaved;
template <>
inline constexpr auto last_enumerator<OffsetType> = OffsetType::int64;
template <>
inline constexpr auto last_enumerator<GroupAlong> = GroupAlong::k;
template <>
inline constexpr auto last_enumerator<GroupedB> = GroupedB::per_group;
template <>
inline constexpr auto last_enumerator<RowOp> = row_ops[std::size(row_ops) - 1].op;
template <>
inline constexpr auto last_enumerator<ReductionMode> = ReductionMode::device_barrier;
template <>
inline constexpr auto last_enumerator<Path> = Path::fma;

template <class Enum>
constexpr bool is_enumerator(Enum value) noexcept {
  return value <= last_enumerator<Enum>;
}

}  // namespace vkgemm
