#include "tuning/device_tables.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "kernels/computation.hpp"
#include "kernels/dispatch_limit.hpp"
#include "kernels/legality.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/parts/pack.hpp"
#include "kernels/steps.hpp"
#include "kernels/workspace.hpp"
#include "problem/inputs/input.hpp"
#include "problem/resolve.hpp"

namespace vkgemm {
namespace {

// A product of an input, with A and B in this form, or with B of these codes.
ResolvedProblem product_of(const Input& input, const std::optional<Quantisation>& codes,
                           std::uint64_t size, Packing packing) {
  const Matrix plain{.type = input.given}, packed{.type = input.given, .packing = packing};
  return resolve({.m = size,
                  .n = size,
                  .k = size,
                  .a = codes ? plain : packed,
                  .b = codes ? Matrix{.type = input.given, .packing = Packing::packed} : packed,
                  .quantised_b = codes,
                  .f32_arithmetic = input.arithmetic})
      .value();
}

// The order in which the configuration takes a packed operand. Packed matrices tell A from B by
// their layout.
std::optional<FragmentOrder> order_of(const Config& config, const ResolvedMatrix& matrix) {
  return descriptor(config).fragment_order(config, matrix.layout == Layout::col_major);
}

bool any(const Config&) { return true; }

// The estimate for a product with operands that are packed in the order of this row, or in rows.
std::optional<double> time_of_order(const TuningTable& table, const TuningRow* row,
                                    const ResolvedProblem& packed, const Target& target) {
  ResolvedProblem problem = packed;
  for (ResolvedMatrix* matrix : {&problem.a, &problem.b}) {
    if (matrix->is_packed() && row != nullptr) {
      matrix->fragments = order_of(row->config, *matrix);
    }
  }
  const auto found = vkgemm::best(table, problem, target, any);
  return found ? std::optional(found->cost) : std::nullopt;
}

bool is_of(const TuningTable& table, const DeviceCaps& caps) {
  return table.device.empty() || table.device == caps.name;
}

// The first of equally near ones.
std::optional<Nearest> nearer(const std::optional<Nearest>& first,
                              const std::optional<Nearest>& second) {
  return second && (!first || second->distance < first->distance) ? second : first;
}

ScoredRow scored_shape(const Nearest& found, const DeviceCaps& caps) {
  const TunedShape& shape = *found.shape;
  return {.row = &shape.row,
          .config = shape.row.config,
          .cost = shape.microseconds,
          .unsplit_cost = shape.microseconds,
          .tuned = &shape,
          .distance = found.distance,
          .timed = found.distance == 0.0 && is_of(*found.table, caps)};
}

}  // namespace

DeviceTables::DeviceTables(std::string_view architecture, std::vector<TuningTable> loaded,
                           std::string_view built_in)
    : loaded_(std::move(loaded)),
      refused_(built_in_refusals(architecture)),
      built_in_refusals_(refused_.size()) {
  for (const TuningTable& table : loaded_) {
    tables_.push_back(&table);
    refused_.insert(refused_.end(), table.refused.begin(), table.refused.end());
  }
  const TuningTable& own = built_in_table(built_in);
  const TuningTable& generic = built_in_table("generic");
  if (&own != &generic) tables_.push_back(&own);
  tables_.push_back(&generic);
}

Target DeviceTables::target(const DeviceCaps& caps) const { return target(caps, Denials::heeded); }

Target DeviceTables::target(const DeviceCaps& caps, Denials denials) const {
  const std::span<const RefusedConfig> all = refused_;
  return {caps, denials == Denials::heeded ? all : all.first(built_in_refusals_),
          tables_.front()->timing};
}

std::optional<Error> DeviceTables::set_orders(ResolvedProblem& problem,
                                              const DeviceCaps& caps) const {
  if (problem.input->is_converted() && !problem.a.is_packed() && !problem.b.is_packed() &&
      !gains_by_packing(*problem.input, caps)) {
    problem.input = &input_of(problem.input->given);
  }
  for (ResolvedMatrix* matrix : {&problem.a, &problem.b}) {
    if (matrix->form != Form::given_packed) continue;
    const bool of_a = matrix == &problem.a;
    const std::string_view name = of_a != problem.transposed ? "a" : "b";
    if (matrix->packing == Packing::packed_rows && !matrix->quantisation &&
        !matrix->input->packed_in_rows) {
      return Error{Status::unsupported,
                   concat(name, ".packing is packed_rows and ", name, ".type is ",
                          to_string(matrix->input->given), ": it is packed in fragments only")};
    }
    if (!matrix->quantisation && !gains_by_packing(*matrix->input, caps)) {
      return Error{Status::unsupported,
                   concat(name, ".packing is packed: ", caps.name, " gains nothing by it, ",
                          "Context::packed_layout() says 0 bytes")};
    }
    const TuningRow* const row = order(*matrix, caps).row;
    if (row == nullptr && matrix->packing == Packing::packed_fragments) {
      return Error{Status::unsupported,
                   concat(name, ".packing is packed_fragments: no configuration of main loop ",
                          "khr_direct that takes them is legal here, which takes a self-test")};
    }
    set_order(*matrix, row != nullptr ? order_of(row->config, *matrix) : std::nullopt);
  }
  return std::nullopt;
}

bool DeviceTables::gains_by_packing(const Input& input, const DeviceCaps& caps) const {
  if (!input.packed_in_fragments || why_not_built("pack")) return false;
  if (!input.packed_in_rows) {
    return order(input, std::nullopt, Packing::packed_fragments, caps).row != nullptr;
  }
  return std::ranges::any_of(main_loops(), [&](const auto* loop) {
    return !takes_every_input(loop->loop) && has_kernels(loop->loop, input) &&
           caps.path(path_of(loop->loop)).available;
  });
}

PackedOrder DeviceTables::order(const ResolvedMatrix& matrix, const DeviceCaps& caps) const {
  if (matrix.form != Form::given_packed || matrix.packing == Packing::packed_rows) return {};
  return order(*matrix.input, matrix.quantisation, matrix.packing, caps);
}

PackedOrder DeviceTables::order(const Input& input, const std::optional<Quantisation>& codes,
                                Packing packing, const DeviceCaps& caps) const {
  if (!input.packed_in_fragments) return {};
  const Target all = target(caps, Denials::overruled);
  // A product that each of these rows can compute: only what the device can do tells them apart.
  ResolvedProblem product = product_of(input, codes, 128, Packing::plain);
  for (const TuningTable* table : tables_) {
    for (const TuningRow& row : table->rows) {
      if (!descriptor(row.config).takes_fragments() || !row.matches_kind(product)) continue;
      if (codes) product.b.fragments = order_of(row.config, product.b);
      if (!is_legal(as_given(row.config, product, caps), product, all)) continue;
      const bool has_rows = codes || input.packed_in_rows;
      if (packing == Packing::packed_fragments || !has_rows) return {.row = &row};
      return compared(*table, row, input, codes, all);
    }
  }
  return {};
}

PackedOrder DeviceTables::compared(const TuningTable& table, const TuningRow& row,
                                   const Input& input, const std::optional<Quantisation>& codes,
                                   const Target& target) const {
  const std::lock_guard lock(compared_mutex_);
  for (const Compared& known : compared_) {
    if (known.row == &row && known.input == &input && known.codes == codes) return known.order;
  }
  const ResolvedProblem packed = product_of(input, codes, size_of_orders, Packing::packed);
  PackedOrder order{.row = &row,
                    .fragments_us = time_of_order(table, &row, packed, target),
                    .rows_us = time_of_order(table, nullptr, packed, target)};
  if (order.fragments_us && order.rows_us && *order.rows_us < *order.fragments_us) {
    order.row = nullptr;
  }
  compared_.push_back({&row, &input, codes, order});
  return order;
}

Target DeviceTables::target_without_denials(const DeviceCaps& caps) const {
  return target(caps, Denials::overruled);
}

bool DeviceTables::overrules_denials(const ResolvedProblem& problem, const DeviceCaps& caps) const {
  return !loaded_.empty() && !best(problem, caps, Denials::heeded);
}

bool DeviceTables::denied(const Config& config, DataType input_type, Denials denials) const {
  return denials == Denials::heeded && std::ranges::any_of(loaded_, [&](const TuningTable& table) {
           return is_denied(table, config, input_type);
         });
}

std::optional<std::string> DeviceTables::why_denied(const Config& config,
                                                    const ResolvedProblem& problem,
                                                    const DeviceCaps& caps) const {
  for (const TuningTable& table : loaded_) {
    if (const DeniedConfig* const found = denial(table, config, problem.input_type())) {
      return concat("denied by ", table.source, ": ", found->reason);
    }
    if (const auto refused = why_refused(table.refused, config, problem, caps.architecture)) {
      return concat(*refused, " (", table.source, ")");
    }
  }
  return std::nullopt;
}

std::vector<ScoredRow> DeviceTables::rank(const ResolvedProblem& problem,
                                          const DeviceCaps& caps) const {
  auto ranked = rank(problem, caps, Denials::heeded);
  return ranked.empty() ? rank(problem, caps, Denials::overruled) : ranked;
}

std::vector<ScoredRow> DeviceTables::rank(const ResolvedProblem& problem, const DeviceCaps& caps,
                                          Denials denials) const {
  std::vector<ScoredRow> unique;
  const auto first = estimated(problem, caps, denials);
  const auto neighbour = nearest(up_to(first), problem, caps, denials);
  if (const auto tuned_row = tuned(neighbour, first, problem, caps, denials))
    unique.push_back(*tuned_row);
  for (const TuningTable* table : tables_) {
    for (const ScoredRow& scored : vkgemm::rank(*table, problem, target(caps, denials))) {
      const auto same = [&](const ScoredRow& other) { return other.config == scored.config; };
      if (std::none_of(unique.begin(), unique.end(), same) &&
          !denied(scored.config, problem.input_type(), denials)) {
        unique.push_back(scored);
      }
    }
  }
  return unique;
}

std::optional<DeviceTables::Estimated> DeviceTables::estimated(const ResolvedProblem& problem,
                                                               const DeviceCaps& caps,
                                                               Denials denials) const {
  const auto choosable = [&](const Config& config) {
    return !denied(config, problem.input_type(), denials);
  };
  for (const TuningTable* table : tables_) {
    const auto found = vkgemm::best(*table, problem, target(caps, denials), choosable);
    if (found) return Estimated{table, *found};
  }
  return std::nullopt;
}

std::optional<Nearest> DeviceTables::nearest(const ResolvedProblem& problem,
                                             const DeviceCaps& caps) const {
  const Denials denials = overrules_denials(problem, caps) ? Denials::overruled : Denials::heeded;
  return nearest(up_to(estimated(problem, caps, denials)), problem, caps, denials);
}

std::optional<Nearest> DeviceTables::nearest(const TuningTable& table,
                                             const ResolvedProblem& problem, const DeviceCaps& caps,
                                             Denials denials) const {
  return nearest_shape(table, problem, [&](const Config& config) {
    return is_usable(config, problem, target(caps, denials)) &&
           !denied(config, problem.input_type(), denials);
  });
}

std::optional<Nearest> DeviceTables::nearest(Tables tables, const ResolvedProblem& problem,
                                             const DeviceCaps& caps, Denials denials) const {
  std::optional<Nearest> nearest;
  for (const TuningTable* table : tables) {
    nearest = nearer(nearest, this->nearest(*table, problem, caps, denials));
  }
  return nearest;
}

DeviceTables::Tables DeviceTables::up_to_rows() const {
  const auto first =
      std::ranges::find_if(tables_, [](const TuningTable* table) { return !table->rows.empty(); });
  return Tables(tables_.begin(), first == tables_.end() ? first : std::next(first));
}

DeviceTables::Tables DeviceTables::up_to(const std::optional<Estimated>& other) const {
  if (!other) return tables_;
  return Tables(tables_.begin(), std::next(std::ranges::find(tables_, other->table)));
}

std::optional<ScoredRow> DeviceTables::tuned(const std::optional<Nearest>& found,
                                             const std::optional<Estimated>& other,
                                             const ResolvedProblem& problem, const DeviceCaps& caps,
                                             Denials denials) const {
  if (!found) return std::nullopt;
  const TunedShape& shape = *found->shape;
  const Config& config = shape.row.config;
  ScoredRow scored = scored_shape(*found, caps);
  const auto unless_too_long = [&]() -> std::optional<ScoredRow> {
    if (exceeds_dispatch_limit(config, scored.cost, problem)) return std::nullopt;
    return scored;
  };
  if (scored.timed || !other) return unless_too_long();
  const TuningTable& table = *other->table;
  const auto rate = similar_rate(table, config, problem);
  if (!rate) return unless_too_long();
  if (found->distance == 0.0) {
    scored.cost = scored.unsplit_cost = estimate_cost(config, *rate, table.timing, problem, caps);
    return unless_too_long();
  }
  const ResolvedProblem tuned_at = with_shape_of(problem, shape.problem);
  Opinion opinion{
      .here = estimate_cost(config, *rate, table.timing, problem, caps),
      .best_here = other->row.cost,
      .there = estimate_cost(config, *rate, table.timing, tuned_at, caps),
  };
  if (opinion.objects()) {  // the estimate may be as wrong there
    const auto better =
        vkgemm::best(table, tuned_at, target(caps, denials), any, opinion.best_there_below());
    if (better) opinion.best_there = better->cost;
    if (opinion.objects()) return std::nullopt;
  }
  // As much better or worse than its estimate as it was found to be there.
  const double error = is_of(*found->table, caps) ? shape.microseconds / opinion.there : 1.0;
  scored.cost = scored.unsplit_cost = opinion.here * error;
  return unless_too_long();
}

std::optional<ScoredRow> DeviceTables::best(const ResolvedProblem& problem,
                                            const DeviceCaps& caps) const {
  auto scored = best(problem, caps, Denials::heeded);
  return scored ? scored : best(problem, caps, Denials::overruled);
}

std::optional<ScoredRow> DeviceTables::best(const ResolvedProblem& problem, const DeviceCaps& caps,
                                            Denials denials) const {
  const Tables own = up_to_rows();
  auto neighbour = nearest(own, problem, caps, denials);
  // A configuration that was timed for this very shape on this device needs no estimate.
  if (neighbour && neighbour->distance == 0.0) {
    const ScoredRow scored = scored_shape(*neighbour, caps);
    if (scored.timed && !exceeds_dispatch_limit(scored.config, scored.cost, problem)) return scored;
  }
  const auto other = estimated(problem, caps, denials);
  const Tables others = up_to(other).subspan(own.size());
  neighbour = nearer(neighbour, nearest(others, problem, caps, denials));
  if (auto scored = tuned(neighbour, other, problem, caps, denials)) return scored;
  if (!other) return std::nullopt;
  return other->row;
}

std::optional<ScoredRow> DeviceTables::best_estimate(const ResolvedProblem& problem,
                                                     const DeviceCaps& caps) const {
  auto best = estimated(problem, caps, Denials::heeded);
  if (!best) best = estimated(problem, caps, Denials::overruled);
  if (!best) return std::nullopt;
  return best->row;
}

std::optional<double> DeviceTables::estimate(const Config& config, const ResolvedProblem& problem,
                                             const DeviceCaps& caps) const {
  const auto found = rated(config, problem);
  if (!found) return std::nullopt;
  return estimate_cost(config, found->rate, found->table->timing, problem, caps);
}

std::string_view DeviceTables::source_of_estimate(const Config& config,
                                                  const ResolvedProblem& problem) const {
  const auto found = rated(config, problem);
  return found ? std::string_view(found->table->timing.provenance) : std::string_view();
}

std::optional<DeviceTables::Rated> DeviceTables::rated(const Config& config,
                                                       const ResolvedProblem& problem) const {
  for (const TuningTable* table : tables_) {
    if (const auto rate = similar_rate(*table, config, problem)) return Rated{table, *rate};
  }
  return std::nullopt;
}

const TuningTable* DeviceTables::loaded_table_of(const TuningRow& row) const noexcept {
  for (const TuningTable& table : loaded_) {
    const auto is_row = [&](const TuningRow& other) { return &other == &row; };
    const auto is_shape = [&](const TunedShape& shape) { return &shape.row == &row; };
    if (std::ranges::any_of(table.rows, is_row) || std::ranges::any_of(table.tuned, is_shape)) {
      return &table;
    }
  }
  return nullptr;
}

const TuningRow* DeviceTables::find(const Config& config, const ResolvedProblem& problem) const {
  const TunedProblem wanted = tuned_problem(problem);
  for (const TuningTable* table : tables_) {
    for (const TunedShape& shape : table->tuned) {
      if (shape.row.config == config && shape_distance(shape.problem, wanted) == 0.0) {
        return &shape.row;
      }
    }
  }
  const Computation computation(problem, config);
  for (const TuningTable* table : tables_) {
    for (const TuningRow& row : table->rows) {
      Config same = config;
      if (row.config.slices == 1) {
        same.slices = 1;
        same.reduction_mode = row.config.reduction_mode;
        same.spin_limit = row.config.spin_limit;
      }
      same.rows = row.config.rows;
      if (config.rows == RowStrategy::panel) {
        same.swizzle = row.config.swizzle;
        same.spin_limit = row.config.spin_limit;
      }
      same.pack_a = row.config.pack_a;
      same.pack_b = row.config.pack_b;
      if (row.config.schedule == Schedule::simple) same.schedule = Schedule::simple;
      if (row.config.workgroups == 0) same.workgroups = 0;
      if (row.config == same && row.matches(*computation.whole())) return &row;
    }
  }
  return nullptr;
}

std::optional<std::uint64_t> DeviceTables::least_workspace(const ResolvedProblem& problem,
                                                           const DeviceCaps& caps) const {
  // What best() takes of so many units.
  const auto taken = [&](std::uint64_t units) -> std::optional<std::uint64_t> {
    ResolvedProblem roomy = problem;
    roomy.max_workspace_bytes = units * workspace_unit;
    const auto found = best(roomy, caps);
    if (!found) return std::nullopt;
    return workspace_layout(found->config, Computation(roomy, found->config).chunk(), caps.limits)
               .bytes /
           workspace_unit;
  };
  std::uint64_t too_few = problem.max_workspace_bytes / workspace_unit;
  std::optional<std::uint64_t> enough = taken(UINT64_MAX / workspace_unit);
  while (enough && *enough > too_few + 1) {
    const std::uint64_t between = too_few + (*enough - too_few) / 2;
    if (const auto fewer = taken(between))
      enough = fewer;
    else
      too_few = between;
  }
  if (!enough) return std::nullopt;
  return *enough * workspace_unit;
}

std::vector<std::string> DeviceTables::why_nothing_is_legal(const ResolvedProblem& problem,
                                                            const DeviceCaps& caps) const {
  if (const auto bytes = least_workspace(problem, caps)) {
    return {concat("max_workspace_bytes is ", problem.max_workspace_bytes,
                   ", the least that a configuration takes is ", *bytes)};
  }
  struct Reason {
    Objection first;
    Path path;  // the last one that it speaks of
    std::size_t count;
  };
  std::vector<Reason> reasons;
  for (const TuningTable* table : tables_) {
    for (Objection& objection : objections(*table, problem, target(caps, Denials::overruled))) {
      const auto is_same = [&](const Reason& other) {
        return other.first.reason == objection.reason;
      };
      const auto known = std::ranges::find_if(reasons, is_same);
      const Path path = objection.config.path();
      if (known != reasons.end()) {
        known->path = std::max(known->path, path);
        ++known->count;
      } else {
        reasons.push_back({std::move(objection), path, 1});
      }
    }
  }
  if (reasons.empty()) return {"no row of a tuning table matches the problem"};
  // The path that asks the least of a device comes last, and what it objects to is the cause.
  std::ranges::stable_sort(reasons, std::greater(), [](const Reason& reason) {
    return std::pair(reason.path, reason.count);
  });
  std::vector<std::string> lines;
  for (const Reason& reason : reasons) {
    lines.push_back(concat(reason.first.reason, " (", to_string(reason.first.config)));
    if (reason.count > 1) lines.back() += concat(" and ", reason.count - 1, " more");
    lines.back() += ')';
  }
  return lines;
}

std::string DeviceTables::why_not_path(Path path, const ResolvedProblem& problem,
                                       const DeviceCaps& caps) const {
  for (const TuningTable* table : tables_) {
    for (const TuningRow& row : table->rows) {
      if (row.config.path() != path || !row.matches(problem)) continue;
      Config config = as_given(row.config, problem, caps);
      if (problem.rows) config.rows = RowStrategy::two_pass;  // what others can, it can
      if (auto reason = why_illegal(config, problem, target(caps))) {
        return to_string(row.config) + ": " + *reason;
      }
    }
  }
  return {};
}

}  // namespace vkgemm
