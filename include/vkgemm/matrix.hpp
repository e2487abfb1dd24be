// vkgemm/matrix.hpp: the type, the layout and the form of an operand, packed and quantised ones
// included.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vkgemm/export.h"
#include "vkgemm/result.hpp"

namespace vkgemm {

// IEEE 754 binary16, bfloat16 and binary32, integers, and 8-bit floats of OCP (OFP8, 2023).
enum class DataType : std::uint8_t {
  f16,
  bf16,
  f32,
  s8,    // two's complement
  s32,   // two's complement; of D alone, if A and B are s8: the sums
  u8,    // 0 … 255; of A and B only with Problem::multiply_as
  e4m3,  // ±448, NaN 0x7f and 0xff, no infinities
  e5m2,  // ±57344, the upper byte of an f16
};

// The order of the elements of a matrix in memory.
enum class Layout : std::uint8_t {
  row_major,  // element (i, j) is at i * ld + j
  col_major,  // element (i, j) is at j * ld + i
};

// The form of an operand.
enum class Packing : std::uint8_t {
  plain,   // rows or columns
  packed,  // as Context::plan_pack() writes it, in the device's order (see packed_layout()). For A
           // and B of 16-bit types and s8, of types converted to 16 bits, and of f32 if
           // Problem::f32_arithmetic is not ieee
  packed_rows,  // in rows, on every device: packed gives the same bytes where rows are the device's
                // order. Not for s8 and f32. See packing_of()
  packed_fragments,  // in fragments: unsupported if main loop khr_direct is not legal here
};

// The memory layout of one operand. Units are elements unless a name says bytes.
//
// A packed operand has the layout of Context::packed_layout(). vkgemm reads its type and
// batch_stride, and ignores its layout and alignment. A set ld is an error. One packed B serves
// every M, batch of A, epilogue and group. With B in fragment order, vkgemm copies a plain A to the
// workspace or reads it in place.
//
// A packed matrix is valid for
// - one device and driver, one type (f32: one arithmetic), one N and K (for A one M and K);
// - one value of d.layout, unless there is a gate, a row reduction or a quantised B;
// - for a quantised B, one type of codes, group_k, scale_type, zeros and float_zeros;
// - for gated products, one matrix B or two.
//
// Not packed: A of grouped products, and B if groups are along K, because groups begin anywhere.
struct Matrix {
  DataType type = DataType::f16;
  Layout layout = Layout::row_major;

  // Leading dimension: elements from one row (row_major) or column (col_major) to the next.
  // Not set: packed, the length of a row or column; for column-major 4-bit codes rounded up to an
  // even number. At least that length; zero is an error.
  std::optional<std::uint64_t> ld = std::nullopt;

  // Elements from one matrix of a batch to the next. Not set: packed, the whole matrix.
  // Zero: the whole batch shares one matrix, which is an error for D and aux if batch > 1. For a
  // packed operand the unit is one packed matrix (PackedLayout::matrix_bytes); not set: 1.
  std::optional<std::uint64_t> batch_stride = std::nullopt;

  // Elements from one outer batch index to the next, if Problem::outer_batch is not 1. Not set:
  // batch times batch_stride, or the whole matrix if batch_stride is 0. A vector of steps with a
  // batch_stride of 0 is then shared. Zero: all outer indices share one matrix, which is an error
  // for written operands. The unit of a packed operand is one packed matrix.
  std::optional<std::uint64_t> outer_batch_stride = std::nullopt;

  // A promise, which record() checks: the address bound to this operand is a multiple of this many
  // bytes. A power of two, at least the element's size. With 16, kernels use 16-byte loads if ld,
  // batch_stride and the row length also allow it. An operand that loads convert
  // (Problem::multiply_as) needs multiples of 8 elements.
  std::uint32_t alignment = 16;

  // All but plain: the caller packed it (Context::plan_pack()). C, D and aux must be plain.
  Packing packing = Packing::plain;

  bool operator==(const Matrix&) const = default;
};

// The codes of a quantised matrix. Two 4-bit codes that are neighbours along K share a byte: the
// second one is the upper half. The types from q4_1 on lie in blocks of ggml files, and have groups
// and scales of their own (see include/QUANTISED.md).
enum class CodeType : std::uint8_t {
  int8,    // two's complement
  int4,    // two's complement, or with zero points 0 … 15
  e4m3,    // 8-bit floats of OCP (OFP8, 2023): ±448, NaN 0x7f and 0xff, no infinities
  e5m2,    // the upper byte of an f16
  mxfp4,   // E2M1 of OCP's microscaling formats (MX, 2023): ±{0, 0.5, 1, 1.5, 2, 3, 4, 6}
  nvfp4,   // the same codes, 16 share a scale of E4M3
  q4_1,    // 0 … 15; 32 share a scale and a minimum of f16
  q5_0,    // -16 … 15; 32 share a scale of f16
  q5_1,    // 0 … 31; 32 share a scale and a minimum of f16
  q2_k,    // 0 … 3; 16 share a scale and a minimum of 4 bits, 256 the f16 that multiply them
  q3_k,    // -4 … 3; 16 share a scale of 6 bits, 256 an f16
  q4_k,    // 0 … 15; 32 share a scale and a minimum of 6 bits, 256 the f16 that multiply them
  q5_k,    // 0 … 31; likewise
  q6_k,    // -32 … 31; 16 share a scale of 8 bits, 256 an f16
  iq4_nl,  // indices of 16 numbers from -127 to 113; 32 share a scale of f16
  iq4_xs,  // likewise; 32 share a scale of 6 bits, 256 an f16
  q1_0,    // -1 or 1; 128 share a scale of f16
  q2_0,    // -1 … 2; 64 share a scale of f16
  tq2_0,   // -1 … 2; 256 share a scale of f16
};

// The place of scales and zero points before a matrix is packed, and the order of 4-bit codes.
enum class CodeLayout : std::uint8_t {
  separate,     // arrays of their own, with a line for each group of lines of the codes
  ggml_blocks,  // in the blocks of ggml files: q4_0 (int4), q8_0 (int8), mxfp4, nvfp4, and all
                // later types, which have no other layout
  gptq,         // arrays; int4 in words of 8 along K, zero points of 8 columns in a word, one less
  gptq_v2,      // the same, with the zero points themselves
  awq,          // arrays; int4 and zero points of 8 columns in a word: 0, 2, 4, 6, 1, 3, 5, 7
};

// B as codes. An element is scale * (code - zero), or scale * code + minimum, computed in f32 and
// rounded to Matrix::type, to nearest even. Some configurations multiply sums of A * (code - zero)
// by the scale instead, and explain() says so. Then elements are not rounded, but these sums must
// be finite in f32. A group of group_k × group_n codes shares a scale and a zero point. An infinite
// scale or element makes Inf or NaN of its columns.
//
// Only B can be quantised. Its type and A's are f16 or bf16, and it must be packed
// (Context::plan_pack()). Products read type, group_k, scale_type, zeros and float_zeros; packing
// reads the other fields, too.
//
//   separate     Codes have the layout of the Matrix, whose ld and batch_stride count codes; its
//                alignment does not count. For 4-bit codes of a row-major B, a row of bytes is two
//                rows of B; for a column-major B, ld and batch_stride must be even. Scales and zero
//                points have B's layout, without padding: row-major ⌈K/group_k⌉ rows of
//                ⌈columns/group_n⌉, otherwise columns of ⌈K/group_k⌉. Batches are contiguous.
//                Scales of mxfp4 and nvfp4 are bytes. nvfp4's scale of the whole tensor is the
//                caller's: multiply alpha by it, or take a step with a scalar.
//   ggml_blocks  B is column-major; K, ld and batch_stride are multiples of a block: 32, 64 (nvfp4,
//                q2_0), 128 (q1_0) or 256 codes (types with _k, iq4_xs, tq2_0). In f32, elements
//                have the bits of ggml's dequantize_row_*(). include/QUANTISED.md lists the bytes,
//                and two exceptions.
//   gptq, awq    B is row-major, and columns are multiples of 8. Scales are those of separate. Both
//                ld and batch_stride count codes. batch_stride must be a multiple of 8, for AWQ
//                also ld. GPTQ: a row of words is 8 rows of B, the first code lowest, and K is a
//                multiple of 8. AWQ: a row of words is a row of B. Without zeros, an element is
//                scale * (code - 8).
//
// Packing reads arrays in words of 4 bytes: the words that hold an array's first and last byte must
// be inside the buffer. Devices may flush scales and minima that are subnormal in f16.
struct Quantisation {
  CodeType type = CodeType::int8;
  // 16, 32, 64, 128, 192, 256, or 0: all of K. Types with groups of their own, and ggml_blocks: the
  // group that they have; 0 means it, too.
  std::uint32_t group_k = 0;
  std::uint32_t group_n = 1;  // 1, 128, or 0: all columns. Types with groups of their own: 1
  // Types with groups of their own ignore it. mxfp4 has E8M0: 2^(byte - 127), 255 is NaN. On a
  // device that flushes subnormals, byte 0 is a scale of 0. If scales multiply sums, codes are
  // multiplied by 2^-14 and sums by 2^14: then such a device returns 0 for results below 2^-112.
  DataType scale_type = DataType::f16;
  bool zeros = false;  // int4: there are zero points, bytes 0 … 16
  CodeLayout layout = CodeLayout::separate;
  bool float_zeros = false;  // with zeros: zero points are finite numbers of scale_type

  bool operator==(const Quantisation&) const = default;
};

// Rows of a matrix as s8 codes, with a scale for each row or group (Context::plan_quantise_rows()).
// The codes are A of an s8 product, the scales its row_scales (Scales::per_matrix).
//
//   scale = max|row| / 127      code = nearest integer, to even, of x * (127 / max|row|)
//
// All of it is in f32, each quotient and product rounded to nearest even: the same bits on every
// device. Codes are -127 … 127. scale * code differs from x by at most half a scale, plus rounding.
//
//   zeros         scale 0, codes 0; also rows whose magnitudes are all below 2^-119 (1.5e-36)
//   NaN           scale NaN, codes 0
//   Inf, no NaN   scale +Inf, codes 0: 0 * Inf makes its row of a product NaN, as a NaN does
//
// Devices may flush subnormal elements of f16. To quantise columns of B, treat a column-major K×N
// matrix as a row-major one of N rows and K columns: the codes are a column-major B, the scales its
// column_scales.
//
// group_k columns share a scale, and the last group of a row may be shorter. Scales are rows ×
// ⌈columns/group_k⌉, row after row. The codes are A of a product with a quantised B, the scales its
// row_scales, and group_k is Problem::a_group_k.
//
// rows, columns, batch and every ld are at most 2^31 - 1. So is the number of a matrix's groups. If
// rows or batch is 0, the plan does nothing. If columns is 0, scales of rows are 0, and there are
// no groups.
struct RowQuantisation {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t batch = 1;

  // Both are rows × columns, row_major and plain, with any ld, batch_stride and alignment. The
  // source is f16, bf16 or f32, and its batch_stride may be 0. Padding is neither read nor written.
  // Kernels access 16 bytes of the source and 8 of the codes at a time, if addresses, ld and
  // batch_stride are such multiples; otherwise single elements.
  Matrix source = {};
  Matrix codes = {.type = DataType::s8};

  std::uint32_t group_k = 0;  // 32, 64, 128, or 0: a scale for a whole row

  bool operator==(const RowQuantisation&) const = default;
};

// The enumerator's name.
VKGEMM_API std::string_view to_string(DataType type) noexcept;
VKGEMM_API std::string_view to_string(Layout layout) noexcept;
VKGEMM_API std::string_view to_string(Packing packing) noexcept;
VKGEMM_API std::string_view to_string(CodeType type) noexcept;
VKGEMM_API std::string_view to_string(CodeLayout layout) noexcept;

// The inverse of to_string; nothing if the text names none of them.
VKGEMM_API std::optional<DataType> parse_data_type(std::string_view text) noexcept;
VKGEMM_API std::optional<Layout> parse_layout(std::string_view text) noexcept;
VKGEMM_API std::optional<CodeType> parse_code_type(std::string_view text) noexcept;

// A quantisation as text: its type, and the fields that are not at the default:
// "int4:group=128:zeros:scales=bf16", "int4:float_zeros". group_n is columns=128 or columns=all,
// CodeLayout::ggml_blocks is ggml. An error of the inverse names the wrong part.
VKGEMM_API std::string to_string(const Quantisation& quantisation);
VKGEMM_API Result<Quantisation> parse_quantisation(std::string_view text);

// The size of one element.
constexpr std::uint32_t size_in_bytes(DataType type) noexcept {
  switch (type) {
    case DataType::f16:
    case DataType::bf16:
      return 2;
    case DataType::f32:
    case DataType::s32:
      return 4;
    case DataType::s8:
    case DataType::u8:
    case DataType::e4m3:
    case DataType::e5m2:
      return 1;
  }
  return 0;
}

}  // namespace vkgemm
