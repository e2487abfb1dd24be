// packing_accesses.cpp: the accesses of kernels that prepare operands.
#include "base/arithmetic.hpp"
#include "kernel.hpp"

namespace vkgemm::test {

// lib/quantised.h.
std::uint64_t Kernel::code_bytes(std::uint64_t ld, std::uint64_t depth) const {
  const std::uint32_t codes = constant(SPEC_CODES), group = constant(SPEC_CODE_GROUP_K);
  const std::uint32_t scales = constant(SPEC_SCALE_TYPE), zeros = constant(SPEC_CODE_ZEROS);
  const std::uint64_t block = group == 0 ? depth : CODE_DEPTH(group, scales);
  if (block == 0) return 0;
  return divided_up(depth, block) * ld *
         (CODE_SCALES(group, scales, zeros) + CODE_BYTES(block, codes));
}

void Kernel::pack() {
  const auto p = block<gpu::PackParams>();
  // Lines of the source are as long as it is deep, or wide.
  const std::uint64_t own = input_bytes(launch_.module);
  const Input* const input = input_of_module(launch_.module);
  const std::uint64_t element = own != 0 ? own : sizeof(std::uint16_t);
  const std::uint64_t read_element =
      bytes_in_memory(SPEC_A_TYPE, input != nullptr ? size_in_bytes(input->given) : element);
  const bool halves = constant(SPEC_PACK_HALVES) != 0;
  const bool by_turns = constant(SPEC_GATE_INTERLEAVED) != 0;
  const bool gathers = constant(SPEC_GATHER) != 0;
  if (gathers) read("row_index", vector(p.row_index, p.width * word_bytes));
  const std::uint64_t width = gathers ? p.source_rows : p.width;
  const Shape source{p.depth, by_turns ? 2 * width : width, p.source_ld,
                     constant(SPEC_A_COL_MAJOR) == 0, read_element};
  // Scales of lines are in front, as large as an element each.
  const std::uint64_t half = std::uint64_t{p.copy_depth} + (has_line_scales() ? 1 : 0);
  const std::uint64_t depth = halves ? 2 * half : half;
  const Shape copy{depth, p.copy_ld, p.copy_ld, false, element};
  if (constant(SPEC_GROUPED) != GROUPED_NONE) read_offsets(p);
  read("source", matrix(p.source, source, p.source_batch, launched(p)));
  if (halves && !by_turns) {
    read("source", matrix(p.source + p.b_right, source, p.source_batch, launched(p)));
  }
  write("copy", matrix(p.copy, copy, p.copy_batch, launched(p)));
}

void Kernel::pack_codes() {
  const auto p = block<gpu::PackCodesParams>();
  const std::uint64_t halves = constant(SPEC_PACK_HALVES) != 0 ? 2 : 1, columns = halves * p.width;
  const std::uint32_t bits = CODE_BITS(constant(SPEC_CODES)), group = constant(SPEC_CODE_GROUP_K);
  const std::uint32_t from = constant(SPEC_CODE_SOURCE);
  const bool ggml = IS_BLOCKS(from), in_rows = constant(SPEC_A_COL_MAJOR) != 0;
  const bool awq = from == SOURCE_AWQ, gptq = !ggml && !awq && from != SOURCE_ARRAYS;
  const bool floats = constant(SPEC_CODE_ZEROS) == ZEROS_FLOATS;
  const std::uint64_t scale =
      constant(SPEC_CODES) == CODES_E2M1 ? 1 : bytes_of(constant(SPEC_SCALE_TYPE));
  const auto groups = [](std::uint64_t size, std::uint64_t one) {
    return one == 0 ? 1 : divided_up(size, one);
  };
  const std::uint64_t column = ggml ? p.depth / BLOCK_CODES(from) * BLOCK_SIZE(from)
                                    : divided_up(std::uint64_t{p.depth} * bits, 8);
  const std::uint64_t deep = awq ? 1 : gptq ? 8 : 8 / bits;  // rows of B in a row of bytes
  const std::uint64_t lines = in_rows ? divided_up(p.depth, deep) : columns;
  read("source", repeated({.address = p.source,
                           .bytes = in_rows ? columns * deep * bits / 8 : column,
                           .lines = {p.source_ld, lines}},
                          p.source_batch, launched(p)));
  const std::uint64_t numbers =
      groups(p.depth, group) * groups(columns, constant(SPEC_CODE_GROUP_N));
  if (!ggml) read("scales", vector(p.scales, numbers * scale, p.scales_batch, launched(p)));
  if (constant(SPEC_CODE_ZEROS) != 0) {
    const std::uint64_t bytes = floats ? numbers * scale : awq || gptq ? numbers / 2 : numbers;
    if (!ggml) read("zeros", vector(p.zeros, bytes, p.zeros_batch, launched(p)));
  }
  write("copy",
        vector(p.copy, halves * code_bytes(p.copy_ld, p.copy_depth), p.copy_batch, launched(p)));
}

void Kernel::quantise_rows() {
  const auto p = block<gpu::QuantiseRowsParams>();
  const std::uint64_t element = bytes_of(constant(SPEC_SOURCE_TYPE));
  const std::uint64_t group = constant(SPEC_A_GROUP_K);
  const std::uint64_t groups = group == 0 ? 1 : divided_up(std::uint64_t{p.columns}, group);
  const std::uint64_t scales = p.rows * groups * sizeof(float);
  read("source", matrix(p.source, {p.rows, p.columns, p.source_ld, false, element}, p.source_batch,
                        launched(p)));
  write("codes",
        matrix(p.codes, {p.rows, p.columns, p.codes_ld, false, 1}, p.codes_batch, launched(p)));
  write("scales", vector(p.scales, scales, scales, launched(p)));
}

}  // namespace vkgemm::test
