// inputs.cpp: the list of inputs.
#include <algorithm>

#include "problem/data_type.hpp"
#include "problem/inputs/input.hpp"

namespace vkgemm {

extern const Input f16_input, bf16_input, f32_input, s8_input;
extern const Input bf16x9_input, bf16x6_input, f16x3_input;

std::span<const Input* const> inputs() noexcept {
  static constexpr const Input* all[] = {&f16_input,    &bf16_input,   &f32_input,  &s8_input,
                                         &bf16x9_input, &bf16x6_input, &f16x3_input};
  return all;
}

const Input* find_input(DataType given, F32Arithmetic arithmetic) noexcept {
  const auto all = inputs();
  const auto found = std::ranges::find_if(all, [&](const Input* input) {
    return input->given == given && input->arithmetic == arithmetic;
  });
  return found != all.end() ? *found : nullptr;
}

const Input* find_input(F32Arithmetic arithmetic) noexcept {
  return find_input(DataType::f32, arithmetic);
}

bool is_result(DataType type) noexcept {
  return is_element(type) ||
         std::ranges::find(inputs(), type, &Input::accumulator) != inputs().end();
}

}  // namespace vkgemm
