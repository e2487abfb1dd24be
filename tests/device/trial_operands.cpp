#include "trial_operands.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/arithmetic.hpp"
#include "harness.hpp"
#include "problem/convert.hpp"

namespace vkgemm::test {
namespace {

// Operands have different values.
std::uint64_t seed_of(OperandId id, std::uint64_t seed) {
  struct Seed {
    std::uint64_t factor = 4, summand = 0;
  };
  static const PerOperand<Seed> seeds{
      {OperandId::b, {4, 1}},
      {OperandId::b_right, {4, 2}},
      {OperandId::c, {4, 2}},
      {OperandId::bias, {4, 3}},
      {OperandId::gamma, {8, 5}},
      {OperandId::beta, {8, 6}},
      {OperandId::row_scales, {8, 7}},
      {OperandId::column_scales, {8, 9}},
      {OperandId::row_weights, {8, 13}},
  };
  return seed * seeds[id].factor + seeds[id].summand;
}

// Every element of a matrix of codes.
template <class Function>
void each_code(const oracle::CodeMatrix& codes, std::uint64_t k, const Function& function) {
  each_element({.rows = k, .cols = codes.columns(), .count = codes.matrices()}, function);
}

}  // namespace

// A small hash, which gives the same values with each standard library.
double fill_value(Fill fill, std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = (seed << 48) + index;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  x ^= x >> 31;
  if (fill == Fill::integers) return static_cast<double>(x % 7) - 3.0;
  return static_cast<double>(x >> 11) * 0x1p-52 - 1.0;
}

void fill_operand(OperandId id, const Problem& problem, Fill fill, std::uint64_t seed,
                  HostBuffer& buffer) {
  const OperandShape shape = row_of(id).shape(problem);
  const DataType type = shape.matrix.type;
  const bool is_factor = id == OperandId::row_scales || id == OperandId::column_scales;
  seed = seed_of(id, seed);
  each_element(shape, [&](std::uint64_t b, std::uint64_t i, std::uint64_t j) {
    const std::uint64_t index = shape.index(b, i, j);
    double value = fill_value(fill, seed, index);
    // Integers of all of the type, where random; factors are powers of two, where results are
    // exact.
    if (type == DataType::s8 && fill == Fill::random) value *= 128.0;
    if (type == DataType::u8 && fill == Fill::random) value = 128.0 * value + 128.0;
    if (is_factor && fill == Fill::integers) value = std::exp2(std::floor(value / 2.0));
    store_element(buffer.data(), type, index, value);
  });
}

std::uint64_t code_unit(const Quantisation& quantisation) {
  const std::uint32_t source = source_of(quantisation);
  return IS_BLOCKS(source) ? BLOCK_CODES(source) : source == SOURCE_ARRAYS ? 2 : 8;
}

Problem code_problem(const Problem& problem, const Quantisation& quantisation) {
  const std::uint64_t unit = code_unit(quantisation);
  const bool in_rows = problem.b.layout == Layout::row_major;
  const std::uint64_t columns = columns_of_b(problem);
  const std::uint64_t length = rounded_up(in_rows ? columns : problem.k, unit);
  const std::uint64_t lines = in_rows ? rounded_up(problem.k, unit) : columns;
  Problem out = problem;
  out.quantised_b = quantisation;
  out.b = {.type = problem.b.type,
           .layout = problem.b.layout,
           .ld = length + unit,
           .packing = problem.b.packing};
  if (row_of(OperandId::b).shape(problem).count > 1) out.b.batch_stride = lines * *out.b.ld + unit;
  if (problem.b.batch_stride == std::uint64_t{0}) out.b.batch_stride = 0;
  return out;
}

namespace {

// Blocks of random bits. Elements are integers, or of any magnitude below 1.
void fill_blocks(oracle::CodeMatrix& codes, const Problem& problem, Fill fill, std::uint64_t seed) {
  std::uint64_t index = 0;
  const auto random = [&] {
    const double value = fill_value(Fill::random, seed * 8 + 5, index++);
    return static_cast<std::uint32_t>(static_cast<std::int64_t>((value + 1.0) * 0x1p31));
  };
  const bool exact = fill == Fill::integers;
  for (std::uint64_t matrix = 0; matrix < codes.matrices(); ++matrix) {
    for (std::uint64_t n = 0; n < codes.columns(); ++n) {
      for (std::uint64_t k = 0; k < problem.k; k += codes.format().codes()) {
        // Subnormals of f16, too.
        const double factor = k % 512 == 0 ? 0x1p-10 : 0x1p-15;
        const double scale = exact ? 2.0 : (0.25 + std::ldexp(random(), -32)) * factor;
        const double minimum = exact ? 1.0 : std::ldexp(random(), -34);
        codes.format().fill(codes.block(matrix, k, n), random, scale, minimum);
      }
    }
  }
}

}  // namespace

void fill_codes(oracle::CodeMatrix& codes, const Problem& problem, const Quantisation& q, Fill fill,
                std::uint64_t seed) {
  const bool random = fill == Fill::random;
  if (codes.in_blocks() && form_of(q.type).group_k != 0 && q.type != CodeType::mxfp4) {
    return fill_blocks(codes, problem, fill, seed);
  }
  const std::uint64_t count = oracle::code_count(q.type);
  const auto number = [&](std::uint64_t kind, std::uint64_t b, std::uint64_t i, std::uint64_t j) {
    const double value =
        fill_value(Fill::random, seed * 8 + kind, (b * problem.k + i) * codes.columns() + j);
    return (value + 1.0) / 2.0;
  };
  // A number of a group: that of its first element.
  const auto of_group = [&](std::uint64_t kind, std::uint64_t b, std::uint64_t i, std::uint64_t j) {
    return number(kind, b, q.group_k == 0 ? 0 : i / q.group_k * q.group_k,
                  q.group_n == 0 ? 0 : j / q.group_n * q.group_n);
  };
  each_code(codes, problem.k, [&](std::uint64_t b, std::uint64_t i, std::uint64_t j) {
    const double scale = of_group(1, b, i, j);
    // Random codes get every zero point.
    const double fraction = q.float_zeros && random ? 0.375 : 0.0;
    const double least = q.layout == CodeLayout::gptq ? 1.0 : 0.0;
    const double any =
        random ? least + 16.0 * of_group(2, b, i, j) : 3.0 + 10.0 * of_group(2, b, i, j);
    const double zero = q.zeros ? std::floor(any) + fraction : 0.0;
    if (q.zeros) codes.set_zero(b, i, j, zero);
    if (random) {
      const auto code = static_cast<std::uint32_t>(number(3, b, i, j) * static_cast<double>(count));
      const bool finite = std::isfinite(oracle::code_value(q.type, q.zeros, code));
      codes.set_code(b, i, j, finite ? code : 1);
      codes.set_scale(b, i, j, (0.25 + scale) / (q.type == CodeType::e5m2 ? 8192.0 : 64.0));
    } else {
      const double value = std::floor(7.0 * number(3, b, i, j)) - 3.0;
      codes.set_code(b, i, j, oracle::nearest_code(q.type, q.zeros, value + zero));
      codes.set_scale(b, i, j, std::exp2(std::floor(3.0 * scale) - 1.0));
    }
  });
}

testing::AssertionResult PackedCopy::pack_codes(headless::Runner& device, const Problem& problem,
                                                const oracle::CodeMatrix& codes) {
  Operands source;
  DeviceCopy copies[3];
  std::size_t i = 0;
  for (const auto& [bytes, span, shift] :
       {std::tuple{&codes.codes, &source.codes, codes.source().codes.alignment},
        {&codes.scales, &source.scales, codes.source().scales.alignment},
        {&codes.zeros, &source.zeros, codes.source().zeros.alignment}}) {
    HostBuffer host = make_buffer(bytes->size(), 0);
    host.begin += shift;
    std::ranges::copy(*bytes, host.data());
    if (auto uploaded = copies[i].upload(device, host); !uploaded) return uploaded;
    *span = copies[i++].span();
  }
  return pack(device, problem, PackedOperand::b, source);
}

testing::AssertionResult PackedCopy::pack(headless::Runner& device, const Problem& problem,
                                          PackedOperand operand, Operands source) {
  const auto plan = device.context().plan_pack(problem, operand);
  if (!plan) return succeeds(plan);
  layout_ = plan->layout();
  auto made = device.allocate(layout_.bytes);
  if (!made) return succeeds(made);
  buffer_ = std::move(*made);
  // NaN in every type: nothing may be taken for zero that was not written.
  if (auto filled = device.fill(buffer_, 0xffffffffu); !filled) return succeeds(filled);
  source.packed = span();
  return succeeds(
      device.submit([&](VkCommandBuffer commands) { return plan->record(commands, source); }));
}

}  // namespace vkgemm::test
