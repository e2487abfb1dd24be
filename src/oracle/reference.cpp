#include "oracle/reference.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "base/parallel.hpp"
#include "oracle/epilogue_reference.hpp"
#include "oracle/findings.hpp"
#include "oracle/groups.hpp"
#include "oracle/largest.hpp"
#include "oracle/row_reference.hpp"
#include "oracle/tile_reference.hpp"
#include "problem/convert.hpp"
#include "problem/data_type.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/operands.hpp"
#include "problem/row_index.hpp"

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

// The tiles of columns whose sums are looked at.
constexpr std::uint64_t sampled_column_tiles = 3;

std::vector<std::uint64_t> rows_of(const Problem& problem, const VerifyOptions& options) {
  const bool full = options.mode == Verify::full;
  return choose_rows(problem.m, full ? problem.m : options.sampled_rows, options.seed);
}

// The rows of D that are looked at, if they are sums of rows.
std::vector<std::uint64_t> rows_of_sums(const Problem& problem, const VerifyOptions& options) {
  const bool full = options.mode == Verify::full;
  const std::uint64_t all = problem.grouping->d_rows;
  return choose_rows(all, full ? all : options.sampled_rows, options.seed);
}

// Rows by index that are looked at, if not all are.
constexpr std::uint64_t most_sampled_rows = 512;

// The products of a grouped problem that are looked at.
std::vector<GroupProduct> chosen_products(const Problem& problem, const HostOperands& operands,
                                          const VerifyOptions& options) {
  std::vector<GroupProduct> products = products_of(problem, operands);
  if (options.mode == Verify::full) return products;
  if (adds_rows(problem.grouping)) {
    const std::vector<std::uint64_t> rows = rows_of_sums(problem, options);
    std::erase_if(products, [&](const GroupProduct& row) {
      return !row.has_d || !std::ranges::binary_search(rows, row.term / problem.grouping->d_terms);
    });
    return products;
  }
  const std::uint64_t most = has_row_index(problem.grouping)
                                 ? std::min(options.sampled_groups, most_sampled_rows)
                                 : options.sampled_groups;
  if (products.size() <= most) return products;
  std::erase_if(products, [](const GroupProduct& group) { return group.problem.m == 0; });
  std::vector<GroupProduct> chosen;
  for (const std::uint64_t i : choose_rows(products.size(), most, options.seed)) {
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

// Calls work(tile, packed, sums, thread index) for every tile of the chosen rows and all columns.
template <class Work>
void for_each_tile(const Problem& problem, const std::vector<std::uint64_t>& rows,
                   std::uint32_t threads, const Work& work) {
  const std::uint64_t row_tiles = (rows.size() + kTile - 1) / kTile;
  const std::uint64_t col_tiles = (problem.n + kTile - 1) / kTile;
  const std::uint64_t tiles = result_count(problem) * row_tiles * col_tiles;
  std::atomic<std::uint64_t> next{0};
  const auto loop = [&](std::uint64_t thread) {
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
  on_threads(threads, loop);
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
      std::clamp<std::uint64_t>(result_count(problem) * rows.size() / threads, 1, 8);
  const std::uint64_t row_blocks = (rows.size() + at_once - 1) / at_once;
  std::atomic<std::uint64_t> next{0};
  on_threads(threads, [&](std::uint64_t thread) {
    const auto packed = std::make_unique_for_overwrite<Packed>();
    const auto sums = std::make_unique_for_overwrite<Sums>();
    std::vector<ExpectedRow> expected(at_once);
    for (std::uint64_t t = next++; t < result_count(problem) * row_blocks; t = next++) {
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
  if (problem.m * problem.n * result_count(problem) <= kTile * kTile) return 1;
  return wanted != 0 ? wanted : std::max(1U, std::thread::hardware_concurrency());
}

// A value that a result should hold.
struct Element {
  OperandId operand = OperandId::d;
  std::uint64_t batch = 0, i = 0, j = 0;
  double value = 0.0, bound = 0.0;
  bool unpredictable = false, ambiguous = false;  // see Expected
  bool at_least = false;  // the result may be larger: not all that it depends on was computed
};

// Calls visit(element, thread index) for what steps store of element (i, j), and with its value for
// a step amax.
template <class Visit>
void visit_stored(const Problem& problem, std::uint64_t batch, std::uint64_t i, std::uint64_t j,
                  const Expected& e, std::uint64_t thread, const Visit& visit) {
  for (std::size_t tensor = 0; tensor < most_tensors; ++tensor) {
    const StepOp writer = writer_of(problem.epilogue, tensor);
    if (writer != StepOp::store && writer != StepOp::amax) continue;
    Element stored{
        tensor_row(tensor).id,         batch, i, j, e.stored[tensor], e.stored_bound[tensor],
        e.unpredictable || e.ambiguous};
    if (problem.epilogue.tensors[tensor] == TensorShape::mask) {
      // Either is right of a value that may have either sign.
      if (stored.bound > 0.0 && std::fabs(stored.value) <= stored.bound)
        stored.unpredictable = true;
      stored.value = stored.value > 0.0 ? 1.0 : 0.0;
      stored.bound = stored.unpredictable ? 1.0 : 0.0;
    }
    visit(stored, thread);
  }
}

// Calls visit(element, thread index) for every element of the results in the chosen rows.
template <class Visit>
void visit_product(const Problem& problem, const Views& views, const HostOperands& operands,
                   const std::vector<std::uint64_t>& rows, std::uint32_t threads,
                   const Visit& visit) {
  const EpilogueOracle oracle(problem, views, operands);
  const std::uint64_t halves = problem.gated ? 2 : 1;
  for_each_tile(problem, rows, threads,
                [&](const TileOfD& tile, Packed& packed, Sums* sums, std::uint64_t thread) {
                  for (std::uint64_t half = 0; half < halves; ++half) {
                    multiply_tile(problem, views, operands, tile, half, packed, sums[half]);
                  }
                  for (std::uint64_t r = 0; r < tile.row_count; ++r) {
                    for (std::uint64_t s = 0; s < tile.col_count; ++s) {
                      const std::uint64_t i = tile.rows[r];
                      const std::uint64_t j = tile.first_col + s;
                      const Expected e = oracle(tile.batch, i, j, sums, r * kTile + s);
                      visit(Element{OperandId::d, tile.batch, i, j, e.d, e.d_bound, e.unpredictable,
                                    e.ambiguous},
                            thread);
                      for (std::uint64_t half = 0; problem.epilogue.aux && half < halves; ++half) {
                        visit(
                            Element{OperandId::aux, tile.batch, i, product_column(problem, half, j),
                                    e.pre[half], e.pre_bound[half], e.unpredictable},
                            thread);
                      }
                      visit_stored(problem, tile.batch, i, j, e, thread, visit);
                    }
                  }
                });
}

template <class Visit>
void visit_rows(const Problem& problem, const Views& views, const HostOperands& operands,
                const std::vector<std::uint64_t>& rows, std::uint32_t threads, const Visit& visit) {
  const RowReduction& reduction = *problem.row_reduction;
  const bool has_d = !is_scalar(reduction.op) || reduction.store_d;
  std::vector<ReducedRow> reduced(threads);
  for_each_row(problem, views, operands, rows, threads,
               [&](const ExpectedRow& row, std::uint64_t thread) {
                 ReducedRow& to = reduced[thread];
                 reduce_row(problem, operands, row.values, to);
                 for (std::uint64_t j = 0; j < problem.n; ++j) {
                   if (has_d) {
                     visit(Element{OperandId::d, row.batch, row.row, j, to.d[j], to.d_bound[j],
                                   to.unpredictable},
                           thread);
                   }
                   const Expected& e = row.elements[j];
                   visit_stored(problem, row.batch, row.row, j, e, thread, visit);
                   if (!problem.epilogue.aux) continue;
                   visit(Element{OperandId::aux, row.batch, row.row, j, e.pre[0], e.pre_bound[0],
                                 e.unpredictable},
                         thread);
                 }
                 if (!gives_values(reduction.op)) return;
                 visit(Element{OperandId::row_values, row.batch, row.row, 0, to.value,
                               to.value_bound, to.unpredictable},
                       thread);
               });
}

// The most sums that follow each other, for tiles of any size: those of a tile's rows, of every
// 16th row of tiles, and of a tree.
double sum_depth(std::uint64_t rows) {
  return std::min(static_cast<double>(rows), 264.0 + static_cast<double>(rows) / 16.0);
}

// Calls visit(element, thread index) for the sums of columns. They are of all rows; unless all is
// verified, only the first columns, the last ones and some between them are summed.
template <class Visit>
void visit_column_sums(const Problem& problem, const Views& views, const HostOperands& operands,
                       const VerifyOptions& options, std::uint32_t threads, const Visit& visit) {
  const auto tensor = summed_tensor(problem.epilogue);
  if (!tensor) return;
  const EpilogueOracle oracle(problem, views, operands);
  const std::uint64_t halves = problem.gated ? 2 : 1;
  const std::uint64_t all = (problem.n + kTile - 1) / kTile;
  const std::vector<std::uint64_t> columns =
      choose_rows(all, options.mode == Verify::full ? all : sampled_column_tiles, options.seed);
  std::atomic<std::uint64_t> next{0};
  on_threads(threads, [&](std::uint64_t thread) {
    const auto packed = std::make_unique_for_overwrite<Packed>();
    const auto sums = std::make_unique_for_overwrite<Sums[]>(2);
    for (std::uint64_t t = next++; t < result_count(problem) * columns.size(); t = next++) {
      TileOfD tile;
      tile.batch = t / columns.size();
      tile.first_col = columns[t % columns.size()] * kTile;
      tile.col_count = std::min(kTile, problem.n - tile.first_col);
      std::array<Element, kTile> elements;
      std::array<double, kTile> sizes{};
      for (std::uint64_t row = 0; row < problem.m; row += kTile) {
        tile.row_count = std::min(kTile, problem.m - row);
        for (std::uint64_t r = 0; r < tile.row_count; ++r) tile.rows[r] = row + r;
        for (std::uint64_t half = 0; half < halves; ++half) {
          multiply_tile(problem, views, operands, tile, half, *packed, sums[half]);
        }
        for (std::uint64_t r = 0; r < tile.row_count; ++r) {
          for (std::uint64_t s = 0; s < tile.col_count; ++s) {
            const Expected e =
                oracle(tile.batch, row + r, tile.first_col + s, sums.get(), r * kTile + s);
            elements[s].value += e.stored[*tensor];
            elements[s].bound += e.stored_bound[*tensor];
            sizes[s] += std::fabs(e.stored[*tensor]) + e.stored_bound[*tensor];
            elements[s].unpredictable = elements[s].unpredictable || e.unpredictable || e.ambiguous;
          }
        }
      }
      for (std::uint64_t s = 0; s < tile.col_count; ++s) {
        Element& sum = elements[s];
        sum.operand = tensor_row(*tensor).id;
        sum.batch = tile.batch;
        sum.j = tile.first_col + s;
        sum.bound += sum_depth(problem.m) * 0x1p-23 * sizes[s];
        if (std::isfinite(sizes[s]) && sizes[s] > static_cast<double>(FLT_MAX)) {
          sum.unpredictable = true;
        }
        visit(sum, thread);
      }
    }
  });
}

// The largest magnitude of a product, which was computed as a whole or in part.
Element amax_element(std::size_t tensor, const Largest& found, bool is_whole) {
  return {.operand = tensor_row(tensor).id,
          .value = found.value(),
          .bound = found.bound(),
          .unpredictable = std::isinf(found.bound()),
          .at_least = !is_whole};
}

// A product of the problem, which is not empty as a whole. An empty group has sums of columns:
// zeros. amax_of_all: null, or a group adds to it what it finds.
template <class Visit>
void visit_results(const Problem& problem, const Views& views, const HostOperands& operands,
                   const VerifyOptions& options, Largest* amax_of_all, std::uint32_t threads,
                   const Visit& visit) {
  visit_column_sums(problem, views, operands, options, threads, visit);
  if (is_empty(problem)) return;
  const std::vector<std::uint64_t> rows = rows_of(problem, options);
  const auto amax = amax_tensor(problem.epilogue);
  std::vector<Largest> found(threads);
  const auto visit_one = [&](const Element& e, std::uint64_t thread) {
    if (amax && e.operand == tensor_row(*amax).id) {
      found[thread].add(e.value, e.bound, e.unpredictable);
    } else {
      visit(e, thread);
    }
  };
  if (problem.row_reduction) {
    visit_rows(problem, views, operands, rows, threads, visit_one);
  } else {
    visit_product(problem, views, operands, rows, threads, visit_one);
  }
  if (!amax) return;
  Largest own;
  for (const Largest& one : found) own.add(one);
  if (amax_of_all != nullptr) return amax_of_all->add(own);
  visit(amax_element(*amax, own, options.mode == Verify::full), 0);
}

// The last cast of a result. D alone has a zero point.
Rounding cast_of(const Problem& problem, OperandId operand, DataType type) {
  return rounding(type, operand == OperandId::d ? problem.epilogue.zero_point : 0.0);
}

// Compares a result's element with its value. `matrix`: its number in the findings.
void compare_element(const Problem& problem, const Views& views, const HostOperands& operands,
                     const Element& e, std::uint64_t matrix, Findings& findings) {
  const void* const data = operands[e.operand];
  if (data == nullptr) return;
  const View& view = views[e.operand];
  double got = view.get(data, e.batch, e.i, e.j);
  if (e.at_least && got > e.value) got = e.value;
  const Rounding cast = cast_of(problem, e.operand, view.type);
  Comparison c = compare(got, e.value, e.bound, cast, e.unpredictable);
  const double zero = is_byte(view.type) ? cast.cast(0.0) : 0.0;
  if (!c.ok && e.ambiguous) c.ok = std::isnan(got) || got == zero;
  findings.add(row_of(e.operand).name.data(), matrix, e.i, e.j, got, e.value, c);
}

void store_result(const Problem& problem, const Views& views, const HostResults& results,
                  const Element& e) {
  void* const data = results[e.operand];
  if (data == nullptr) return;
  const View& view = views[e.operand];
  const double value =
      is_byte(view.type) ? cast_of(problem, e.operand, view.type).cast(e.value) : e.value;
  view.set(data, e.batch, e.i, e.j, value);
  if (!view.is_mask) return;
  // Zeros end a line's last word.
  constexpr std::uint64_t bits = 32;
  if (view.row_major && e.j + 1 == problem.n) {
    for (std::uint64_t j = problem.n; j % bits != 0; ++j) view.set(data, e.batch, e.i, j, 0.0);
  } else if (!view.row_major && e.i + 1 == problem.m) {
    for (std::uint64_t i = problem.m; i % bits != 0; ++i) view.set(data, e.batch, i, e.j, 0.0);
  }
}

// Rows of D that are sums of rows of a product: the terms of each, which come in the order of the
// product's rows.
class RowSums {
 public:
  RowSums(const Problem& problem, const std::vector<std::uint64_t>& rows) : problem_(problem) {
    for (const std::uint64_t row : rows) {
      std::vector<Element>& elements = sums_[row];
      elements.resize(problem.n);
      for (std::uint64_t j = 0; j < problem.n; ++j) elements[j] = {.i = row, .j = j};
    }
  }

  // A term that another row has counts no more.
  bool begins(const GroupProduct& row) { return row.has_d && terms_.insert(row.term).second; }
  void add(const GroupProduct& row, const Element& e) {
    Element& sum = sums_.at(row.term / problem_.grouping->d_terms)[e.j];
    const double term = row.weight * e.value, bound = std::fabs(row.weight) * e.bound;
    sum.value += term;
    // Each multiply-add rounds the sum so far.
    const double steps = problem_.grouping->d_terms;
    sum.bound += bound + steps * 0x1p-24 * (std::fabs(term) + bound);
    sum.unpredictable = sum.unpredictable || e.unpredictable || e.ambiguous;
  }
  void each(const auto& visit) const {
    for (const auto& [row, elements] : sums_) {
      for (const Element& e : elements) visit(e);
    }
  }

 private:
  const Problem& problem_;
  std::map<std::uint64_t, std::vector<Element>> sums_;
  std::set<std::uint64_t> terms_;
};

// The results that several products of a problem share.
struct OfAll {
  Largest amax;
  std::optional<RowSums> sums;  // set: D's values are terms
};

// Compares the results of one product. `of_all`: null if it is the only one.
void verify_product(const GroupProduct& product, const HostOperands& operands,
                    const VerifyOptions& options, OfAll* of_all, Findings& all) {
  const Problem& problem = product.problem;
  const Views views(problem);
  const std::uint32_t threads = thread_count(options.threads, problem);
  std::vector<Findings> findings(threads);
  RowSums* const sums = of_all != nullptr && of_all->sums ? &*of_all->sums : nullptr;
  const bool counts = sums != nullptr && sums->begins(product);
  visit_results(problem, views, operands, options, of_all != nullptr ? &of_all->amax : nullptr,
                threads, [&](const Element& e, std::uint64_t thread) {
                  const bool is_d = e.operand == OperandId::d;
                  if (is_d && counts) sums->add(product, e);
                  if (is_d && (sums != nullptr || !product.has_d)) return;
                  compare_element(problem, views, operands, e, product.number + e.batch,
                                  findings[thread]);
                });
  for (const Findings& found : findings) all.merge(found);
}

void compute_product(const GroupProduct& product, const HostOperands& operands,
                     const HostResults& results, OfAll* of_all, std::uint32_t threads) {
  const Problem& problem = product.problem;
  const Views views(problem);
  RowSums* const sums = of_all != nullptr && of_all->sums ? &*of_all->sums : nullptr;
  const bool counts = sums != nullptr && sums->begins(product);
  visit_results(problem, views, operands, {.mode = Verify::full},
                of_all != nullptr ? &of_all->amax : nullptr, thread_count(threads, problem),
                [&](const Element& e, std::uint64_t) {
                  const bool is_d = e.operand == OperandId::d;
                  if (is_d && counts) sums->add(product, e);
                  if (is_d && (sums != nullptr || !product.has_d)) return;
                  store_result(problem, views, results, e);
                });
}

// Calls visit(element) for the results of all products together.
void visit_of_all(const Problem& problem, const OfAll& of_all, bool is_whole, const auto& visit) {
  if (const auto amax = amax_tensor(problem.epilogue)) {
    visit(amax_element(*amax, of_all.amax, is_whole));
  }
  if (of_all.sums) of_all.sums->each(visit);
}

OfAll make_of_all(const Problem& problem, const VerifyOptions& options) {
  OfAll out;
  if (adds_rows(problem.grouping)) out.sums.emplace(problem, rows_of_sums(problem, options));
  return out;
}

}  // namespace

VerifyReport verify(const Problem& problem, const HostOperands& operands,
                    const VerifyOptions& options) {
  if (options.mode == Verify::off || is_empty(problem)) return {};
  Findings findings;
  if (!has_products(problem)) {
    verify_product({.problem = problem}, operands, options, nullptr, findings);
    return findings.finish();
  }
  OfAll of_all = make_of_all(problem, options);
  for (const GroupProduct& group : chosen_products(problem, operands, options)) {
    verify_product(group, group.of(operands), options, &of_all, findings);
  }
  const Views views(problem);
  visit_of_all(problem, of_all, options.mode == Verify::full, [&](const Element& e) {
    compare_element(problem, views, operands, e, 0, findings);
  });
  return findings.finish();
}

VerifiedParts verified_parts(const Problem& problem, const HostOperands& operands,
                             const VerifyOptions& options) {
  VerifiedParts parts;
  const auto add = [&](const OperandRow& row, const Problem& product,
                       const std::vector<std::uint64_t>& rows, std::uint64_t begin) {
    const OperandShape shape = row.shape(product);
    if (shape.rows == 0) return;          // of an empty group
    const bool is_row = shape.rows == 1;  // sums of columns
    add_parts(shape, is_row ? std::vector<std::uint64_t>{0} : rows, begin, parts[row.id]);
  };
  const bool sums = adds_rows(problem.grouping);
  const auto add_product = [&](const GroupProduct& product) {
    const std::vector<std::uint64_t> rows = rows_of(product.problem, options);
    for (const OperandRow& row : operand_rows()) {
      if (!row.is_written(product.problem) || !row.exists(product.problem)) continue;
      if (row.id == OperandId::d && (sums || !product.has_d)) continue;
      add(row, product.problem, rows, product.begins[row.id]);
    }
  };
  if (options.mode == Verify::off || is_empty(problem)) return parts;
  if (!has_products(problem)) {
    add_product({.problem = problem});
    return parts;
  }
  for (const GroupProduct& group : chosen_products(problem, operands, options)) {
    add_product(group);
  }
  if (sums) add(row_of(OperandId::d), problem, rows_of_sums(problem, options), 0);
  return parts;
}

void compute_reference(const Problem& problem, const HostOperands& operands,
                       const HostResults& results, std::uint32_t threads) {
  if (is_empty(problem)) return;
  if (!has_products(problem)) {
    return compute_product({.problem = problem}, operands, results, nullptr, threads);
  }
  OfAll of_all = make_of_all(problem, {.mode = Verify::full});
  for (const GroupProduct& group : products_of(problem, operands)) {
    compute_product(group, group.of(operands), group.of(results), &of_all, threads);
  }
  const Views views(problem);
  visit_of_all(problem, of_all, true,
               [&](const Element& e) { store_result(problem, views, results, e); });
}

}  // namespace vkgemm::oracle
