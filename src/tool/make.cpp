// vkgemm make: a .npy file of reproducible values.
#include <cstdio>
#include <memory>

#include "base/paths.hpp"
#include "tool/options.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

struct MakeOptions {
  std::string file;
  std::string shape;
  std::optional<DataType> type;
  std::uint64_t seed = 1;
  Fill fill = Fill::random;
  bool fortran = false;
};

void make(const MakeOptions& options) {
  files::NpyArray array;
  array.type = options.type.value_or(DataType::f16);
  array.fortran_order = options.fortran;
  array.shape = parse_sizes("--shape", options.shape);
  if (array.shape.size() > 3) {
    throw Failure(usage_error, "--shape is '" + options.shape + "': at most three dimensions");
  }
  std::uint64_t bytes = size_in_bytes(array.type);
  for (const std::uint64_t dimension : array.shape) {
    if (dimension != 0 && bytes > (1ULL << 48) / dimension) {
      throw Failure(usage_error, "--shape is '" + options.shape + "': more than 256 TiB");
    }
    bytes *= dimension;
  }
  OutputFile file = unwrap(OutputFile::open(path_of(options.file)));
  array.data = generate(array.type, bytes, options.fill, options.seed);
  unwrap(files::write_npy(file, array));
  std::printf("wrote          %s, %s %s, %llu bytes of elements\n", options.file.c_str(),
              options.shape.c_str(), to_string(array.type).data(),
              static_cast<unsigned long long>(bytes));
}

}  // namespace

void add_make(CLI::App& app) {
  auto options = std::make_shared<MakeOptions>();
  CLI::App& command = *app.add_subcommand("make", "Make a .npy file of reproducible values");
  command.add_option("file", options->file, "File to write")->required();
  command
      .add_option("--shape", options->shape,
                  "Rows x columns, e.g. 1024x512; one number: a vector; three: a batch of matrices")
      ->required();
  add_named(command, "--dtype", options->type,
            "Element type (default f16; bf16 is stored as uint16)");
  add_size(command, "--seed", options->seed, "Other seeds give other values", UINT64_MAX);
  add_fill(command, options->fill);
  command.add_flag("--fortran", options->fortran, "Write Fortran order (column-major)");
  command.callback([options] { make(*options); });
}

}  // namespace vkgemm::tool
