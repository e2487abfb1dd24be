// addresses.hpp: the addresses of one recording, and how parameter blocks get theirs. Pure.
#pragma once

#include <cstdint>

#include "lib/abi.h"

namespace vkgemm {

// Device addresses of operands and of parts of the workspace; in RowChunks, distances of the same.
struct Addresses {
#define VKGEMM_MEMBER(name) std::uint64_t name = 0;
  VKGEMM_ADDRESSES(VKGEMM_MEMBER)
#undef VKGEMM_MEMBER
  std::uint64_t b_right = 0;  // from b to the right half of B, if that is an operand of its own
  std::uint64_t workspace = 0;
};

// Sets a_batch, b_batch, … of a block that has them.
template <class Block>
void set_batch_strides(Block& params, const Addresses& strides) noexcept {
#define VKGEMM_SET_STRIDE(name) \
  if constexpr (requires { params.name##_batch; }) params.name##_batch = strides.name;
  VKGEMM_ADDRESSES(VKGEMM_SET_STRIDE)
#undef VKGEMM_SET_STRIDE
}

// The part of a block that begins it, and that blocks of products share.
template <class Block>
auto& head_of(Block& params) noexcept {
  if constexpr (requires { params.gemm; }) {
    return params.gemm;
  } else {
    return params;
  }
}

// Sets the addresses that a block has.
template <class Block>
void bind(Block& params, const Addresses& at) noexcept {
  if constexpr (requires { params.gemm; }) bind(params.gemm, at);
#define VKGEMM_BIND(name) \
  if constexpr (requires { params.name; }) params.name = at.name;
  VKGEMM_ADDRESSES(VKGEMM_BIND)
#undef VKGEMM_BIND
  // 0 if both halves are of one operand, else the block's is.
  if constexpr (requires { params.b_right; }) params.b_right += at.b_right;
}

}  // namespace vkgemm
