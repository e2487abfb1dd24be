// Every pair of: configuration, input type, layouts, alignment, edges, tail of K, types of C, D,
// aux and bias, bias direction, activation, clamp. Few pipelines, several shapes on each.
#include <algorithm>

#include "harness.hpp"
#include "pairwise.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

class Combinations : public EachPath {};
VKGEMM_ON_EACH_PATH(Combinations);

enum Factor : std::size_t {
  f_config,
  f_input,
  f_a_layout,
  f_b_layout,
  f_d_layout,
  f_aligned,
  f_extent,
  f_c_type,
  f_d_type,
  f_aux_type,
  f_bias,
  f_bias_type,
  f_activation,
  f_clamp,
  f_count
};

// The choice among the pipelines' variants for whole and partial tiles.
struct Extent {
  bool edges, tail;
};
Extent extent_of(std::size_t level) { return {level % 2 != 0, level / 2 != 0}; }

Layout layout_of(std::size_t level) { return level == 0 ? Layout::row_major : Layout::col_major; }

// nv stores what it loads, or f32.
DataType result_type(Path path, DataType input, std::size_t level) {
  if (path != Path::nv) return static_cast<DataType>(level);
  return level % 2 == 0 ? input : DataType::f32;
}

// Shapes that all give the same pipeline.
std::vector<Shape> shapes_of(const Config& config, Extent extent, bool aligned, bool transposed) {
  const std::uint64_t m = transposed ? config.tile_n : config.tile_m;
  const std::uint64_t n = transposed ? config.tile_m : config.tile_n;
  const std::uint64_t k = k_step(config);
  const auto deeper = [&](std::uint64_t steps, std::uint64_t rest) {
    return extent.tail ? steps * k + rest : (steps + 1) * k;
  };
  if (!extent.edges) return {{m, 3 * n, deeper(1, 8)}, {3 * m, 2 * n, deeper(3, k - 8)}};
  if (aligned) {
    return {{m + 8, 2 * n + 8, deeper(2, 8)}, {8, 3 * n - 8, deeper(0, k - 8)}};
  }
  return {{2 * m + 1, n - 1, deeper(1, 3)},
          {m - 1, 3 * n + 1, deeper(0, 5)},
          {5 * m + 7, 2 * n + 3, deeper(2, k - 1)},
          {1, 1, deeper(0, 1)}};
}

Problem problem_of(Path path, const std::vector<std::size_t>& row, Shape shape, DataType input) {
  Problem problem = gemm(shape, input, result_type(path, input, row[f_d_type]));
  problem.a.layout = layout_of(row[f_a_layout]);
  problem.b.layout = layout_of(row[f_b_layout]);
  for (Matrix* matrix : {&problem.c, &problem.d, &problem.aux}) {
    matrix->layout = layout_of(row[f_d_layout]);
  }
  Epilogue& e = problem.epilogue;
  e.alpha = -0.5f;
  if (row[f_c_type] != 0) {
    e.beta = 2.0f;
    problem.c.type = result_type(path, input, row[f_c_type] - 1);
  }
  if (row[f_aux_type] != 0) {
    e.aux = true;
    problem.aux.type = result_type(path, input, row[f_aux_type] - 1);
  }
  e.bias = static_cast<Bias>(row[f_bias]);
  e.bias_type = static_cast<DataType>(row[f_bias_type]);
  e.activation = static_cast<Activation>(row[f_activation]);
  if (row[f_clamp] != 0) {
    e.clamp_min = -0.75f;
    e.clamp_max = 4.0f;
  }
  const bool aligned = row[f_aligned] != 0;
  return with_padding(problem, aligned ? 8 : 1, aligned);
}

// A few that compile quickly, and one with a ring of stages if there is any.
std::vector<Config> configs_of(Path path, DataType input) {
  const std::vector<Config> all = small_configs(path, input);
  std::vector<Config> few(all.begin(), all.begin() + std::min<std::ptrdiff_t>(3, std::ssize(all)));
  const auto ring = std::ranges::find_if(all, [](const Config& c) { return is_ring(c); });
  if (ring != all.end() && std::ranges::none_of(few, is_ring)) few.push_back(*ring);
  return few;
}

void run_combinations(Path path, std::size_t part, std::size_t parts) {
  const std::vector<DataType> inputs = inputs_of(path);
  std::size_t configs = 0;
  for (const DataType input : inputs) configs = std::max(configs, configs_of(path, input).size());
  // The epilogue is one piece of code for all paths: fewer of its levels, half as many pipelines.
  const bool few = on_cpu() && path == Path::khr && !is_nightly();
  const std::size_t c_types = few ? 2 : 4, aux_types = few ? 2 : 4, activations = few ? 2 : 7;
  const std::size_t levels[f_count] = {configs, inputs.size(), 2, 2, 2,           2, 4, c_types,
                                       3,       aux_types,     3, 3, activations, 2};
  const auto rows = pairwise(levels);
  // Neighbouring rows, because every fourth one has the same configuration.
  for (std::size_t r = part * rows.size() / parts; r < (part + 1) * rows.size() / parts; ++r) {
    const std::vector<std::size_t>& row = rows[r];
    const DataType input = inputs[row[f_input]];
    const std::vector<Config> choice = configs_of(path, input);
    const Config config = choice[row[f_config] % choice.size()];
    const bool aligned = row[f_aligned] != 0;
    for (const Shape& shape :
         shapes_of(config, extent_of(row[f_extent]), aligned, row[f_d_layout] != 0)) {
      const Problem problem = problem_of(path, row, shape, input);
      EXPECT_TRUE(passes_gates(config, problem, {.shift = aligned ? 0u : 1u, .seed = r + 1}));
    }
  }
}

// In parts, so that processes can share them.
TEST_P(Combinations, Part0) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  run_combinations(GetParam(), 0, 4);
}
TEST_P(Combinations, Part1) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  run_combinations(GetParam(), 1, 4);
}
TEST_P(Combinations, Part2) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  run_combinations(GetParam(), 2, 4);
}
TEST_P(Combinations, Part3) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  run_combinations(GetParam(), 3, 4);
}

}  // namespace
}  // namespace vkgemm::test
