// enumerators.hpp: the names of a problem's enumerators, and the last one of each enumeration.
// Larger values are invalid.
#pragma once

#include <array>
#include <iterator>
#include <string_view>

#include "lib/constants.h"
#include "lib/epilogue/activation.h"
#include "lib/quantised.h"
#include "problem/data_type.hpp"
#include "problem/row_op.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm {

// The names in the order of the enumerators, as to_string() gives them.
template <class Enum>
inline constexpr std::array<std::string_view, 0> enumerator_names{};

template <const auto& rows>
inline constexpr auto names_in = [] {
  std::array<std::string_view, std::size(rows)> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = rows[i].name;
  return names;
}();
template <>
inline constexpr auto enumerator_names<DataType> = names_in<data_types>;
template <>
inline constexpr auto enumerator_names<RowOp> = names_in<row_ops>;

template <>
inline constexpr auto enumerator_names<Layout> = std::to_array<std::string_view>({"row_major",
                                                                                  "col_major"});
template <>
inline constexpr auto enumerator_names<Packing> =
    std::to_array<std::string_view>({"plain", "packed", "packed_rows", "packed_fragments"});
#define VKGEMM_NAME(name, NAME, value) #name,
template <>
inline constexpr auto enumerator_names<Activation> =
    std::to_array<std::string_view>({"none", VKGEMM_ACTIVATIONS(VKGEMM_NAME)});
#undef VKGEMM_NAME
#define VKGEMM_NAME(name, NAME) #name,
template <>
inline constexpr auto enumerator_names<StepOp> =
    std::to_array<std::string_view>({"none", VKGEMM_STEP_OPS(VKGEMM_NAME)});
#undef VKGEMM_NAME
template <>
inline constexpr auto enumerator_names<StepOperand> =
    std::to_array<std::string_view>({"number", "t0", "t1", "t2", "t3"});
template <>
inline constexpr auto enumerator_names<TensorShape> =
    std::to_array<std::string_view>({"none", "scalar", "along_n", "along_m", "matrix", "mask"});
template <>
inline constexpr auto enumerator_names<Bias> = std::to_array<std::string_view>({"none", "along_n",
                                                                                "along_m"});
template <>
inline constexpr auto enumerator_names<Scales> = std::to_array<std::string_view>({"none", "shared",
                                                                                  "per_matrix"});
template <>
inline constexpr auto enumerator_names<Gate> = std::to_array<std::string_view>(
    {"sigmoid_tanh", "geglu_erf", "geglu_tanh", "swiglu", "reglu", "glu"});
template <>
inline constexpr auto enumerator_names<GatedB> =
    std::to_array<std::string_view>({"halves", "separate", "interleaved"});
template <>
inline constexpr auto enumerator_names<OffsetType> = std::to_array<std::string_view>({"int32",
                                                                                      "int64"});
template <>
inline constexpr auto enumerator_names<GroupAlong> = std::to_array<std::string_view>({"m", "k"});
template <>
inline constexpr auto enumerator_names<GroupedB> = std::to_array<std::string_view>({"shared",
                                                                                    "per_group"});
template <>
inline constexpr auto enumerator_names<GroupBounds> =
    std::to_array<std::string_view>({"offsets", "sizes", "starts_and_sizes"});

template <class Enum>
inline constexpr Enum last_enumerator = [] {
  static_assert(!enumerator_names<Enum>.empty(), "list the names or the last enumerator here");
  return static_cast<Enum>(enumerator_names<Enum>.size() - 1);
}();
// The names of these stand elsewhere.
template <>
inline constexpr auto last_enumerator<F32Arithmetic> = F32Arithmetic::f16x3;
#define VKGEMM_NAME(name, NAME) #name,
template <>
inline constexpr auto last_enumerator<CodeType> = [] {
  constexpr const char* names[] = {VKGEMM_CODE_TYPES(VKGEMM_NAME)};
  return static_cast<CodeType>(std::size(names) - 1);
}();
#undef VKGEMM_NAME
template <>
inline constexpr auto last_enumerator<CodeLayout> = CodeLayout::awq;
template <>
inline constexpr auto last_enumerator<ReductionMode> = ReductionMode::device_barrier;
template <>
inline constexpr auto last_enumerator<Path> = Path::fma;

template <class Enum>
constexpr bool is_enumerator(Enum value) noexcept {
  return value <= last_enumerator<Enum>;
}

}  // namespace vkgemm
