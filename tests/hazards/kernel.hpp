// kernel.hpp: the accesses of a launched kernel, from its parameters and constants.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

#include "kernel_accesses.hpp"
#include "kernels/steps.hpp"
#include "problem/data_type.hpp"
#include "problem/inputs/input.hpp"
#include "problem/row_op.hpp"

namespace vkgemm::test {

inline constexpr std::uint64_t word_bytes = sizeof(std::uint32_t);

// The bytes of an element; 0 for TYPE_NONE.
inline std::uint64_t bytes_of(std::uint32_t type) {
  const auto row = std::ranges::find(data_types, type, &DataTypeRow::constant);
  return row != std::end(data_types) ? size_in_bytes(row->type) : 0;
}

// The bytes of an element of A and B as they are multiplied.
inline std::uint64_t input_bytes(std::string_view module) {
  const Input* const input = input_of_module(module);
  return input != nullptr ? input->bytes() : 0;
}

template <class Block>
Block block_of(const ParameterWords& words) {
  Block block;
  static_assert(sizeof block <= sizeof words);
  std::memcpy(&block, words.data(), sizeof block);
  return block;
}

// Matrices of the batch, or groups.
struct Batches {
  std::uint64_t first = 0;
  std::uint64_t count = 1;
};

// A pitch of 0: all share one matrix.
inline Region repeated(Region region, std::uint64_t pitch, Batches batches) {
  if (pitch == 0) return region;
  region.address += batches.first * pitch;
  region.matrices = {pitch, batches.count};
  return region;
}

struct Shape {
  std::uint64_t rows, cols, ld;
  bool col_major;
  std::uint64_t element;  // bytes
};

inline Region matrix(std::uint64_t address, const Shape& s, std::uint64_t pitch, Batches batches) {
  const std::uint64_t length = s.col_major ? s.rows : s.cols;
  const std::uint64_t lines = s.col_major ? s.cols : s.rows;
  return repeated(
      {.address = address, .bytes = length * s.element, .lines = {s.ld * s.element, lines}}, pitch,
      batches);
}

inline Region vector(std::uint64_t address, std::uint64_t bytes, std::uint64_t pitch = 0,
                     Batches batches = {}) {
  return repeated({.address = address, .bytes = bytes}, pitch, batches);
}

class Kernel {
 public:
  explicit Kernel(const Launch& launch) : launch_(launch) {}

  void gemm();
  void gemm_split();
  void grouped();
  void reduce_tiles();
  void sum_slices();
  void reduce_rows();
  void merge_states();
  void sum_columns();
  void reset();
  void carry();
  void sum_rows();
  void group_table();
  void pack();
  void pack_codes();
  void quantise_rows();

  std::vector<Access> accesses;

 private:
  template <class Block>
  Block block() const {
    return block_of<Block>(launch_.parameters);
  }
  std::uint32_t constant(std::size_t id) const { return launch_.constants[id]; }
  // The bytes of an element that has a type of its own in memory, or has `element` ones.
  std::uint64_t bytes_in_memory(std::size_t type, std::uint64_t element) const {
    return constant(type) != TYPE_NONE ? bytes_of(constant(type)) : element;
  }
  bool is_gated() const { return constant(SPEC_GATE) != GATE_NONE; }
  bool has_line_scales() const {
    const Input* const input = input_of_module(launch_.module);
    return input != nullptr && input->scales_lines;
  }
  bool has_values() const { return constant(SPEC_ROW_OP) >= ROW_OP_LOGSUMEXP; }
  bool has_scalar() const { return has_values() && constant(SPEC_ROW_OP) != ROW_OP_QUANTISE; }
  bool has_moments() const {
    const auto row = std::ranges::find(row_ops, constant(SPEC_ROW_OP), &RowOpRow::constant);
    return row != std::end(row_ops) && row->moments;
  }
  // Those of workgroups y.
  template <class Block>
  Batches launched(const Block& p) const {
    return {p.first_batch, launch_.y};
  }

  void read(std::string_view what, const Region& region) {
    accesses.push_back({.what = what, .region = region, .reads = true});
  }
  void write(std::string_view what, const Region& region) {
    accesses.push_back({.what = what, .region = region, .writes = true});
  }
  void update(std::string_view what, const Region& region) {
    accesses.push_back({.what = what, .region = region, .reads = true, .writes = true});
  }
  // A word that any number of dispatches may count in beside each other; 0: there is none.
  void count(std::string_view what, std::uint64_t address, bool host_reads) {
    if (address == 0) return;
    accesses.push_back({.what = what,
                        .region = vector(address, word_bytes),
                        .reads = true,
                        .writes = true,
                        .atomic = true,
                        .host_reads = host_reads});
  }

  std::uint64_t code_bytes(std::uint64_t ld, std::uint64_t depth) const;
  std::uint64_t rows_of_a(const gpu::GemmParams& p) const;
  void inputs(const gpu::GemmParams& p, Batches a, Batches b);
  template <class Block>
  void read_offsets(const Block& p);
  gpu::GemmParams without_indices(const gpu::GroupedParams& p);
  void epilogue(const gpu::GemmParams& p, Batches batches, Batches bias);
  void step(const gpu::GemmParams& p, std::uint32_t word, Batches batches, Batches bias);
  Region tile_sums(std::uint64_t address, std::uint64_t m, std::uint64_t row, std::uint64_t pitch,
                   Batches batches) const;
  void store_d(const gpu::GemmParams& p, Batches batches);
  Region partial(const gpu::GemmParams& p, Batches batches) const;
  Region row_states(std::uint64_t states, std::uint64_t m, std::uint64_t n, Batches batches) const;
  template <class Block>
  void row_vectors(const Block& p, std::uint64_t n);
  template <class Block>
  void row_values(const Block& p, std::uint64_t m, Batches batches);

  const Launch& launch_;
};

template <class Block>
void Kernel::read_offsets(const Block& p) {
  const std::uint64_t offset_bytes = constant(SPEC_OFFSETS_64) != 0 ? 8 : 4;
  const bool has_ends = constant(SPEC_GROUP_ENDS) != 0;
  const std::uint64_t numbers = has_ends ? 2 * std::uint64_t{p.groups} : p.groups + 1;
  read("offsets", vector(p.offsets, numbers * offset_bytes));
}

}  // namespace vkgemm::test
