// config.cpp: a configuration as text, and back.
#include "vkgemm/config.hpp"

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "text.hpp"

namespace vkgemm {
namespace {

constexpr std::array<std::string_view, 3> path_names{"nv", "khr", "fma"};
constexpr std::array<std::string_view, 3> tier_names{"two_dispatches", "last_arriver",
                                                     "device_barrier"};
constexpr std::array<std::string_view, 2> schedule_names{"simple", "persistent"};
constexpr std::array<std::string_view, 5> row_strategy_names{"none", "resident", "panel",
                                                             "recompute", "two_pass"};

// Saturates at 2^32 - 1: the product of hostile figures must not wrap into a plausible one.
std::uint32_t saturated_product(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t product = std::uint64_t{a} * b;
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(product < most ? product : most);
}

// What `invocations` is if the text doesn't say: it follows from the rest, except on nv.
std::uint32_t implied_invocations(const Config& config) {
  switch (config.path) {
    case Path::nv:
      return 0;
    case Path::khr:
      return saturated_product(saturated_product(config.subgroups_m, config.subgroups_n),
                               config.subgroup_size);
    case Path::fma:
      if (config.fragment_m == 0 || config.fragment_n == 0) return 0;
      return saturated_product(
          saturated_product(config.tile_m / config.fragment_m, config.tile_n / config.fragment_n),
          config.fragment_k > 1 ? config.tile_k / config.fragment_k : 1);
  }
  return 0;
}

std::string_view next_piece(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view piece = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return piece;
}

// "128x256x32" into as many numbers as there are targets.
bool parse_sizes(std::string_view text, std::span<std::uint32_t* const> targets) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (i > 0 && text.empty()) return false;
    const auto value = parse_number<std::uint32_t>(next_piece(text, 'x'));
    if (!value) return false;
    *targets[i] = *value;
  }
  return text.empty();
}

// One name=value part. What is wrong with it, if anything.
class PartParser {
 public:
  explicit PartParser(Config& config) : config_(config) {}

  std::optional<std::string> parse(std::string_view part) {
    std::string_view value = part;
    const std::string_view name = next_piece(value, '=');
    for (std::size_t i = 0; i < std::size(names); ++i) {
      if (names[i] != name) continue;
      if (seen_[i]) return concat("part ", in_quotes(name), " appears twice");
      seen_[i] = true;
      if (part.back() != 'x' && parse_value(name, value)) return std::nullopt;
      return concat("part ", in_quotes(part), ": expected ", expected(name));
    }
    return concat("unknown part ", in_quotes(part));
  }

  bool has_tile() const { return seen_[0]; }
  bool has_invocations() const { return seen_[4]; }

 private:
  static constexpr std::string_view names[] = {
      "tile",       "fragment",   "subgroups", "subgroup_size", "invocations", "subtiles",
      "stages",     "swizzle",    "unroll_k",  "peel",          "slices",      "tier",
      "workgroups", "spin_limit", "pack",      "static_shape",  "schedule",    "rows"};

  bool parse_value(std::string_view name, std::string_view value) {
    Config& c = config_;
    if (name == "tile") return parse_list(value, {&c.tile_m, &c.tile_n, &c.tile_k});
    if (name == "fragment") {
      if (c.path == Path::fma && parse_list(value, {&c.fragment_m, &c.fragment_n})) {
        c.fragment_k = 1;
        return true;
      }
      return parse_list(value, {&c.fragment_m, &c.fragment_n, &c.fragment_k});
    }
    if (name == "subgroups") return parse_list(value, {&c.subgroups_m, &c.subgroups_n});
    if (name == "subgroup_size") return parse_list(value, {&c.subgroup_size});
    if (name == "invocations") return parse_list(value, {&c.invocations});
    if (name == "subtiles") return parse_list(value, {&c.subtiles});
    if (name == "stages") return parse_list(value, {&c.stages});
    if (name == "swizzle") return parse_list(value, {&c.swizzle});
    if (name == "slices") return parse_list(value, {&c.slices});
    if (name == "unroll_k") return parse_list(value, {&c.unroll_k});
    if (name == "workgroups") return parse_list(value, {&c.workgroups});
    if (name == "spin_limit") return parse_list(value, {&c.spin_limit});
    if (name == "tier") {
      const auto tier = parse_split_tier(value);
      c.tier = tier.value_or(c.tier);
      return tier.has_value();
    }
    if (name == "schedule") {
      c.schedule = value == "persistent" ? Schedule::persistent : Schedule::simple;
      return to_string(c.schedule) == value;
    }
    if (name == "rows") {
      const auto strategy = parse_row_strategy(value);
      c.rows = strategy.value_or(c.rows);
      return strategy.has_value();
    }
    if (name == "pack") {
      c.pack_a = value == "a" || value == "ab";
      c.pack_b = value == "b" || value == "ab";
      return c.pack_a || c.pack_b;
    }
    (name == "peel" ? c.peel : c.static_shape) = value == "1";
    return value == "0" || value == "1";
  }

  static bool parse_list(std::string_view text, std::initializer_list<std::uint32_t*> targets) {
    return parse_sizes(text, {targets.begin(), targets.size()});
  }

  std::string_view expected(std::string_view name) const {
    if (name == "tile") return "tile=MxNxK";
    if (name == "fragment") {
      return config_.path == Path::fma ? "fragment=MxN or MxNx8" : "fragment=MxNxK";
    }
    if (name == "subgroups") return "subgroups=MxN";
    if (name == "peel") return "peel=0 or 1";
    if (name == "tier") return "tier=two_dispatches, last_arriver or device_barrier";
    if (name == "pack") return "pack=a, b or ab";
    if (name == "static_shape") return "static_shape=0 or 1";
    if (name == "schedule") return "schedule=simple or persistent";
    if (name == "rows") return "rows=resident, panel, recompute or two_pass";
    return "a number";
  }

  Config& config_;
  std::array<bool, std::size(names)> seen_{};
};

Error parse_error(std::string_view text, std::string_view problem) {
  return {Status::invalid_argument, concat("configuration ", in_quotes(text), ": ", problem)};
}

}  // namespace

std::string_view to_string(Path path) noexcept {
  const auto index = static_cast<std::size_t>(path);
  return index < path_names.size() ? path_names[index] : "?";
}

std::optional<Path> parse_path(std::string_view text) noexcept {
  for (const Path path : {Path::nv, Path::khr, Path::fma}) {
    if (to_string(path) == text) return path;
  }
  return std::nullopt;
}

std::string_view to_string(SplitTier tier) noexcept {
  const auto index = static_cast<std::size_t>(tier);
  return index < tier_names.size() ? tier_names[index] : "?";
}

std::string_view to_string(Schedule schedule) noexcept {
  const auto index = static_cast<std::size_t>(schedule);
  return index < schedule_names.size() ? schedule_names[index] : "?";
}

std::string_view to_string(RowStrategy strategy) noexcept {
  const auto index = static_cast<std::size_t>(strategy);
  return index < row_strategy_names.size() ? row_strategy_names[index] : "?";
}

std::optional<RowStrategy> parse_row_strategy(std::string_view text) noexcept {
  for (std::size_t i = 0; i < row_strategy_names.size(); ++i) {
    if (row_strategy_names[i] == text) return static_cast<RowStrategy>(i);
  }
  return std::nullopt;
}

std::optional<SplitTier> parse_split_tier(std::string_view text) noexcept {
  for (std::size_t i = 0; i < tier_names.size(); ++i) {
    if (tier_names[i] == text) return static_cast<SplitTier>(i);
  }
  return std::nullopt;
}

std::string to_string(const Config& c) {
  const Config defaults;
  std::string out = concat(to_string(c.path), ":tile=", c.tile_m, 'x', c.tile_n, 'x', c.tile_k);
  if (c.fragment_m != 0 || c.fragment_n != 0 || c.fragment_k != 0) {
    out += concat(",fragment=", c.fragment_m, 'x', c.fragment_n);
    if (c.path != Path::fma || c.fragment_k != 1) out += concat('x', c.fragment_k);
  }
  if (c.subgroups_m != 0 || c.subgroups_n != 0) {
    out += concat(",subgroups=", c.subgroups_m, 'x', c.subgroups_n);
  }
  const auto add = [&out](std::string_view name, std::uint32_t value, std::uint32_t left_out) {
    if (value != left_out) out += concat(',', name, '=', value);
  };
  add("subgroup_size", c.subgroup_size, defaults.subgroup_size);
  add("invocations", c.invocations, implied_invocations(c));
  add("subtiles", c.subtiles, defaults.subtiles);
  add("stages", c.stages, defaults.stages);
  add("swizzle", c.swizzle, defaults.swizzle);
  add("unroll_k", c.unroll_k, defaults.unroll_k);
  add("slices", c.slices, defaults.slices);
  if (c.tier != defaults.tier) out += concat(",tier=", to_string(c.tier));
  add("workgroups", c.workgroups, defaults.workgroups);
  add("spin_limit", c.spin_limit, defaults.spin_limit);
  if (c.pack_a || c.pack_b) out += concat(",pack=", c.pack_a ? "a" : "", c.pack_b ? "b" : "");
  if (!c.peel) out += ",peel=0";
  if (c.static_shape) out += ",static_shape=1";
  if (c.schedule != defaults.schedule) out += concat(",schedule=", to_string(c.schedule));
  if (c.rows != defaults.rows) out += concat(",rows=", to_string(c.rows));
  return out;
}

Result<Config> parse_config(std::string_view text) {
  std::string_view rest = text;
  const std::string_view name = next_piece(rest, ':');
  const std::optional<Path> path = parse_path(name);
  if (!path) return parse_error(text, concat("path ", in_quotes(name), " is none of nv, khr, fma"));
  Config config;
  config.path = *path;

  PartParser parser(config);
  bool more = !rest.empty();
  while (more) {
    more = rest.find(',') != std::string_view::npos;
    const std::string_view part = next_piece(rest, ',');
    if (part.empty()) return parse_error(text, "a part is empty");
    if (const auto problem = parser.parse(part)) return parse_error(text, *problem);
  }
  if (!parser.has_tile()) return parse_error(text, "part 'tile' is missing");
  if (!parser.has_invocations()) config.invocations = implied_invocations(config);
  return config;
}

}  // namespace vkgemm
