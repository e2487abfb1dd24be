// matrices.hpp: matrices on the host: from .npy files or generated, and back into files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "files/npy.hpp"
#include "files/vkp.hpp"
#include "problem/operands.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::tool {

enum class Fill : std::uint8_t { random, integers };

std::optional<Fill> parse_fill(std::string_view text) noexcept;

// So many are generated with progress on stderr: a core makes some 30 million a second.
inline constexpr std::uint64_t elements_that_take_long = std::uint64_t{1} << 28;

// `bytes` bytes of elements that depend on `seed` and their place alone. Multi-threaded.
std::vector<std::byte> generate(DataType type, std::uint64_t bytes, Fill fill, std::uint64_t seed,
                                std::uint64_t long_from = elements_that_take_long);

// The same for a matrix that may have padding: that holds NaN, so that a kernel which reads it
// shows.
std::vector<std::byte> generate_matrix(const OperandShape& shape, Fill fill, std::uint64_t seed);

// The values of an operand. Each operand has a seed of its own, which follows from `seed`.
std::vector<std::byte> generate(OperandId id, const Problem& problem, Fill fill,
                                std::uint64_t seed);

// A matrix, or a batch of them, as a file has it. Fortran order is col_major: nothing is moved.
struct LoadedMatrix {
  std::string file;
  std::vector<std::uint64_t> shape;  // that the file has
  DataType type = DataType::f16;
  Layout layout = Layout::row_major;
  std::uint64_t batch = 1;
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::vector<std::byte> data;
  std::optional<files::PackedHeader> packed;  // of a .vkp file: `data` is its payload
  std::optional<Quantisation> quantisation;   // of a tensor of codes: `data` is its blocks

  // "a.npy (3, 512, 256)"
  std::string describe() const;
};

// A matrix of elements.
LoadedMatrix load_matrix(const std::string& file, bool uint16_is_bf16);

// B, which may be codes.
LoadedMatrix load_weights(const std::string& file, bool uint16_is_bf16);

// A or B, which may be packed. `halves`: of how many times N columns B is.
LoadedMatrix load_operand(const std::string& file, bool uint16_is_bf16, PackedOperand operand,
                          std::uint64_t halves = 1);

// The elements that the blocks of `matrix` stand for, rounded to its type.
std::vector<std::byte> elements_of_blocks(const LoadedMatrix& matrix);

// A uint8 file holds the 8-bit type that an option names. False: it names another type.
bool name_bytes(LoadedMatrix& loaded, std::optional<DataType> type);

// A vector as a matrix of one row: one dimension, or two where each matrix of the batch has its
// own.
LoadedMatrix load_vectors(const std::string& file, bool uint16_is_bf16);

// Writes a result without its padding; col_major as Fortran order, batches as a third dimension.
void save_matrix(OutputFile& file, const OperandShape& shape, std::vector<std::byte> data);

}  // namespace vkgemm::tool
