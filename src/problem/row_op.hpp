// row_op.hpp: all that is to be known of a row operation, one row each. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/errors.hpp"
#include "lib/abi.h"
#include "vkgemm/problem.hpp"

namespace vkgemm {

struct RowOpRow {
  RowOp op = RowOp::rms_norm;
  std::string_view name;
  std::uint32_t constant = 0;  // in shaders: ROW_OP_*
  float default_eps = 0.0f;    // 0: it has no eps
  bool takes_vectors = false;  // gamma and beta
  bool moments = false;        // its states hold a mean and squares of differences
  double exponentials = 0.0;   // of each value
};

// In the order of the enumerators.
inline constexpr RowOpRow row_ops[] = {
    {.op = RowOp::rms_norm,
     .name = "rms_norm",
     .constant = ROW_OP_RMS_NORM,
     .default_eps = 1e-6f,
     .takes_vectors = true},
    {.op = RowOp::layer_norm,
     .name = "layer_norm",
     .constant = ROW_OP_LAYER_NORM,
     .default_eps = 1e-5f,
     .takes_vectors = true,
     .moments = true},
    {.op = RowOp::softmax, .name = "softmax", .constant = ROW_OP_SOFTMAX, .exponentials = 2.0},
    {.op = RowOp::l2_normalize,
     .name = "l2_normalize",
     .constant = ROW_OP_L2_NORMALIZE,
     .default_eps = 1e-12f},
    {.op = RowOp::logsumexp,
     .name = "logsumexp",
     .constant = ROW_OP_LOGSUMEXP,
     .exponentials = 1.0},
    {.op = RowOp::sum, .name = "sum", .constant = ROW_OP_SUM},
    {.op = RowOp::max, .name = "max", .constant = ROW_OP_MAX},
    {.op = RowOp::mean, .name = "mean", .constant = ROW_OP_MEAN},
    {.op = RowOp::variance, .name = "variance", .constant = ROW_OP_VARIANCE, .moments = true},
    {.op = RowOp::quantise, .name = "quantise", .constant = ROW_OP_QUANTISE},
    {.op = RowOp::amax, .name = "amax", .constant = ROW_OP_AMAX},
};

// The row of an enumerator.
constexpr const RowOpRow& row_of(RowOp op) noexcept {
  return row_ops[static_cast<std::size_t>(op)];
}

// A contradiction between a row operation and its vectors. operands.cpp has their rows.
MaybeError check_row_vectors(const Problem& problem);

static_assert([] {
  for (std::size_t i = 0; i < std::size(row_ops); ++i) {
    if (static_cast<std::size_t>(row_ops[i].op) != i) return false;
  }
  return true;
}());

}  // namespace vkgemm
