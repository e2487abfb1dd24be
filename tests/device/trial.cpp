#include "trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <sstream>
#include <tuple>
#include <type_traits>

#include "../record.hpp"
#include "base/arithmetic.hpp"
#include "command_watch.hpp"
#include "harness.hpp"
#include "oracle/groups.hpp"
#include "problem/convert.hpp"
#include "runtime/plan_impl.hpp"
#include "runtime/plan_internal.hpp"

namespace vkgemm::test {
namespace {

using headless::Buffer;

// Where the elements of an operand stand.
struct View {
  const Matrix& matrix;
  std::uint64_t rows, cols, batch;

  bool row_major() const { return matrix.layout == Layout::row_major; }
  std::uint64_t ld() const { return matrix.ld.value_or(row_major() ? cols : rows); }
  std::uint64_t batch_stride() const {
    return matrix.batch_stride.value_or((row_major() ? rows : cols) * ld());
  }
  std::uint64_t index(std::uint64_t b, std::uint64_t i, std::uint64_t j) const {
    return b * batch_stride() + (row_major() ? i * ld() + j : j * ld() + i);
  }
  template <class Function>
  void each(const Function& function) const {
    for (std::uint64_t b = 0; b < batch; ++b) {
      for (std::uint64_t i = 0; i < rows; ++i) {
        for (std::uint64_t j = 0; j < cols; ++j) function(index(b, i, j));
      }
    }
  }
};

View view(const Problem& p, char operand) {
  const oracle::MatrixCounts counts(p);
  switch (operand) {
    case 'a':
      return {p.a, p.m, p.k, counts.a};
    case 'b':
    case 'r':
      return {p.b, p.k, oracle::columns_of_b(p), counts.b};
    case 'c':
      return {p.c, p.m, p.n, counts.d};
    case 'd':
      if (p.row_reduction && is_scalar(p.row_reduction->op) && !p.row_reduction->store_d) {
        return {p.d, 0, 0, 0};
      }
      return {p.d, p.m, p.n, counts.d};
    default:
      return {p.aux, p.m, oracle::product_columns(p), counts.d};
  }
}

HostBuffer make_operand(std::uint64_t size, DataType type, std::uint64_t shift) {
  return make_buffer(size, shift * size_in_bytes(type));
}

// Integers of all of the type, where random.
void fill_matrix(HostBuffer& buffer, const View& view, Fill fill, std::uint64_t seed) {
  const double times = view.matrix.type == DataType::s8 && fill == Fill::random ? 128.0 : 1.0;
  view.each([&](std::uint64_t index) {
    store_element(buffer.data(), view.matrix.type, index, times * fill_value(fill, seed, index));
  });
}

// Powers of two, where integers stay exact.
void fill_factors(HostBuffer& buffer, Fill fill, std::uint64_t seed) {
  for (std::uint64_t i = 0; i < buffer.size / sizeof(float); ++i) {
    const double value = fill_value(fill, seed, i);
    store_element(buffer.data(), DataType::f32, i,
                  fill == Fill::integers ? std::exp2(std::floor(value / 2.0)) : value);
  }
}

std::uint64_t bias_length(const Problem& p) {
  return p.epilogue.bias == Bias::along_n ? oracle::product_columns(p) : p.m;
}

// A copy of host memory on the device.
class DeviceCopy {
 public:
  testing::AssertionResult upload(headless::Runner& device, const HostBuffer& host) {
    auto made = device.allocate(host.bytes.size());
    if (!made) return succeeds(made);
    buffer_ = std::move(*made);
    span_ = buffer_.span(host.begin, host.size);
    return succeeds(device.upload(buffer_, 0, host.bytes.data(), host.bytes.size()));
  }
  testing::AssertionResult download(headless::Runner& device, HostBuffer& host) const {
    return succeeds(device.download(buffer_, 0, host.bytes.data(), host.bytes.size()));
  }
  DeviceSpan span() const { return span_; }

 private:
  Buffer buffer_;
  DeviceSpan span_;
};

// B before it is packed: codes with padding behind each line and matrix.
Problem code_problem(const Problem& problem, const Quantisation& quantisation) {
  const std::uint64_t unit = quantisation.layout == CodeLayout::ggml_blocks ? 32 : 2;
  const bool in_rows = problem.b.layout == Layout::row_major;
  const std::uint64_t columns = oracle::columns_of_b(problem);
  const std::uint64_t length = rounded_up(in_rows ? columns : problem.k, unit);
  const std::uint64_t lines = in_rows ? rounded_up(problem.k, unit) : columns;
  Problem out = problem;
  out.quantised_b = quantisation;
  out.b = {.type = problem.b.type, .layout = problem.b.layout, .ld = length + unit};
  if (oracle::MatrixCounts(problem).b > 1) out.b.batch_stride = lines * *out.b.ld + unit;
  if (problem.b.batch_stride == std::uint64_t{0}) out.b.batch_stride = 0;
  return out;
}

// Every element of a matrix of codes.
template <class Function>
void each_code(const oracle::CodeMatrix& codes, std::uint64_t k, const Function& function) {
  for (std::uint64_t b = 0; b < codes.matrices(); ++b) {
    for (std::uint64_t i = 0; i < k; ++i) {
      for (std::uint64_t j = 0; j < codes.columns(); ++j) function(b, i, j);
    }
  }
}

void fill_codes(oracle::CodeMatrix& codes, const Problem& problem, const Quantisation& q, Fill fill,
                std::uint64_t seed) {
  const bool random = fill == Fill::random;
  const std::uint64_t count = oracle::code_count(q.type);
  const auto number = [&](std::uint64_t kind, std::uint64_t b, std::uint64_t i, std::uint64_t j) {
    const double value =
        fill_value(Fill::random, seed * 8 + kind, (b * problem.k + i) * codes.columns() + j);
    return (value + 1.0) / 2.0;
  };
  // Of the group's first element.
  const auto of_group = [&](std::uint64_t kind, std::uint64_t b, std::uint64_t i, std::uint64_t j) {
    return number(kind, b, q.group_k == 0 ? 0 : i / q.group_k * q.group_k,
                  q.group_n == 0 ? 0 : j / q.group_n * q.group_n);
  };
  each_code(codes, problem.k, [&](std::uint64_t b, std::uint64_t i, std::uint64_t j) {
    const double scale = of_group(1, b, i, j);
    const double zero = q.zeros ? std::floor(3.0 + 10.0 * of_group(2, b, i, j)) : 0.0;
    if (q.zeros) codes.set_zero(b, i, j, static_cast<std::uint32_t>(zero));
    if (random) {
      const auto code = static_cast<std::uint32_t>(number(3, b, i, j) * static_cast<double>(count));
      const bool finite = std::isfinite(oracle::code_value(q.type, q.zeros, code));
      codes.set_code(b, i, j, finite ? code : 1);
      codes.set_scale(b, i, j, (0.25 + scale) / (q.type == CodeType::e5m2 ? 8192.0 : 64.0));
    } else {
      const double value = std::floor(7.0 * number(3, b, i, j)) - 3.0;
      codes.set_code(b, i, j, oracle::nearest_code(q.type, q.zeros, value + zero));
      codes.set_scale(b, i, j, std::exp2(std::floor(3.0 * scale) - 1.0));
    }
  });
}

// An operand in the form that plan_pack() gives it.
class PackedCopy {
 public:
  testing::AssertionResult pack_codes(headless::Runner& device, const Problem& problem,
                                      const oracle::CodeMatrix& codes) {
    CodeSpans source;
    DeviceCopy copies[3];
    std::size_t i = 0;
    for (const auto& [bytes, span, shift] :
         {std::tuple{&codes.codes, &source.codes, codes.source().codes.alignment},
          {&codes.scales, &source.scales, codes.source().scales.alignment},
          {&codes.zeros, &source.zeros, codes.source().zeros.alignment}}) {
      HostBuffer host = make_operand(bytes->size(), DataType::f32, 0);
      host.begin += shift;
      std::ranges::copy(*bytes, host.data());
      if (auto uploaded = copies[i].upload(device, host); !uploaded) return uploaded;
      *span = copies[i++].span();
    }
    return pack(device, problem, PackedOperand::b,
                [&](const PackPlan& plan, VkCommandBuffer commands) {
                  return plan.record_codes(commands, source, span());
                });
  }
  testing::AssertionResult pack(headless::Runner& device, const Problem& problem,
                                PackedOperand operand, DeviceSpan source) {
    return pack(device, problem, operand, [&](const PackPlan& plan, VkCommandBuffer commands) {
      return plan.record(commands, source, span());
    });
  }
  template <class Record>
  testing::AssertionResult pack(
      headless::Runner& device, const Problem& problem, PackedOperand operand,
      const Record& record) requires std::is_invocable_v<Record, const PackPlan&, VkCommandBuffer> {
    const auto plan = device.context().plan_pack(problem, operand);
    if (!plan) return succeeds(plan);
    layout_ = plan->layout();
    auto made = device.allocate(layout_.bytes);
    if (!made) return succeeds(made);
    buffer_ = std::move(*made);
    // NaN in every type: nothing may be taken for zero that was not written.
    if (auto filled = device.fill(buffer_, 0xffffffffu); !filled) return succeeds(filled);
    return succeeds(
        device.submit([&](VkCommandBuffer commands) { return record(*plan, commands); }));
  }
  DeviceSpan span() const { return buffer_.span(0, layout_.bytes); }
  const Fingerprint& fingerprint() const { return layout_.fingerprint; }

 private:
  Buffer buffer_;
  PackedLayout layout_;
};

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
    const Fingerprints& packed = InternalAccess::impl(plan).fingerprints;
    const bool is_b = operand.span == &Operands::b || operand.span == &Operands::b_right;
    if ((operand.span == &Operands::a && packed.a) || (is_b && packed.b)) continue;
    if (t.end - t.begin == operand.bytes && (t.written || !operand.written)) continue;
    return testing::AssertionFailure()
           << operand.name << " has " << operand.bytes << " bytes, kernels "
           << (operand.written ? "write " : "read ") << t.end - t.begin;
  }
  return testing::AssertionSuccess();
}

bool has_exact_results(const Problem& problem) {
  if (problem.gated) return problem.gated->gate == Gate::reglu;
  const Activation activation = problem.epilogue.activation;
  const auto& rows = problem.row_reduction;
  return (activation == Activation::none || activation == Activation::relu) &&
         (!rows || rows->op == RowOp::sum || rows->op == RowOp::max);
}

}  // namespace

// A small hash instead of a distribution of the standard library, whose values nobody promises.
double fill_value(Fill fill, std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = (seed << 48) + index;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  x ^= x >> 31;
  if (fill == Fill::integers) return static_cast<double>(x % 7) - 3.0;
  return static_cast<double>(x >> 11) * 0x1p-52 - 1.0;
}

Trial::Trial(const Problem& problem, Fill fill, const TrialOptions& options)
    : problem_(problem), options_(options) {
  const oracle::OperandBytes bytes = oracle::operand_bytes(problem);
  const Epilogue& epilogue = problem.epilogue;
  a_ = make_operand(bytes.a, problem.a.type, options.shift);
  b_ = make_operand(bytes.b, problem.b.type, options.shift);
  b_right_ = make_operand(bytes.b_right, problem.b.type, options.shift);
  c_ = make_operand(bytes.c, problem.c.type, options.shift);
  d_ = make_operand(bytes.d, problem.d.type, options.shift);
  aux_ = make_operand(bytes.aux, problem.aux.type, options.shift);
  bias_ = make_operand(bytes.bias, epilogue.bias_type, options.shift);
  row_scales_ = make_operand(bytes.row_scales, DataType::f32, options.shift);
  column_scales_ = make_operand(bytes.column_scales, DataType::f32, options.shift);
  fill_factors(row_scales_, fill, options.seed * 8 + 7);
  fill_factors(column_scales_, fill, options.seed * 8 + 9);
  const RowReduction rows = problem.row_reduction.value_or(RowReduction{});
  gamma_ = make_operand(bytes.row_vector, rows.vector_type, options.shift);
  beta_ = make_operand(bytes.row_vector, rows.vector_type, options.shift);
  row_values_ = make_operand(bytes.row_values, rows.value_type, options.shift);
  for (const auto& [buffer, at] : {std::pair{&gamma_, 5u}, {&beta_, 6u}}) {
    for (std::uint64_t j = 0; bytes.row_vector != 0 && j < problem.n; ++j) {
      store_element(buffer->data(), rows.vector_type, j,
                    fill_value(fill, options.seed * 8 + at, j));
    }
  }
  offsets_.bytes.resize(margin);
  offsets_.begin = margin;
  if (problem.grouping) {
    const auto encoded = oracle::encode_offsets(options.offsets, problem.grouping->offsets);
    offsets_.bytes.insert(offsets_.bytes.end(), encoded.begin(), encoded.end());
    offsets_.size = encoded.size();
  }
  if (bytes.d + bytes.row_values == 0) return;
  fill_matrix(a_, view(problem, 'a'), fill, options.seed * 4);
  fill_matrix(b_, view(problem, 'b'), fill, options.seed * 4 + 1);
  if (bytes.b_right != 0) {
    fill_matrix(b_right_, view(problem, 'r'), fill, options.seed * 4 + 2);
  }
  if (const auto& q = options.quantisation) {
    const Problem source = code_problem(problem, *q);
    const auto make = [&](std::uint64_t seed) {
      auto codes = std::make_shared<oracle::CodeMatrix>(source);
      fill_codes(*codes, problem, *q, fill, seed);
      return codes;
    };
    codes_ = make(options.seed * 2);
    if (bytes.b_right != 0) right_codes_ = make(options.seed * 2 + 1);
    store_elements();
  }
  if (epilogue.beta != 0.0f) fill_matrix(c_, view(problem, 'c'), fill, options.seed * 4 + 2);
  if (epilogue.bias != Bias::none) {
    const std::uint64_t count = problem.grouping ? problem.grouping->groups : problem.batch;
    for (std::uint64_t b = 0; b < count; ++b) {
      for (std::uint64_t i = 0; i < bias_length(problem); ++i) {
        const std::uint64_t index = b * epilogue.bias_batch_stride + i;
        store_element(bias_.data(), epilogue.bias_type, index,
                      fill_value(fill, options.seed * 4 + 3, index));
      }
    }
  }
}

void Trial::set(char operand, std::uint64_t row, std::uint64_t col, double element,
                std::uint64_t batch) {
  if (operand == 'v') {
    const Epilogue& epilogue = problem_.epilogue;
    const std::uint64_t index = batch * epilogue.bias_batch_stride + (row != 0 ? row : col);
    store_element(bias_.data(), epilogue.bias_type, index, element);
    return;
  }
  if (operand == 'g' || operand == 's') {
    store_element((operand == 'g' ? gamma_ : beta_).data(), problem_.row_reduction->vector_type,
                  col, element);
    return;
  }
  if (operand == 'm' || operand == 'n') {
    store_element((operand == 'm' ? row_scales_ : column_scales_).data(), DataType::f32,
                  operand == 'm' ? row : col, element);
    return;
  }
  const View where = view(problem_, operand);
  HostBuffer& buffer = operand == 'a' ? a_ : operand == 'b' ? b_ : operand == 'r' ? b_right_ : c_;
  store_element(buffer.data(), where.matrix.type, where.index(batch, row, col), element);
}

void Trial::store_elements() {
  const oracle::View where = oracle::view(problem_.b, problem_.k, oracle::columns_of_b(problem_),
                                          oracle::MatrixCounts(problem_).b);
  const auto store = [&](const oracle::CodeMatrix* codes, HostBuffer& rounded,
                         std::vector<float>& exact) {
    if (codes == nullptr) return;
    exact = codes->elements(problem_);
    each_code(*codes, problem_.k, [&](std::uint64_t b, std::uint64_t i, std::uint64_t j) {
      const std::uint64_t index = where.index(b, i, j);
      store_element(rounded.data(), problem_.b.type, index, static_cast<double>(exact[index]));
    });
  };
  store(codes_.get(), b_, exact_b_);
  store(right_codes_.get(), b_right_, exact_right_);
}

Problem Trial::multiplied() const {
  Problem problem = problem_;
  if (!rounds_b_) problem.b.type = DataType::f32;
  return problem;
}

oracle::HostOperands Trial::host_operands() const {
  const auto b = [this](const HostBuffer& rounded, const std::vector<float>& exact) {
    return rounds_b_ ? static_cast<const void*>(rounded.data()) : exact.data();
  };
  return {.a = a_.data(),
          .b = b(b_, exact_b_),
          .c = c_.data(),
          .bias = bias_.data(),
          .offsets = offsets_.data(),
          .gamma = gamma_.data(),
          .beta = beta_.data(),
          .b_right = b(b_right_, exact_right_),
          .row_scales = row_scales_.data(),
          .column_scales = column_scales_.data()};
}

HostBuffer Trial::poisoned(const HostBuffer& like) const {
  HostBuffer buffer = like;
  if (options_.in_place && &like == &d_) {
    buffer.bytes = c_.bytes;
  } else {
    std::ranges::fill(buffer.bytes, options_.poison);
  }
  return buffer;
}

Problem planned(Problem problem, const TrialOptions& options) {
  const auto pack = [](Matrix& matrix) {
    const bool shared = matrix.batch_stride == std::uint64_t{0};
    matrix = {.type = matrix.type, .packing = Packing::packed};
    if (shared) matrix.batch_stride = 0;
  };
  if (options.packs_a) pack(problem.a);
  if (options.packs_b || options.quantisation) pack(problem.b);
  problem.quantised_b = options.quantisation;
  return problem;
}

testing::AssertionResult Trial::run(const Result<Plan>& plan) {
  if (!plan) return succeeds(plan);
  rounds_b_ = oracle::rounds_b(plan->problem(), plan->config());
  d_ = poisoned(d_);
  aux_ = poisoned(aux_);
  row_values_ = poisoned(row_values_);
  DeviceCopy a, b, b_right, c, d, aux, bias, offsets, gamma, beta, row_values, row_scales,
      column_scales;
  for (const auto& [copy, host] : {std::pair{&a, &a_},
                                   {&b, &b_},
                                   {&b_right, &b_right_},
                                   {&c, &c_},
                                   {&d, &d_},
                                   {&aux, &aux_},
                                   {&bias, &bias_},
                                   {&offsets, &offsets_},
                                   {&gamma, &gamma_},
                                   {&beta, &beta_},
                                   {&row_scales, &row_scales_},
                                   {&column_scales, &column_scales_},
                                   {&row_values, &row_values_}}) {
    if (auto uploaded = copy->upload(device(), *host); !uploaded) return uploaded;
  }
  const Epilogue& epilogue = problem_.epilogue;
  Operands operands{.a = a.span(), .b = b.span(), .d = d.span()};
  // Operands that the problem does not use stay unbound.
  if (b_right_.size != 0) operands.b_right = b_right.span();
  if (epilogue.beta != 0.0f) operands.c = options_.in_place ? d.span() : c.span();
  if (epilogue.aux) operands.aux = aux.span();
  if (epilogue.bias != Bias::none) operands.bias = bias.span();
  if (epilogue.row_scales != Scales::none) operands.row_scales = row_scales.span();
  if (epilogue.column_scales != Scales::none) operands.column_scales = column_scales.span();
  if (problem_.grouping) operands.offsets = offsets.span();
  if (const auto& rows = problem_.row_reduction) {
    if (rows->gamma) operands.gamma = gamma.span();
    if (rows->beta) operands.beta = beta.span();
    if (is_scalar(rows->op)) operands.row_values = row_values.span();
    if (is_scalar(rows->op) && !rows->store_d) operands.d = {};
  }
  PackedCopy packed_a, packed_b, packed_right;
  if (options_.packs_a) {
    if (auto packed = packed_a.pack(device(), problem_, PackedOperand::a, operands.a); !packed)
      return packed;
    operands.a = packed_a.span();
    operands.a_fingerprint = packed_a.fingerprint();
  }
  if (const auto& q = options_.quantisation) {
    const Problem source = code_problem(problem_, *q);
    if (codes_ != nullptr) {
      if (auto packed = packed_b.pack_codes(device(), source, *codes_); !packed) return packed;
      operands.b = packed_b.span();
      operands.b_fingerprint = packed_b.fingerprint();
    }
    if (right_codes_ != nullptr) {
      if (auto packed = packed_right.pack_codes(device(), source, *right_codes_); !packed)
        return packed;
      operands.b_right = packed_right.span();
      operands.b_right_fingerprint = packed_right.fingerprint();
    }
  }
  if (options_.packs_b) {
    if (auto packed = packed_b.pack(device(), problem_, PackedOperand::b, operands.b); !packed)
      return packed;
    operands.b = packed_b.span();
    operands.b_fingerprint = packed_b.fingerprint();
  }
  if (options_.packs_b && operands.b_right.bytes != 0) {
    const DeviceSpan right = operands.b_right;
    if (auto packed = packed_right.pack(device(), problem_, PackedOperand::b, right); !packed)
      return packed;
    operands.b_right = packed_right.span();
    operands.b_right_fingerprint = packed_right.fingerprint();
  }
  Buffer workspace;
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
  if (auto got = d.download(device(), d_); !got) return got;
  if (auto got = row_values.download(device(), row_values_); !got) return got;
  if (auto got = aux.download(device(), aux_); !got) return got;
  if (records()) record_bits(plan->config());
  return testing::AssertionSuccess();
}

void Trial::record_bits(const Config& config) const {
  Hash operands, results;
  for (const HostBuffer* operand : {&a_, &b_, &b_right_, &c_, &bias_, &offsets_, &gamma_, &beta_,
                                    &row_scales_, &column_scales_}) {
    operands.add({operand->data(), operand->size});
  }
  for (const HostBuffer* result : {&d_, &aux_, &row_values_}) {
    results.add({result->data(), result->size});
  }
  record("bits " + results.text() + " from " + operands.text() + " by " + to_string(config) + ": " +
         to_command_line(planned(problem_, options_)));
}

headless::Runner& Trial::device() const { return options_.on != nullptr ? *options_.on : runner(); }

testing::AssertionResult Trial::run(const Config& config) {
  return run(device().context().plan(planned(problem_, options_), config));
}

testing::AssertionResult Trial::run(const Plan& plan) { return run(Result<Plan>(plan)); }

testing::AssertionResult Trial::is_exact() const {
  HostBuffer d = poisoned(d_);
  HostBuffer aux = poisoned(aux_);
  HostBuffer row_values = poisoned(row_values_);
  oracle::compute_reference(multiplied(), host_operands(), d.data(),
                            problem_.epilogue.aux ? aux.data() : nullptr, 1, row_values.data());
  if (auto same = same_bytes("d", d_, d, problem_.d.type); !same) return same;
  if (auto same = same_bytes("row_values", row_values_, row_values, value_type()); !same) {
    return same;
  }
  return same_bytes("aux", aux_, aux, problem_.aux.type);
}

testing::AssertionResult Trial::is_within_bound(oracle::Verify mode) const {
  const void* aux = problem_.epilogue.aux ? aux_.data() : nullptr;
  const oracle::VerifyReport report = oracle::verify(
      multiplied(), host_operands(), d_.data(), aux,
      {.mode = mode, .threads = mode == oracle::Verify::full ? 1u : 0u}, row_values_.data());
  if (!report.passed()) {
    return testing::AssertionFailure() << report.failures << " of " << report.checked
                                       << " elements are wrong, first " << report.first_failure;
  }
  // Elements that were written may hold anything now: make them equal, and nothing else may differ.
  HostBuffer d = d_, d_before = poisoned(d_);
  HostBuffer x = aux_, x_before = poisoned(aux_);
  const auto clear = [](const View& where, HostBuffer& buffer, std::uint64_t begin) {
    where.each([&](std::uint64_t index) {
      store_element(buffer.data() + begin, where.matrix.type, index, 0.0);
    });
  };
  const auto equalise = [&](char operand, HostBuffer& got, HostBuffer& before) {
    for (HostBuffer* buffer : {&got, &before}) {
      if (!problem_.grouping) {
        clear(view(problem_, operand), *buffer, 0);
        continue;
      }
      for (const auto& group : oracle::products_of(multiplied(), host_operands())) {
        clear(view(group.problem, operand), *buffer, operand == 'd' ? group.d : group.aux);
      }
    }
  };
  if (d_.size != 0) equalise('d', d, d_before);
  if (aux_.size != 0) equalise('x', x, x_before);
  if (auto same = same_bytes("d, outside its elements,", d, d_before, problem_.d.type); !same) {
    return same;
  }
  HostBuffer values = row_values_, values_before = poisoned(row_values_);
  for (HostBuffer* buffer : {&values, &values_before}) {
    std::fill_n(buffer->data(), buffer->size, std::byte{0});
  }
  if (auto same =
          same_bytes("row_values, outside its elements,", values, values_before, value_type());
      !same) {
    return same;
  }
  return same_bytes("aux, outside its elements,", x, x_before, problem_.aux.type);
}

testing::AssertionResult Trial::repeats(const Config& config) {
  const auto plan = device().context().plan(planned(problem_, options_), config);
  return plan ? repeats(*plan) : succeeds(plan);
}

testing::AssertionResult Trial::repeats(const Plan& plan) {
  const Trial first = *this;
  if (auto again = run(plan); !again) return again;
  return has_bits_of(first);
}

testing::AssertionResult Trial::has_bits_of(const Trial& first) const {
  if (auto same = same_bytes("d of the second run", d_, first.d_, problem_.d.type); !same) {
    return same;
  }
  if (auto same =
          same_bytes("row_values of the second run", row_values_, first.row_values_, value_type());
      !same) {
    return same;
  }
  return same_bytes("aux of the second run", aux_, first.aux_, problem_.aux.type);
}

double Trial::d(std::uint64_t row, std::uint64_t col, std::uint64_t batch) const {
  return load_element(d_.data(), problem_.d.type, view(problem_, 'd').index(batch, row, col));
}
double Trial::row_value(std::uint64_t row, std::uint64_t batch) const {
  return load_element(row_values_.data(), value_type(), batch * problem_.m + row);
}
DataType Trial::value_type() const {
  return problem_.row_reduction.value_or(RowReduction{}).value_type;
}
double Trial::aux(std::uint64_t row, std::uint64_t col, std::uint64_t batch) const {
  return load_element(aux_.data(), problem_.aux.type, view(problem_, 'x').index(batch, row, col));
}

testing::AssertionResult passes_gates(const Config& config, const Problem& problem,
                                      const TrialOptions& options) {
  if (is_left_out(config, planned(problem, options))) return testing::AssertionSuccess();
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
  const oracle::MatrixCounts counts(problem);
  const auto pad = [&](Matrix& matrix, std::uint64_t rows, std::uint64_t cols, std::uint64_t extra,
                       std::uint64_t count) {
    const bool row_major = matrix.layout == Layout::row_major;
    const std::uint64_t length = row_major ? cols : rows;
    matrix.ld = std::max<std::uint64_t>(length + extra, 1);
    if (count > 1) matrix.batch_stride = *matrix.ld * (row_major ? rows : cols) + extra;
    matrix.alignment = aligned ? 16 : size_in_bytes(matrix.type);
  };
  pad(problem.a, problem.m, problem.k, padding, counts.a);
  pad(problem.b, problem.k, oracle::columns_of_b(problem), padding * 2, counts.b);
  pad(problem.c, problem.m, problem.n, padding * 3, counts.d);
  pad(problem.d, problem.m, problem.n, padding * 4, counts.d);
  pad(problem.aux, problem.m, oracle::product_columns(problem), padding * 5, counts.d);
  return problem;
}

}  // namespace vkgemm::test
