// vkgemm quantise-rows: rows of A, or columns of B, as s8 and a scale each, from a file to files.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/arithmetic.hpp"
#include "base/paths.hpp"
#include "device/caps.hpp"
#include "problem/convert.hpp"
#include "problem/data_type.hpp"
#include "tool/matrices.hpp"
#include "tool/packing.hpp"
#include "tool/planning.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

struct QuantiseRowsCommand {
  std::string a_file, b_file, out, scales;
  bool bf16 = false;
  std::uint32_t group_k = 0;
  DeviceOptions device;
};

// What shares a scale stands side by side: rows of A, columns of B.
struct Lines {
  bool is_a = true;
  std::uint64_t count = 0;  // of a matrix
  std::uint64_t length = 0;
  std::uint64_t batch = 1;
  DataType type = DataType::f16;
  std::vector<std::byte> data;

  std::string describe() const {
    return std::to_string(count) + (is_a ? " rows of " : " columns of ") + std::to_string(length);
  }
};

Lines load_lines(const QuantiseRowsCommand& command) {
  const bool is_a = !command.a_file.empty();
  LoadedMatrix loaded = load_matrix(is_a ? command.a_file : command.b_file, command.bf16);
  if (!is_wide_float(loaded.type)) {
    throw Failure(usage_error, loaded.describe() + " is " + std::string(to_string(loaded.type)) +
                                   ": f16, f32, or with --bf16 bf16 is needed");
  }
  Lines lines{.is_a = is_a,
              .count = is_a ? loaded.rows : loaded.cols,
              .length = is_a ? loaded.cols : loaded.rows,
              .batch = loaded.batch,
              .type = loaded.type};
  if (is_a == (loaded.layout == Layout::row_major)) {
    lines.data = std::move(loaded.data);
    return lines;
  }
  const std::uint64_t size = size_in_bytes(lines.type), matrix = lines.count * lines.length;
  lines.data.resize(loaded.data.size());
  for (std::uint64_t b = 0; b < lines.batch; ++b) {
    for (std::uint64_t i = 0; i < lines.count; ++i) {
      for (std::uint64_t j = 0; j < lines.length; ++j) {
        std::memcpy(lines.data.data() + (b * matrix + i * lines.length + j) * size,
                    loaded.data.data() + (b * matrix + j * lines.count + i) * size, size);
      }
    }
  }
  return lines;
}

// How far what codes stand for is from the elements, and lines that codes can't stand for.
struct LineErrors {
  QuantisationError error;
  std::uint64_t not_finite = 0;
};

LineErrors errors_of(const Lines& lines, std::uint64_t group, const std::vector<std::byte>& codes,
                     const std::vector<std::byte>& scales) {
  LineErrors out;
  QuantisationErrors errors;
  const std::uint64_t groups = divided_up(lines.length, group);
  for (std::uint64_t i = 0; i < lines.batch * lines.count * groups; ++i) {
    const double scale = load_element(scales.data(), DataType::f32, i);
    if (!std::isfinite(scale)) {
      ++out.not_finite;
      continue;
    }
    const std::uint64_t line = i / groups * lines.length, first = i % groups * group;
    for (std::uint64_t j = line + first; j < line + std::min(first + group, lines.length); ++j) {
      const double x = load_element(lines.data.data(), lines.type, j);
      errors.add(
          x, std::fabs(scale * load_element(codes.data(), RowQuantisation{}.codes.type, j) - x));
    }
  }
  out.error = errors.all();
  return out;
}

void quantise_file(const QuantiseRowsCommand& command) {
  if (command.a_file.empty() == command.b_file.empty()) {
    throw Failure(usage_error, "give --a, whose rows are quantised, or --b, whose columns are");
  }
  if (command.group_k != 0 && command.a_file.empty()) {
    throw Failure(usage_error, "--group is for --a: columns of B have one scale each");
  }
  Lines lines = load_lines(command);
  OutputFile out = unwrap(OutputFile::open(path_of(command.out)));
  OutputFile scales_out = unwrap(OutputFile::open(path_of(command.scales)));
  const std::unique_ptr<headless::Runner> runner = command.device.open();
  const Plan plan = unwrap(runner->context().plan_quantise_rows({.rows = lines.count,
                                                                 .columns = lines.length,
                                                                 .batch = lines.batch,
                                                                 .source = {.type = lines.type},
                                                                 .group_k = command.group_k}));
  const Operands sizes = plan.operands();
  DeviceOperands device;
  for (const OperandId id : {OperandId::source, OperandId::codes, OperandId::scales}) {
    device.plain[id] = unwrap(runner->allocate((sizes.*row_of(id).span).bytes));
  }
  unwrap(runner->upload(device.plain[OperandId::source], 0, lines.data.data(), lines.data.size()));
  unwrap(runner->submit(
      [&](VkCommandBuffer commands) { return plan.record(commands, device.operands()); }));
  std::vector<std::byte> codes(sizes.codes.bytes), scales(sizes.scales.bytes);
  unwrap(runner->download(device.plain[OperandId::codes], 0, codes.data(), codes.size()));
  unwrap(runner->download(device.plain[OperandId::scales], 0, scales.data(), scales.size()));
  if (runner->validation_messages() != 0) {
    throw Failure(verification_failed,
                  std::to_string(runner->validation_messages()) + " validation messages");
  }
  const std::uint64_t group =
      command.group_k == 0 ? std::max<std::uint64_t>(lines.length, 1) : command.group_k;
  const LineErrors errors = errors_of(lines, group, codes, scales);

  const Matrix matrix{.type = RowQuantisation{}.codes.type,
                      .layout = lines.is_a ? Layout::row_major : Layout::col_major};
  const OperandShape shape{matrix, lines.is_a ? lines.count : lines.length,
                           lines.is_a ? lines.length : lines.count, lines.batch};
  save_matrix(out, shape, std::move(codes));
  files::NpyArray array{.type = DataType::f32, .shape = {lines.count}, .data = std::move(scales)};
  if (command.group_k != 0) array.shape.push_back(divided_up(lines.length, group));
  if (lines.batch != 1) array.shape.insert(array.shape.begin(), lines.batch);
  unwrap(files::write_npy(scales_out, array));

  const DeviceCaps& caps = runner->caps();
  std::printf("device         %s\ndriver         %s\n", caps.name.c_str(),
              driver_text(caps).c_str());
  std::printf("quantised      %s, %s, %s, %llu %s\n", lines.is_a ? "a" : "b",
              lines.describe().c_str(), std::string(to_string(lines.type)).c_str(),
              static_cast<unsigned long long>(lines.batch),
              lines.batch == 1 ? "matrix" : "matrices");
  std::printf("error          %.3g of the elements' norm, %.3g at most\n", errors.error.relative,
              errors.error.largest);
  if (errors.not_finite != 0) {
    std::printf("not finite     %llu %s, whose codes are 0: not in the error\n",
                static_cast<unsigned long long>(errors.not_finite),
                command.group_k != 0 ? "groups"
                : lines.is_a         ? "rows"
                                     : "columns");
  }
  std::printf("wrote          %s, codes; %s, scales\n", command.out.c_str(),
              command.scales.c_str());
}

}  // namespace

void add_quantise_rows(CLI::App& app) {
  auto options = std::make_shared<QuantiseRowsCommand>();
  CLI::App& command = *app.add_subcommand(
      "quantise-rows",
      "Quantise rows of A, or columns of B, to s8 with a scale each, and say how far off that is");
  command.footer(
      "A scale is a row's largest magnitude over 127, an element about scale * code: what s8 "
      "products take, with row scales of A and column scales of B. Codes are '|i1', scales '<f4'. "
      "A row that holds NaN or Inf has such a scale, and codes 0.");
  command.option_defaults()->group("Files");
  CLI::Option* a =
      command
          .add_option("--a", options->a_file, "A, M x K; .npy; a third, first dimension: several")
          ->type_name("FILE");
  command.add_option("--b", options->b_file, "B, K x N, likewise")->type_name("FILE")->excludes(a);
  command
      .add_option("--group", options->group_k,
                  "Columns of A that share a scale: 32, 64, 128, or 0 for a whole row; the scales "
                  "are then M x groups, as `vkgemm run --a-group` takes them")
      ->type_name("SIZE");
  command.add_flag("--bf16", options->bf16, "uint16 files hold the bits of bf16 values");
  command.add_option("--out", options->out, "Write the codes, those of one B in Fortran order")
      ->type_name("FILE.npy")
      ->required();
  command.add_option("--scales", options->scales, "Write the scales, a vector for each matrix")
      ->type_name("FILE.npy")
      ->required();
  command.option_defaults()->group("Execution");
  options->device.add(command);
  command.callback([options] { quantise_file(*options); });
}

}  // namespace vkgemm::tool
