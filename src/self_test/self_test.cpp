// self_test.cpp: what is tried on a device: kinds of kernels, a configuration for each, its
// products.
#include "self_test/self_test.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/arithmetic.hpp"
#include "base/enum_names.hpp"
#include "base/text.hpp"
#include "kernels/legality.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/steps.hpp"
#include "problem/resolve.hpp"
#include "tuning/device_tables.hpp"
#include "tuning/table.hpp"

namespace vkgemm {
namespace {

constexpr std::array both_layouts = {Layout::row_major, Layout::col_major};

constexpr std::array<std::string_view, 8> outcome_names = {
    "passed",    "wrong_result", "driver_error", "device_lost",
    "timed_out", "crashed",      "unusable",     "untested"};

// For tiles of these sizes: several tiles, the last ones cut off.
Problem product(const Config& config, DataType input, Layout a, Layout b, bool aligned,
                DataType output = DataType::f32) {
  // The elements of a 16-byte load, of 16-bit types at least.
  const std::uint64_t group = std::max(8u, 16 / size_in_bytes(input));
  const auto up = [&](std::uint64_t value) { return (value + group - 1) / group * group; };
  const std::uint64_t tile_m = config.tile_m;
  const std::uint64_t tile_n = config.tile_n;
  const std::uint64_t tile_k = config.tile_k;
  const bool odd = !aligned;
  Problem problem{
      .m = odd ? tile_m + tile_m / 2 + 3 : up(tile_m + group),
      .n = odd ? 2 * tile_n + 5 : up(2 * tile_n + group),
      .k = odd ? 3 * tile_k + 1 : up(3 * tile_k + group),
      .a = {.type = input, .layout = a},
      .b = {.type = input, .layout = b},
      .d = {.type = output},
      .max_workspace_bytes = config.pack_a || config.pack_b ? Problem{}.max_workspace_bytes : 0};
  if (is_float8(input)) problem.multiply_as = input;
  const std::uint64_t step = odd ? 2 : group;
  if (problem.n == problem.m) problem.n += step;
  while (problem.k == problem.m || problem.k == problem.n) problem.k += step;
  if (size_in_bytes(output) == 2) problem.k = 1;  // longer sums are not exact there
  const auto pad = [&](Matrix& matrix, std::uint64_t rows, std::uint64_t cols,
                       std::uint64_t padding) {
    matrix.ld = (matrix.layout == Layout::row_major ? cols : rows) + (odd ? padding : group);
    matrix.alignment = odd ? size_in_bytes(matrix.type) : 16;
  };
  pad(problem.a, problem.m, problem.k, 3);
  pad(problem.b, problem.k, problem.n, 5);
  pad(problem.d, problem.m, problem.n, 1);
  return problem;
}

// The sums of a product's rows, which are exact: values are integers, and K is short.
Trial row_trial(const Config& config, DataType input) {
  Trial trial{.config = config,
              .problem = product(config, input, Layout::row_major, Layout::row_major, false)};
  Problem& problem = trial.problem;
  trial.config.rows =
      descriptor(config).keeps_values ? RowStrategy::resident : RowStrategy::two_pass;
  if (trial.config.rows == RowStrategy::resident) problem.n = config.tile_n - 3;
  problem.k = config.tile_k + 1;
  problem.a.ld = problem.k + 3;
  problem.b.ld = problem.n + 5;
  problem.d.ld = problem.n + 1;
  problem.row_reduction = RowReduction{.op = RowOp::sum};
  problem.max_workspace_bytes = Problem{}.max_workspace_bytes;
  return trial;
}

// Why the trial's configuration is illegal for its problem, nothing if it is legal; an error if the
// problem itself is refused.
Result<std::optional<std::string>> why_not_tried(const Trial& trial, const DeviceTables& tables,
                                                 const DeviceCaps& trusted) {
  Result<ResolvedProblem> problem = resolve(trial.problem);
  if (!problem) return problem.error();
  if (auto error = tables.set_orders(*problem, trusted)) return *error;
  return why_illegal(trial.config, *problem, tables.target(trusted));
}

// The operands in each layout.
std::vector<Problem> layouts(const KernelKind& kind, const Config& config, const DeviceCaps& caps) {
  const bool few = caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  std::vector<Problem> problems;
  const KindOperands operands = operands_of(kind);
  if (operands == KindOperands::a_in_rows) {
    for (const Layout b : both_layouts) {
      problems.push_back(product(config, kind.input, Layout::row_major, b, true));
      Problem& problem = problems.back();
      // The last rows of a tile don't exist, if they needn't.
      const bool any_m = descriptor(config).fragment_order(config, true).interleaved;
      problem.m = any_m ? problem.m + 3 : rounded_up(problem.m, config.tile_m);
      problem.k = rounded_up(problem.k, config.tile_k);
      if (problem.n % config.tile_n == 0) problem.n += 4;
      while (problem.n == problem.m || problem.n == problem.k) problem.n += 8;
      if (problem.k == problem.m) problem.k += config.tile_k;
      problem.a.ld = problem.k + 16;
      problem.b.ld = (b == Layout::row_major ? problem.n : problem.k) + 16;
    }
    return problems;
  }
  if (operands == KindOperands::codes) {
    // Groups of K that end within what is loaded at once, and one that has all; integers, and
    // floats that a device might take for 0; scales of codes, rounded in f16 and from f32, and of
    // sums; zero points.
    const auto add = [&](const Quantisation& q, Layout a) {
      problems.push_back(product(config, kind.input, a, Layout::row_major, true));
      problems.back().b = {.type = kind.input, .packing = Packing::packed_fragments};
      problems.back().quantised_b = q;
    };
    add({.type = CodeType::int4, .group_k = 32}, Layout::row_major);
    for (const Layout a : both_layouts) {
      add({.type = CodeType::int4, .group_k = 32, .zeros = true}, a);
    }
    add({.type = CodeType::e4m3, .group_k = 32, .scale_type = DataType::f32}, Layout::row_major);
    add({.type = CodeType::e4m3, .scale_type = DataType::f32}, Layout::col_major);
    return problems;
  }
  for (const Layout a : both_layouts) {
    for (const Layout b : both_layouts) {
      // The two that are left out have A and B in layouts of the others.
      if (few && a != b) continue;
      const bool aligned = few ? a == Layout::row_major : a == b;
      problems.push_back(product(config, kind.input, a, b, aligned));
    }
  }
  return problems;
}

// Products whose results are stored in other ways.
std::vector<Trial> stores(const KernelKind& kind, const Config& config, const DeviceCaps& caps) {
  std::vector<Trial> trials;
  const auto narrows = descriptor(config).narrows_slices;
  if (narrows != nullptr && narrows(config, kind.input, caps)) {
    for (const DataType output : {DataType::f16, DataType::bf16}) {
      trials.push_back({config, product(config, kind.input, Layout::row_major, Layout::row_major,
                                        true, output)});
    }
  }
  trials.push_back(row_trial(config, kind.input));
  return trials;
}

// Products that a configuration need not compute: results that are stored in other ways, of the
// first one, and groups of codes that end within a fragment's depth.
std::vector<Trial> others(const KernelKind& kind, const Config& config, const DeviceCaps& caps,
                          bool is_first) {
  if (operands_of(kind) == KindOperands::any && is_first) return stores(kind, config, caps);
  if (operands_of(kind) != KindOperands::codes) return {};
  Problem problem = product(config, kind.input, Layout::row_major, Layout::row_major, true);
  problem.b = {.type = kind.input, .packing = Packing::packed_fragments};
  problem.quantised_b = {.type = CodeType::int4, .group_k = 16, .zeros = true};
  return {{config, problem}};
}

}  // namespace

DeviceCaps trusting(const DeviceCaps& caps) {
  DeviceCaps copy = caps;
  copy.denials.clear();
  copy.verdicts.clear();
  for (const KernelKind& kind : kernel_kinds(caps)) {
    copy.verdicts.push_back({.kind = kind, .outcome = Outcome::passed});
  }
  return copy;
}

bool has_verdict(std::span<const Verdict> verdicts, const KernelKind& kind) noexcept {
  return std::ranges::find(verdicts, kind, &Verdict::kind) != verdicts.end();
}

bool lacks_verdicts(const DeviceCaps& caps) {
  return std::ranges::any_of(kernel_kinds(caps), [&](const KernelKind& kind) {
    return descriptor(kind.loop).needs_verdict && !has_verdict(caps.verdicts, kind);
  });
}

std::vector<Verdict> trusted_verdicts(const KnownDrivers& list, const DeviceCaps& caps) {
  std::vector<Verdict> verdicts;
  for (const TrustedDriver& trusted : list.trusted) {
    if (!trusted.drivers.matches(caps) || trusted.architecture != caps.architecture) continue;
    for (const KernelKind& kind : kernel_kinds(caps)) {
      if (std::ranges::find(trusted.kinds, to_string(kind)) == trusted.kinds.end()) continue;
      verdicts.push_back({.kind = kind, .outcome = Outcome::passed, .detail = trusted.reason});
    }
  }
  return verdicts;
}

std::string_view to_string(Outcome outcome) noexcept { return name_of(outcome_names, outcome); }

std::optional<Outcome> parse_outcome(std::string_view text) noexcept {
  return find_name<Outcome>(outcome_names, text);
}

std::string to_string(const KernelKind& kind) {
  const LoopDescriptor& loop = descriptor(descriptor(kind.loop).kin);
  return concat("main loop ", loop.name, ", ", loop.kind_text(kind));
}

std::vector<KernelKind> kernel_kinds(const DeviceCaps& caps) {
  std::vector<Config> proposed;
  for (const TuningTable* table : {&built_in_table(table_name(caps)), &built_in_table("generic")}) {
    for (const TuningRow& row : table->rows) proposed.push_back(row.config);
  }
  std::vector<KernelKind> kinds;
  // The loops that every device has come first.
  const auto loops = main_loops();
  std::for_each(loops.rbegin(), loops.rend(), [&](const LoopDescriptor* loop) {
    if (loop->kinds == nullptr || !caps.path(path_of(loop->loop)).available) return;
    loop->kinds(kinds, caps, proposed);
  });
  std::erase_if(kinds, [](const KernelKind& kind) {
    return !has_kernels(kind.loop, input_of(kind.input)) ||
           (operands_of(kind) == KindOperands::codes && why_not_built("pack_codes"));
  });
  return kinds;
}

Result<std::vector<Trial>> self_test_trials(const KernelKind& kind, const DeviceCaps& caps) {
  const LoopDescriptor& loop = descriptor(kind.loop);
  if (loop.trials == nullptr) {
    return Error{Status::unsupported, concat("main loop ", to_string(kind.loop), " is tried as ",
                                             to_string(descriptor(kind.loop).kin))};
  }
  const DeviceCaps trusted = trusting(caps);
  const DeviceTables tables(caps);
  std::vector<Trial> trials;
  std::string first_reason;
  for (const Config& config : loop.trials(kind, caps)) {
    if (!trials.empty() && !loop.needs_verdict) break;
    std::vector<Trial> own;
    std::optional<std::string> reason;
    for (const Problem& problem : layouts(kind, config, caps)) {
      own.push_back({config, problem});
      const auto why = why_not_tried(own.back(), tables, trusted);
      if (!why) return why.error();
      if (!reason) reason = *why;
    }
    if (reason) {
      if (first_reason.empty()) first_reason = concat(to_string(config), ": ", *reason);
      continue;
    }
    for (const Trial& trial : others(kind, config, caps, trials.empty())) {
      const auto why = why_not_tried(trial, tables, trusted);
      if (why && !*why) own.push_back(trial);
    }
    std::ranges::move(own, std::back_inserter(trials));
  }
  if (trials.empty()) return Error{Status::unsupported, first_reason};
  return trials;
}

}  // namespace vkgemm
