#include "tool/matrices.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

#include "base/parallel.hpp"
#include "base/paths.hpp"
#include "oracle/quantised.hpp"
#include "problem/convert.hpp"
#include "problem/data_type.hpp"
#include "tool/gguf_tensor.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

// A good hash of one number (splitmix64's finaliser): elements can be made in any order.
std::uint64_t hash(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

double element(Fill fill, std::uint64_t seed, std::uint64_t index) noexcept {
  const std::uint64_t bits = hash(hash(seed) + index);
  if (fill == Fill::integers) return static_cast<double>(bits % 5) - 2.0;
  return static_cast<double>(bits >> 40) * 0x1p-23 - 1.0;
}

// work(first, last) on parts of [0, count), by all cores where there is enough to do.
template <class Work>
void in_parallel(std::uint64_t count, const Work& work) {
  const std::uint64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::uint64_t threads = std::min(cores, count / 65536 + 1);
  const auto part = [&](std::uint64_t t) {
    return count / threads * t + count % threads * t / threads;
  };
  on_threads(threads, [&](std::uint64_t t) { work(part(t), part(t + 1)); });
}

LoadedMatrix loaded(GgufMatrix&& tensor) {
  LoadedMatrix out{.file = std::move(tensor.text),
                   .shape = {tensor.rows, tensor.cols},
                   .type = tensor.type,
                   .layout = Layout::col_major,
                   .batch = tensor.batch,
                   .rows = tensor.rows,
                   .cols = tensor.cols,
                   .data = std::move(tensor.data),
                   .quantisation = tensor.quantisation};
  if (out.batch != 1) out.shape.insert(out.shape.begin(), out.batch);
  return out;
}

files::NpyArray read(const std::string& file, bool uint16_is_bf16) {
  return unwrap(files::read_npy(path_of(file), {.uint16_is_bf16 = uint16_is_bf16}));
}

}  // namespace

std::optional<Fill> parse_fill(std::string_view text) noexcept {
  if (text == "random") return Fill::random;
  if (text == "integers") return Fill::integers;
  return std::nullopt;
}

std::vector<std::byte> generate(DataType type, std::uint64_t bytes, Fill fill, std::uint64_t seed,
                                std::uint64_t long_from) {
  std::vector<std::byte> data(bytes);
  const std::uint64_t count = bytes / size_in_bytes(type);
  // Random integers are from the least one of the type to the largest.
  const DataTypeRow& row = row_of(type);
  const bool whole_range = is_integer(type) && fill == Fill::random;
  const double times = whole_range ? (row.largest - row.least + 1.0) / 2.0 : 1.0;
  const double middle = whole_range ? (row.largest + row.least + 1.0) / 2.0 : 0.0;
  const std::uint64_t parts = count < long_from ? 1 : 10;
  const auto begin_of = [&](std::uint64_t part) {
    return count / parts * part + count % parts * part / parts;
  };
  for (std::uint64_t part = 0; part < parts; ++part) {
    if (parts > 1) {
      std::fprintf(stderr, "generating %.1f GiB: %u %%\n", static_cast<double>(bytes) * 0x1p-30,
                   static_cast<unsigned>(100 * part / parts));
    }
    const std::uint64_t begin = begin_of(part);
    in_parallel(begin_of(part + 1) - begin, [&](std::uint64_t first, std::uint64_t last) {
      for (std::uint64_t i = begin + first; i < begin + last; ++i) {
        store_element(data.data(), type, i, middle + times * element(fill, seed, i));
      }
    });
  }
  return data;
}

std::vector<std::byte> generate_matrix(const OperandShape& shape, Fill fill, std::uint64_t seed) {
  const DataType type = shape.matrix.type;
  std::vector<std::byte> data = generate(type, shape.bytes(), fill, seed);
  // Matrices of two dimensions of a batch may lie in any order.
  const bool overlaps = shape.inner_count != 0 || shape.batch_stride() < shape.ld() * shape.lines();
  if (data.empty() || !shape.has_padding() || overlaps) return data;

  std::vector<bool> used(data.size() / size_in_bytes(type));
  for (std::uint64_t b = 0; b < shape.count; ++b) {
    for (std::uint64_t line = 0; line < shape.lines(); ++line) {
      const auto begin =
          used.begin() + static_cast<std::ptrdiff_t>(b * shape.batch_stride() + line * shape.ld());
      std::fill(begin, begin + static_cast<std::ptrdiff_t>(shape.length()), true);
    }
  }
  for (std::uint64_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    store_element(data.data(), type, i, std::numeric_limits<double>::quiet_NaN());
  }
  return data;
}

std::vector<std::byte> generate(OperandId id, const Problem& problem, Fill fill,
                                std::uint64_t seed) {
  const OperandRow& row = row_of(id);
  const OperandShape shape = row.shape(problem);
  seed += static_cast<std::uint64_t>(id);
  if (row.matrix != nullptr) return generate_matrix(shape, fill, seed);
  return generate(shape.matrix.type, shape.bytes(), fill, seed);
}

std::string LoadedMatrix::describe() const { return file + " " + files::print_shape(shape); }

LoadedMatrix load_matrix(const std::string& file, bool uint16_is_bf16) {
  LoadedMatrix matrix = load_weights(file, uint16_is_bf16);
  if (matrix.quantisation) {
    usage(matrix.describe() + " holds codes, " + to_string(*matrix.quantisation) +
          ": only B of run and pack can");
  }
  return matrix;
}

LoadedMatrix load_weights(const std::string& file, bool uint16_is_bf16) {
  if (const auto name = files::split_gguf_name(file)) return loaded(load_gguf_tensor(*name));
  files::NpyArray array = read(file, uint16_is_bf16);
  const std::size_t dimensions = array.shape.size();
  if (dimensions < 2) {
    throw Failure(usage_error, file + ": shape " + files::print_shape(array.shape) +
                                   ": a matrix (two dimensions) or a batch of them is needed");
  }
  if (dimensions == 3 && array.fortran_order && array.shape[0] > 1) {
    throw Failure(usage_error, file +
                                   ": a batch in Fortran order interleaves its matrices; "
                                   "save it in C order");
  }
  LoadedMatrix matrix;
  matrix.file = file;
  matrix.type = array.type;
  matrix.layout = array.fortran_order ? Layout::col_major : Layout::row_major;
  matrix.shape = array.shape;
  matrix.batch = dimensions == 3 ? array.shape[0] : 1;
  matrix.rows = array.shape[dimensions - 2];
  matrix.cols = array.shape[dimensions - 1];
  matrix.data = std::move(array.data);
  return matrix;
}

LoadedMatrix load_operand(const std::string& file, bool uint16_is_bf16, PackedOperand operand,
                          std::uint64_t halves) {
  if (!files::is_packed_file(path_of(file))) {
    return operand == PackedOperand::b ? load_weights(file, uint16_is_bf16)
                                       : load_matrix(file, uint16_is_bf16);
  }
  files::PackedFile packed = unwrap(files::read_packed_file(path_of(file)));
  const files::PackedHeader& header = packed.header;
  const bool is_a = operand == PackedOperand::a;
  if (header.operand != operand) {
    throw Failure(usage_error,
                  file + ": operand is " + (is_a ? "b, wanted is a" : "a, wanted is b"));
  }
  LoadedMatrix matrix;
  matrix.file = file;
  matrix.type = header.type;
  matrix.batch = header.matrices;
  matrix.rows = is_a ? header.width : header.k;
  matrix.cols = is_a ? header.k : halves * header.width;
  matrix.shape = {matrix.rows, matrix.cols};
  if (matrix.batch > 1) matrix.shape.insert(matrix.shape.begin(), matrix.batch);
  matrix.packed = header;
  matrix.data = std::move(packed.payload);
  return matrix;
}

std::vector<std::byte> elements_of_blocks(const LoadedMatrix& matrix) {
  Problem problem{.m = 1, .n = matrix.cols, .k = matrix.rows, .batch = matrix.batch};
  problem.b = {.type = matrix.type, .layout = matrix.layout};
  problem.quantised_b = matrix.quantisation;
  unwrap(code_source(problem, matrix.batch));
  oracle::CodeMatrix codes(problem);
  codes.codes = matrix.data;
  const std::vector<float> numbers = codes.elements(problem);
  std::vector<std::byte> out(numbers.size() * size_in_bytes(matrix.type));
  in_parallel(numbers.size(), [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = first; i < last; ++i) {
      store_element(out.data(), matrix.type, i, static_cast<double>(numbers[i]));
    }
  });
  return out;
}

bool name_bytes(LoadedMatrix& loaded, std::optional<DataType> type) {
  const bool names = type && loaded.type == DataType::u8 && is_byte(*type);
  if (names) loaded.type = *type;
  return names;
}

LoadedMatrix load_vectors(const std::string& file, bool uint16_is_bf16) {
  files::NpyArray array = read(file, uint16_is_bf16);
  if (array.shape.size() > 2 || (array.shape.size() == 2 && array.fortran_order)) {
    throw Failure(usage_error, file + ": shape " + files::print_shape(array.shape) +
                                   (array.fortran_order ? " in Fortran order" : "") +
                                   ": a vector has one dimension, or two: batch, length");
  }
  return {.file = file,
          .shape = array.shape,
          .type = array.type,
          .batch = array.shape.size() == 2 ? array.shape[0] : 1,
          .rows = 1,
          .cols = array.shape.back(),
          .data = std::move(array.data)};
}

void save_matrix(OutputFile& file, const OperandShape& shape, std::vector<std::byte> data) {
  files::NpyArray array;
  array.type = shape.matrix.type;
  array.shape = {shape.rows, shape.cols};
  // Fortran order would interleave a batch, so that is written in C order.
  array.fortran_order = !shape.row_major() && shape.count == 1;
  if (shape.count != 1) array.shape.insert(array.shape.begin(), shape.count);

  const bool transpose = !shape.row_major() && shape.count != 1;
  const std::uint64_t size = size_in_bytes(array.type);
  const std::uint64_t elements = shape.rows * shape.cols;
  if (elements * shape.count == 0) {
    data.clear();
  } else if (shape.has_padding() || transpose) {
    std::vector<std::byte> packed(shape.count * elements * size);
    const std::uint64_t to_line = transpose ? 1 : shape.length();
    const std::uint64_t to_element = transpose ? shape.lines() : 1;
    for (std::uint64_t b = 0; b < shape.count; ++b) {
      for (std::uint64_t line = 0; line < shape.lines(); ++line) {
        for (std::uint64_t e = 0; e < shape.length(); ++e) {
          const std::uint64_t to = b * elements + line * to_line + e * to_element;
          const std::uint64_t from = shape.matrix_index(b) + line * shape.ld() + e;
          std::memcpy(packed.data() + to * size, data.data() + from * size, size);
        }
      }
    }
    data = std::move(packed);
  }
  array.data = std::move(data);
  unwrap(files::write_npy(file, array));
}

}  // namespace vkgemm::tool
