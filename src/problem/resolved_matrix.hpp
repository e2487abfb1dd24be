// resolved_matrix.hpp: a Matrix with its shape and nothing optional, and the checks of a plain one.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "problem/inputs/input.hpp"
#include "vkgemm/problem.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// The pieces in which a packed operand lies (shaders/lib/inputs/fragment_words.glsl): fragments
// along M or N and along K, of which each invocation of a subgroup has 16 bytes.
struct FragmentOrder {
  std::uint32_t mn = 0;
  std::uint32_t k = 0;
  std::uint32_t subgroup_size = 0;
  bool swapped = false;      // of A: SWAP_A
  bool interleaved = false;  // INTERLEAVE_K
  bool operator==(const FragmentOrder&) const = default;
};

// A packed operand is as wide and deep as multiples of these, with zeros where there was nothing.
// Elements: a cache line of 16-bit ones, and the deepest k-tile that tables propose.
inline constexpr std::uint64_t packed_width = 64;
inline constexpr std::uint64_t packed_depth = 128;

// K with the padding of a packed operand: of whole blocks, if it holds codes.
std::uint64_t padded_depth(const std::optional<Quantisation>& quantisation,
                           std::uint64_t k) noexcept;

// How an operand comes to the product.
enum class Form : std::uint8_t {
  plain,
  given_packed,   // by the caller: any Packing but plain
  copied_packed,  // into the workspace, by a dispatch before the product
};

// A Matrix with its shape and nothing optional. `bytes` is how far the last element that the
// problem touches reaches from the first, over the whole batch: what a span must hold.
struct ResolvedMatrix {
  DataType type = {};
  Layout layout = Layout::row_major;
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::uint64_t ld = 0;
  std::uint64_t batch_stride = 0;  // 0 if there is only one matrix
  std::uint32_t alignment = 16;
  std::uint64_t bytes = 0;
  bool by_slots = false;  // a copy in which groups begin where tiles do

  // A packed operand has K as its outer direction, and its padding belongs to rows and cols.
  Form form = Form::plain;
  Packing packing = Packing::plain;  // as the caller packed it
  // Packed B of a gated product: the right half lies behind the left one, each `cols` wide.
  bool halves_apart = false;
  // Packed codes, B: strides are their bytes, counted in elements of `type`.
  std::optional<Quantisation> quantisation = std::nullopt;
  // The input that was packed; null: elements of `type` as they are.
  const Input* input = nullptr;
  // Packed in these fragments; none: in rows. Of what the caller packed it is the device's order
  // (DeviceTables::set_orders).
  std::optional<FragmentOrder> fragments = std::nullopt;

  bool is_packed() const noexcept { return form != Form::plain; }
  // The numbers of `type` that add up to a packed f32; and whether f32 scales of the lines along M
  // or N stand in front of them.
  std::uint32_t parts() const noexcept { return input != nullptr ? input->parts : 1; }
  bool line_scales() const noexcept { return input != nullptr && input->scales_lines; }
  std::uint32_t element_bytes() const noexcept { return size_in_bytes(type) * parts(); }
  std::uint32_t element_bits() const noexcept;  // of codes, which may share bytes, too
  // Lines of what is packed: how deep it is.
  std::uint64_t lines() const noexcept { return layout == Layout::row_major ? rows : cols; }

  // Elements of one packed matrix, of a gated product both halves.
  std::uint64_t packed_elements() const noexcept {
    return (halves_apart ? 2 : 1) * half_elements();
  }
  std::uint64_t half_elements() const noexcept;

  // Elements that stand next to each other: the length of a row, or of a column.
  std::uint64_t contiguous() const noexcept { return layout == Layout::row_major ? cols : rows; }

  // True if every row of every matrix of the batch can be accessed in pieces of `width_bytes`, of
  // which accesses take at most 16 at once.
  bool allows_vectors(std::uint32_t width_bytes) const noexcept;
};

// Nothing if that does not fit 64 bits.
std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b);

// Bytes from the first to the last element of `count` pieces of `length` elements that start
// `stride` elements apart; nothing if that does not fit 64 bits.
std::optional<std::uint64_t> extent_in_bytes(std::uint64_t count, std::uint64_t stride,
                                             std::uint64_t length, DataType type);

// An error if the size of a matrix or batch is larger than kernels count.
MaybeError check_size(std::string_view field, std::uint64_t value);

enum class Access : std::uint8_t { read, write };

// The part of the problem that messages about one operand need.
struct OperandInfo {
  std::string_view name;       // the caller's field
  std::string_view rows_name;  // what its rows and columns are: M, N or K
  std::string_view cols_name;
  Access access = Access::read;
  std::string_view collection = "batch";  // whose matrices there are
};

// `touched`: whether the problem accesses the operand at all.
Result<ResolvedMatrix> resolve_matrix(const OperandInfo& info, const Matrix& matrix,
                                      std::uint64_t rows, std::uint64_t cols, std::uint64_t batch,
                                      bool touched);

}  // namespace vkgemm
