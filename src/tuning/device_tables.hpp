// device_tables.hpp: the tuning tables as one context uses them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/target.hpp"
#include "tuning/nearest.hpp"
#include "tuning/rank.hpp"
#include "tuning/table.hpp"

namespace vkgemm {

// The order in which an operand of the caller is packed, and the reason. The estimates are those of
// the best configurations of one table for a product of size_of_orders along M, N and K, in
// microseconds. They are there if the table has a legal row for each order.
struct PackedOrder {
  const TuningRow* row = nullptr;  // gives the order of fragments; null: in rows
  std::optional<double> fragments_us, rows_us;
};
inline constexpr std::uint64_t size_of_orders = 4096;

// The tuning tables of one device. Estimates of two tables cannot be compared (their rates have
// different scales), so the first one that has a legal row decides: those that were loaded, the
// architecture's own, the generic one. Before its rows comes what was tuned (nearest.hpp), in that
// table or one before it: the nearest shape, of equally near ones that of the first table. What
// loaded tables deny or refuse is chosen only where nothing else computes the problem: they may
// come from anybody.
class DeviceTables {
 public:
  // With those that were loaded, the preferred one first.
  explicit DeviceTables(const DeviceCaps& caps, std::vector<TuningTable> loaded = {})
      : DeviceTables(caps.architecture, std::move(loaded), table_name(caps)) {}
  // For any device of the architecture.
  explicit DeviceTables(std::string_view architecture, std::vector<TuningTable> loaded = {})
      : DeviceTables(architecture, std::move(loaded), architecture) {}
  DeviceTables(const DeviceTables&) = delete;  // rows are pointed at
  DeviceTables& operator=(const DeviceTables&) = delete;

  // The tables that were loaded, the preferred one first.
  const std::vector<TuningTable>& loaded() const noexcept { return loaded_; }

  // A device with what these tables know of it: its refusals, and the timing of the table that is
  // preferred. Points at them and at the capabilities.
  Target target(const DeviceCaps& caps) const;

  // True if what loaded tables deny and refuse leaves nothing, so that it doesn't count; and the
  // target without it.
  bool overrules_denials(const ResolvedProblem& problem, const DeviceCaps& caps) const;
  Target target_without_denials(const DeviceCaps& caps) const;

  // What a loaded table says against a configuration. If it was chosen, that was overruled.
  std::optional<std::string> why_denied(const Config& config, const ResolvedProblem& problem,
                                        const DeviceCaps& caps) const;

  // Sets the order of the operands that the caller packed. An error if the device gains nothing by
  // packing. If f32 in parts has no order here, the problem's input becomes f32.
  std::optional<Error> set_orders(ResolvedProblem& problem, const DeviceCaps& caps) const;
  bool gains_by_packing(const Input& input, const DeviceCaps& caps) const;

  // The order of an operand that the caller packed: in fragments if a row that takes them is legal
  // here, and by the estimates no row of its table is faster, otherwise in rows. An order that the
  // caller asks for is not compared. Context::packed_layout() has the rule.
  PackedOrder order(const ResolvedMatrix& matrix, const DeviceCaps& caps) const;

  // Rows that are legal here, best first, without repetitions of a configuration.
  std::vector<ScoredRow> rank(const ResolvedProblem& problem, const DeviceCaps& caps) const;

  // The first of rank().
  std::optional<ScoredRow> best(const ResolvedProblem& problem, const DeviceCaps& caps) const;

  // The first of them by estimates alone, whatever was tuned.
  std::optional<ScoredRow> best_estimate(const ResolvedProblem& problem,
                                         const DeviceCaps& caps) const;

  // The time that a configuration would take, in microseconds, by the rate of a similar row of the
  // first table that has one.
  std::optional<double> estimate(const Config& config, const ResolvedProblem& problem,
                                 const DeviceCaps& caps) const;

  // Whose times that estimate rests on, as its table says: "measured: …" on the device that the
  // table is for, else "derived: …". Empty if there is no estimate.
  std::string_view source_of_estimate(const Config& config, const ResolvedProblem& problem) const;

  // A row that proposes this configuration, in any number of slices and packing any
  // operand, for this problem; or null.
  const TuningRow* find(const Config& config, const ResolvedProblem& problem) const;

  // The tuned shape that speaks for the problem, whether or not the estimate objects.
  std::optional<Nearest> nearest(const ResolvedProblem& problem, const DeviceCaps& caps) const;

  // The loaded table that a row is of; null for rows that are built in.
  const TuningTable* loaded_table_of(const TuningRow& row) const noexcept;

  // Why best() has nothing: a line for each reason, the cause first.
  std::vector<std::string> why_nothing_is_legal(const ResolvedProblem& problem,
                                                const DeviceCaps& caps) const;

  // The first reason against the rows of one path; empty if no row of that path matches.
  std::string why_not_path(Path path, const ResolvedProblem& problem, const DeviceCaps& caps) const;

 private:
  DeviceTables(std::string_view architecture, std::vector<TuningTable> loaded,
               std::string_view built_in);

  // A rate for a configuration, with the first table that has a similar row.
  struct Rated {
    const TuningTable* table = nullptr;
    double rate = 0.0;
  };
  std::optional<Rated> rated(const Config& config, const ResolvedProblem& problem) const;

  PackedOrder order(const Input& input, const std::optional<Quantisation>& codes, Packing packing,
                    const DeviceCaps& caps) const;
  // The fragments of a row of this table, or rows if these are faster.
  PackedOrder compared(const TuningTable& table, const TuningRow& row, const Input& input,
                       const std::optional<Quantisation>& codes, const Target& target) const;

  // The row that a table estimates to be best, with the table.
  struct Estimated {
    const TuningTable* table = nullptr;
    ScoredRow row;
  };
  // Whether what loaded tables deny and refuse counts.
  enum class Denials : bool { overruled, heeded };
  Target target(const DeviceCaps& caps, Denials denials) const;
  std::vector<ScoredRow> rank(const ResolvedProblem& problem, const DeviceCaps& caps,
                              Denials denials) const;
  std::optional<ScoredRow> best(const ResolvedProblem& problem, const DeviceCaps& caps,
                                Denials denials) const;
  std::optional<Estimated> estimated(const ResolvedProblem& problem, const DeviceCaps& caps,
                                     Denials denials) const;
  std::optional<Nearest> nearest(const TuningTable& table, const ResolvedProblem& problem,
                                 const DeviceCaps& caps, Denials denials) const;
  using Tables = std::span<const TuningTable* const>;
  std::optional<Nearest> nearest(Tables tables, const ResolvedProblem& problem,
                                 const DeviceCaps& caps, Denials denials) const;
  // The tables up to the first that has rows, and up to the one that has the best estimate. Rows
  // that were loaded go before shapes that are built in.
  Tables up_to_rows() const;
  Tables up_to(const std::optional<Estimated>& other) const;
  // The configuration of the nearest shape, unless the estimate objects.
  std::optional<ScoredRow> tuned(const std::optional<Nearest>& nearest,
                                 const std::optional<Estimated>& other,
                                 const ResolvedProblem& problem, const DeviceCaps& caps,
                                 Denials denials) const;
  bool denied(const Config& config, DataType input_type, Denials denials) const;
  // The smallest workspace in which best() has something, if it has nothing in that of the problem.
  std::optional<std::uint64_t> least_workspace(const ResolvedProblem& problem,
                                               const DeviceCaps& caps) const;

  std::vector<TuningTable> loaded_;
  std::vector<RefusedConfig> refused_;      // by all that are built in, then by loaded tables
  std::size_t built_in_refusals_;           // how many of these are built in
  std::vector<const TuningTable*> tables_;  // the preferred one first

  // The comparisons that were made: each takes as long as the choice of a configuration, and a
  // verdict that comes later does not change the order.
  struct Compared {
    const TuningRow* row = nullptr;
    const Input* input = nullptr;
    std::optional<Quantisation> codes;
    PackedOrder order;
  };
  mutable std::mutex compared_mutex_;
  mutable std::vector<Compared> compared_;
};

}  // namespace vkgemm
