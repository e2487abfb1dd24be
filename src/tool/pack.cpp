// vkgemm pack, vkgemm quantise: one operand, from a file or generated, packed for a device, maybe
// as codes, and written to a file.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/paths.hpp"
#include "device/caps.hpp"
#include "oracle/groups.hpp"
#include "oracle/reference.hpp"
#include "problem/inputs/codes.hpp"
#include "problem/inputs/input.hpp"
#include "runtime/fingerprint.hpp"
#include "tool/matrices.hpp"
#include "tool/options.hpp"
#include "tool/packing.hpp"
#include "tool/planning.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

struct PackCommand {
  std::string a_file, b_file, out;
  bool bf16 = false;
  FieldOptions<Problem> product;
  std::optional<DataType> type;
  MatrixOptions a, b;
  std::optional<Layout> layout_d;
  std::optional<Quantisation> codes;
  Fill fill = Fill::random;
  std::uint64_t seed = 1;
  DeviceOptions device;
};

// The matrix to be packed, as the problem says that it lies.
struct Source {
  PackedOperand operand = PackedOperand::b;
  Problem problem;
  std::vector<std::byte> data;
  std::vector<std::byte> blocks;  // of codes from a GGUF file

  bool is_a() const { return operand == PackedOperand::a; }
  Matrix& matrix() { return is_a() ? problem.a : problem.b; }
  std::uint64_t width() const { return is_a() ? problem.m : problem.n; }
};

PackedOperand chosen_operand(const PackCommand& command) {
  const bool a = !command.a_file.empty() || command.product.has("m"),
             b = !command.b_file.empty() || command.product.has("n");
  if (a && b) {
    usage(
        "one operand is packed at a time: A from --a, or --m and --k; B from --b, or --n and --k");
  }
  if (!a && !b) usage("give --a or --b, or to generate them --m and --k, or --n and --k");
  return a ? PackedOperand::a : PackedOperand::b;
}

// The options say what the file does not.
void take_file(const PackCommand& command, const MatrixOptions& options, Source& source) {
  const std::string& file = source.is_a() ? command.a_file : command.b_file;
  const bool takes_codes = !source.is_a() && !command.codes;
  LoadedMatrix loaded =
      takes_codes ? load_weights(file, command.bf16) : load_matrix(file, command.bf16);
  const bool has_type = command.type && !loaded.quantisation && !name_bytes(loaded, command.type);
  if (command.type && loaded.quantisation) loaded.type = *command.type;
  if (options.describe_a_file(loaded.type) || has_type || command.product.has("k") ||
      command.product.has("batch")) {
    usage(file +
          " says its type, sizes and layout itself: --dtype, --k, --batch, --layout, --ld "
          "and --batch-stride are for generated matrices");
  }
  Problem& p = source.problem;
  source.matrix() = options.matrix(loaded.type, loaded.layout);
  p.batch = loaded.batch;
  p.m = source.is_a() ? loaded.rows : 1;
  p.k = source.is_a() ? loaded.cols : loaded.rows;
  const std::uint64_t halves = columns_of_b({.n = 1, .gated = p.gated});
  if (!source.is_a() && loaded.cols % halves != 0) {
    usage("--gated: B has two halves, but " + loaded.describe() + " has " +
          std::to_string(loaded.cols) + " columns");
  }
  p.n = source.is_a() ? 1 : loaded.cols / halves;
  (loaded.quantisation ? source.blocks : source.data) = std::move(loaded.data);
  source.problem.quantised_b = loaded.quantisation;
}

Source make_source(const PackCommand& command) {
  Source source{.operand = chosen_operand(command), .problem = command.product.values};
  const MatrixOptions& options = source.is_a() ? command.a : command.b;
  Problem& p = source.problem;
  if (source.is_a() && p.gated) usage("--gated is of B: A is packed");
  if (!(source.is_a() ? command.b : command.a).given.empty()) {
    const std::string other = source.is_a() ? "b" : "a";
    usage("--layout-" + other + ", --ld-" + other + " and their like are of " +
          (source.is_a() ? "B: A is packed" : "A: B is packed"));
  }
  p.d.layout = command.layout_d.value_or(Layout::row_major);
  if (!command.a_file.empty() || !command.b_file.empty()) {
    take_file(command, options, source);
    return source;
  }
  if (!command.product.has("k"))
    usage("--k is needed to generate " + std::string(name_of(source.operand)));
  if (!command.product.has("m")) p.m = 1;
  if (!command.product.has("n")) p.n = 1;
  source.matrix() = options.matrix(command.type.value_or(DataType::f16), Layout::row_major);
  return source;
}

// The same values as `vkgemm run` generates.
void generate(const PackCommand& command, Source& source) {
  if (!source.data.empty() || !source.blocks.empty()) return;
  source.data = tool::generate(source.is_a() ? OperandId::a : OperandId::b, source.problem,
                               command.fill, command.seed);
}

void pack_file(const PackCommand& command) {
  if (!files::is_packed_file(path_of(command.out))) {
    usage("--out is '" + command.out +
          "': a name that ends in .vkp is needed, by which `run` knows "
          "such a file");
  }
  Source source = make_source(command);
  // A and B share one type.
  (source.is_a() ? source.problem.b : source.problem.a).type = source.matrix().type;
  OutputFile out = unwrap(OutputFile::open(path_of(command.out)));
  const std::unique_ptr<headless::Runner> runner = command.device.open();
  const DeviceCaps& caps = runner->caps();
  const std::string name(name_of(source.operand));
  if (source.width() == 0 || source.problem.k == 0) {
    usage(name + " has no elements: it is " + std::to_string(source.width()) + " by K " +
          std::to_string(source.problem.k));
  }
  generate(command, source);
  if (command.codes) source.problem.quantised_b = command.codes;
  const Packed result =
      pack(*runner, source.problem, source.operand, source.data, {}, source.blocks);
  const PackedBuffer& packed = result.form;
  if (packed.layout.bytes == 0) {
    usage(name + ", " + std::to_string(source.width()) + " by K " +
          std::to_string(source.problem.k) + " of type " +
          std::string(to_string(source.matrix().type)) + ": " + caps.name +
          " gains nothing by packing it, nothing is written");
  }
  std::vector<std::byte> payload(packed.layout.bytes);
  unwrap(runner->download(packed.buffer, 0, payload.data(), payload.size()));
  if (runner->validation_messages() != 0) {
    throw Failure(verification_failed,
                  std::to_string(runner->validation_messages()) + " validation messages");
  }

  const bool shared = source.matrix().batch_stride == std::uint64_t{0};
  const files::PackedHeader header{.operand = source.operand,
                                   .type = source.matrix().type,
                                   .width = source.width(),
                                   .k = source.problem.k,
                                   .matrices = shared ? 1 : source.problem.batch,
                                   .matrix_bytes = packed.layout.matrix_bytes,
                                   .fingerprint = packed.layout.fingerprint,
                                   .device = caps.name,
                                   .driver = driver_text(caps)};
  unwrap(files::write_packed_file(out, header, payload));
  std::printf("device         %s\ndriver         %s\n", caps.name.c_str(),
              driver_text(caps).c_str());
  std::printf(
      "packed         %s, %llu wide, K %llu, %s, %llu %s, in %s\n", name.c_str(),
      static_cast<unsigned long long>(header.width), static_cast<unsigned long long>(header.k),
      std::string(to_string(header.type)).c_str(), static_cast<unsigned long long>(header.matrices),
      header.matrices == 1 ? "matrix" : "matrices", order_text(header.fingerprint).c_str());
  if (command.codes) {
    std::printf("error          %.3g of the elements' norm, %.3g at most\n", result.error.relative,
                result.error.largest);
  }
  std::printf("wrote          %s, %zu bytes and a header of %zu\n", command.out.c_str(),
              payload.size(), files::packed_header_bytes);
}

// The options of `pack`, and of `quantise`, which has no A.
void add_options(CLI::App& command, const std::shared_ptr<PackCommand>& options, bool quantises) {
  command.option_defaults()->group("Files");
  CLI::Option* const b =
      command
          .add_option("--b", options->b_file,
                      "B, K x N; .npy, a third, first dimension: several; or MODEL.gguf:TENSOR")
          ->type_name("FILE");
  if (quantises) {
    add_quantisation(command, "--format", options->codes,
                     "Codes, and what of B shares a scale: group=128 of K (or 32, 64, all), "
                     "columns=128 (or all); zeros: with zero points; scales=f32 (or f16, bf16)")
        ->required();
  } else {
    command.add_option("--a", options->a_file, "A, M x K; .npy")->type_name("FILE")->excludes(b);
  }
  command.add_option("--out", options->out, "Write the packed operand")
      ->type_name("FILE.vkp")
      ->required();
  command.add_flag("--bf16", options->bf16, "uint16 files hold the bits of bf16 values");
  command.option_defaults()->group("Generated operand");
  tool::add(command, options->product,
            quantises ? std::vector<std::string_view>{"n", "k", "batch"}
                      : std::vector<std::string_view>{"m", "n", "k", "batch", "f32_arithmetic",
                                                      "multiply_as"});
  add_type(command, "--dtype", options->type, "Element type (default f16)",
           quantises ? multiplies_codes : is_element);
  add_fill(command, options->fill);
  add_size(command, "--seed", options->seed, "Other seeds give other values", UINT64_MAX >> 1);
  if (!quantises) options->a.add(command, "a");
  options->b.add(command, "b");
  command.option_defaults()->group("Product");
  tool::add(command, options->product, {"gated"});
  if (!quantises) add_named(command, "--layout-d", options->layout_d, "Layout of D");
  command.option_defaults()->group("Execution");
  options->device.add(command);
  command.callback([options] { pack_file(*options); });
}

}  // namespace

void add_pack(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "pack", "Pack A or B once, in the order that this device's kernels load best, into a file");
  command.footer(
      "`vkgemm run` takes the file as --a or --b, on the same device and driver, for any M (of a "
      "packed A: any N), epilogue and groups: only type, N and K of B (M and K of A), --layout-d, "
      "and whether B holds both halves of a gated product must be alike. The order depends on the "
      "verdicts that `vkgemm info --self-test` keeps.");
  add_options(command, std::make_shared<PackCommand>(), false);
}

void add_quantise(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "quantise", "Quantise B once, pack its codes, and say how far from B they are");
  command.footer(
      "`vkgemm run` takes the file as --b, as it takes those of `vkgemm pack`. An element is "
      "scale * (code - zero), rounded to the type of B, which is A's. A group's largest magnitude "
      "becomes that of the codes.");
  add_options(command, std::make_shared<PackCommand>(), true);
}

}  // namespace vkgemm::tool
