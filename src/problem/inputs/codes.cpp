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

namespace vkgemm {
namespace {

#define VKGEMM_NAME(name, NAME) std::string_view(#name),
constexpr std::array code_type_names{VKGEMM_CODE_TYPES(VKGEMM_NAME)};
#undef VKGEMM_NAME
constexpr std::array<std::string_view, 2> code_layout_names{"separate", "ggml_blocks"};

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint32_t groups_of_k[] = {0, 32, 64, 128};
constexpr std::uint32_t groups_of_n[] = {0, 1, 128};

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

Quantisation with_group(Quantisation q) {
  const bool has_one = q.type == CodeType::mxfp4 || q.layout == CodeLayout::ggml_blocks;
  if (has_one && q.group_k == 0) q.group_k = GGML_BLOCK;
  return q;
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
  if (q.type != CodeType::mxfp4) {
    if (q.group_k != defaults.group_k) text += concat(":group=", q.group_k);
    if (q.group_n == 0) text += ":columns=all";
    if (q.group_n > 1) text += concat(":columns=", q.group_n);
    if (q.zeros) text += ":zeros";
    if (q.scale_type != defaults.scale_type) text += concat(":scales=", to_string(q.scale_type));
  }
  if (q.layout == CodeLayout::ggml_blocks) text += ":ggml";
  return text;
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
  const auto type = parse_code_type(name);
  if (!type) return wrong(in_quotes(name), " is none of ", type_names());
  Quantisation out{.type = *type};
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
    } else if (key == "scales" && *type != CodeType::mxfp4) {
      const auto scales = parse_data_type(value);
      if (!scales) return wrong("part ", in_quotes(part), ": f16, bf16 or f32 is needed");
      out.scale_type = *scales;
    } else if (part == "zeros") {
      out.zeros = true;
    } else if (part == "ggml") {
      out.layout = CodeLayout::ggml_blocks;
    } else {
      return wrong("part ", in_quotes(part), " is none of group=, columns=, zeros, scales=, ggml");
    }
  }
  return out;
}

std::uint32_t constant_of(CodeType type) noexcept {
#define VKGEMM_SAME_VALUE(name, NAME) \
  static_assert(CODES_##NAME == CODES_NONE + 1 + static_cast<int>(CodeType::name));
  VKGEMM_CODE_TYPES(VKGEMM_SAME_VALUE)
#undef VKGEMM_SAME_VALUE
  return CODES_NONE + 1 + static_cast<std::uint32_t>(type);
}

DataType packed_scale_type(const Quantisation& q) noexcept {
  return q.type == CodeType::mxfp4 ? DataType::bf16 : q.scale_type;
}

Quantisation as_packed(const Quantisation& q) noexcept {
  return {.type = q.type,
          .group_k = with_group(q).group_k,
          .scale_type = packed_scale_type(q),
          .zeros = q.zeros};
}

std::uint64_t packed_bytes(const Quantisation& q, std::uint64_t width,
                           std::uint64_t depth) noexcept {
  if (width == 0 || depth == 0) return 0;
  const std::uint32_t scale = size_in_bytes(packed_scale_type(q));
  const std::uint32_t entry = CODE_ENTRY(scale, q.zeros);
  const std::uint64_t block = q.group_k == 0 ? depth : CODE_DEPTH(q.group_k);
  const std::uint64_t column =
      CODE_SCALES(q.group_k, entry) + CODE_BYTES(block, constant_of(q.type));
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
  if (std::ranges::find(groups_of_k, q.group_k) == std::end(groups_of_k)) {
    return wrong("group_k", q.group_k, "32, 64, 128, or 0 for all of K are supported");
  }
  if (std::ranges::find(groups_of_n, q.group_n) == std::end(groups_of_n)) {
    return wrong("group_n", q.group_n, "1, 128, or 0 for all columns are supported");
  }
  if (q.type == CodeType::mxfp4) {
    if (q.group_k != 32) return wrong("group_k", q.group_k, "it must be 32");
    if (q.group_n != 1) return wrong("group_n", q.group_n, "it must be 1");
  }
  if (q.zeros && q.type != CodeType::int4) return wrong("zeros", "true", "int4 has zero points");
  if (!multiplies_codes(problem.b.type)) {
    return unsupported(concat("b.type is ", to_string(problem.b.type), " and quantised_b.type is ",
                              type, ": codes are multiplied as f16 or bf16"));
  }
  return std::nullopt;
}

Result<CodeSource> code_source(const Problem& problem, std::uint64_t matrices) {
  const Quantisation q = with_group(*problem.quantised_b);
  const Matrix& b = problem.b;
  const std::uint64_t halves = problem.gated && problem.gated->b != GatedB::separate ? 2 : 1;
  const std::uint64_t columns = halves * problem.n, k = problem.k;
  const bool in_rows = b.layout == Layout::row_major, ggml = q.layout == CodeLayout::ggml_blocks;
  const std::uint32_t per_byte = 8 / bits_of(q.type);

  // ld, batch_stride and K must be multiples of this.
  const std::uint32_t unit = ggml ? GGML_BLOCK : in_rows ? 1 : per_byte;
  if (ggml) {
    const auto not_of_ggml = [&](std::string_view field, const auto& value, std::string_view must) {
      return unsupported(concat("quantised_b.layout is ggml_blocks and ", field, " is ", value,
                                ": it must be ", must));
    };
    if (q.type == CodeType::e4m3 || q.type == CodeType::e5m2) {
      return not_of_ggml("quantised_b.type", to_string(q.type), "int4, int8 or mxfp4");
    }
    if (q.group_k != GGML_BLOCK) return not_of_ggml("quantised_b.group_k", q.group_k, "32");
    if (q.group_n != 1) return not_of_ggml("quantised_b.group_n", q.group_n, "1");
    if (q.zeros) return not_of_ggml("quantised_b.zeros", "true", "false");
    if (q.type != CodeType::mxfp4 && q.scale_type != DataType::f16) {
      return not_of_ggml("quantised_b.scale_type", to_string(q.scale_type), "f16");
    }
    if (in_rows) return not_of_ggml("b.layout", to_string(b.layout), "col_major");
    if (k % GGML_BLOCK != 0) return not_of_ggml("k", k, "a multiple of 32");
  }
  const std::uint64_t length = in_rows ? columns : k;
  const std::uint64_t ld = b.ld.value_or(rounded_up(length, std::uint64_t{unit}));
  if (ld < length || ld > largest_size) {
    return invalid_argument(concat("b.ld is ", ld, ": a ", in_rows ? "row" : "column",
                                   " needs at least ", length, ", at most ", largest_size,
                                   " is supported"));
  }
  const auto check_unit = [&](std::string_view field, std::uint64_t value,
                              std::uint32_t multiple) -> std::optional<Error> {
    if (value % multiple == 0) return std::nullopt;
    return invalid_argument(concat(field, " is ", value, " and quantised_b.type is ",
                                   to_string(q.type), ": it must be a multiple of ", multiple));
  };
  if (auto error = check_unit("b.ld", ld, unit)) return *error;

  CodeSource out;
  const auto bytes_of_codes = [&](std::uint64_t codes) {
    return ggml ? product(codes / GGML_BLOCK, GGML_BYTES(constant_of(q.type))) : codes / per_byte;
  };
  // Rows of bytes hold several rows of codes.
  out.codes.line = in_rows ? ld : bytes_of_codes(ld);
  const std::uint64_t lines = in_rows ? divided_up(k, std::uint64_t{per_byte}) : columns;
  const std::uint64_t last = in_rows ? columns : divided_up(k * bits_of(q.type), std::uint64_t{8});
  const std::uint64_t one = lines == 0 || last == 0
                                ? 0
                                : (lines - 1) * out.codes.line + (ggml ? bytes_of_codes(k) : last);
  out.codes.matrix = lines * out.codes.line;
  if (b.batch_stride) {
    const std::uint32_t stride_unit = in_rows ? per_byte : unit;
    if (auto error = check_unit("b.batch_stride", *b.batch_stride, stride_unit)) return *error;
    out.codes.matrix = bytes_of_codes(*b.batch_stride);
  }
  if (ggml && q.type != CodeType::mxfp4) out.codes.alignment = 2;
  const bool shared = b.batch_stride == std::uint64_t{0};
  if (shared) matrices = std::min<std::uint64_t>(matrices, 1);
  out.codes.bytes = bytes_of(out.codes, one, matrices);
  if (out.codes.bytes == most) {
    return invalid_argument(concat("b.batch_stride is ", b.batch_stride.value_or(0),
                                   ": a batch of ", matrices, " does not fit 64 bits of bytes"));
  }
  if (ggml) return out;

  const auto groups = [](std::uint64_t size, std::uint32_t group) {
    return group == 0 ? std::min<std::uint64_t>(size, 1) : divided_up(size, std::uint64_t{group});
  };
  const std::uint64_t along_k = groups(k, q.group_k), along_n = groups(columns, q.group_n);
  const std::uint32_t scale = q.type == CodeType::mxfp4 ? 1 : size_in_bytes(q.scale_type);
  const auto array = [&](std::uint32_t element) {
    return packed_array(in_rows ? along_k : along_n, in_rows ? along_n : along_k, element,
                        matrices);
  };
  out.scales = array(scale);
  if (q.zeros) out.zeros = array(1);
  return out;
}

}  // namespace vkgemm
