// parameter.hpp: the parameters of configurations as data, by which they are printed, parsed,
// checked and varied.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

#include "vkgemm/config.hpp"

namespace vkgemm {

// One parameter: up to three numbers, such as fragment=16x8x16, or a name, such as schedule=simple.
struct Parameter {
  std::string_view name;
  std::array<std::string_view, 3> fields;  // of the numbers, as messages call them
  std::size_t count = 1;                   // of numbers
  std::uint32_t min = 0;                   // what legality takes of each number
  std::uint32_t max = 0;
  std::optional<std::uint32_t> left_out;    // this value is not printed
  std::span<const std::string_view> names;  // if not empty, of the values from 0 on
  bool forms_tile = false;                  // the main loop's registers depend on it
  bool scales = false;                      // a tuner halves and doubles it

  std::uint32_t (*get)(const Config&, std::size_t number) = nullptr;
  void (*set)(Config&, std::size_t number, std::uint32_t value) = nullptr;

  // 0 or 1, which parse_config() holds it to.
  constexpr bool is_switch() const noexcept { return names.empty() && max == 1; }
};

namespace parameter_access {

template <auto... members, class Owner>
std::uint32_t get(const Owner& owner, std::size_t number) {
  const std::uint32_t values[] = {static_cast<std::uint32_t>(owner.*members)...};
  return values[number];
}

template <auto... members, class Owner>
void set(Owner& owner, std::size_t number, std::uint32_t value) {
  const auto set_one = [&](auto& target) {
    target = static_cast<std::remove_reference_t<decltype(target)>>(value);
  };
  std::size_t i = 0;
  ((i++ == number ? set_one(owner.*members) : void()), ...);
}

}  // namespace parameter_access

// Completes a parameter that is these members of Config.
template <auto... members>
constexpr Parameter of_config(Parameter parameter) {
  parameter.count = sizeof...(members);
  parameter.get = [](const Config& c, std::size_t number) {
    return parameter_access::get<members...>(c, number);
  };
  parameter.set = [](Config& c, std::size_t number, std::uint32_t value) {
    parameter_access::set<members...>(c, number, value);
  };
  return parameter;
}

// The same with members of one main loop's parameters, which the configuration must hold.
template <class Loop, auto... members>
constexpr Parameter of_loop(Parameter parameter) {
  parameter.count = sizeof...(members);
  parameter.get = [](const Config& c, std::size_t number) {
    return parameter_access::get<members...>(*std::get_if<Loop>(&c.loop), number);
  };
  parameter.set = [](Config& c, std::size_t number, std::uint32_t value) {
    parameter_access::set<members...>(*std::get_if<Loop>(&c.loop), number, value);
  };
  return parameter;
}

// Bounds on what is worth compiling at all, of tiles and of their parts. They keep the arithmetic
// of legality free of overflow for whatever a loaded table says.
inline constexpr std::uint32_t largest_tile = 1024;

// The parameters that all configurations have, the tile first.
std::span<const Parameter> common_parameters() noexcept;

}  // namespace vkgemm
