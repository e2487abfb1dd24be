#include "tuning/table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "embedded/embedded.hpp"
#include "kernels/legality.hpp"
#include "test_devices.hpp"

namespace vkgemm {
namespace {

using test::contains;
using test::gemm;
using test::resolved;
using test::size_within;

// A table of one row, of which a test replaces one field (or adds one).
std::string table_with(std::string_view field, std::string_view value) {
  std::map<std::string, std::string, std::less<>> fields{
      {"config", R"("fma:tile=64x64x16,fragment=8x8")"},
      {"rate", "1.5"},
      {"provenance", R"("derived: for a test")"}};
  if (value.empty()) {
    fields.erase(std::string(field));
  } else {
    fields[std::string(field)] = value;
  }
  std::string row;
  for (const auto& [name, text] : fields) {
    row += (row.empty() ? "\"" : ",\"") + name + "\":" + text;
  }
  return R"({"architecture":"x","rows":[{)" + row + "}]}";
}

TEST(Tuning, ParsesEveryField) {
  const auto table = parse_tuning_table(R"({
    "architecture": "amd_rdna3",
    "rows": [{"family": "gemm", "input_types": ["bf16", "f16"], "a_layout": "col_major",
              "b_layout": "row_major", "m": {"min": 3}, "n": {"max": 5}, "k": {"min": 7, "max": 7},
              "config": "fma:tile=64x64x16,fragment=8x8", "rate": 12,
              "provenance": "measured: here, today"},
             {"config": "fma:tile=32x32x16,fragment=4x4", "rate": 1e-3,
              "provenance": "compiled: no spills"}],
    "refused": [{"architecture": "amd_rdna4", "config": "fma:tile=32x32x16,fragment=8x8",
                 "reason": "wrong results"}]})",
                                        "test");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->architecture, "amd_rdna3");
  ASSERT_EQ(table->rows.size(), 2u);
  const TuningRow& row = table->rows[0];
  EXPECT_EQ(row.input_types, (std::vector{DataType::bf16, DataType::f16}));
  EXPECT_EQ(row.a_layout, Layout::col_major);
  EXPECT_EQ(row.b_layout, Layout::row_major);
  EXPECT_EQ(row.m.min, 3u);
  EXPECT_EQ(row.m.max, UINT64_MAX);
  EXPECT_EQ(row.n.min, 0u);
  EXPECT_EQ(row.n.max, 5u);
  EXPECT_EQ(row.config.tile_m, 64u);
  EXPECT_EQ(row.rate, 12.0);
  EXPECT_EQ(row.provenance, "measured: here, today");

  Problem p = gemm(3, 5, 7, DataType::bf16);
  p.a.layout = Layout::col_major;
  EXPECT_TRUE(row.matches(resolved(p)));
  for (int i = 0; i < 7; ++i) {
    Problem other = p;
    if (i == 0) other.m = 2;
    if (i == 1) other.n = 6;
    if (i == 2) other.k = 8;
    if (i == 3) other.k = 6;
    if (i == 4) other.a.layout = Layout::row_major;
    if (i == 5) other.b.layout = Layout::col_major;
    if (i == 6) other.a.type = other.b.type = DataType::f32;
    EXPECT_FALSE(row.matches(resolved(other))) << i;
  }
  EXPECT_TRUE(table->rows[1].matches(resolved(gemm(1, 1, 1, DataType::f32))));

  const Config refused = test::config("fma:tile=32x32x16,fragment=8x8");
  const ResolvedProblem any = resolved(gemm(1, 1, 1));
  EXPECT_EQ(why_refused(table->refused, refused, any, "amd_rdna4"),
            "refused on amd_rdna4: wrong results");
  EXPECT_EQ(why_refused(table->refused, refused, any, "amd_rdna3"), std::nullopt);
  EXPECT_EQ(why_refused(table->refused, row.config, any, "amd_rdna4"), std::nullopt);
  TuningTable grouped_only = *table;
  grouped_only.refused[0].family = "grouped";
  EXPECT_EQ(why_refused(grouped_only.refused, refused, any, "amd_rdna4"), std::nullopt);
  Problem grouped = gemm(1, 1, 1);
  grouped.grouping = Grouping{.groups = 1};
  Config persistent = refused;
  persistent.schedule = Schedule::persistent;
  EXPECT_TRUE(why_refused(grouped_only.refused, refused, resolved(grouped), "amd_rdna4"));
  EXPECT_TRUE(why_refused(grouped_only.refused, persistent, resolved(grouped), "amd_rdna4"));
  grouped_only.refused[0].config->schedule = Schedule::persistent;
  EXPECT_FALSE(why_refused(grouped_only.refused, refused, resolved(grouped), "amd_rdna4"));
  EXPECT_TRUE(why_refused(grouped_only.refused, persistent, resolved(grouped), "amd_rdna4"));

  // Refusals of one kernel for rows, whatever its main loop; and of one main loop in that kernel.
  TuningTable rows_only = *table;
  rows_only.refused[0].config.reset();
  rows_only.refused[0].rows = RowStrategy::panel;
  const auto refuses = [&](RowStrategy rows, const Config& tile) {
    Config config = tile;
    config.rows = rows;
    return why_refused(rows_only.refused, config, any, "amd_rdna4").has_value();
  };
  for (const Config& tile : {refused, row.config}) {
    EXPECT_TRUE(refuses(RowStrategy::panel, tile));
    EXPECT_TRUE(refuses(RowStrategy::recompute, tile));
    EXPECT_FALSE(refuses(RowStrategy::resident, tile));
    EXPECT_FALSE(refuses(RowStrategy::two_pass, tile));
    EXPECT_FALSE(refuses(RowStrategy::none, tile));
  }
  rows_only.refused[0].config = refused;
  rows_only.refused[0].config->rows = RowStrategy::resident;
  EXPECT_TRUE(refuses(RowStrategy::resident, refused));
  EXPECT_FALSE(refuses(RowStrategy::resident, row.config));
  EXPECT_FALSE(refuses(RowStrategy::none, refused));
}

// A key costs a search of all keys before it.
std::string many_keys(std::size_t count) {
  std::string text = "{";
  for (std::size_t i = 0; i < count; ++i) text += concat(i == 0 ? "" : ",", "\"k", i, "\":0");
  return text + "}";
}

TEST(Tuning, ErrorsNameRowAndField) {
  struct Case {
    std::string text;
    std::string_view expected;
  };
  const std::string row =
      R"({"config":"fma:tile=64x64x16,fragment=8x8","rate":1,"provenance":"derived: x"})";
  const Case cases[] = {
      {"", "not JSON"},
      {"{", "line 1"},
      {"{\n\"architecture\": \"x\",\n oops", "line 3"},
      {"null", "is null, not an object"},
      {"[]", "is array, not an object"},
      {"{}", "architecture is missing"},
      {R"({"architecture":"x"})", "rows is missing"},
      {R"({"architecture":7,"rows":[]})", "architecture is number, not a string"},
      {R"({"architecture":"","rows":[]})", "architecture is empty"},
      {R"({"architecture":"Sm 90","rows":[]})", "architecture is 'Sm 90'"},
      {R"({"architecture":"x","rows":{}})", "rows is object, not an array"},
      {R"({"architecture":"x","rows":[7]})", "rows[0] is number, not an object"},
      {R"({"architecture":"x","rows":[],"version":1})", "unknown key 'version'"},
      {"{\"architecture\":\"x\",\n\"rows\":[],\n\"rows\":[]}", "line 3: key 'rows' appears twice"},
      {R"({"architecture":"x","rows":[)" + row + "," + R"({"rate":1}]})", "rows[1]"},
      {table_with("config", ""), "rows[0].config is missing"},
      {table_with("rate", ""), "rows[0].rate is missing"},
      {table_with("provenance", ""), "rows[0].provenance is missing"},
      {table_with("speed", "3"), "rows[0]: unknown key 'speed'"},
      {table_with("config", "3"), "rows[0].config is number, not a string"},
      {table_with("config", R"("cuda:tile=1x1x1")"), "rows[0].config: configuration"},
      {table_with("config", R"("fma:tile=1x1x99999999999")"), "rows[0].config"},
      {table_with("config", R"("fma:tile=64x64x16")"),
       "rows[0].config: fragment_m is 0: main loop"},
      {table_with("rate", "0"), "rows[0].rate is '0'"},
      {table_with("rate", "-1"), "rows[0].rate is '-1'"},
      {table_with("rate", "null"), "rows[0].rate is 'null'"},
      {table_with("rate", "\"fast\""), "rows[0].rate"},
      {table_with("rate", "NaN"), "not JSON"},
      {table_with("rate", "1e999"), "not JSON"},
      {table_with("provenance", R"("measured by me")"), "rows[0].provenance is 'measured by me'"},
      {table_with("provenance", R"("derived: ")"), "rows[0].provenance"},
      {table_with("provenance", "true"), "rows[0].provenance is boolean"},
      {table_with("family", R"("conv")"), "rows[0].family is 'conv'"},
      {table_with("input_types", R"("f16")"), "rows[0].input_types is string, not an array"},
      {table_with("input_types", "[]"), "rows[0].input_types is empty"},
      {table_with("input_types", R"(["f16","fp8"])"), "rows[0].input_types[1] is 'fp8'"},
      {table_with("input_types", R"(["f16","f16"])"), "rows[0].input_types[1] is 'f16' again"},
      {table_with("a_layout", R"("column")"), "rows[0].a_layout is 'column'"},
      {table_with("b_layout", "0"), "rows[0].b_layout is number"},
      {table_with("m", "5"), "rows[0].m is number, not an object"},
      {table_with("m", R"({"min":-1})"), "rows[0].m.min is '-1'"},
      {table_with("n", R"({"max":1.5})"), "rows[0].n.max is '1.5'"},
      {table_with("n", R"({"max":18446744073709551616})"), "rows[0].n.max"},
      {table_with("k", R"({"min":2,"max":1})"), "rows[0].k is empty: min 2, max 1"},
      {table_with("k", R"({"least":2})"), "rows[0].k: unknown key 'least'"},
      {R"({"architecture":"x","rows":[],"refused":[{"architecture":"x","config":"fma:tile=1x1x1"}]})",
       "refused[0].reason is missing"},
      {R"({"architecture":"x","rows":[],"refused":[{"architecture":"x","config":"","reason":"r"}]})",
       "refused[0].config"},
      {R"({"architecture":"x","rows":[],"refused":[{"architecture":"x","rows":"all","reason":"r"}]})",
       "refused[0].rows is 'all'"},
      {R"({"architecture":"x","rows":[],"refused":[{"architecture":"x","rows":"none","reason":"r"}]})",
       "refused[0].rows: none is no strategy"},
      {R"({"architecture":"x","rows":[],"refused":[{"architecture":"x","rows":"panel","config":"fma:tile=1x1x1","reason":"r"}]})",
       "refused[0]: config and rows stand there"},
      {R"({"architecture":"x","rows":[],"timing":3})", "timing is number, not an object"},
      {R"({"architecture":"x","rows":[],"timing":{"launch":1}})",
       "timing.compute_units is missing"},
      {R"({"architecture":"x","rows":[],"timing":{"start":1}})", "timing: unknown key 'start'"},
      {R"({"architecture":"x","rows":[],"timing":{"compute_units":0}})",
       "timing.compute_units is '0'"},
      {'\n' + std::string(100000, '['), "line 2: nested deeper"},
      {std::string((16 << 20) + 1, ' '), "at most 16777216 are read"},
      {"{\"architecture\":\"\xff\xfe\"}", "not JSON"},
      {"{\"architecture\":\"" + std::string(15 << 20, 'x'), "not JSON"},
      {many_keys(100'000), "line 1: an object has more than 256 keys"},
      {table_with("rate", std::string(1 << 20, '9') + ".5"), "not JSON"},
  };
  for (const Case& c : cases) {
    const auto table = parse_tuning_table(c.text, "user.json");
    ASSERT_FALSE(table) << c.text.substr(0, 200);
    const std::string& message = table.error().message;
    EXPECT_EQ(table.error().status, Status::invalid_argument);
    EXPECT_TRUE(message.starts_with("user.json: ")) << message;
    EXPECT_TRUE(contains(message, c.expected)) << c.text.substr(0, 200) << ": " << message;
    EXPECT_LT(message.size(), 500u);
  }
  EXPECT_TRUE(parse_tuning_table(table_with("rate", "2"), "x"));
}

// A reason stands in the message of every refusal, a provenance in every explanation.
TEST(Tuning, WordsForPeopleAreShort) {
  const auto parse = [](std::size_t provenance, std::size_t refused, std::size_t denied) {
    const auto words = [](std::size_t bytes) { return std::string(bytes, 'x') + R"("})"; };
    return parse_tuning_table(
        R"({"architecture":"x","rows":[{"config":"fma:tile=64x64x16,fragment=8x8","rate":1,)"
        R"("provenance":"derived: )" +
            words(provenance) + R"(],"refused":[{"architecture":"x","rows":"panel","reason":")" +
            words(refused) +
            R"(],"denied":[{"config":"fma:tile=64x64x16,fragment=8x8","reason":")" + words(denied) +
            "]}",
        "x");
  };
  constexpr std::size_t few = 900, many = 1 << 20;
  EXPECT_TRUE(parse(few, few, few));
  for (const auto& [table, field] : {std::pair(parse(many, few, few), "rows[0].provenance has"),
                                     std::pair(parse(few, many, few), "refused[0].reason has"),
                                     std::pair(parse(few, few, many), "denied[0].reason has")}) {
    ASSERT_FALSE(table) << field;
    EXPECT_TRUE(contains(table.error().message, field)) << table.error().message;
    EXPECT_LT(table.error().message.size(), 300u);
  }
}

TEST(Tuning, EveryTruncationIsAnErrorAndNothingWorse) {
  const std::string whole = table_with("m", R"({"min":1,"max":64})");
  ASSERT_TRUE(parse_tuning_table(whole, "x"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(parse_tuning_table(whole.substr(0, length), "x")) << length;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char c : {'\0', '"', '}', '9', '\x80'}) {
      std::string changed = whole;
      changed[at] = c;
      (void)parse_tuning_table(changed, "x");  // must return, whatever it says
    }
  }
}

TEST(BuiltInTables, Parse) {
  ASSERT_FALSE(embedded::tables().empty());
  for (const embedded::File& file : embedded::tables()) {
    const TuningTable& table = built_in_table(file.name);
    EXPECT_FALSE(table.rows.empty()) << file.name;
    if (!table.device_ids.empty()) {
      EXPECT_TRUE(std::string_view(file.name).starts_with(table.architecture + "_")) << file.name;
      continue;
    }
    EXPECT_EQ(table.architecture, file.name);
    const auto parsed = parse_tuning_table(embedded::text(file), file.name);
    ASSERT_TRUE(parsed) << parsed.error().message;
  }
  EXPECT_EQ(built_in_table("generic").architecture, "generic");
  EXPECT_EQ(&built_in_table("no_such_architecture"), &built_in_table("generic"));
}

// A device has the table with its id, else the one of a device of its architecture that has as many
// units. Its rows are the architecture's.
TEST(BuiltInTables, OfDevices) {
  DeviceCaps caps = test::h200();
  EXPECT_EQ(table_name(caps), "nvidia_sm90_h200");
  EXPECT_EQ(table_name(test::h100()), "nvidia_sm90_h100");
  EXPECT_LT(built_in_table("nvidia_sm90_h100").timing.memory,
            built_in_table("nvidia_sm90_h200").timing.memory);
  EXPECT_EQ(built_in_table("nvidia_sm90_h100").rows.size(),
            built_in_table("nvidia_sm90").rows.size());
  caps.device_id = 0x2331;
  EXPECT_TRUE(table_name(caps).starts_with("nvidia_sm90_h")) << table_name(caps);
  EXPECT_EQ(table_name(test::navi31()), "amd_rdna3");
  EXPECT_EQ(table_name(test::b200()), "nvidia_sm100");
  const auto loaded = parse_tuning_table(
      R"({"architecture": "nvidia_sm90", "device_ids": ["0x2330"], "tuned": []})", "mine");
  ASSERT_FALSE(loaded);
  EXPECT_TRUE(test::contains(loaded.error().message, "device_ids")) << loaded.error().message;
}

TEST(BuiltInTables, RowsAreDistinctAndPrintable) {
  std::set<std::string> seen;
  for (const TuningRow& row : built_in_table("generic").rows) {
    const std::string text = to_string(row.config);
    EXPECT_TRUE(seen.insert(concat(row.family, ' ', text)).second) << text << " twice";
    EXPECT_EQ(test::config(text), row.config);
  }
}

TEST(BuiltInTables, MeasuredRowsSayWhereAndWhen) {
  for (const TuningRow& row : built_in_table("generic").rows) {
    if (!row.provenance.starts_with("measured: ")) continue;
    for (const std::string_view part : {"driver", "20", "TFLOP/s"}) {
      EXPECT_TRUE(contains(row.provenance, part)) << row.provenance;
    }
  }
}

// In each pair of layouts, since shared memory depends on them.
TEST(BuiltInTables, EveryRowIsLegalSomewhere) {
  for (const TuningRow& row : built_in_table("generic").rows) {
    for (int layouts = 0; layouts < 4; ++layouts) {
      Problem p = gemm(size_within(row.m), size_within(row.n), size_within(row.k),
                       row.input_types.empty() ? DataType::f16 : row.input_types[0]);
      if (row.family == "grouped") p.grouping = Grouping{.groups = 1};
      p.a.layout = static_cast<Layout>(layouts % 2);
      p.b.layout = static_cast<Layout>(layouts / 2);
      Config config = row.config;
      if (row.family == "quantised") {
        config.pack_b = true;
        p.b = {.type = p.a.type, .packing = Packing::packed};
        p.quantised_b = Quantisation{.type = CodeType::int4, .group_k = 32};
        p.d.type = DataType::f16;
      }
      const ResolvedProblem r = resolved(p);
      EXPECT_TRUE(row.matches(r)) << to_string(row.config);
      std::string reasons;
      bool legal = false;
      for (const DeviceCaps& caps : test::all_devices()) {
        const auto reason = why_illegal(config, r, caps);
        legal = legal || !reason;
        if (reason) reasons += "\n" + caps.name + ": " + *reason;
      }
      EXPECT_TRUE(legal) << to_string(row.config) << reasons;
    }
  }
}

TEST(BuiltInTables, EveryDeviceHasRowsForItsPaths) {
  for (const DeviceCaps& caps : test::all_devices()) {
    std::map<Path, int> legal;
    const TuningTable& generic = built_in_table("generic");
    const TuningTable& own = built_in_table(table_name(caps));
    std::set<const TuningTable*> tables{&generic, &own};
    for (const TuningTable* table : tables) {
      for (const TuningRow& row : table->rows) {
        legal[row.config.path()] +=
            is_legal(row.config, resolved(gemm(48, 512, 512)), caps) ? 1 : 0;
      }
    }
    EXPECT_GE(legal[Path::fma], 5) << caps.name;
    EXPECT_GE(legal[Path::khr], 2) << caps.name;
    if (caps.nv.available) {
      EXPECT_GE(legal[Path::nv], 4) << caps.name;
    }
  }
}

}  // namespace
}  // namespace vkgemm
