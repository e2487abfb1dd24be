#include "trial.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

#include "../record.hpp"
#include "command_watch.hpp"
#include "harness.hpp"
#include "oracle/groups.hpp"
#include "problem/convert.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/resolve.hpp"
#include "problem/row_index.hpp"
#include "runtime/plan_impl.hpp"
#include "runtime/plan_internal.hpp"
#include "trial_operands.hpp"

namespace vkgemm::test {
namespace {

// That kernels touch what the problem says, by what they are known to do (kernel_accesses.hpp):
// each operand to its last byte, and nothing outside.
testing::AssertionResult touches_operands(const Plan& plan, const Operands& operands,
                                          const std::vector<Event>& events) {
  struct Touched {
    std::uint64_t begin = UINT64_MAX, end = 0;
    bool written = false;
  };
  const OperandList& all = InternalAccess::impl(plan).rules.operands();
  std::map<const Operand*, Touched> touched;
  for (const Event& event : events) {
    const auto* const command = std::get_if<Command>(&event);
    if (command == nullptr) continue;
    for (const Access& access : command->accesses) {
      if (access.region.is_empty() || access.what == "aborts") continue;
      bool inside = false;
      for (const Operand& operand : all) {
        const std::uint64_t begin = (operands.*operand.span).address;
        if (access.region.address < begin || access.region.end() > begin + operand.bytes) continue;
        inside = true;
        Touched& t = touched[&operand];
        t.begin = std::min(t.begin, access.region.address);
        t.end = std::max(t.end, access.region.end());
        t.written = t.written || access.writes;
      }
      if (!inside) {
        return testing::AssertionFailure()
               << command->name << " touches " << access.what << " outside of all operands";
      }
    }
  }
  for (const Operand& operand : all) {
    if (operand.span == &Operands::workspace || operand.bytes == 0) continue;
    const Touched& t = touched[&operand];
    // Of a packed operand not all of the padding.
    if (is_packed(plan.problem(), row_of(operand.id))) continue;
    if (t.end - t.begin == operand.bytes && (t.written || !operand.written)) continue;
    return testing::AssertionFailure()
           << operand.name << " has " << operand.bytes << " bytes, kernels "
           << (operand.written ? "write " : "read ") << t.end - t.begin;
  }
  return testing::AssertionSuccess();
}

// True if a step makes integers of integers.
bool is_exact(const EpilogueStep& step) {
  switch (step.op) {
    case StepOp::divide:
    case StepOp::function:
      return false;
    case StepOp::activate:
    case StepOp::derivative:
      return step.activation == Activation::relu || step.activation == Activation::abs ||
             step.activation == Activation::square || step.activation == Activation::leaky_relu;
    default:
      return true;
  }
}

bool has_exact_results(const Problem& problem) {
  if (!std::ranges::all_of(steps_of(problem.epilogue), is_exact)) return false;
  if (problem.gated) return problem.gated->gate == Gate::reglu;
  const Activation activation = problem.epilogue.activation;
  const auto& rows = problem.row_reduction;
  return (activation == Activation::none || activation == Activation::relu) &&
         (!rows || rows->op == RowOp::sum || rows->op == RowOp::max || rows->op == RowOp::amax);
}

}  // namespace

Trial::Trial(const Problem& problem, Fill fill, const TrialOptions& options)
    : problem_(problem), options_(options) {
  const PerOperand<std::uint64_t> bytes = operand_bytes(problem);
  for (const OperandRow& row : operand_rows()) {
    HostBuffer& buffer = host_[row.id];
    buffer = make_buffer(bytes[row.id], options.shift * size_in_bytes(type_of(row.id)));
    if (bytes[row.id] == 0 || row.is_written(problem_) || row.is_integer) continue;
    fill_operand(row.id, problem, fill, options.seed, buffer);
  }
  for (const OperandRow& row : operand_rows()) {
    if (!row.is_integer) continue;
    HostBuffer& numbers = host_[row.id];
    numbers = {};
    numbers.bytes.resize(margin);
    numbers.begin = margin;
    if (!problem.grouping || !row.exists(problem)) continue;
    const auto encoded = integers_of(row.id, problem, options.offsets);
    numbers.bytes.insert(numbers.bytes.end(), encoded.begin(), encoded.end());
    numbers.size = encoded.size();
  }
  if (!options.quantisation || is_empty(problem)) return;
  const Problem source = code_problem(problem, *options.quantisation);
  std::uint64_t seed = options.seed * 2;
  for (const OperandId id : {OperandId::b, OperandId::b_right}) {
    if (!row_of(id).exists(problem)) continue;
    codes_[id] = std::make_shared<oracle::CodeMatrix>(source);
    fill_codes(*codes_[id], problem, *options.quantisation, fill, seed++);
  }
  store_elements();
}

DataType Trial::type_of(OperandId id) const { return row_of(id).shape(problem_).matrix.type; }

void Trial::set(OperandId id, std::uint64_t row, std::uint64_t col, double element,
                std::uint64_t batch) {
  const OperandShape shape = row_of(id).shape(problem_);
  store_element(host_[id].data(), shape.matrix.type, shape.index(batch, row, col), element);
}

void Trial::set_byte(OperandId id, std::uint64_t row, std::uint64_t col, std::uint8_t code) {
  host_[id].data()[row_of(id).shape(problem_).index(0, row, col)] = static_cast<std::byte>(code);
}

void Trial::set_integer(OperandId id, std::uint64_t place, std::int64_t value) {
  const std::uint32_t size = row_of(id).shape(problem_).element();
  std::memcpy(host_[id].data() + place * size, &value, size);
}

double Trial::get(OperandId id, std::uint64_t row, std::uint64_t col, std::uint64_t batch) const {
  const OperandShape shape = row_of(id).shape(problem_);
  return load_element(host_[id].data(), shape.matrix.type, shape.index(batch, row, col));
}

void Trial::store_elements() {
  const OperandShape shape = row_of(OperandId::b).shape(problem_);
  for (const OperandRow& row : operand_rows()) {
    if (codes_[row.id] == nullptr) continue;
    std::vector<float>& exact = exact_[row.id];
    exact = codes_[row.id]->elements(problem_);
    each_element({.rows = shape.rows, .cols = shape.cols, .count = codes_[row.id]->matrices()},
                 [&](std::uint64_t b, std::uint64_t i, std::uint64_t j) {
                   set(row.id, i, j, static_cast<double>(exact[shape.index(b, i, j)]), b);
                 });
  }
}

Problem Trial::multiplied() const {
  Problem problem = problem_;
  if (rounds_b_) return problem;
  problem.b.type = DataType::f32;
  problem.quantised_b = options_.quantisation;
  return problem;
}

oracle::HostOperands Trial::host_operands() const {
  oracle::HostOperands out;
  for (const OperandRow& row : operand_rows()) {
    out[row.id] = host_[row.id].data();
    if (codes_[row.id] != nullptr && !rounds_b_) out[row.id] = exact_[row.id].data();
    // The reference has no such result then.
    if (row.is_written(problem_) && host_[row.id].size == 0) out[row.id] = nullptr;
  }
  return out;
}

HostBuffer Trial::poisoned(OperandId id) const {
  HostBuffer buffer = host_[id];
  if (options_.in_place && id == OperandId::d) {
    buffer.bytes = host_[OperandId::c].bytes;
  } else {
    std::ranges::fill(buffer.bytes, options_.poison);
  }
  return buffer;
}

Problem planned(Problem problem, const TrialOptions& options) {
  const auto pack = [&](Matrix& matrix) {
    const bool shared = matrix.batch_stride == std::uint64_t{0};
    matrix = {.type = matrix.type, .packing = options.packing};
    if (shared) matrix.batch_stride = 0;
  };
  if (options.packs_a) pack(problem.a);
  if (options.packs_b || options.quantisation) pack(problem.b);
  problem.quantised_b = options.quantisation;
  return problem;
}

Problem planned(const Problem& problem, TrialOptions options, const Config& config) {
  const bool fragments = descriptor(config).takes_fragments();
  if (fragments && options.packing == Packing::packed) options.packing = Packing::packed_fragments;
  return planned(problem, options);
}

testing::AssertionResult Trial::run(const Result<Plan>& plan) {
  if (!plan) return succeeds(plan);
  const Problem& asked = plan->problem();
  rounds_b_ = oracle::rounds_b(asked, plan->config());
  Operands operands;
  PerOperand<DeviceCopy> copies;
  PerOperand<PackedCopy> packed;
  for (const OperandRow& row : operand_rows()) {
    if (row.is_written(problem_)) host_[row.id] = poisoned(row.id);
    if (auto uploaded = copies[row.id].upload(device(), host_[row.id]); !uploaded) return uploaded;
    // Operands that the problem does not use stay unbound.
    if (!row.exists(problem_)) continue;
    operands.*row.span = copies[row.id].span();
    if (!is_packed(asked, row) || (is_quantised(asked, row) && codes_[row.id] == nullptr)) continue;
    Problem source = inner_part(problem_);
    source.batch *= problem_.outer_batch;  // as one batch
    const Packing packing = (asked.*row.matrix).packing;
    if (packing != Packing::packed) (source.*row.matrix).packing = packing;
    const auto done = codes_[row.id] != nullptr
                          ? packed[row.id].pack_codes(
                                device(), code_problem(source, *asked.quantised_b), *codes_[row.id])
                          : packed[row.id].pack(device(), source, packed_as(row),
                                                {.source = copies[row.id].span()});
    if (!done) return done;
    operands.*row.span = packed[row.id].span();
    operands.*row.fingerprint = packed[row.id].fingerprint();
  }
  if (options_.in_place) operands.c = operands.d;
  headless::Buffer workspace;
  if (plan->workspace_bytes() != 0) {
    auto made = device().allocate(plan->workspace_bytes());
    if (!made) return succeeds(made);
    workspace = std::move(*made);
    operands.workspace = workspace.span();
    // NaN in every type: nothing may be taken for zero that was not written.
    if (auto filled = device().fill(workspace, 0xffffffffu); !filled) return succeeds(filled);
  }
  const std::uint32_t dispatches = plan->dispatch_count();
  const std::uint32_t at_once = options_.in_pieces ? 1 : std::max(dispatches, 1U);
  std::vector<Event> events;
  for (std::uint32_t first = 0; first == 0 || first < dispatches; first += at_once) {
    const auto submitted = device().submit([&](VkCommandBuffer commands) {
      auto recorded = plan->record(
          commands, operands, {.first = first, .count = std::min(at_once, dispatches - first)});
      std::ranges::move(recorded_events(commands), std::back_inserter(events));
      return recorded;
    });
    if (!submitted) return succeeds(submitted);
  }
  if (auto touched = touches_operands(*plan, operands, events); !touched) return touched;
  if (problem_.grouping && plan->workspace_bytes() != 0) {
    const auto read = device().download(workspace, 0, &bad_group_, sizeof bad_group_);
    if (!read) return succeeds(read);
  }
  for (const OperandRow& row : operand_rows()) {
    if (!row.is_written(problem_)) continue;
    if (auto got = copies[row.id].download(device(), host_[row.id]); !got) return got;
  }
  if (records()) record_bits(plan->config());
  return testing::AssertionSuccess();
}

void Trial::record_bits(const Config& config) const {
  Hash operands, results;
  for (const OperandRow& row : operand_rows()) {
    (row.is_written(problem_) ? results : operands).add({host_[row.id].data(), host_[row.id].size});
  }
  record("bits " + results.text() + " from " + operands.text() + " by " + to_string(config) + ": " +
         to_command_line(planned(problem_, options_)));
}

headless::Runner& Trial::device() const { return options_.on != nullptr ? *options_.on : runner(); }

testing::AssertionResult Trial::run(const Config& config) {
  return run(device().context().plan(planned(problem_, options_, config), config));
}

testing::AssertionResult Trial::run(const Plan& plan) { return run(Result<Plan>(plan)); }

testing::AssertionResult Trial::is_exact() const {
  PerOperand<HostBuffer> expected;
  oracle::HostResults results;
  for (const OperandRow& row : operand_rows()) {
    if (!row.is_written(problem_)) continue;
    expected[row.id] = poisoned(row.id);
    if (row.exists(problem_)) results[row.id] = expected[row.id].data();
  }
  oracle::compute_reference(multiplied(), host_operands(), results, 1);
  for (const OperandRow& row : operand_rows()) {
    if (!row.is_written(problem_)) continue;
    if (auto same = same_bytes(row.name, host_[row.id], expected[row.id], type_of(row.id)); !same) {
      return same;
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult Trial::is_within_bound(oracle::Verify mode) const {
  const oracle::VerifyReport report =
      oracle::verify(multiplied(), host_operands(),
                     {.mode = mode, .threads = mode == oracle::Verify::full ? 1u : 0u});
  if (!report.passed()) {
    return testing::AssertionFailure() << report.failures << " of " << report.checked
                                       << " elements are wrong, first " << report.first_failure;
  }
  // Elements that were written may hold anything now: make them equal, and nothing else may differ.
  const auto clear = [](const OperandRow& row, const Problem& problem, HostBuffer& buffer,
                        std::uint64_t begin) {
    const OperandShape shape = row.shape(problem);
    each_element(shape, [&](std::uint64_t b, std::uint64_t i, std::uint64_t j) {
      store_element(buffer.data() + begin, shape.matrix.type, shape.index(b, i, j), 0.0);
    });
  };
  for (const OperandRow& row : operand_rows()) {
    if (!row.is_written(problem_)) continue;
    HostBuffer got = host_[row.id], before = poisoned(row.id);
    for (HostBuffer* buffer : {&got, &before}) {
      if (got.size == 0) continue;
      const bool is_sum = adds_rows(problem_.grouping) && row.id == OperandId::d;
      if (!oracle::has_products(problem_) || is_sum) {
        clear(row, problem_, *buffer, 0);
        continue;
      }
      for (const auto& group : oracle::products_of(multiplied(), host_operands())) {
        if (row.id == OperandId::d && !group.has_d) continue;
        clear(row, group.problem, *buffer, group.begins[row.id]);
      }
    }
    const std::string name = std::string(row.name) + ", outside its elements,";
    if (auto same = same_bytes(name, got, before, type_of(row.id)); !same) return same;
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult Trial::repeats(const Config& config) {
  const auto plan = device().context().plan(planned(problem_, options_, config), config);
  return plan ? repeats(*plan) : succeeds(plan);
}

testing::AssertionResult Trial::repeats(const Plan& plan) {
  const Trial first = *this;
  if (auto again = run(plan); !again) return again;
  return has_bits_of(first);
}

testing::AssertionResult Trial::has_bits_of(const Trial& first) const {
  for (const OperandRow& row : operand_rows()) {
    if (!row.is_written(problem_)) continue;
    const std::string name = std::string(row.name) + " of the second run";
    if (auto same = same_bytes(name, host_[row.id], first.host_[row.id], type_of(row.id)); !same) {
      return same;
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult passes_gates(const Config& config, const Problem& problem,
                                      const TrialOptions& options) {
  if (is_left_out(config, planned(problem, options, config))) return testing::AssertionSuccess();
  const auto with_context = [&](const char* gate, const testing::AssertionResult& result) {
    return testing::AssertionFailure()
           << gate << ": " << result.message() << "\n  " << describe(config, problem);
  };
  if (has_exact_results(problem)) {
    Trial trial(problem, Fill::integers, options);
    if (auto ran = trial.run(config); !ran) return with_context("integers", ran);
    if (auto exact = trial.is_exact(); !exact) return with_context("integers", exact);
  }
  Trial trial(problem, Fill::random, options);
  if (auto ran = trial.run(config); !ran) return with_context("random", ran);
  if (auto bounded = trial.is_within_bound(); !bounded) return with_context("random", bounded);
  if (auto same = trial.repeats(config); !same) return with_context("repeated", same);
  return testing::AssertionSuccess();
}

std::string describe(const Config& config, const Problem& problem) {
  return to_string(config) + "\n  " + to_command_line(problem);
}

Problem gemm(Shape shape, DataType input, DataType output) {
  return {.m = shape.m,
          .n = shape.n,
          .k = shape.k,
          .a = {.type = input},
          .b = {.type = input},
          .c = {.type = input},
          .d = {.type = output},
          .aux = {.type = output}};
}

Problem with_padding(Problem problem, std::uint64_t padding, bool aligned) {
  std::uint64_t times = 1;
  for (const OperandRow& row : operand_rows()) {
    if (row.matrix == nullptr || row.id == OperandId::b_right) continue;
    const OperandShape shape = row.shape(problem);
    const std::uint64_t extra = times++ * padding;
    Matrix& matrix = problem.*row.matrix;
    matrix.alignment = aligned ? 16 : shape.is_mask ? 4 : size_in_bytes(matrix.type);
    const bool is_tensor = row.written_by != nullptr;
    if (is_tensor && (shape.rows <= 1 || shape.cols <= 1)) continue;  // a vector, or none
    const std::uint64_t own = shape.is_mask ? 4 * extra : extra;      // lines of masks are words
    matrix.ld = std::max<std::uint64_t>(shape.length() + own, 1);
    if (shape.count > 1) matrix.batch_stride = *matrix.ld * shape.lines() + own;
  }
  return problem;
}

}  // namespace vkgemm::test
