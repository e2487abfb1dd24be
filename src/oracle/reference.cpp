#include "oracle/reference.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <thread>

#include "oracle/epilogue_reference.hpp"
#include "oracle/findings.hpp"
#include "oracle/groups.hpp"
#include "oracle/row_reference.hpp"
#include "oracle/tile_reference.hpp"
#include "problem/convert.hpp"

namespace vkgemm::oracle {
namespace {

// Rows to look at: the first, the last, and between them one at random of every equal part.
std::vector<std::uint64_t> choose_rows(std::uint64_t m, std::uint64_t count, std::uint64_t seed) {
  std::vector<std::uint64_t> rows;
  if (m <= count) {
    for (std::uint64_t i = 0; i < m; ++i) rows.push_back(i);
    return rows;
  }
  count = std::max<std::uint64_t>(count, 2);
  std::uint64_t state = seed;
  for (std::uint64_t s = 0; s < count; ++s) {
    const auto part = [&](std::uint64_t x) { return m / count * x + m % count * x / count; };
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    rows.push_back(part(s) + (state >> 33) % (part(s + 1) - part(s)));
  }
  rows.front() = 0;
  rows.back() = m - 1;
  return rows;
}

std::vector<std::uint64_t> rows_of(const Problem& problem, const VerifyOptions& options) {
  const bool full = options.mode == Verify::full;
  return choose_rows(problem.m, full ? problem.m : options.sampled_rows, options.seed);
}

// The products of a grouped problem that are looked at.
std::vector<GroupProduct> chosen_products(const Problem& problem, const HostOperands& operands,
                                          const VerifyOptions& options) {
  std::vector<GroupProduct> products = products_of(problem, operands[OperandId::offsets]);
  if (options.mode == Verify::full || products.size() <= options.sampled_groups) return products;
  std::erase_if(products, [](const GroupProduct& group) { return group.problem.m == 0; });
  std::vector<GroupProduct> chosen;
  for (const std::uint64_t i : choose_rows(products.size(), options.sampled_groups, options.seed)) {
    chosen.push_back(products[i]);
  }
  return chosen;
}

// The chosen rows of one product, or all of it if their elements lie apart.
void add_parts(const OperandShape& shape, const std::vector<std::uint64_t>& rows,
               std::uint64_t first_byte, std::vector<ByteRange>& parts) {
  const std::uint64_t size = shape.element();
  const auto add = [&](std::uint64_t from, std::uint64_t to) {
    parts.push_back({first_byte + from * size, (to + 1 - from) * size});
  };
  if (!shape.row_major()) {
    return add(0, shape.index(shape.count - 1, shape.rows - 1, shape.cols - 1));
  }
  for (std::uint64_t batch = 0; batch < shape.count; ++batch) {
    for (const std::uint64_t row : rows) {
      add(shape.index(batch, row, 0), shape.index(batch, row, shape.cols - 1));
    }
  }
}

void run_on(std::uint32_t threads, const std::function<void(std::uint32_t)>& loop) {
  std::vector<std::thread> others;
  for (std::uint32_t thread = 1; thread < threads; ++thread) others.emplace_back(loop, thread);
  loop(0);
  for (std::thread& other : others) other.join();
}

// Calls work(tile, packed, sums, thread index) for every tile of the chosen rows and all columns.
template <class Work>
void for_each_tile(const Problem& problem, const std::vector<std::uint64_t>& rows,
                   std::uint32_t threads, const Work& work) {
  const std::uint64_t row_tiles = (rows.size() + kTile - 1) / kTile;
  const std::uint64_t col_tiles = (problem.n + kTile - 1) / kTile;
  const std::uint64_t tiles = problem.batch * row_tiles * col_tiles;
  std::atomic<std::uint64_t> next{0};
  const auto loop = [&](std::uint32_t thread) {
    const auto packed = std::make_unique_for_overwrite<Packed>();
    const auto sums = std::make_unique_for_overwrite<Sums[]>(2);
    for (std::uint64_t t = next++; t < tiles; t = next++) {
      TileOfD tile;
      tile.batch = t / (row_tiles * col_tiles);
      const std::uint64_t first_row = t / col_tiles % row_tiles * kTile;
      tile.row_count = std::min<std::uint64_t>(kTile, rows.size() - first_row);
      for (std::uint64_t i = 0; i < tile.row_count; ++i) tile.rows[i] = rows[first_row + i];
      tile.first_col = t % col_tiles * kTile;
      tile.col_count = std::min(kTile, problem.n - tile.first_col);
      work(tile, *packed, sums.get(), thread);
    }
  };
  run_on(threads, loop);
}

// A row of D as the elementwise epilogue leaves it, and what is to be compared of aux.
struct ExpectedRow {
  std::uint64_t batch = 0, row = 0;
  std::vector<RowValue> values;
  std::vector<Expected> elements;
};

// Calls work(row, thread index) for every chosen row of every matrix.
template <class Work>
void for_each_row(const Problem& problem, const Views& views, const HostOperands& operands,
                  const std::vector<std::uint64_t>& rows, std::uint32_t threads, const Work& work) {
  const EpilogueOracle oracle(problem, views, operands);
  // Few rows at a time: as many threads as there are then have work, and all their columns fit.
  const std::uint64_t at_once =
      std::clamp<std::uint64_t>(problem.batch * rows.size() / threads, 1, 8);
  const std::uint64_t row_blocks = (rows.size() + at_once - 1) / at_once;
  std::atomic<std::uint64_t> next{0};
  run_on(threads, [&](std::uint32_t thread) {
    const auto packed = std::make_unique_for_overwrite<Packed>();
    const auto sums = std::make_unique_for_overwrite<Sums>();
    std::vector<ExpectedRow> expected(at_once);
    for (std::uint64_t t = next++; t < problem.batch * row_blocks; t = next++) {
      TileOfD tile;
      tile.batch = t / row_blocks;
      const std::uint64_t first_row = t % row_blocks * at_once;
      tile.row_count = std::min<std::uint64_t>(at_once, rows.size() - first_row);
      for (std::uint64_t r = 0; r < tile.row_count; ++r) {
        tile.rows[r] = rows[first_row + r];
        expected[r].batch = tile.batch;
        expected[r].row = tile.rows[r];
        expected[r].values.resize(problem.n);
        expected[r].elements.resize(problem.n);
      }
      for (tile.first_col = 0; tile.first_col < problem.n; tile.first_col += kTile) {
        tile.col_count = std::min(kTile, problem.n - tile.first_col);
        multiply_tile(problem, views, operands, tile, 0, *packed, *sums);
        for (std::uint64_t r = 0; r < tile.row_count; ++r) {
          for (std::uint64_t s = 0; s < tile.col_count; ++s) {
            const std::uint64_t at = r * kTile + s, j = tile.first_col + s;
            const Expected e = oracle(tile.batch, tile.rows[r], j, sums.get(), at);
            expected[r].elements[j] = e;
            expected[r].values[j] = {e.d, e.d_bound, e.unpredictable};
          }
        }
      }
      for (std::uint64_t r = 0; r < tile.row_count; ++r) work(expected[r], thread);
    }
  });
}

std::uint32_t thread_count(std::uint32_t wanted, const Problem& problem) {
  // Small problems, of which the tests have thousands, aren't worth a thread.
  if (problem.m * problem.n * problem.batch <= kTile * kTile) return 1;
  return wanted != 0 ? wanted : std::max(1U, std::thread::hardware_concurrency());
}

// `first_batch`: how the findings number the first matrix.
void verify_product(const Problem& problem, const HostOperands& operands,
                    const VerifyOptions& options, std::uint64_t first_batch, Findings& all) {
  if (is_empty(problem)) return;
  const void* const d = operands[OperandId::d];
  const void* const aux = operands[OperandId::aux];
  const Views views(problem);
  const EpilogueOracle oracle(problem, views, operands);
  const std::uint64_t halves = problem.gated ? 2 : 1;
  const bool check_aux = problem.epilogue.aux && aux != nullptr;
  const Rounding d_cast = rounding(problem.d.type);
  const Rounding aux_cast = rounding(problem.aux.type);
  const std::vector<std::uint64_t> rows = rows_of(problem, options);
  const std::uint32_t threads = thread_count(options.threads, problem);

  std::vector<Findings> findings(threads);
  for_each_tile(
      problem, rows, threads,
      [&](const TileOfD& tile, Packed& packed, Sums* sums, std::uint32_t thread) {
        for (std::uint64_t half = 0; half < halves; ++half) {
          multiply_tile(problem, views, operands, tile, half, packed, sums[half]);
        }
        Findings& found = findings[thread];
        const std::uint64_t batch = first_batch + tile.batch;
        for (std::uint64_t r = 0; r < tile.row_count; ++r) {
          for (std::uint64_t s = 0; s < tile.col_count; ++s) {
            const std::uint64_t i = tile.rows[r];
            const std::uint64_t j = tile.first_col + s;
            const Expected e = oracle(tile.batch, i, j, sums, r * kTile + s);
            const double got = load_element(d, views[OperandId::d].type,
                                            views[OperandId::d].index(tile.batch, i, j));
            Comparison c = compare(got, e.d, e.d_bound, d_cast, e.unpredictable);
            if (!c.ok && e.ambiguous) c.ok = std::isnan(got) || got == 0.0;
            found.add("d", batch, i, j, got, e.d, c);
            if (!check_aux) continue;
            for (std::uint64_t half = 0; half < halves; ++half) {
              const std::uint64_t col = product_column(problem, half, j);
              const double pre = load_element(aux, views[OperandId::aux].type,
                                              views[OperandId::aux].index(tile.batch, i, col));
              found.add("aux", batch, i, col, pre, e.pre[half],
                        compare(pre, e.pre[half], e.pre_bound[half], aux_cast, e.unpredictable));
            }
          }
        }
      });
  for (const Findings& found : findings) all.merge(found);
}

void compute_product(const Problem& problem, const HostOperands& operands,
                     const HostResults& results, std::uint32_t threads) {
  if (is_empty(problem)) return;
  void* const d = results[OperandId::d];
  void* const aux = results[OperandId::aux];
  const Views views(problem);
  const EpilogueOracle oracle(problem, views, operands);
  const std::uint64_t halves = problem.gated ? 2 : 1;
  const bool write_aux = problem.epilogue.aux && aux != nullptr;
  const std::vector<std::uint64_t> rows = choose_rows(problem.m, problem.m, 0);
  for_each_tile(problem, rows, thread_count(threads, problem),
                [&](const TileOfD& tile, Packed& packed, Sums* sums, std::uint32_t) {
                  for (std::uint64_t half = 0; half < halves; ++half) {
                    multiply_tile(problem, views, operands, tile, half, packed, sums[half]);
                  }
                  for (std::uint64_t r = 0; r < tile.row_count; ++r) {
                    for (std::uint64_t s = 0; s < tile.col_count; ++s) {
                      const std::uint64_t i = tile.rows[r];
                      const std::uint64_t j = tile.first_col + s;
                      const Expected e = oracle(tile.batch, i, j, sums, r * kTile + s);
                      store_element(d, views[OperandId::d].type,
                                    views[OperandId::d].index(tile.batch, i, j), e.d);
                      for (std::uint64_t half = 0; write_aux && half < halves; ++half) {
                        const std::uint64_t col = product_column(problem, half, j);
                        store_element(aux, views[OperandId::aux].type,
                                      views[OperandId::aux].index(tile.batch, i, col), e.pre[half]);
                      }
                    }
                  }
                });
}

void verify_rows(const Problem& problem, const HostOperands& operands, const VerifyOptions& options,
                 Findings& all) {
  if (is_empty(problem)) return;
  const void* const d = operands[OperandId::d];
  const void* const aux = operands[OperandId::aux];
  const void* const row_values = operands[OperandId::row_values];
  const Views views(problem);
  const RowReduction& reduction = *problem.row_reduction;
  const bool check_d = !is_scalar(reduction.op) || reduction.store_d;
  const bool check_aux = problem.epilogue.aux && aux != nullptr;
  const Rounding d_cast = rounding(problem.d.type);
  const Rounding aux_cast = rounding(problem.aux.type);
  const Rounding value_cast = rounding(reduction.value_type);
  const std::vector<std::uint64_t> rows = rows_of(problem, options);
  const std::uint32_t threads = thread_count(options.threads, problem);
  std::vector<Findings> findings(threads);
  std::vector<ReducedRow> reduced(threads);
  for_each_row(
      problem, views, operands, rows, threads, [&](const ExpectedRow& row, std::uint32_t thread) {
        Findings& found = findings[thread];
        ReducedRow& to = reduced[thread];
        reduce_row(problem, operands, row.values, to);
        for (std::uint64_t j = 0; j < problem.n; ++j) {
          if (check_d) {
            const double got = load_element(d, views[OperandId::d].type,
                                            views[OperandId::d].index(row.batch, row.row, j));
            found.add("d", row.batch, row.row, j, got, to.d[j],
                      compare(got, to.d[j], to.d_bound[j], d_cast, to.unpredictable));
          }
          if (!check_aux) continue;
          const Expected& e = row.elements[j];
          const double pre = load_element(aux, views[OperandId::aux].type,
                                          views[OperandId::aux].index(row.batch, row.row, j));
          found.add("aux", row.batch, row.row, j, pre, e.pre[0],
                    compare(pre, e.pre[0], e.pre_bound[0], aux_cast, e.unpredictable));
        }
        if (!is_scalar(reduction.op) || row_values == nullptr) return;
        const double got =
            load_element(row_values, reduction.value_type, row.batch * problem.m + row.row);
        found.add("row_values", row.batch, row.row, 0, got, to.value,
                  compare(got, to.value, to.value_bound, value_cast, to.unpredictable));
      });
  for (const Findings& found : findings) all.merge(found);
}

void compute_rows(const Problem& problem, const HostOperands& operands, const HostResults& results,
                  std::uint32_t wanted_threads) {
  if (is_empty(problem)) return;
  void* const d = results[OperandId::d];
  void* const aux = results[OperandId::aux];
  void* const row_values = results[OperandId::row_values];
  const Views views(problem);
  const RowReduction& reduction = *problem.row_reduction;
  const std::vector<std::uint64_t> rows = choose_rows(problem.m, problem.m, 0);
  const std::uint32_t threads = thread_count(wanted_threads, problem);
  std::vector<ReducedRow> reduced(threads);
  for_each_row(
      problem, views, operands, rows, threads, [&](const ExpectedRow& row, std::uint32_t thread) {
        ReducedRow& to = reduced[thread];
        reduce_row(problem, operands, row.values, to);
        for (std::uint64_t j = 0; j < problem.n; ++j) {
          if (!is_scalar(reduction.op) || reduction.store_d) {
            store_element(d, views[OperandId::d].type,
                          views[OperandId::d].index(row.batch, row.row, j), to.d[j]);
          }
          if (problem.epilogue.aux && aux != nullptr) {
            store_element(aux, views[OperandId::aux].type,
                          views[OperandId::aux].index(row.batch, row.row, j),
                          row.elements[j].pre[0]);
          }
        }
        if (!is_scalar(reduction.op) || row_values == nullptr) return;
        store_element(row_values, reduction.value_type, row.batch * problem.m + row.row, to.value);
      });
}

}  // namespace

VerifyReport verify(const Problem& problem, const HostOperands& operands,
                    const VerifyOptions& options) {
  if (options.mode == Verify::off) return {};
  Findings findings;
  if (problem.row_reduction) {
    verify_rows(problem, operands, options, findings);
  } else if (!problem.grouping) {
    verify_product(problem, operands, options, 0, findings);
  } else {
    for (const GroupProduct& group : chosen_products(problem, operands, options)) {
      verify_product(group.problem, group.of(operands), options, group.number, findings);
    }
  }
  return findings.finish();
}

VerifiedParts verified_parts(const Problem& problem, const HostOperands& operands,
                             const VerifyOptions& options) {
  VerifiedParts parts;
  const auto add = [&](const Problem& product, const PerOperand<std::uint64_t>& begins) {
    if (is_empty(product)) return;
    const std::vector<std::uint64_t> rows = rows_of(product, options);
    for (const OperandRow& row : operand_rows()) {
      if (!row.written || !row.exists(product)) continue;
      add_parts(row.shape(product), rows, begins[row.id], parts[row.id]);
    }
  };
  if (options.mode == Verify::off) return parts;
  if (!problem.grouping) {
    add(problem, {});
    return parts;
  }
  for (const GroupProduct& group : chosen_products(problem, operands, options)) {
    add(group.problem, group.begins);
  }
  return parts;
}

void compute_reference(const Problem& problem, const HostOperands& operands,
                       const HostResults& results, std::uint32_t threads) {
  if (problem.row_reduction) return compute_rows(problem, operands, results, threads);
  if (!problem.grouping) return compute_product(problem, operands, results, threads);
  for (const GroupProduct& group : products_of(problem, operands[OperandId::offsets])) {
    compute_product(group.problem, group.of(operands), group.of(results), threads);
  }
}

}  // namespace vkgemm::oracle
