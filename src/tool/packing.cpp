#include "tool/packing.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include "base/arithmetic.hpp"
#include "base/parallel.hpp"
#include "base/text.hpp"
#include "oracle/groups.hpp"
#include "oracle/quantised.hpp"
#include "problem/convert.hpp"
#include "problem/enumerators.hpp"
#include "tool/options.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

// The other members say how a plain matrix lies.
Matrix in_rows(const Matrix& matrix, Packing packing) {
  Matrix out{.type = matrix.type, .packing = packing};
  if (matrix.batch_stride == std::uint64_t{0}) out.batch_stride = 0;  // one for all
  if (matrix.outer_batch_stride == std::uint64_t{0}) out.outer_batch_stride = 0;
  return out;
}

// The layout that codes have, or else the given one.
Layout layout_of(const Quantisation& quantisation, Layout given) {
  switch (with_group(quantisation).layout) {
    case CodeLayout::separate:
      return given;
    case CodeLayout::ggml_blocks:
      return Layout::col_major;
    default:
      return Layout::row_major;
  }
}

// The codes of all matrices that differ, as one batch.
void merge_batches(Problem& source, const Problem& problem) {
  if (problem.outer_batch == 1) return;
  const auto differ = [](std::optional<std::uint64_t> stride, std::uint64_t count) {
    return stride == std::uint64_t{0} ? 1 : count;
  };
  source.batch = differ(problem.b.batch_stride, problem.batch) *
                 differ(problem.b.outer_batch_stride, problem.outer_batch);
  source.outer_batch = 1;
  source.b.batch_stride.reset();
}

// The findings of one thread.
struct Quantised {
  QuantisationErrors errors;
  std::string refused;  // the first element that has no code, and why
};

// B as codes. `source`: how the elements would lie if they were packed by themselves.
oracle::CodeMatrix quantise(const Problem& problem, const Problem& source,
                            std::span<std::byte> elements, QuantisationError& error) {
  const std::uint64_t columns = columns_of_b(problem);
  const OperandShape shape = row_of(OperandId::b).shape(problem);
  oracle::CodeMatrix codes(source);
  // Threads take rows of all matrices.
  const std::uint64_t rows = codes.matrices() * problem.k;
  const std::uint64_t threads = std::clamp<std::uint64_t>(
      rows * columns / 65536, 1, std::max(1U, std::thread::hardware_concurrency()));
  std::vector<Quantised> parts(threads);
  const auto each = [&](const auto& function) {
    on_threads(threads, [&](std::uint64_t t) {
      for (std::uint64_t row = rows * t / threads; row < rows * (t + 1) / threads; ++row) {
        for (std::uint64_t n = 0; n < columns; ++n) {
          function(parts[t], row / problem.k, row % problem.k, n);
          if (!parts[t].refused.empty()) return;
        }
      }
    });
    for (const Quantised& part : parts) {
      if (!part.refused.empty()) throw Failure(usage_error, part.refused);
    }
  };
  const auto element = [&](std::uint64_t matrix, std::uint64_t k, std::uint64_t n) {
    const std::uint64_t i = oracle::matrix_of(shape, matrix);
    return load_element(elements.data(), shape.matrix.type, shape.index(i, k, n));
  };
  const auto refuse = [](Quantised& part, std::uint64_t matrix, std::uint64_t k, std::uint64_t n,
                         double value, std::string_view why) {
    part.refused = concat("b[", matrix, ", ", k, ", ", n, "] is ", value, why);
  };
  // Found first, since it spoils what shares its scale.
  each([&](Quantised& part, std::uint64_t matrix, std::uint64_t k, std::uint64_t n) {
    const double value = element(matrix, k, n);
    if (std::isfinite(value)) return;
    refuse(part, matrix, k, n, value, ": what is quantised must be finite");
  });
  codes.quantise(element);
  each([&](Quantised& part, std::uint64_t matrix, std::uint64_t k, std::uint64_t n) {
    const double before = element(matrix, k, n);
    store_element(elements.data(), shape.matrix.type,
                  shape.index(oracle::matrix_of(shape, matrix), k, n),
                  static_cast<double>(codes.element(matrix, k, n)));
    const double difference = std::fabs(element(matrix, k, n) - before);
    if (!std::isfinite(difference)) {
      refuse(part, matrix, k, n, before,
             ": the scale of its group, or what it gives, is too large");
    }
    part.errors.add(before, difference);
  });
  QuantisationErrors errors;
  for (const Quantised& part : parts) errors.add(part.errors);
  error = errors.all();
  return codes;
}

}  // namespace

void PackOptions::add(CLI::App& app) {
  const auto add_operand = [&](const std::string& name, Packing& packing, const std::string& help) {
    app.add_flag_callback(
        name, [&packing] { packing = Packing::packed; }, help);
    CLI::Option* const rows = app.add_flag_callback(
        name + "-rows", [&packing] { packing = Packing::packed_rows; },
        "The same in rows, which every main loop but khr_direct reads");
    app.add_flag_callback(
           name + "-fragments", [&packing] { packing = Packing::packed_fragments; },
           "The same in fragments, which khr_direct alone reads")
        ->excludes(name)
        ->excludes(rows->excludes(name));
  };
  add_operand("--packed-a", a,
              "A plain A is packed first, once, in the order that kernels load best: layout, "
              "leading dimension and strides are those of what is packed");
  add_operand("--packed-b", b, "A plain B is packed first, once, likewise");
  add_quantisation(app, "--quantised-b", codes,
                   "A plain B is quantised and packed first, once; its elements are those that the "
                   "codes stand for");
}

Problem PackOptions::packed(const Problem& source) const {
  Problem out = source;
  if (a != Packing::plain) out.a = in_rows(source.a, a);
  if (b != Packing::plain) out.b = in_rows(source.b, b);
  if (b == Packing::plain && codes) out.b = in_rows(source.b, Packing::packed);
  out.quantised_b = codes;
  return out;
}

Problem to_be_packed(Problem source, const Problem& packed) {
  for (Matrix Problem::*const matrix : {&Problem::a, &Problem::b}) {
    const Packing packing = (packed.*matrix).packing;
    (source.*matrix).packing = packing == Packing::packed ? Packing::plain : packing;
  }
  source.quantised_b = packed.quantised_b;
  return source;
}

Problem plain(const Problem& problem) {
  Problem out = problem;
  for (Matrix* matrix : {&out.a, &out.b}) {
    if (matrix->packing != Packing::plain) *matrix = in_rows(*matrix, Packing::plain);
  }
  out.quantised_b.reset();
  return out;
}

std::string packed_operands(const Problem& problem) {
  return std::string(problem.a.packing != Packing::plain ? "a" : "") +
         (problem.b.packing != Packing::plain ? "b" : "") +
         (problem.quantised_b ? " " + to_string(*problem.quantised_b) : "");
}

std::string_view name_of(PackedOperand operand) { return operand == PackedOperand::a ? "a" : "b"; }

Operands DeviceOperands::operands() const {
  Operands out{.workspace = workspace.span()};
  for (const OperandRow& row : operand_rows()) {
    const std::optional<PackedBuffer>& form = packed[row.id];
    out.*row.span = form ? form->span() : plain[row.id].span();
    if (form) out.*row.fingerprint = form->layout.fingerprint;
  }
  return out;
}

Packed pack(headless::Runner& runner, const Problem& problem, PackedOperand operand,
            std::span<std::byte> elements, DeviceSpan plain, std::span<const std::byte> blocks) {
  Problem source = problem;
  const bool quantised = operand == PackedOperand::b && problem.quantised_b;
  if (quantised) {
    source.b = {.type = problem.b.type,
                .layout = layout_of(*problem.quantised_b, problem.b.layout),
                .batch_stride = problem.b.batch_stride,
                .packing = problem.b.packing};
    if (source.b.batch_stride != std::uint64_t{0}) source.b.batch_stride.reset();
    merge_batches(source, problem);
  } else {
    source.quantised_b.reset();
  }
  const Plan plan = unwrap(runner.context().plan_pack(source, operand));
  Packed out{.form = {.layout = plan.layout(), .buffer = {}}};
  const std::uint64_t bytes = out.form.layout.bytes;
  if (bytes == 0) return out;
  out.form.buffer = unwrap(runner.allocate(bytes));
  DeviceOperands arrays;
  const auto bring = [&](OperandId id, std::span<const std::byte> from, std::uint64_t size) {
    headless::Buffer& buffer = arrays.plain[id];
    buffer = unwrap(runner.allocate(size));
    unwrap(runner.upload(buffer, 0, from.data(), std::min<std::uint64_t>(size, from.size())));
  };
  if (quantised) {
    if (blocks.empty()) {
      out.codes = quantise(problem, source, elements, out.error);
    } else {
      out.codes.emplace(source).codes.assign(blocks.begin(), blocks.end());
    }
    for (const auto& [id, array] : {std::pair{OperandId::codes, &out.codes->codes},
                                    {OperandId::scales, &out.codes->scales},
                                    {OperandId::zeros, &out.codes->zeros}}) {
      bring(id, *array, rounded_up(array->size(), 4));
    }
  } else if (plain.bytes == 0) {
    bring(OperandId::source, elements, plan.operands().source.bytes);
  }
  Operands operands = arrays.operands();
  if (plain.bytes != 0 && !quantised) operands.source = plain;
  operands.packed = out.form.span();
  unwrap(runner.fill(out.form.buffer, 0));  // bytes after the last matrix are not written
  unwrap(runner.submit([&](VkCommandBuffer commands) { return plan.record(commands, operands); }));
  return out;
}

// "int8|…|nvfp4[:group=K]… or q4_1|…": types whose codes may lie in arrays have options.
std::string formats() {
  std::string arrays, blocks;
  for (unsigned i = 0; is_enumerator(static_cast<CodeType>(i)); ++i) {
    const auto type = static_cast<CodeType>(i);
    std::string& names = form_of(type).has_arrays ? arrays : blocks;
    names += concat(names.empty() ? "" : "|", to_string(type));
  }
  return concat(arrays, "[:group=K][:columns=N][:zeros|:float_zeros][:scales=TYPE]",
                "[:ggml|:gptq|:gptq_v2|:awq] or ", blocks);
}

CLI::Option* add_quantisation(CLI::App& app, const std::string& names,
                              std::optional<Quantisation>& value, const std::string& help) {
  return app
      .add_option_function<std::string>(
          names,
          [&value, names](const std::string& text) {
            const Result<Quantisation> parsed = parse_quantisation(text);
            if (!parsed) {
              throw CLI::ValidationError(names,
                                         parsed.error().message + suggestion(text, formats()));
            }
            value = *parsed;
          },
          help)
      ->type_name(formats());
}

PackedBuffer prepare_loading(headless::Runner& runner, const Problem& problem,
                             const std::string& file, const files::PackedHeader& header,
                             std::uint64_t payload_bytes) {
  PackedBuffer out;
  out.layout = unwrap(runner.context().packed_layout(problem, header.operand));
  if (const std::string other = difference(header.fingerprint, out.layout.fingerprint);
      !other.empty()) {
    const bool by_verdicts = other.starts_with("order");
    throw Failure(usage_error, file + ": packed for " + header.device + ", " + header.driver +
                                   ": " + other + ": pack it again for this product and device" +
                                   (by_verdicts ? ", or try `vkgemm info --self-test` again" : ""));
  }
  if (payload_bytes != out.layout.bytes) {
    throw Failure(usage_error, file + ": payload is " + std::to_string(payload_bytes) +
                                   " bytes, wanted is " + std::to_string(out.layout.bytes));
  }
  out.buffer = unwrap(runner.allocate(out.layout.bytes));
  return out;
}

}  // namespace vkgemm::tool
