// pairwise.hpp: few combinations that still hold every pair. Most mistakes of a kernel need one or
// two parts of a problem to show; the product of all parts would be millions of pipelines.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace vkgemm::test {

// Rows of one level per factor (0 … levels[f] - 1), so that for any two factors every pair of
// levels stands in some row. Greedy and deterministic; about as many rows as the product of the two
// largest factors.
inline std::vector<std::vector<std::size_t>> pairwise(std::span<const std::size_t> levels) {
  const std::size_t factors = levels.size();
  std::vector<std::size_t> first(factors + 1, 0);  // of each factor's levels, all numbered in a row
  for (std::size_t f = 0; f < factors; ++f) first[f + 1] = first[f] + levels[f];
  const std::size_t all = first[factors];
  std::vector<bool> covered(all * all, false);
  const auto pair = [&](std::size_t f, std::size_t a, std::size_t g, std::size_t b) {
    return f < g ? (first[f] + a) * all + first[g] + b : (first[g] + b) * all + first[f] + a;
  };
  std::vector<std::vector<std::size_t>> rows;
  while (true) {
    std::vector<std::size_t> row(factors, 0);
    std::vector<bool> fixed(factors, false);
    const auto fix = [&](std::size_t f, std::size_t level) {
      for (std::size_t g = 0; g < factors; ++g) {
        if (fixed[g]) covered[pair(f, level, g, row[g])] = true;
      }
      row[f] = level;
      fixed[f] = true;
    };
    bool found = false;
    for (std::size_t f = 0; f < factors && !found; ++f) {
      for (std::size_t g = f + 1; g < factors && !found; ++g) {
        for (std::size_t i = 0; i < levels[f] * levels[g] && !found; ++i) {
          if (covered[pair(f, i / levels[g], g, i % levels[g])]) continue;
          fix(f, i / levels[g]);
          fix(g, i % levels[g]);
          found = true;
        }
      }
    }
    if (!found) return rows;
    for (std::size_t f = 0; f < factors; ++f) {
      if (fixed[f]) continue;
      std::size_t best = 0, most = 0;
      for (std::size_t i = 0; i < levels[f]; ++i) {
        // Ties go round, or the first level would be in most rows.
        const std::size_t level = (i + rows.size()) % levels[f];
        std::size_t gain = 1;
        for (std::size_t g = 0; g < factors; ++g) {
          if (fixed[g] && !covered[pair(f, level, g, row[g])]) ++gain;
        }
        if (gain > most) most = gain, best = level;
      }
      fix(f, best);
    }
    rows.push_back(row);
  }
}

}  // namespace vkgemm::test
