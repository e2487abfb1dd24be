// Records decisions on random problems, on each device that has a table, to compare two commits:
// the error, or the ranked configurations and the dispatches of the best one.
#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <random>

#include "../record.hpp"
#include "kernels/lowering.hpp"
#include "problem/resolve.hpp"
#include "self_test/self_test.hpp"
#include "test_devices.hpp"
#include "tuning/device_tables.hpp"

namespace vkgemm::test {
namespace {

// Problems of every family and type. Some contradict themselves.
class AnyProblem {
 public:
  Problem next() {
    constexpr DataType inputs[] = {DataType::f16, DataType::bf16, DataType::f32, DataType::s8};
    const DataType input = any(inputs);
    Problem p{.m = size(), .n = size(), .k = size(), .batch = one_in(6) ? 1 + random_() % 5 : 1};
    p.a = matrix(input);
    p.b = matrix(input);
    constexpr DataType outputs[] = {DataType::f16, DataType::bf16, DataType::f32};
    p.c = matrix(any(outputs));
    p.d = matrix(one_in(8) ? DataType::s32 : any(outputs));
    p.aux = matrix(any(outputs));
    p.c.layout = p.aux.layout = p.d.layout;
    if (one_in(3)) p.epilogue = epilogue();
    if (one_in(5)) p.gated = Gated{.gate = Gate(random_() % 6), .b = GatedB(random_() % 3)};
    if (one_in(5)) p.grouping = grouping();
    if (one_in(5)) p.row_reduction = row_reduction();
    if (one_in(6)) quantise(p);
    if (input == DataType::f32) p.f32_arithmetic = F32Arithmetic(random_() % 4);
    if (one_in(8)) p.a.packing = Packing::packed;
    if (one_in(5)) p.b.packing = Packing::packed;
    if (one_in(8)) p.max_workspace_bytes = std::uint64_t{1} << random_() % 30;
    if (one_in(12)) p.max_dispatch_ms = 1.0;
    return p;
  }

 private:
  bool one_in(unsigned count) { return random_() % count == 0; }
  template <class T, std::size_t Count>
  T any(const T (&values)[Count]) {
    return values[random_() % Count];
  }
  std::uint64_t size() {
    constexpr std::uint64_t sizes[] = {1, 16, 64, 128, 512, 1000, 1024, 2048, 4096, 8192, 30522};
    return one_in(3) ? 1 + random_() % 3000 : any(sizes);
  }
  Matrix matrix(DataType type) {
    Matrix matrix{.type = type, .layout = Layout(random_() % 2)};
    if (one_in(6)) matrix.alignment = size_in_bytes(type);
    return matrix;
  }
  Epilogue epilogue() {
    Epilogue e{.alpha = one_in(2) ? 1.0f : 1.25f, .beta = one_in(2) ? 0.0f : 0.5f};
    e.bias = Bias(random_() % 3);
    e.row_scales = Scales(one_in(4));
    e.column_scales = Scales(one_in(4));
    e.activation = Activation(random_() % 7);
    e.aux = one_in(4);
    if (one_in(4)) e.clamp_max = 6.0f;
    return e;
  }
  Grouping grouping() {
    return {.groups = static_cast<std::uint32_t>(1 + random_() % 70),
            .offsets = OffsetType(random_() % 2),
            .along = GroupAlong(one_in(4)),
            .b = GroupedB(random_() % 2)};
  }
  RowReduction row_reduction() {
    RowReduction rows{.op = RowOp(random_() % 9)};
    rows.gamma = one_in(4);
    rows.store_d = !one_in(4);
    return rows;
  }
  void quantise(Problem& p) {
    constexpr std::uint32_t groups[] = {0, 32, 64, 128};
    p.quantised_b = Quantisation{.type = CodeType(random_() % 5), .group_k = any(groups)};
    if (p.quantised_b->type == CodeType::int4) p.quantised_b->zeros = one_in(2);
    if (one_in(4)) p.quantised_b->scale_type = DataType::f32;
    p.b.layout = Layout::row_major;
    p.b.packing = Packing::packed;
  }

  std::mt19937 random_{7};
};

// The bytes of all blocks, and what is dispatched.
void add(Hash& hash, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    hash.add(std::as_bytes(std::span(step.dispatches)));
    hash.add(std::as_bytes(std::span(step.last_dispatches)));
    std::visit([&](const auto& block) { hash.add(std::as_bytes(std::span(&block, 1))); },
               step.params);
  }
}

std::string decision(const Problem& problem, const DeviceCaps& caps, const DeviceTables& tables) {
  Result<ResolvedProblem> resolved = resolve(problem);
  if (!resolved) return resolved.error().message;
  if (const auto error = tables.set_orders(*resolved, caps)) return error->message;
  if (resolved->is_empty()) return "empty";
  const std::vector<ScoredRow> ranked = tables.rank(*resolved, caps);
  if (ranked.empty()) return tables.why_nothing_is_legal(*resolved, caps).front();
  Hash all;
  for (const ScoredRow& row : ranked) {
    char cost[32];
    std::snprintf(cost, sizeof cost, " %.9g", row.cost);
    all.add(to_string(row.config) + cost);
  }
  const Config config = tables.best(*resolved, caps)->config;
  const DispatchPlan plan = lower(config, *resolved, tables.target(caps));
  Hash dispatched;
  add(dispatched, plan.before);
  add(dispatched, {plan.product});
  add(dispatched, plan.after);
  for (const WorkspacePart& part : plan.workspace) {
    dispatched.add(std::as_bytes(std::span(&part.offset, 1)));
  }
  return std::to_string(ranked.size()) + " " + all.text() + " " + dispatched.text() + " " +
         std::to_string(plan.workspace.bytes) + " " + std::to_string(plan.shared_memory_bytes) +
         " " + to_string(config);
}

TEST(Record, Decisions) {
  if (!records()) GTEST_SKIP() << "VKGEMM_RECORD is not set";
  std::vector<DeviceCaps> devices = tabled_devices();
  for (DeviceCaps& caps : devices) caps = trusting(caps);
  for (const DeviceCaps& caps : devices) {
    const DeviceTables tables(caps);
    AnyProblem any;
    for (int i = 0; i < 4000; ++i) {
      const Problem problem = any.next();
      record("decision " + std::string(table_name(caps)) + " " + std::to_string(i) + ": " +
             to_command_line(problem) + ": " + decision(problem, caps, tables));
    }
  }
}

}  // namespace
}  // namespace vkgemm::test
