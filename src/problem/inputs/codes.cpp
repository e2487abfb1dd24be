#include "problem/inputs/codes.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/arithmetic.hpp"
#include "base/enum_names.hpp"
#include "base/errors.hpp"
#include "base/text.hpp"
#include "lib/quantised.h"
#include "problem/data_type.hpp"
#include "problem/field_checks.hpp"
#include "problem/inputs/input.hpp"

namespace vkgemm {
namespace {

#define VKGEMM_NAME(name, NAME) std::string_view(#name),
constexpr std::array code_type_names{VKGEMM_CODE_TYPES(VKGEMM_NAME)};
#undef VKGEMM_NAME
constexpr std::array<std::string_view, 5> code_layout_names{"separate", "ggml_blocks", "gptq",
                                                            "gptq_v2", "awq"};

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint32_t groups_of_k[] = {0, 16, 32, 64, 128, 192, 256};
constexpr std::uint32_t q4_0_block = BLOCK_CODES(SOURCE_Q4_0);  // and that of q8_0
constexpr std::uint32_t groups_of_n[] = {0, 1, 128};

// Codes of a word of GPTQ and AWQ.
constexpr std::uint32_t word_codes = 8;
constexpr std::string_view words = "a multiple of 8";

// "int8, int4, …"
std::string type_names() {
  std::string text;
  for (const std::string_view name : code_type_names)
    text += concat(text.empty() ? "" : ", ", name);
  return text;
}

// Saturates.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > most / b ? most : a * b;
}
std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a > most - b ? most : a + b; }

std::uint64_t bytes_of(const CodeArray& array, std::uint64_t one, std::uint64_t matrices) {
  return one == 0 || matrices == 0 ? 0 : sum(product(matrices - 1, array.matrix), one);
}

// An array with a number for each group: lines of `length`, without padding.
CodeArray packed_array(std::uint64_t lines, std::uint64_t length, std::uint32_t element,
                       std::uint64_t matrices) {
  CodeArray out{.line = length, .matrix = lines * length * element, .alignment = element};
  out.bytes = bytes_of(out, out.matrix, matrices);
  return out;
}

}  // namespace

const CodeForm& form_of(CodeType type) noexcept {
  // The enumerators in their order.
  constexpr bool blocks_alone = false, one = false, levels = true;
  constexpr DataType f16 = DataType::f16, bf16 = DataType::bf16;
  static constexpr CodeForm forms[] = {
      {CODES_INT8, 0, f16, one, ZEROS_NONE, SOURCE_Q8_0},
      {CODES_INT4, 0, f16, one, ZEROS_NONE, SOURCE_Q4_0},
      {CODES_E4M3},
      {CODES_E5M2},
      {CODES_E2M1, 32, bf16, one, ZEROS_NONE, SOURCE_MXFP4},
      {CODES_E2M1, 16, f16, one, ZEROS_NONE, SOURCE_NVFP4},
      {CODES_INT4, 32, f16, one, ZEROS_MINIMA, SOURCE_Q4_1, blocks_alone},
      {CODES_INT8, 32, f16, one, ZEROS_NONE, SOURCE_Q5_0, blocks_alone},
      {CODES_INT8, 32, f16, one, ZEROS_MINIMA, SOURCE_Q5_1, blocks_alone},
      {CODES_INT4, 16, f16, levels, ZEROS_MINIMA, SOURCE_Q2_K, blocks_alone},
      {CODES_INT4, 16, f16, levels, ZEROS_NONE, SOURCE_Q3_K, blocks_alone},
      {CODES_INT4, 32, f16, levels, ZEROS_MINIMA, SOURCE_Q4_K, blocks_alone},
      {CODES_INT8, 32, f16, levels, ZEROS_MINIMA, SOURCE_Q5_K, blocks_alone},
      {CODES_INT8, 16, f16, levels, ZEROS_NONE, SOURCE_Q6_K, blocks_alone},
      {CODES_INT8, 32, f16, one, ZEROS_NONE, SOURCE_IQ4_NL, blocks_alone},
      {CODES_INT8, 32, f16, levels, ZEROS_NONE, SOURCE_IQ4_XS, blocks_alone},
      {CODES_INT4, 128, f16, one, ZEROS_NONE, SOURCE_Q1_0, blocks_alone},
      {CODES_INT4, 64, f16, one, ZEROS_NONE, SOURCE_Q2_0, blocks_alone},
      {CODES_INT4, 256, f16, one, ZEROS_NONE, SOURCE_TQ2_0, blocks_alone},
  };
  static_assert(std::size(forms) == code_type_names.size());
  static constexpr CodeForm none;
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(forms) ? forms[index] : none;
}

Quantisation with_group(Quantisation q) {
  const CodeForm& form = form_of(q.type);
  if (!form.has_arrays) q.layout = CodeLayout::ggml_blocks;
  if (q.group_k == 0) {
    q.group_k =
        form.group_k != 0 || q.layout != CodeLayout::ggml_blocks ? form.group_k : q4_0_block;
  }
  return q;
}

bool multiplies_integers(DataType type) noexcept {
  const Input* const input = find_input(type);
  return input != nullptr && is_integer(input->accumulator);
}
bool are_float8(CodeType type) noexcept {
  const std::uint32_t codes = form_of(type).codes;
  return codes == CODES_E4M3 || codes == CODES_E5M2;
}
bool multiplies_codes(DataType type) noexcept {
  return multiplies_integers(type) || (is_wide_float(type) && size_in_bytes(type) == 2);
}

std::string_view to_string(CodeType type) noexcept { return name_of(code_type_names, type); }
std::string_view to_string(CodeLayout layout) noexcept {
  return name_of(code_layout_names, layout);
}
std::optional<CodeType> parse_code_type(std::string_view text) noexcept {
  return find_name<CodeType>(code_type_names, text);
}

std::string to_string(const Quantisation& q) {
  const Quantisation defaults;
  std::string text(to_string(q.type));
  if (form_of(q.type).group_k == 0) {
    if (q.group_k != defaults.group_k) text += concat(":group=", q.group_k);
    if (q.group_n == 0) text += ":columns=all";
    if (q.group_n > 1) text += concat(":columns=", q.group_n);
    if (q.zeros) text += q.float_zeros ? ":float_zeros" : ":zeros";
    if (q.scale_type != defaults.scale_type) text += concat(":scales=", to_string(q.scale_type));
  }
  if (q.layout == CodeLayout::separate || !form_of(q.type).has_arrays) return text;
  return concat(text, ":", q.layout == CodeLayout::ggml_blocks ? "ggml" : to_string(q.layout));
}

Result<Quantisation> parse_quantisation(std::string_view text) {
  const auto wrong = [&](const auto&... what) {
    return invalid_argument(concat("quantisation ", in_quotes(text), ": ", what...));
  };
  std::string_view rest = text;
  const auto next = [&rest] {
    const std::string_view part = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    return part;
  };
  const std::string_view name = next();
  // ggml's own names.
  const bool is_q4_0 = name == "q4_0", is_q8_0 = name == "q8_0";
  const auto type = is_q4_0   ? std::optional(CodeType::int4)
                    : is_q8_0 ? std::optional(CodeType::int8)
                              : parse_code_type(name);
  if (!type) return wrong(in_quotes(name), " is none of ", type_names(), ", q4_0, q8_0");
  Quantisation out{.type = *type};
  if (is_q4_0 || is_q8_0) out.layout = CodeLayout::ggml_blocks;
  if (text.ends_with(':')) return wrong("a part is empty");
  while (!rest.empty()) {
    const std::string_view part = next();
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals);
    const std::string_view value = part.substr(std::min(equals + 1, part.size()));
    if (key == "group" || key == "columns") {
      const auto number = value == "all" ? std::uint32_t{0} : parse_number<std::uint32_t>(value);
      if (!number) return wrong("part ", in_quotes(part), ": a number is needed, or all");
      (key == "group" ? out.group_k : out.group_n) = *number;
    } else if (key == "scales" && form_of(*type).group_k == 0) {
      const auto scales = parse_data_type(value);
      if (!scales) return wrong("part ", in_quotes(part), ": f16, bf16 or f32 is needed");
      out.scale_type = *scales;
    } else if (part == "zeros" || part == "float_zeros") {
      out.zeros = true;
      out.float_zeros = part == "float_zeros";
    } else if (part == "ggml") {
      out.layout = CodeLayout::ggml_blocks;
    } else if (const auto layout = find_name<CodeLayout>(code_layout_names, part)) {
      out.layout = *layout;
    } else {
      return wrong(
          "part ", in_quotes(part),
          " is none of group=, columns=, zeros, float_zeros, scales=, ggml, gptq, gptq_v2, awq");
    }
  }
  return out;
}

DataType packed_scale_type(const Quantisation& q) noexcept {
  const CodeForm& form = form_of(q.type);
  return form.group_k != 0 ? form.scale_type : q.scale_type;
}

std::uint32_t scale_constant(const Quantisation& q) noexcept {
  return form_of(q.type).has_levels ? SCALE_LEVELS : row_of(packed_scale_type(q)).constant;
}

std::uint32_t zeros_of(const Quantisation& q) noexcept {
  if (const std::uint32_t own = form_of(q.type).zeros; own != ZEROS_NONE) return own;
  if (!q.zeros) return ZEROS_NONE;
  return q.float_zeros ? ZEROS_FLOATS : ZEROS_INTEGERS;
}

bool scales_codes_alone(const Quantisation& q) noexcept {
  return form_of(q.type).has_levels || zeros_of(q) > ZEROS_INTEGERS;
}

std::uint32_t source_of(const Quantisation& given) noexcept {
  const Quantisation q = with_group(given);
  switch (q.layout) {
    case CodeLayout::separate:
      return SOURCE_ARRAYS;
    case CodeLayout::ggml_blocks:
      return form_of(q.type).source;
    case CodeLayout::gptq:
      return SOURCE_GPTQ;
    case CodeLayout::gptq_v2:
      return SOURCE_GPTQ_V2;
    case CodeLayout::awq:
      return SOURCE_AWQ;
  }
  return SOURCE_ARRAYS;
}

Quantisation as_packed(const Quantisation& q) noexcept {
  const bool has_own = form_of(q.type).group_k != 0;
  return {.type = q.type,
          .group_k = with_group(q).group_k,
          .scale_type = has_own ? Quantisation{}.scale_type : q.scale_type,
          .zeros = q.zeros,
          .float_zeros = q.zeros && q.float_zeros};
}

std::uint32_t code_depth(const Quantisation& q) noexcept {
  const std::uint32_t group = with_group(q).group_k;
  return group == 0 ? 0 : CODE_DEPTH(group, scale_constant(q));
}

std::uint64_t packed_bytes(const Quantisation& q, std::uint64_t width,
                           std::uint64_t depth) noexcept {
  if (width == 0 || depth == 0) return 0;
  const std::uint64_t block = code_depth(q) == 0 ? depth : code_depth(q);
  const std::uint64_t column = CODE_SCALES(with_group(q).group_k, scale_constant(q), zeros_of(q)) +
                               CODE_BYTES(block, form_of(q.type).codes);
  return depth / block * column * width;
}

std::optional<Error> check_quantised(const Problem& problem) {
  if (!problem.quantised_b) return std::nullopt;
  const Quantisation q = with_group(*problem.quantised_b);
  if (auto error = check_enumerators(q, "quantised_b")) return error;
  const std::string_view type = to_string(q.type);
  const auto wrong = [&](std::string_view field, const auto& value, const auto&... why) {
    return unsupported(concat("quantised_b.", field, " is ", value, " and quantised_b.type is ",
                              type, ": ", why...));
  };
  const CodeForm& form = form_of(q.type);
  if (form.group_k != 0) {
    if (q.group_k != form.group_k)
      return wrong("group_k", q.group_k, concat("it must be ", form.group_k));
    if (q.group_n != 1) return wrong("group_n", q.group_n, "it must be 1");
  }
  if (std::ranges::find(groups_of_k, q.group_k) == std::end(groups_of_k)) {
    return wrong("group_k", q.group_k,
                 "16, 32, 64, 128, 192, 256, or 0 for all of K are supported");
  }
  if (std::ranges::find(groups_of_n, q.group_n) == std::end(groups_of_n)) {
    return wrong("group_n", q.group_n, "1, 128, or 0 for all columns are supported");
  }
  if (q.zeros && q.type != CodeType::int4) return wrong("zeros", "true", "int4 has zero points");
  if (q.float_zeros && !q.zeros) return wrong("float_zeros", "true", "zeros is false");
  if (!multiplies_codes(problem.b.type)) {
    return unsupported(concat("b.type is ", to_string(problem.b.type), " and quantised_b.type is ",
                              type, ": codes are multiplied as f16, bf16 or s8"));
  }
  if (multiplies_integers(problem.b.type) && form.codes != CODES_INT8 && form.codes != CODES_INT4) {
    return wrong(
        "type", type,
        concat("only codes that are integers are multiplied as ", to_string(problem.b.type)));
  }
  return std::nullopt;
}

namespace {

// A layout that these codes can't have.
std::optional<Error> check_layout(const Problem& problem, const Quantisation& q,
                                  std::uint64_t columns) {
  const std::uint32_t source = source_of(q);
  const auto wrong = [&](std::string_view field, const auto& value, const auto&... must) {
    return unsupported(concat("quantised_b.layout is ", to_string(q.layout), " and ", field, " is ",
                              value, ": it must be ", must...));
  };
  const bool in_rows = problem.b.layout == Layout::row_major;
  if (q.layout == CodeLayout::separate) return std::nullopt;
  if (q.group_n != 1) return wrong("quantised_b.group_n", q.group_n, "1");
  if (q.layout == CodeLayout::ggml_blocks) {
    const CodeForm& form = form_of(q.type);
    if (form.source == SOURCE_ARRAYS)
      return wrong("quantised_b.type", to_string(q.type), "one that ggml has");
    const std::uint32_t group = form.group_k != 0 ? form.group_k : q4_0_block;
    if (q.group_k != group) return wrong("quantised_b.group_k", q.group_k, group);
    if (q.zeros) return wrong("quantised_b.zeros", "true", "false");
    if (form.group_k == 0 && q.scale_type != DataType::f16)
      return wrong("quantised_b.scale_type", to_string(q.scale_type), "f16");
    if (in_rows) return wrong("b.layout", to_string(problem.b.layout), "col_major");
    if (problem.k % BLOCK_CODES(source) != 0)
      return wrong("k", problem.k, "a multiple of ", BLOCK_CODES(source));
    return std::nullopt;
  }
  if (q.type != CodeType::int4) return wrong("quantised_b.type", to_string(q.type), "int4");
  if (q.float_zeros) return wrong("quantised_b.float_zeros", "true", "false");
  if (!in_rows) return wrong("b.layout", to_string(problem.b.layout), "row_major");
  if (columns % word_codes != 0) return wrong("the number of columns of B", columns, words);
  if (source != SOURCE_AWQ && problem.k % word_codes != 0) return wrong("k", problem.k, words);
  return std::nullopt;
}

// How codes lie: lines of bytes.
struct CodeLines {
  std::uint32_t unit = 1;         // ld is a multiple of it
  std::uint32_t stride_unit = 1;  // so is batch_stride
  std::uint64_t length = 0;       // codes of a line along ld
  std::uint64_t lines = 0;
  std::uint64_t last = 0;        // bytes of the last line
  std::uint64_t line_codes = 1;  // codes of a line for each of ld
};

CodeLines lines_of(std::uint32_t source, std::uint32_t per_byte, bool in_rows, std::uint64_t k,
                   std::uint64_t columns) {
  if (IS_BLOCKS(source)) {
    const std::uint32_t block = BLOCK_CODES(source);
    return {block, block, k, columns, k / block * BLOCK_SIZE(source)};
  }
  if (source == SOURCE_AWQ) return {word_codes, word_codes, columns, k, columns / per_byte};
  if (source != SOURCE_ARRAYS) {
    const std::uint64_t bytes = word_codes / per_byte * columns;
    return {1, word_codes, columns, k / word_codes, bytes, word_codes};
  }
  // Rows of bytes hold several rows of codes.
  if (in_rows)
    return {1, per_byte, columns, divided_up(k, std::uint64_t{per_byte}), columns, per_byte};
  return {per_byte, per_byte, k, columns, divided_up(k, std::uint64_t{per_byte})};
}

}  // namespace

Result<CodeSource> code_source(const Problem& problem, std::uint64_t matrices) {
  const Quantisation q = with_group(*problem.quantised_b);
  const Matrix& b = problem.b;
  const std::uint64_t halves = problem.gated && problem.gated->b != GatedB::separate ? 2 : 1;
  const std::uint64_t columns = halves * problem.n, k = problem.k;
  const bool in_rows = b.layout == Layout::row_major;
  const std::uint32_t per_byte = 8 / bits_of(q.type), source = source_of(q);
  if (auto error = check_layout(problem, q, columns)) return *error;
  const CodeLines codes = lines_of(source, per_byte, in_rows, k, columns);
  const std::uint64_t ld = b.ld.value_or(rounded_up(codes.length, std::uint64_t{codes.unit}));
  if (ld < codes.length || ld > largest_size) {
    return invalid_argument(concat("b.ld is ", ld, ": a ", in_rows ? "row" : "column",
                                   " needs at least ", codes.length, ", at most ", largest_size,
                                   " is supported"));
  }
  const auto check_unit = [&](std::string_view field, std::uint64_t value,
                              std::uint32_t multiple) -> std::optional<Error> {
    if (value % multiple == 0) return std::nullopt;
    return invalid_argument(concat(field, " is ", value, " and quantised_b.type is ",
                                   to_string(q.type), ": it must be a multiple of ", multiple));
  };
  if (auto error = check_unit("b.ld", ld, codes.unit)) return *error;

  CodeSource out;
  const bool blocks = IS_BLOCKS(source);
  const auto bytes_of_codes = [&](std::uint64_t count) {
    return blocks ? product(count / BLOCK_CODES(source), BLOCK_SIZE(source)) : count / per_byte;
  };
  out.codes.line = bytes_of_codes(ld * codes.line_codes);
  if (out.codes.line > UINT32_MAX) {
    return invalid_argument(concat("b.ld is ", ld, ": at most 4 GiB of codes are supported in a ",
                                   in_rows ? "row" : "column"));
  }
  const bool is_empty = codes.lines == 0 || codes.last == 0;
  const std::uint64_t one = is_empty ? 0 : (codes.lines - 1) * out.codes.line + codes.last;
  out.codes.matrix = codes.lines * out.codes.line;
  if (b.batch_stride) {
    if (auto error = check_unit("b.batch_stride", *b.batch_stride, codes.stride_unit)) {
      return *error;
    }
    out.codes.matrix = bytes_of_codes(*b.batch_stride);
  }
  const bool has_f16 = blocks && q.type != CodeType::mxfp4 && q.type != CodeType::nvfp4;
  out.codes.alignment = has_f16 ? 2 : source != SOURCE_ARRAYS && !blocks ? 4 : 1;
  const bool shared = b.batch_stride == std::uint64_t{0};
  if (shared) matrices = std::min<std::uint64_t>(matrices, 1);
  out.codes.bytes = bytes_of(out.codes, one, matrices);
  if (out.codes.bytes == most) {
    return invalid_argument(concat("b.batch_stride is ", b.batch_stride.value_or(0),
                                   ": a batch of ", matrices, " does not fit 64 bits of bytes"));
  }
  if (blocks) return out;

  const auto groups = [](std::uint64_t size, std::uint32_t group) {
    return group == 0 ? std::min<std::uint64_t>(size, 1) : divided_up(size, std::uint64_t{group});
  };
  const std::uint64_t along_k = groups(k, q.group_k), along_n = groups(columns, q.group_n);
  const auto array = [&](std::uint32_t element) {
    return packed_array(in_rows ? along_k : along_n, in_rows ? along_n : along_k, element,
                        matrices);
  };
  out.scales = array(form_of(q.type).group_k != 0 ? 1 : size_in_bytes(q.scale_type));
  if (!q.zeros) return out;
  out.zeros = array(q.float_zeros ? size_in_bytes(q.scale_type) : 1);
  if (source == SOURCE_ARRAYS) return out;
  out.zeros.matrix /= per_byte;
  out.zeros.bytes /= per_byte;
  out.zeros.alignment = 4;
  return out;
}

}  // namespace vkgemm
