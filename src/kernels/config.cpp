// config.cpp: a configuration as text, and back, by its parameters (parameter.hpp).
#include "vkgemm/config.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/enum_names.hpp"
#include "base/text.hpp"
#include "kernels/main_loop.hpp"

namespace vkgemm {
namespace {

// Names in the order of the enumerators.
constexpr std::array<std::string_view, 3> path_names{"nv", "khr", "fma"};
constexpr std::array<std::string_view, 3> reduction_mode_names{"two_dispatches", "last_arriver",
                                                               "device_barrier"};
constexpr std::array<std::string_view, 2> schedule_names{"simple", "persistent"};
constexpr std::array<std::string_view, 5> row_strategy_names{"none", "resident", "panel",
                                                             "recompute", "two_pass"};
// In the order of the bits pack_a and pack_b.
constexpr std::array<std::string_view, 4> pack_names{"none", "a", "b", "ab"};

// Bounds on what is worth compiling at all. They keep the arithmetic of legality free of overflow
// for whatever a loaded table says.
constexpr std::uint32_t largest_swizzle = 65536;
constexpr std::uint32_t most_workgroups = 65535;  // what every device launches along x

constexpr Parameter pack_parameter() {
  Parameter parameter{.name = "pack", .fields = {"pack"}, .left_out = 0, .names = pack_names};
  parameter.get = [](const Config& c, std::size_t) {
    return (c.pack_a ? 1u : 0u) | (c.pack_b ? 2u : 0u);
  };
  parameter.set = [](Config& c, std::size_t, std::uint32_t value) {
    c.pack_a = (value & 1) != 0;
    c.pack_b = (value & 2) != 0;
  };
  return parameter;
}

constexpr Parameter parameters[] = {
    of_config<&Config::tile_m, &Config::tile_n, &Config::tile_k>(
        {.name = "tile",
         .fields = {"tile_m", "tile_n", "tile_k"},
         .min = 1,
         .max = largest_tile,
         .forms_tile = true,
         .scales = true}),
    of_config<&Config::swizzle>({.name = "swizzle",
                                 .fields = {"swizzle"},
                                 .min = 1,
                                 .max = largest_swizzle,
                                 .left_out = Config{}.swizzle,
                                 .scales = true}),
    of_config<&Config::slices>(
        {.name = "slices", .fields = {"slices"}, .min = 1, .max = most_slices, .left_out = 1}),
    of_config<&Config::reduction_mode>({.name = "reduction_mode",
                                        .fields = {"reduction_mode"},
                                        .left_out = 0,
                                        .names = reduction_mode_names}),
    of_config<&Config::workgroups>(
        {.name = "workgroups", .fields = {"workgroups"}, .max = most_workgroups, .left_out = 0}),
    of_config<&Config::spin_limit>({.name = "spin_limit",
                                    .fields = {"spin_limit"},
                                    .max = most_spin_limit,
                                    .left_out = default_spin_limit}),
    pack_parameter(),
    of_config<&Config::static_shape>(
        {.name = "static_shape", .fields = {"static_shape"}, .max = 1, .left_out = 0}),
    of_config<&Config::schedule>(
        {.name = "schedule", .fields = {"schedule"}, .left_out = 0, .names = schedule_names}),
    of_config<&Config::rows>(
        {.name = "rows", .fields = {"rows"}, .left_out = 0, .names = row_strategy_names}),
};

std::string_view next_piece(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view piece = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return piece;
}

std::string print(const Parameter& parameter, const Config& config) {
  std::string text = concat(parameter.name, '=');
  for (std::size_t i = 0; i < parameter.count; ++i) {
    const std::uint32_t value = parameter.get(config, i);
    if (i > 0) text += 'x';
    if (parameter.names.empty())
      append_to(text, value);
    else
      text += value < parameter.names.size() ? parameter.names[value] : "?";
  }
  return text;
}

// False if the text is no value of the parameter.
bool parse(const Parameter& parameter, std::string_view text, Config& config) {
  if (!parameter.names.empty()) {
    const auto found = std::ranges::find(parameter.names, text);
    if (found == parameter.names.end()) return false;
    parameter.set(config, 0, static_cast<std::uint32_t>(found - parameter.names.begin()));
    return true;
  }
  if (text.ends_with('x')) return false;
  for (std::size_t i = 0; i < parameter.count; ++i) {
    if (i > 0 && text.empty()) return false;
    const auto value = parse_number<std::uint32_t>(next_piece(text, 'x'));
    if (!value || (parameter.is_switch() && *value > 1)) return false;
    parameter.set(config, i, *value);
  }
  return text.empty();
}

// "fragment=MxNxK", "schedule=simple or persistent"
std::string expected(const Parameter& parameter) {
  if (parameter.count == 3) return concat(parameter.name, "=MxNxK");
  if (parameter.count == 2) return concat(parameter.name, "=MxN");
  if (parameter.is_switch()) return concat(parameter.name, "=0 or 1");
  if (parameter.names.empty()) return "a number";
  std::vector<std::string_view> names(parameter.names.begin(), parameter.names.end());
  std::erase(names, "none");  // which nobody has to say
  std::string text = concat(parameter.name, '=');
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += concat(i == 0 ? "" : i + 1 < names.size() ? ", " : " or ", names[i]);
  }
  return text;
}

Error parse_error(std::string_view text, std::string_view problem) {
  return {Status::invalid_argument, concat("configuration ", in_quotes(text), ": ", problem)};
}

std::string loop_names() {
  std::string text;
  for (const LoopDescriptor* loop : main_loops()) {
    text += concat(text.empty() ? "" : ", ", loop->name);
  }
  return text;
}

template <std::size_t at = 0>
Config alternative(std::size_t index) {
  using Loops = decltype(Config::loop);
  if constexpr (at < std::variant_size_v<Loops>) {
    if (index != at) return alternative<at + 1>(index);
    return {.loop = std::variant_alternative_t<at, Loops>{}};
  }
  return {};
}

}  // namespace

std::span<const Parameter> common_parameters() noexcept { return parameters; }

std::string_view to_string(Path path) noexcept { return name_of(path_names, path); }
std::string_view to_string(MainLoop loop) noexcept {
  const auto index = static_cast<std::size_t>(loop);
  return index < main_loops().size() ? main_loops()[index]->name : "?";
}
std::string_view to_string(ReductionMode mode) noexcept {
  return name_of(reduction_mode_names, mode);
}
std::string_view to_string(Schedule schedule) noexcept { return name_of(schedule_names, schedule); }
std::string_view to_string(RowStrategy strategy) noexcept {
  return name_of(row_strategy_names, strategy);
}

std::optional<Path> parse_path(std::string_view text) noexcept {
  return find_name<Path>(path_names, text);
}
std::optional<MainLoop> parse_main_loop(std::string_view text) noexcept {
  for (const LoopDescriptor* loop : main_loops()) {
    if (loop->name == text) return loop->loop;
  }
  return std::nullopt;
}
std::optional<RowStrategy> parse_row_strategy(std::string_view text) noexcept {
  return find_name<RowStrategy>(row_strategy_names, text);
}
std::optional<ReductionMode> parse_reduction_mode(std::string_view text) noexcept {
  return find_name<ReductionMode>(reduction_mode_names, text);
}

std::string to_string(const Config& config) {
  std::string text = concat(to_string(config.main_loop()), ':', print(parameters[0], config));
  const auto add = [&](const Parameter& parameter) {
    if (parameter.left_out && parameter.get(config, 0) == *parameter.left_out) return;
    text += concat(',', print(parameter, config));
  };
  for (const Parameter& parameter : descriptor(config).parameters) add(parameter);
  for (const Parameter& parameter : std::span(parameters).subspan(1)) add(parameter);
  return text;
}

Config without_values(MainLoop loop) { return alternative(static_cast<std::size_t>(loop)); }

Result<Config> parse_config(std::string_view text) {
  std::string_view rest = text;
  const std::string_view name = next_piece(rest, ':');
  const std::optional<MainLoop> loop = parse_main_loop(name);
  if (!loop) {
    return parse_error(text, concat("main loop ", in_quotes(name), " is none of ", loop_names()));
  }
  Config config = without_values(*loop);
  std::vector<const Parameter*> known;
  for (const Parameter& parameter : parameters) known.push_back(&parameter);
  for (const Parameter& parameter : descriptor(*loop).parameters) known.push_back(&parameter);
  std::vector<std::string_view> seen;
  bool more = !rest.empty();
  while (more) {
    more = rest.find(',') != std::string_view::npos;
    const std::string_view part = next_piece(rest, ',');
    if (part.empty()) return parse_error(text, "a part is empty");
    std::string_view value = part;
    const std::string_view key = next_piece(value, '=');
    const auto parameter = std::ranges::find(known, key, &Parameter::name);
    if (parameter == known.end()) {
      return parse_error(text, concat("unknown part ", in_quotes(part)));
    }
    if (std::ranges::find(seen, key) != seen.end()) {
      return parse_error(text, concat("part ", in_quotes(key), " appears twice"));
    }
    seen.push_back(key);
    if (!parse(**parameter, value, config)) {
      return parse_error(text,
                         concat("part ", in_quotes(part), ": expected ", expected(**parameter)));
    }
  }
  if (std::ranges::find(seen, "tile") == seen.end()) {
    return parse_error(text, "part 'tile' is missing");
  }
  return config;
}

}  // namespace vkgemm
