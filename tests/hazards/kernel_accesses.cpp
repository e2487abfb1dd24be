#include "kernel_accesses.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "kernel.hpp"
#include "kernels/tiling.hpp"
#include "lib/footprint.h"
#include "problem/resolved_problem.hpp"

namespace vkgemm::test {

std::uint64_t Kernel::rows_of_a(const gpu::GemmParams& p) const {
  return constant(SPEC_GATHER) != 0 ? block<gpu::GroupedParams>().gemm.a_batch : p.m;
}

void Kernel::inputs(const gpu::GemmParams& p, Batches a, Batches b) {
  if (constant(SPEC_SUM_BATCH) != 0) a = b = {0, p.batch};
  const std::uint64_t element = input_bytes(launch_.module);
  const std::uint64_t a_element = bytes_in_memory(SPEC_A_TYPE, element);
  const std::uint64_t b_element = bytes_in_memory(SPEC_B_TYPE, element);
  const bool a_columns = constant(SPEC_A_COL_MAJOR) != 0;
  const bool b_columns = constant(SPEC_B_COL_MAJOR) != 0;
  // What is packed is read in whole tiles, but not beyond its leading dimension.
  const auto width = [&](std::size_t padded, std::uint64_t size, std::size_t tile,
                         std::uint64_t ld) {
    return constant(padded) != 0 ? std::min(rounded_up(size, constant(tile)), ld) : size;
  };
  const std::uint64_t m = width(SPEC_A_PADDED, p.m, SPEC_TILE_M, p.lda);
  const std::uint64_t n = width(SPEC_B_PADDED, p.n, SPEC_TILE_N, p.ldb);
  // Scales of lines stand in front.
  const std::uint64_t depth = p.k + (has_line_scales() ? 1u : 0u);
  read("a", matrix(p.a, {m, depth, p.lda, a_columns, a_element}, p.a_batch, a));
  const bool pairs = is_gated() && constant(SPEC_GATE_INTERLEAVED) != 0 && !b_columns &&
                     constant(SPEC_B_PADDED) == 0;
  if (constant(SPEC_CODES) != CODES_NONE) {
    const Region half = vector(p.b, code_bytes(p.ldb, rounded_up(p.k, packed_depth)), p.b_batch, b);
    read("b", half);
    Region right = half;
    right.address += p.b_right;
    if (is_gated()) read("b_right", right);
    if (const std::uint64_t group = constant(SPEC_A_GROUP_K); group != 0) {
      const std::uint64_t bytes =
          rows_of_a(p) * divided_up(std::uint64_t{p.k}, group) * sizeof(float);
      const bool many = constant(SPEC_ROW_SCALES) == SCALES_PER_MATRIX;
      read("row_scales", vector(p.row_scales, bytes, many ? bytes : 0, a));
    }
    return;
  }
  const Shape half{depth, pairs ? 2 * n : n, p.ldb, b_columns, b_element};
  read("b", matrix(p.b, half, p.b_batch, b));
  if (is_gated() && !pairs) read("b_right", matrix(p.b + p.b_right, half, p.b_batch, b));
}

// All but D.
void Kernel::epilogue(const gpu::GemmParams& p, Batches batches, Batches bias) {
  const bool columns = constant(SPEC_C_COL_MAJOR) != 0;
  const std::uint64_t aux_n = is_gated() ? 2 * std::uint64_t{p.n} : p.n;
  if (const std::uint64_t element = bytes_of(constant(SPEC_C_TYPE)); element != 0) {
    read("c", matrix(p.c, {p.m, p.n, p.ldc, columns, element}, p.c_batch, batches));
  }
  if (const std::uint64_t element = bytes_of(constant(SPEC_AUX_TYPE)); element != 0) {
    write("aux", matrix(p.aux, {p.m, aux_n, p.ld_aux, columns, element}, p.aux_batch, batches));
  }
  if (const std::uint64_t element = bytes_of(constant(SPEC_BIAS_TYPE)); element != 0) {
    const std::uint64_t length = constant(SPEC_BIAS) == BIAS_ALONG_M ? p.m : aux_n;
    read("bias", vector(p.bias, length * element, p.bias_batch, bias));
  }
  const auto factors = [&](std::string_view name, std::size_t id, std::uint64_t address,
                           std::uint64_t length, Batches matrices) {
    if (constant(id) == SCALES_NONE) return;
    if (constant(id) == SCALES_OF_PARTS) {
      const bool of_rows = id == SPEC_ROW_SCALES;
      const std::uint64_t lines = of_rows ? p.lda : p.ldb;
      read(name, vector(address, lines * sizeof(float), of_rows ? p.a_batch : p.b_batch, matrices));
      return;
    }
    const std::uint64_t bytes = length * sizeof(float);
    const bool many = constant(id) == SCALES_PER_MATRIX;
    read(name, vector(address, bytes, many ? bytes : 0, matrices));
  };
  if (constant(SPEC_A_GROUP_K) == 0)
    factors("row_scales", SPEC_ROW_SCALES, p.row_scales, rows_of_a(p), batches);
  factors("column_scales", SPEC_COLUMN_SCALES, p.column_scales, aux_n, bias);
  for (std::size_t i = 0; i < constant(SPEC_STEP_COUNT); ++i) {
    step(p, constant(SPEC_STEP0 + i), batches, bias);
  }
}

// lib/epilogue/column_sums.glsl. Groups of rows have as many slots as group_map.glsl says.
Region Kernel::tile_sums(std::uint64_t address, std::uint64_t m, std::uint64_t row,
                         std::uint64_t pitch, Batches batches) const {
  const std::uint64_t tile_m = constant(SPEC_TILE_M);
  const std::uint64_t rows = constant(SPEC_GROUPED) == GROUPED_ALONG_M
                                 ? m / tile_m + block<gpu::GroupedParams>().groups
                                 : divided_up(m, tile_m);
  return vector(address, rows * row, pitch, batches);
}

// lib/epilogue/steps.glsl.
void Kernel::step(const gpu::GemmParams& p, std::uint32_t word, Batches batches, Batches bias) {
  struct Place {
    std::uint64_t address, batch;
    std::uint32_t ld;
  };
  const Place places[PLACE_COUNT] = {{p.c, p.c_batch, p.ldc},
                                     {p.aux, p.aux_batch, p.ld_aux},
                                     {p.bias, p.bias_batch, p.ld_bias},
                                     {p.extra, p.extra_batch, p.ld_extra}};
  const Place& place = places[word >> STEP_PLACE_SHIFT & 3];
  const std::uint64_t element = bytes_of(word >> STEP_TYPE_SHIFT & 15);
  const bool columns = (word >> STEP_COL_MAJOR_SHIFT & 1) != 0;
  const Region whole =
      matrix(place.address, {p.m, p.n, place.ld, columns, element}, place.batch, batches);
  if ((word & 15) == STEP_SUM_COLUMNS) {
    return write("sums of tiles",
                 tile_sums(place.address, p.m, place.ld * word_bytes, place.batch, batches));
  }
  if ((word & 15) == STEP_AMAX) {
    accesses.push_back({.what = "amax",
                        .region = vector(place.address, word_bytes),
                        .reads = true,
                        .writes = true,
                        .atomic = true});
    return;
  }
  switch (word >> STEP_OPERAND_SHIFT & 7) {
    case OPERAND_NUMBER:
      return;
    case OPERAND_SCALAR:
      return read("a tensor", vector(place.address, element, place.batch, bias));
    case OPERAND_ALONG_N:
      return read("a tensor", vector(place.address, p.n * element, place.batch, bias));
    case OPERAND_ALONG_M:
      return read("a tensor", vector(place.address, p.m * element, place.batch, batches));
    case OPERAND_MASK: {
      const std::uint64_t line = divided_up(p.n, 32) * word_bytes;
      const Region bits =
          matrix(place.address, {p.m, line, place.ld, false, 1}, place.batch, batches);
      if ((word & 15) != STEP_STORE) return read("a mask", bits);
      accesses.push_back(
          {.what = "a mask", .region = bits, .reads = true, .writes = true, .atomic = true});
      return;
    }
    default:
      return (word & 15) == STEP_STORE ? write("a tensor", whole) : read("a tensor", whole);
  }
}

void Kernel::store_d(const gpu::GemmParams& p, Batches batches) {
  const std::uint64_t element = bytes_of(constant(SPEC_D_TYPE));
  if (element == 0) return;
  const bool columns = constant(SPEC_D_COL_MAJOR) != 0;
  write("d", matrix(p.d, {p.m, p.n, p.ldd, columns, element}, p.d_batch, batches));
}

// lib/schedule/split_k.glsl.
Region Kernel::partial(const gpu::GemmParams& p, Batches batches) const {
  const std::uint64_t row = rounded_up(p.n, 4) * sizeof(float) * (is_gated() ? 2 : 1);
  return vector(p.partial, p.slices * p.m * row, p.slices * p.m * row, batches);
}

void Kernel::gemm() {
  const auto p = block<gpu::GemmParams>();
  const Batches batches = launched(p);
  inputs(p, batches, batches);
  if (constant(SPEC_SPLIT) == SPLIT_TWO_DISPATCHES)
    return write("partial results", partial(p, batches));
  epilogue(p, batches, batches);
  store_d(p, batches);
}

void Kernel::sum_slices() {
  const auto p = block<gpu::GemmParams>();
  const Batches batches = launched(p);
  read("partial results", partial(p, batches));
  epilogue(p, batches, batches);
  store_d(p, batches);
}

void Kernel::gemm_split() {
  const auto p = block<gpu::SplitParams>();
  const bool by_ticket = constant(SPEC_SPLIT) == SPLIT_DEVICE_BARRIER;
  const Batches batches = by_ticket ? Batches{0, p.gemm.batch} : launched(p.gemm);
  inputs(p.gemm, batches, batches);
  update("partial results", partial(p.gemm, batches));
  const std::uint64_t columns = constant(SPEC_TILE_N) / (is_gated() ? 2 : 1);
  const std::uint64_t tiles =
      divided_up(p.gemm.m, constant(SPEC_TILE_M)) * divided_up(p.gemm.n, columns);
  update("control words", vector(p.control, (CONTROL_WORDS + tiles * p.gemm.batch) * word_bytes));
  if (by_ticket) count("aborts", p.aborts, true);
  epilogue(p.gemm, batches, batches);
  store_d(p.gemm, batches);
}

// lib/schedule/row_index.glsl: fields with another meaning have their own again.
gpu::GemmParams Kernel::without_indices(const gpu::GroupedParams& p) {
  gpu::GemmParams seen = p.gemm;
  if (constant(SPEC_GATHER) != 0 || constant(SPEC_SCATTER) != SCATTER_NONE) {
    read("row_index", vector(p.row_index, p.gemm.m * word_bytes));
  }
  if (constant(SPEC_GATHER) != 0) seen.a_batch = 0;
  if (constant(SPEC_SCATTER) != SCATTER_NONE) seen.d_batch = 0;
  if (constant(SPEC_INDEXED_B) != 0) read("b_index", vector(p.b_index, p.groups * word_bytes));
  if (constant(SPEC_SCATTER) == SCATTER_TERMS) {
    update("rows of terms", vector(p.gemm.partial, p.gemm.d_batch * word_bytes));
  }
  return seen;
}

void Kernel::grouped() {
  const auto p = block<gpu::GroupedParams>();
  const Batches groups{0, p.groups};
  const bool of_rows = constant(SPEC_GROUPED) == GROUPED_ALONG_M;
  const Batches simple = of_rows ? Batches{} : launched(p.gemm);
  const Batches own = !of_rows && constant(SPEC_PERSISTENT) != 0 ? groups : simple;
  read_offsets(p);
  count("the word for bad offsets", p.bad_group, false);
  const gpu::GemmParams own_fields = without_indices(p);
  const Batches matrices{0, constant(SPEC_INDEXED_B) != 0 ? p.gemm.batch : p.groups};
  gpu::GemmParams seen = own_fields;
  if (constant(SPEC_GATHER) != 0 && constant(SPEC_A_PADDED) == 0) {
    seen.m = static_cast<std::uint32_t>(p.gemm.a_batch);
  }
  if (!of_rows && constant(SPEC_A_PADDED) != 0 && seen.k != 0) {  // copies by slots
    const std::uint32_t slot = constant(SPEC_TILE_K);
    seen.k = (seen.k / slot + p.groups) * slot;  // ResolvedProblem::group_slots()
  }
  inputs(seen, own, of_rows ? matrices : own);
  epilogue(own_fields, own, of_rows ? matrices : own);
  gpu::GemmParams stored = own_fields;
  if (constant(SPEC_SCATTER) == SCATTER_ROWS) {
    stored.m = static_cast<std::uint32_t>(p.gemm.d_batch);
  }
  store_d(stored, own);
}

void Kernel::sum_rows() {
  const auto p = block<gpu::SumRowsParams>();
  const std::uint64_t pieces =
      std::max<std::uint64_t>(divided_up(p.n, 4 * std::uint64_t{SUM_ROWS_LOCAL_SIZE}), 1);
  const std::uint64_t first = p.first_tile / pieces;
  const std::uint64_t rows = divided_up(p.first_tile + std::uint64_t{launch_.x}, pieces) - first;
  const std::uint64_t terms = rows * p.terms * word_bytes;
  read("rows of terms", vector(p.partial + first * p.terms * word_bytes, terms));
  if (p.row_weights != 0) {
    read("row_weights", vector(p.row_weights + first * p.terms * word_bytes, terms));
  }
  // Any rows of the product: at least the first one is there.
  read("values of rows", vector(p.values, p.n * sizeof(float)));
  const std::uint64_t element = bytes_of(constant(SPEC_D_TYPE));
  write("d", matrix(p.d + first * p.ldd * element,
                    {static_cast<std::uint32_t>(rows), p.n, p.ldd, false, element}, 0, {}));
}

void Kernel::group_table() {
  const auto p = block<gpu::GroupTableParams>();
  const std::uint64_t bytes = p.groups * std::uint64_t{constant(SPEC_OFFSETS_64) != 0 ? 8u : 4u};
  const bool has_ends = constant(SPEC_GROUP_ENDS) != 0;
  if (has_ends) read("offsets", vector(p.given_offsets, bytes));
  read("group_sizes", vector(p.group_sizes, bytes));
  const std::uint64_t entries = has_ends ? 2 * std::uint64_t{p.groups} : p.groups + 1;
  write("the table of groups", vector(p.offsets, entries * word_bytes));
  count("the word for bad offsets", p.bad_group, false);
}

// lib/rows/row_panel_state.glsl.
Region Kernel::row_states(std::uint64_t states, std::uint64_t m, std::uint64_t n,
                          Batches batches) const {
  const std::uint64_t tile_m = constant(SPEC_TILE_M);
  const std::uint64_t bytes = divided_up(m, tile_m) * divided_up(n, constant(SPEC_TILE_N)) *
                              tile_m * ROW_STATE_BYTES(has_moments());
  return vector(states, bytes, bytes, batches);
}

template <class Block>
void Kernel::row_vectors(const Block& p, std::uint64_t n) {
  const std::uint64_t bytes = n * bytes_of(constant(SPEC_ROW_VECTOR_TYPE));
  if (constant(SPEC_ROW_GAMMA) != 0) read("gamma", vector(p.gamma, bytes));
  if (constant(SPEC_ROW_SHIFT) != 0) read("beta", vector(p.shift, bytes));
}

template <class Block>
void Kernel::row_values(const Block& p, std::uint64_t m, Batches batches) {
  const std::uint64_t bytes = m * bytes_of(constant(SPEC_ROW_VALUE_TYPE));
  if (has_values()) write("row_values", vector(p.row_values, bytes, bytes, batches));
}

void Kernel::reduce_tiles() {
  const auto p = block<gpu::ReduceTilesParams>();
  const bool shared = constant(SPEC_ROW_SHARED) != 0;
  const std::uint32_t stage = shared ? p.gemm.slices & ROW_STAGE_MASK : ROW_STAGE_RESIDENT;
  const bool guarded = shared && (p.gemm.slices & ROW_STAGE_GUARDED) != 0;
  const bool panel = stage == ROW_STAGE_PANEL, statistics = stage == ROW_STAGE_STATISTICS;
  const std::uint32_t matrices = constant(SPEC_SUM_BATCH) != 0 ? 1 : p.gemm.batch;
  const Batches batches = panel ? Batches{0, matrices} : launched(p.gemm);
  const Region states = row_states(p.gemm.partial, p.gemm.m, p.gemm.n, batches);
  const Region control = vector(
      p.control, (CONTROL_WORDS + divided_up(p.gemm.m, constant(SPEC_TILE_M)) *
                                      divided_up(p.gemm.n, constant(SPEC_TILE_N)) * matrices) *
                     word_bytes);
  inputs(p.gemm, batches, batches);
  epilogue(p.gemm, batches, batches);
  if (panel) {
    update("row states", states);
    update("control words", control);
    count("aborts", p.aborts, true);
  } else if (statistics) {
    write("row states", states);
  } else if (stage == ROW_STAGE_APPLY) {
    read("row states", states);
    if (guarded) read("control words", control);
  }
  if (!statistics) row_values(p, p.gemm.m, batches);
  if (statistics && !has_scalar()) return;
  row_vectors(p, p.gemm.n);
  store_d(p.gemm, batches);
}

void Kernel::reduce_rows() {
  const auto p = block<gpu::ReduceRowsParams>();
  const Batches batches = launched(p);
  read("values of rows",
       matrix(p.values, {p.m, p.n, p.values_ld, false, sizeof(float)}, p.values_batch, batches));
  row_values(p, p.m, batches);
  const std::uint64_t element = bytes_of(constant(SPEC_D_TYPE));
  if (element == 0) return;
  row_vectors(p, p.n);
  const bool columns = constant(SPEC_D_COL_MAJOR) != 0;
  write("d", matrix(p.d, {p.m, p.n, p.ldd, columns, element}, p.d_batch, batches));
}

void Kernel::merge_states() {
  const auto p = block<gpu::MergeParams>();
  read("row states", row_states(p.partial, p.m, p.n, launched(p)));
  row_values(p, p.m, launched(p));
}

void Kernel::sum_columns() {
  const auto p = block<gpu::SumColumnsParams>();
  std::uint64_t rows = p.rows;
  if (constant(SPEC_GROUPED) == GROUPED_ALONG_M) {
    read_offsets(p);
    rows = p.rows / constant(SPEC_TILE_M) + p.groups;
  }
  const std::uint64_t bytes = rows * p.extra_row;
  read("sums of tiles", vector(p.extra, bytes, p.extra_batch, launched(p)));
  write("column sums",
        vector(p.column_sums, p.n * sizeof(float), p.column_sums_batch, launched(p)));
}

void Kernel::carry() {
  const auto p = block<gpu::CarryParams>();
  write("parameters", vector(p.parameters, p.count * word_bytes));
}
void Kernel::reset() {
  const auto p = block<gpu::ResetParams>();
  write("control words", vector(p.control, p.control_words * word_bytes));
  write("row states", vector(p.partial, p.row_state_pieces * std::uint64_t{RESET_PIECE_BYTES}));
  if (p.amax != 0) write("amax", vector(p.amax, word_bytes));
  if (p.aborts == 0) return;
  accesses.push_back(
      {.what = "aborts", .region = vector(p.aborts, word_bytes), .reads = true, .atomic = true});
}

namespace {

// By the first part of a module's name: kernels that each main loop has, and others. Longer names
// come first.
struct Row {
  std::string_view prefix;
  void (Kernel::*accesses)();
};
constexpr Row rows[] = {
    {"gemm_split_", &Kernel::gemm_split},
    {"gemm_", &Kernel::gemm},
    {"grouped_", &Kernel::grouped},
    {"reduce_tiles_", &Kernel::reduce_tiles},
    {"sum_slices", &Kernel::sum_slices},
    {"sum_integer_slices", &Kernel::sum_slices},
    {"sum_columns", &Kernel::sum_columns},
    {"sum_rows", &Kernel::sum_rows},
    {"group_table", &Kernel::group_table},
    {"reduce_rows", &Kernel::reduce_rows},
    {"merge_states", &Kernel::merge_states},
    {"reset", &Kernel::reset},
    {"pack_codes", &Kernel::pack_codes},
    {"pack", &Kernel::pack},
    {"quantise_rows", &Kernel::quantise_rows},
    {"carry", &Kernel::carry},
};

}  // namespace

std::optional<std::vector<Access>> kernel_accesses(const Launch& launch) {
  const auto row =
      std::ranges::find_if(rows, [&](const Row& r) { return launch.module.starts_with(r.prefix); });
  if (row == std::end(rows)) return std::nullopt;
  Kernel kernel(launch);
  (kernel.*row->accesses)();
  return std::move(kernel.accesses);
}

}  // namespace vkgemm::test
