// Tests of what holds for every table that is built in, and for what is chosen from it on devices
// like those that it is for.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "embedded/embedded.hpp"
#include "kernels/dispatch_plan.hpp"
#include "kernels/legality.hpp"
#include "kernels/lowering.hpp"
#include "self_test/self_test.hpp"
#include "test_devices.hpp"
#include "tuning/device_tables.hpp"

namespace vkgemm {
namespace {

using test::contains;
using test::gemm;
using test::resolved;
using test::size_within;

constexpr DataType all_types[] = {DataType::f16, DataType::bf16, DataType::f32};
constexpr Layout all_layouts[] = {Layout::row_major, Layout::col_major};

// Tables of devices have the rows of an architecture.
std::vector<std::string_view> table_names(bool of_devices = false) {
  std::vector<std::string_view> names;
  for (const embedded::File& text : embedded::tables()) {
    if (of_devices || built_in_table(text.name).device_ids.empty()) names.push_back(text.name);
  }
  return names;
}

bool allows(const std::optional<Layout>& wanted, Layout layout) {
  return !wanted || *wanted == layout;
}

// The problems of each type and pair of layouts that the row is for.
std::vector<Problem> problems_for(const TuningRow& row) {
  std::vector<Problem> problems;
  for (const DataType type : all_types) {
    const bool named = std::ranges::find(row.input_types, type) != row.input_types.end();
    if (!named && !row.input_types.empty()) continue;
    for (const Layout a : all_layouts) {
      for (const Layout b : all_layouts) {
        if (!allows(row.a_layout, a) || !allows(row.b_layout, b)) continue;
        Problem p = gemm(size_within(row.m), size_within(row.n), size_within(row.k), type);
        if (row.family == "grouped") p.grouping = Grouping{.groups = 1};
        if (row.family == "f32_parts") {
          p.a.type = p.b.type = DataType::f32;
          p.f32_arithmetic = type == DataType::bf16 ? F32Arithmetic::bf16x9 : F32Arithmetic::f16x3;
        }
        p.a.layout = a;
        p.b.layout = b;
        if (row.family == "quantised") {
          if (b == Layout::col_major) continue;  // packed, it lies in one way
          p.b = {.type = type, .packing = Packing::packed};
          p.quantised_b = {.type = CodeType::int4, .group_k = 128};
        }
        problems.push_back(p);
      }
    }
  }
  return problems;
}

TEST(Tables, EveryRowIsLegalWhereItIsFor) {
  for (const std::string_view name : table_names()) {
    if (name == "generic") continue;  // for any: BuiltInTables.EveryRowIsLegalSomewhere
    const auto devices = test::tabled_devices();
    const auto device = std::ranges::find(devices, name, &DeviceCaps::architecture);
    ASSERT_NE(device, devices.end()) << "test_devices.hpp has no device for " << name;
    const DeviceCaps trusted = trusting(*device);
    for (const TuningRow& row : built_in_table(name).rows) {
      for (const Problem& p : problems_for(row)) {
        ResolvedProblem r = resolved(p);
        EXPECT_FALSE(DeviceTables(built_in_table(name).architecture).set_orders(r, trusted));
        EXPECT_TRUE(row.matches(r)) << name << ": " << to_string(row.config);
        EXPECT_EQ(why_illegal(row.config, r, trusted), std::nullopt)
            << name << ": " << to_string(row.config);
      }
    }
  }
}

// Twice the same configuration for the same problems: the second row would never count.
TEST(Tables, NoRowRepeatsAnother) {
  for (const std::string_view name : table_names()) {
    const std::vector<TuningRow>& rows = built_in_table(name).rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (!(rows[i].config == rows[j].config) || rows[i].family != rows[j].family) continue;
        for (const Problem& p : problems_for(rows[i])) {
          EXPECT_FALSE(rows[j].matches(resolved(p))) << name << ": " << to_string(rows[i].config);
        }
      }
    }
  }
}

TEST(Tables, SayHowTheyKnow) {
  std::size_t measured = 0;
  for (const std::string_view name : table_names()) {
    const bool compiled_only = name != "generic" && name != "cpu" && name != "nvidia_sm90";
    for (const TuningRow& row : built_in_table(name).rows) {
      const std::string_view how = row.provenance;
      const auto says = [how](std::string_view part) { return contains(how, part); };
      if (how.starts_with("measured: ")) {
        ++measured;
        EXPECT_FALSE(compiled_only) << name << ": " << how;
        EXPECT_TRUE(says("driver") && says(", 20") && says("commit ")) << name << ": " << how;
        EXPECT_TRUE(says("TFLOP/s") || says(" us at ") || says(" the speed of ") ||
                    (says(": fitted to ") && !says(" 1 timing") && !says(" 2 timing")))
            << how;
      } else if (how.starts_with("compiled: ")) {
        EXPECT_TRUE(says(" stub") && says(", 20") && says("registers") && says(", no spills"))
            << how;
        EXPECT_TRUE(says("not timed")) << how;
      }
      if (name == "nvidia_sm100") {
        EXPECT_TRUE(how.starts_with("derived: ")) << how;
      }
    }
  }
  EXPECT_GT(measured, 20u);
}

// Shapes are timed, and the table says on which device.
TEST(Tables, TunedShapesAreMeasured) {
  for (const std::string_view name : table_names(true)) {
    const TuningTable& table = built_in_table(name);
    EXPECT_EQ(table.tuned.empty(), table.device.empty()) << name;
    for (const TunedShape& shape : table.tuned) {
      const std::string_view how = shape.row.provenance;
      EXPECT_TRUE(how.starts_with("measured: " + table.device) && contains(how, ", driver ") &&
                  contains(how, ", 20") && contains(how, "commit ") &&
                  contains(how, "the fastest of "))
          << name << ": " << how;
      EXPECT_GT(shape.microseconds, 0.0);
    }
  }
  EXPECT_GT(built_in_table("nvidia_sm90_h100").tuned.size(), 360u);
  EXPECT_GT(built_in_table("nvidia_sm90_h200").tuned.size(), 360u);
}

// Rows that many timings were fitted to must fit them: half of the estimates for plain products of
// aligned operands within 15 %, the others not much worse.
TEST(Tables, EstimatesFitWhatWasMeasured) {
  const TuningTable& table = built_in_table("nvidia_sm90_h200");
  std::vector<double> errors;
  for (const TunedShape& shape : table.tuned) {
    const TunedProblem& t = shape.problem;
    if (t.family != "gemm" || !t.aligned) continue;
    Problem p = gemm(t.m, t.n, t.k, t.input_type);
    p.batch = t.count;
    p.a.layout = t.a_layout;
    p.b.layout = t.b_layout;
    p.d.type = t.d_type;
    const ResolvedProblem r = resolved(p);
    if (!(tuned_problem(r) == t)) continue;  // has C or aux
    const auto rate = similar_rate(table, shape.row.config, r);
    ASSERT_TRUE(rate) << to_string(shape.row.config);
    const double estimate = estimate_cost(shape.row.config, *rate, table.timing, r, test::h200());
    errors.push_back(std::abs(std::log(estimate / shape.microseconds)));
  }
  ASSERT_GT(errors.size(), 100u);
  std::ranges::sort(errors);
  EXPECT_LT(errors[errors.size() / 2], std::log(1.15));
  EXPECT_LT(errors[errors.size() * 9 / 10], std::log(1.5));
}

struct Kind {
  std::string_view name;
  void (*make)(Problem&);
};
constexpr Kind kinds[] = {
    {"dense", [](Problem&) {}},
    {"split-K",
     [](Problem& p) {
       p.split_k.slices = 2;
       p.max_workspace_bytes = 1u << 30;  // two matrices of f32
     }},
    {"grouped", [](Problem& p) { p.grouping = Grouping{.groups = 3, .b = GroupedB::per_group}; }},
    {"grouped along k",
     [](Problem& p) { p.grouping = Grouping{.groups = 3, .along = GroupAlong::k}; }},
    {"rows", [](Problem& p) { p.row_reduction = RowReduction{.op = RowOp::layer_norm}; }},
    {"gated", [](Problem& p) { p.gated = Gated{.gate = Gate::swiglu}; }},
    {"gated groups",
     [](Problem& p) {
       p.gated = Gated{.gate = Gate::swiglu, .b = GatedB::interleaved};
       p.grouping = Grouping{.groups = 3};
     }},
};
constexpr std::array<std::uint64_t, 3> shapes[] = {
    {1, 1, 1},       {1, 1, 0},         {1, 4096, 4096}, {7, 13, 129},
    {16, 16, 4096},  {64, 8192, 8192},  {33, 31, 65},    {257, 129, 127},
    {8192, 1, 4096}, {4097, 4095, 333}, {512, 512, 512}, {8192, 8192, 8192},
};

// From the device's own table or, where that has nothing, from the generic one.
void expect_choice(const DeviceTables& tables, const DeviceCaps& caps, const Problem& p,
                   const std::string& what) {
  const ResolvedProblem r = resolved(p);
  const std::optional<ScoredRow> best = tables.best(r, caps);
  ASSERT_TRUE(best) << what << tables.why_nothing_is_legal(r, caps).front();
  ASSERT_EQ(why_illegal(best->config, r, caps), std::nullopt) << what << to_string(best->config);
  ASSERT_TRUE(std::isfinite(best->cost) && best->cost > 0.0) << what << to_string(*best);
  ASSERT_LE(lower(best->config, r, caps).workspace.bytes, p.max_workspace_bytes) << what;
  if (p.split_k.slices != 0) {
    ASSERT_EQ(best->config.slices, p.split_k.slices) << what;
  }
}

TEST(Tables, SomethingIsChosenForEveryProblem) {
  for (const DeviceCaps& caps : test::tabled_devices()) {
    const DeviceTables tables(caps);
    for (const Kind& kind : kinds) {
      for (const auto& [m, n, k] : shapes) {
        for (const DataType type : all_types) {
          for (const Layout a : all_layouts) {
            for (const Layout b : all_layouts) {
              Problem p = gemm(m, n, k, type);
              p.a.layout = a;
              p.b.layout = b;
              kind.make(p);
              expect_choice(
                  tables, caps, p,
                  caps.name + ", " + std::string(kind.name) + " " + to_command_line(p) + ": ");
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST(Tables, OwnRowsDecideOnDevicesThatHaveThem) {
  for (const DeviceCaps& caps : test::tabled_devices()) {
    const DeviceTables tables(caps);
    const auto best = [&](const Problem& p) { return tables.best(resolved(p), caps)->config; };
    if (caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU) continue;
    EXPECT_NE(best(gemm(4096, 4096, 4096)).path(), Path::fma) << caps.name;
    EXPECT_GE(best(gemm(8192, 8192, 8192)).tile_m, 64u) << caps.name;
    EXPECT_LE(best(gemm(16, 4096, 4096)).tile_m, 32u) << caps.name;
    EXPECT_EQ(best(gemm(1, 12288, 4096, DataType::f32)).path(), Path::fma) << caps.name;
    EXPECT_EQ(best(gemm(512, 512, 512, DataType::f32)).path(), Path::fma) << caps.name;
    const auto chosen = tables.best(resolved(gemm(4096, 4096, 4096)), caps);
    const TuningTable& own = built_in_table(table_name(caps));
    const auto is_chosen = [&](const TuningRow& row) { return &row == chosen->row; };
    EXPECT_TRUE(std::ranges::any_of(own.rows, is_chosen) ||
                std::ranges::any_of(own.tuned, is_chosen, &TunedShape::row))
        << caps.name;
  }
}

}  // namespace
}  // namespace vkgemm
