// explain.cpp: what a plan tells people about itself.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "kernels/kernel_words.hpp"
#include "kernels/legality.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/part.hpp"
#include "kernels/parts/split_k.hpp"
#include "kernels/verdicts.hpp"
#include "problem/data_type.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/formula.hpp"
#include "problem/inputs/input.hpp"
#include "problem/operands.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/plan_impl.hpp"
#include "self_test/wanted_kinds.hpp"

namespace vkgemm {

namespace {

// How a kernel would like to access an operand: `elements` at once, in parts of at most 16 bytes.
std::string why_scalar(const ResolvedMatrix& matrix, std::uint64_t batch, std::uint32_t elements) {
  const std::uint32_t bytes = std::min(elements * size_in_bytes(matrix.type), 16u);
  if (matrix.alignment < bytes) {
    return concat("its alignment is ", matrix.alignment, ", not ", bytes);
  }
  const auto indivisible = [&](std::string_view name, std::uint64_t value) {
    return concat(name, " ", value, " is not a multiple of ", elements);
  };
  if (matrix.ld % elements != 0) return indivisible("ld", matrix.ld);
  if (matrix.contiguous() % elements != 0) {
    return indivisible(matrix.layout == Layout::row_major ? "row length" : "column length",
                       matrix.contiguous());
  }
  if (batch > 1 && matrix.batch_stride % elements != 0) {
    return indivisible("batch_stride", matrix.batch_stride);
  }
  return "this kernel has no use for vectors here";
}

std::string describe_matrix(std::string_view name, const ResolvedMatrix& matrix,
                            std::string_view how) {
  return concat("  ", name, ": ", to_string(matrix.type), " ", to_string(matrix.layout), ", ld ",
                matrix.ld, ", ", how, "\n");
}

std::string describe_access(std::string_view name, const ResolvedMatrix& matrix,
                            std::uint64_t batch, std::uint32_t elements, bool vector) {
  return describe_matrix(name, matrix,
                         vector
                             ? concat(elements, " elements at once")
                             : concat("element by element: ", why_scalar(matrix, batch, elements)));
}

// Names the configuration that operands in rows would have if they were packed again.
std::string packed_again(const Plan::Impl& plan) {
  ResolvedProblem problem = plan.resolved;
  for (ResolvedMatrix* matrix : {&problem.a, &problem.b}) {
    if (matrix->is_packed()) matrix->packing = Packing::packed;
  }
  const DeviceTables& tables = *plan.tables;
  if (tables.set_orders(problem, *plan.caps)) return {};
  const auto best = tables.best(problem, *plan.caps);
  if (!best || !descriptor(best->config).takes_fragments()) return {};
  return concat("; packed again, in fragments: ", to_string(best->config), ", estimate ",
                microseconds(best->cost));
}

// The matrices of steps. `key`: of the pipeline that has the steps; null: it takes elements one by
// one.
std::string describe_tensors(const ResolvedProblem& p, const PipelineKey* key) {
  std::string text;
  const auto steps = steps_of(p.epilogue);
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const auto tensor = tensor_of(steps[step]);
    if (!tensor || !has_elements(p.epilogue.tensors[*tensor])) continue;
    const std::string_view name = tensor_row(*tensor).name;
    const ResolvedMatrix& matrix = p.tensors[*tensor];
    if (p.epilogue.tensors[*tensor] == TensorShape::mask) {
      text += describe_matrix(name, matrix, "bits, in words of 32");
      continue;
    }
    if (key == nullptr) {
      text += describe_matrix(name, matrix, "element by element");
      continue;
    }
    const bool vector = (key->constants[SPEC_STEP0 + step] >> STEP_VECTOR_SHIFT & 1) != 0;
    text += describe_access(name, matrix, p.batch, 4, vector);
  }
  return text;
}

std::string describe_operands(const Plan::Impl& plan) {
  const ResolvedProblem& p = plan.resolved;
  const PipelineKey& product = plan.dispatch_plan.product.key;
  const PipelineKey& last = adds_in_product(plan.config)
                                ? product
                                : plan.dispatch_plan.after.front().key;  // has the epilogue
  const auto loads = [&](std::size_t id) { return product.constants[id] != 0; };
  const auto constant = [&](std::size_t id) { return last.constants[id] != 0; };
  // A second pass over rows stores D.
  const bool two_pass = plan.config.rows == RowStrategy::two_pass;
  const PipelineKey& stores = two_pass ? plan.dispatch_plan.after.back().key : last;
  // The widths that lowering decides by.
  const std::uint32_t load = load_bytes / size_in_bytes(p.input->multiplied);
  constexpr std::uint32_t epilogue = 4;
  std::string text;
  // nv reads C element by element whatever its alignment, and stores D and aux as whole matrices.
  const bool nv = !descriptor(plan.config).stores_x4 && adds_in_product(plan.config) && !two_pass;
  const auto describe_input = [&](std::string_view name, const ResolvedMatrix& matrix, bool copied,
                                  std::size_t id, bool allowed) {
    if (matrix.form == Form::given_packed) {
      return describe_matrix(
          name, matrix,
          concat("packed by the caller, in ",
                 matrix.fragments      ? "fragment order"
                 : matrix.quantisation ? "codes"
                                       : "rows",
                 matrix.packing == Packing::packed_rows ? packed_again(plan) : std::string()));
    }
    if (copied && p.k != 0) {
      const bool fragments = descriptor(plan.config).takes_fragments();
      return describe_matrix(name, matrix,
                             concat("packed in the workspace first, ",
                                    fragments ? "in fragment order, " : "", "by a dispatch"));
    }
    const bool has_vectors = matrix.allows_vectors(p.load_bytes_of(matrix));
    if (!allowed && has_vectors && &matrix == &p.b && !p.grouping) {
      return describe_matrix(name, matrix,
                             concat("element by element: its right half begins at element ",
                                    p.right_offset(), ", not a multiple of ", load));
    }
    if (!allowed && has_vectors) {
      return describe_matrix(name, matrix, "element by element: groups begin anywhere in its rows");
    }
    return describe_access(name, matrix, std::max(p.batch, p.summed), load, loads(id));
  };
  const Config& c = plan.config;
  text += describe_input(p.transposed ? "b^T" : "a", p.a, c.pack_a, SPEC_A_VECTOR,
                         p.a_allows_vectors());
  const std::string_view b = p.is_gated(GatedB::separate) ? "b, b_right" : "b";
  text +=
      describe_input(p.transposed ? "a^T" : b, p.b, c.pack_b, SPEC_B_VECTOR, p.b_allows_vectors());
  if (nv) {
    if (p.has_c()) text += describe_matrix("c", p.c, "element by element");
    text += describe_tensors(p, nullptr);
    text += describe_matrix("d", p.d, "stored as whole matrices");
    if (p.has_aux()) text += describe_matrix("aux", p.aux, "stored as whole matrices");
    return text;
  }
  if (p.has_c()) text += describe_access("c", p.c, p.batch, epilogue, constant(SPEC_C_VECTOR));
  text += describe_tensors(p, &last);
  if (p.has_d()) {
    const bool narrow = stores.constants[SPEC_NARROW_SLICES] != 0;
    text += describe_access("d", p.d, p.batch, narrow ? 2 * epilogue : epilogue,
                            stores.constants[SPEC_D_VECTOR] != 0);
  }
  if (p.has_aux()) {
    text += describe_access("aux", p.aux, p.batch, epilogue, constant(SPEC_AUX_VECTOR));
  }
  return text;
}

std::string shape_text(const TunedProblem& p) {
  std::string text = concat("m ", p.m, ", n ", p.n, ", k ", p.k);
  if (p.count != 1) text += concat(", ", p.count, " times");
  return text;
}

// True if the time is one of this very problem, as far as tables tell problems apart.
bool is_measured(const TunedShape& shape, const Plan::Impl& plan) {
  return shape.problem == tuned_problem(plan.resolved);
}

// The part that a loaded table, or a shape that was tuned, has in the choice.
std::string describe_tuning(const Plan::Impl& plan) {
  const DeviceTables& tables = *plan.tables;
  std::string text;
  const TuningTable* const table =
      plan.row != nullptr ? tables.loaded_table_of(*plan.row) : nullptr;
  if (table != nullptr) text += concat("  tuning table: ", table->source, "\n");
  if (!plan.overruled.empty()) text += concat("  ", plan.overruled, "\n");
  if (!plan.choice) return text;
  const auto nearest = tables.nearest(plan.resolved, *plan.caps);
  if (!nearest) return text;
  const TunedShape& shape = *nearest->shape;
  const bool chosen = plan.choice->tuned == nearest->shape;
  std::string measured = concat("measured ", microseconds(shape.microseconds));
  const std::string& device = nearest->table->device;
  if (!device.empty() && device != plan.caps->name) measured += concat(" on ", excerpt(device));
  if (is_measured(shape, plan)) {
    text += concat("  tuned: this shape, ", measured);
  } else if (nearest->distance == 0.0) {
    text += concat("  tuned: this shape with another epilogue, ", measured, " there");
  } else {
    const double rounded = std::round(nearest->distance * 100.0) / 100.0;
    text += concat("  nearest tuned shape: ", shape_text(shape.problem), ", ", rounded,
                   " doublings away, ", measured);
  }
  if (!chosen) {
    const bool limited = plan.resolved.max_dispatch_us > 0.0;
    // The estimate has no say at this very shape.
    const std::string_view reason =
        nearest->distance == 0.0 ? "its one dispatch exceeds max_dispatch_ms"
        : limited ? "by the estimate it is slower here, or its one dispatch exceeds max_dispatch_ms"
                  : "by the estimate it is slower here";
    text += concat("; not taken, since ", reason, ": ", to_string(shape.row.config));
  }
  return text + "\n";
}

// Products in another type than the inputs' are worth a line; both are exact.
std::string describe_conversion(const Plan::Impl& plan) {
  const Input& input = *plan.resolved.input;
  if (!takes_every_input(plan.config.main_loop()) || input.multiplied == input.accumulator) {
    return {};
  }
  std::string line = concat("  ", to_string(input.multiplied), " is widened to ",
                            to_string(input.accumulator), " and multiplied by fma (exact, slower)");
  if (input.matrix_units == MatrixUnits::listed_bfloat16 && !plan.caps->bf16_matrices) {
    line += ": no bf16 cooperative matrices on this device";
  }
  return line + "\n";
}

// Another arithmetic than ieee: its error, or why it isn't taken; and where ieee would be faster.
std::string describe_f32_arithmetic(const Plan::Impl& plan) {
  const Input& asked = input_of(plan.problem);
  if (asked.parts == 1) return {};
  const DeviceTables& tables = *plan.tables;
  if (plan.resolved.input != &asked) {
    const std::string line =
        concat("  f32 arithmetic: ieee in place of ", asked.arithmetic_name, ": ");
    const PathSupport& khr = plan.caps->path(Path::khr);
    if (!khr.available) return line + concat("path khr is off: ", khr.reason, "\n");
    return line + concat("no table has a configuration of khr_direct for ",
                         to_string(asked.multiplied),
                         " parts that is legal here, which takes a self-test\n");
  }
  std::string text = concat("  f32 arithmetic: ", asked.arithmetic_name, ", ", asked.products,
                            " products of ", to_string(asked.multiplied), " parts, ");
  if (asked.product_error == 0.0) {
    text += "which are exact\n";
  } else {
    text += concat("which err by 2^", std::ilogb(asked.product_error), " at most\n");
  }
  ResolvedProblem ieee = plan.resolved;
  ieee.input = &input_of(asked.given);
  if (ieee.a.is_packed() || ieee.b.is_packed() || !plan.estimate_us) return text;
  const auto best = tables.best(ieee, *plan.caps);
  if (best && best->cost < *plan.estimate_us) {
    text +=
        concat("  slower than ieee, which is estimated to take ", microseconds(best->cost), "\n");
  }
  return text;
}

// An estimate by another device's times is good for comparing configurations, not for a limit.
std::string describe_source(const Plan::Impl& plan) {
  if (plan.choice ? plan.choice->timed : !plan.times) return {};
  const std::string_view source = plan.tables->source_of_estimate(plan.config, plan.resolved);
  if (source.empty() || source.starts_with("measured: ")) return {};
  return concat("\n  the estimate rests on another device's times: ", source);
}

// How long dispatches take, if the problem limits that.
std::string describe_times(const Plan::Impl& plan) {
  if (!plan.times) return {};
  const DispatchTimes& times = *plan.times;
  std::string text =
      concat("  max_dispatch_ms ", plan.problem.max_dispatch_ms, ": ", plan.dispatch_count,
             plan.dispatch_count == 1 ? " dispatch" : " dispatches", " in all");
  if (!std::isfinite(times.longest)) {
    return text + (std::isfinite(plan.problem.estimate_scale)
                       ? ", as short as can be: there is no estimate\n"
                       : ", as short as can be: estimate_scale is not known\n");
  }
  text += concat(", at most ", microseconds(times.longest), " each by the estimate");
  if (const double scale = plan.problem.estimate_scale; scale != 1.0) {
    text += concat(" times estimate_scale ", scale);
  }
  if (!times.kept) {
    text += can_be_cut(plan.config)
                ? "; longer than wanted: workgroups that run at the same time, or wait for each "
                  "other, stay together"
                : "; longer than wanted: workgroups of this configuration can't be separated";
  }
  return text + "\n";
}

// The reason for the order in which a plan packs an operand.
std::string why_order(const Plan::Impl& plan) {
  const ResolvedMatrix& packed = *plan.packed;
  const DeviceTables& tables = *plan.tables;
  if (packed.packing != Packing::packed) return concat("packing is ", to_string(packed.packing));
  if (!packed.quantisation && !packed.input->packed_in_rows) {
    return concat(to_string(packed.input->given), " is packed in fragments only");
  }
  PackedOrder order = tables.order(packed, *plan.caps);
  if (order.row == nullptr && !order.rows_us) {
    order = tables.order(packed, hopeful(*plan.caps));
    if (order.row != nullptr)
      return "khr_direct, which takes fragments, has not passed a self-test";
    if (!order.rows_us)
      return "no tuning table has a configuration of khr_direct that is legal here";
  }
  if (!order.fragments_us || !order.rows_us) {
    return "the tuning table that proposes khr_direct has no estimates of both orders";
  }
  constexpr auto size = size_of_orders;
  return concat("a product of ", size, 'x', size, 'x', size, " is estimated to take ",
                microseconds(*order.fragments_us), " with fragments, ",
                microseconds(*order.rows_us), " with rows");
}

// A plan that prepares an operand.
std::string describe_step(const Plan::Impl& plan) {
  if (plan.dispatch_count == 0) return "nothing to do: record() records nothing\n";
  std::string text =
      concat("kernel ", plan.dispatch_plan.product.key.module, " on ", plan.caps->name, ", ",
             plan.dispatch_count, plan.dispatch_count == 1 ? " dispatch\n" : " dispatches\n");
  for (const Operand& operand : plan.rules.operands()) {
    if (operand.bytes == 0) continue;
    text += concat(operand.written ? "  writes " : "  reads ", operand.name, ": ", operand.bytes,
                   " bytes");
    if (operand.name == "packed") {
      text += concat(", in ", order_text(plan.layout.fingerprint), "\n  order: ", why_order(plan));
    }
    text += '\n';
  }
  return text;
}

std::string why_not(const Plan::Impl& plan, Path path) {
  const Context::Impl& context = *plan.context;
  const PathSupport& support = plan.caps->path(path);
  if (!support.available) return support.reason;
  const Input& input = *plan.resolved.input;
  const LoopDescriptor* first = nullptr;
  bool multiplied = false;
  for (const LoopDescriptor* loop : main_loops()) {
    if (path_of(loop->loop) != path) continue;
    if (first == nullptr) first = loop;
    multiplied = multiplied || multiplies(loop->loop, input, *plan.caps);
  }
  if (!multiplied) return why_not_multiplied(first->loop, input, *plan.caps);
  // With a lent queue, what is untested was not wanted: it is not faster, even if it passed.
  const DeviceCaps known = context.self_tester != nullptr ? hopeful(*plan.caps) : *plan.caps;
  for (const ScoredRow& scored : plan.tables->rank(plan.resolved, known)) {
    if (scored.row->config.path() != path) continue;
    if (!plan.choice) return "the caller chose the configuration";
    if (plan.choice->tuned != nullptr) {
      return "legal, but a tuned shape speaks for another: " + to_string(scored.config);
    }
    return "legal, but estimated to be slower: " + to_string(scored.config);
  }
  const std::string reason = plan.tables->why_not_path(path, plan.resolved, known);
  return reason.empty() ? "the tuning tables have no row for this problem" : reason;
}

}  // namespace

std::string Plan::Impl::provenance() const {
  if (row != nullptr) return provenance_of(*row, config, input_of(problem).multiplied);
  return "chosen by the caller, in no tuning table";
}

// Names a configuration that would be chosen if its kind had passed the self-test, which it needs.
std::string Plan::Impl::untested() const {
  if (!choice) return {};
  const auto best = tables->best(resolved, hopeful(*caps));
  if (!best || !descriptor(best->config).needs_verdict) return {};
  const auto reason = why_illegal(best->config, resolved, tables->target(*caps));
  if (!reason) return {};
  return concat("might be faster: ", to_string(best->config), "; ", *reason);
}

std::string Plan::Impl::command_line() const {
  if (!is_product) return {};
  std::string line = "vkgemm run " + to_command_line(problem);
  if (!resolved.is_empty()) line += " --config " + to_string(config);
  return line;
}

namespace {

// The place where an operand is rounded to the type that is multiplied.
std::string describe_conversions(const Plan::Impl& plan) {
  std::string text;
  const ResolvedProblem& p = plan.resolved;
  for (const bool of_a : {true, false}) {
    const ResolvedMatrix& operand = of_a ? p.a : p.b;
    if (!p.converts(operand)) continue;
    const bool copied = of_a ? plan.config.pack_a : plan.config.pack_b;
    text += concat("  ", of_a != p.transposed ? "a" : "b", " is ", to_string(operand.type),
                   is_byte(operand.type) ? ": converted to " : ": rounded to ",
                   to_string(p.input_type()),
                   copied ? " while it is packed\n" : " while it is loaded\n");
  }
  return text;
}

}  // namespace

std::string Plan::Impl::explain() const {
  if (!is_product) return describe_step(*this);
  const DeviceCaps& known = *caps;
  const ResolvedProblem& p = resolved;
  // The caller's M and N: a column-major D is computed as its transpose.
  std::string text = concat("m ", problem.m, ", n ", problem.n, ", k ", problem.k, ", batch ",
                            problem.batch, ", ", describe_inputs(problem, p.input_type()), " -> ",
                            to_string(problem.d.type), " on ", known.name, " (", known.architecture,
                            known.architecture_by_properties ? ", by its properties" : "", ")\n");
  if (problem.outer_batch != 1) {
    text += concat(
        "  outer batch ", problem.outer_batch, ": ",
        p.repeats == 1 ? "one batch of " : concat("computed ", p.repeats, " times, in batches of "),
        p.batch, "\n");
  }
  if (problem.sum_batch) {
    text += concat("  the batch is added up: ",
                   p.summed == 1 ? concat("one product of k ", p.k)
                                 : std::string("matrix by matrix, in each tile"),
                   "\n");
  }
  if (p.is_empty()) {
    const char* const zero = problem.m == 0                             ? "m"
                             : problem.n == 0                           ? "n"
                             : problem.batch == 0 && !problem.sum_batch ? "batch"
                             : problem.outer_batch == 0                 ? "outer_batch"
                                                                        : "grouping.groups";
    return text + concat("nothing to compute, because ", zero, " is 0: record() records nothing\n");
  }

  text += concat("path ", to_string(config.path()), ", configuration ", to_string(config), "\n");
  text += concat("  provenance: ", provenance(), "\n");
  text += describe_tuning(*this);
  if (p.has_steps()) text += formula(problem);
  if (const std::string line = untested(); !line.empty()) text += concat("  ", line, "\n");
  text += describe_f32_arithmetic(*this);
  text += describe_conversions(*this);
  if (p.transposed) {
    text += "  d is column-major: computed as its transpose, d^T = b^T a^T\n";
  }
  if (!p.transposed && p.has_d() && problem.d.layout == Layout::col_major) {
    text += concat("  d is column-major and ", p.rows ? "rows are reduced" : "columns are paired",
                   ": c, d and aux are accessed element by element\n");
  }
  std::uint64_t workgroups = 0;
  for (const Dispatch& dispatch : dispatch_plan.product.dispatches) {
    workgroups += std::uint64_t{dispatch.tiles} * dispatch.batches * dispatch.slices;
  }
  text += concat("  grid: ", workgroups, " workgroups of ", invocations(config), " invocations in ",
                 dispatch_plan.product.dispatches.size(),
                 dispatch_plan.product.dispatches.size() == 1 ? " dispatch" : " dispatches");
  if (known.limits.compute_units != 0) {
    text += concat(", on ", known.limits.compute_units, " compute units");
  }
  for (const Part* part : parts()) {
    const std::string line = part->describe(config, p, dispatch_plan);
    if (!line.empty()) text += "\n  " + line;
  }
  if (choice) {
    const char* const how = !choice->timed ? "estimate: "
                            : is_measured(*choice->tuned, *this)
                                ? "measured: "
                                : "measured with another epilogue: ";
    text += concat("\n  ", how, microseconds(choice->cost));
    if (choice->cost != choice->unsplit_cost) {
      text += concat(", in one slice ", microseconds(choice->unsplit_cost));
    }
  }
  text += describe_source(*this);
  text += concat("\n  shared memory: ", dispatch_plan.shared_memory_bytes, " of ",
                 known.limits.max_shared_memory_bytes,
                 " bytes, workspace: ", dispatch_plan.workspace.bytes, " bytes\n");
  if (dispatch_plan.product.in_memory) {
    text += concat(
        "  parameters: in the workspace, where a dispatch brings them before each kernel, "
        "since maxPushConstantsSize is ",
        known.limits.max_push_constant_bytes, "\n");
  }
  if (!specialises_modules()) {
    text += "  modules: not specialised, because VKGEMM_SPECIALISE is 0\n";
  }
  text += describe_times(*this);
  text += describe_conversion(*this);
  text += describe_operands(*this);
  for (const Path path : {Path::nv, Path::khr}) {
    if (path >= config.path()) break;
    text += concat("not ", to_string(path), ": ", why_not(*this, path), "\n");
  }
  for (const std::string& refused : refusals(p.input_type(), known)) {
    text += concat("refused: ", refused, "\n");
  }
  return text;
}

}  // namespace vkgemm
