// gated.hpp: gated products on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tool/matrices.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::tool {

// --gated, e.g. swiglu or swiglu:interleaved.
CLI::Option* add_gated(CLI::App& app, std::optional<Gated>& value);

// "gated swiglu, b halves"
std::string describe(const Gated& gated);

// Loads the right half of B where that has a file of its own, as large as `b`. How many columns of
// `b` there are for one of D.
std::uint64_t load_b_right(const std::optional<Gated>& gated, const std::string& file, bool bf16,
                           const LoadedMatrix& b, std::vector<std::byte>& right);

}  // namespace vkgemm::tool
