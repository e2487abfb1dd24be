#include "vkgemm/problem.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "test_devices.hpp"

namespace vkgemm {
namespace {

// Each enumerator's name is found again, and the first value past the last has none.
template <class Enum, class Parse>
void expect_names_round_trip(int count, Parse parse) {
  std::set<std::string_view> names;
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<Enum>(i);
    EXPECT_TRUE(names.insert(to_string(value)).second) << to_string(value);
    EXPECT_EQ(parse(to_string(value)), value);
  }
  EXPECT_EQ(to_string(static_cast<Enum>(count)), "?");
  for (const std::string_view wrong : {"", "?", "F16", "f16 ", "nan"}) {
    EXPECT_FALSE(parse(wrong)) << wrong;
  }
}

TEST(Problem, NamesRoundTrip) {
  expect_names_round_trip<DataType>(8, parse_data_type);
  expect_names_round_trip<F32Arithmetic>(4, parse_f32_arithmetic);
  expect_names_round_trip<Layout>(2, parse_layout);
  expect_names_round_trip<Activation>(15, parse_activation);
  expect_names_round_trip<StepOp>(14, parse_step_op);
  expect_names_round_trip<StepOperand>(5, parse_step_operand);
  expect_names_round_trip<TensorShape>(6, parse_tensor_shape);
  expect_names_round_trip<Bias>(3, parse_bias);
  expect_names_round_trip<Scales>(3, parse_scales);
  expect_names_round_trip<OffsetType>(2, parse_offset_type);
  expect_names_round_trip<GroupAlong>(2, parse_group_along);
}

TEST(Problem, StatusesHaveDistinctNames) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Status::driver_error); ++i) {
    const std::string_view name = to_string(static_cast<Status>(i));
    EXPECT_NE(name, "?");
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

// Reads the flags back the way a command line parser would. Flags that the line leaves out have
// their defaults.
class Flags {
 public:
  explicit Flags(const std::string& line) {
    std::istringstream in(line);
    std::string flag;
    for (std::string word; in >> word;) {
      if (word.starts_with("--")) {
        EXPECT_TRUE(values_.try_emplace(word).second) << word << " twice";
        flag = word;
      } else {
        EXPECT_TRUE(!flag.empty() && values_[flag].empty()) << "stray " << word;
        values_[flag] = word;
      }
    }
  }

  bool take_switch(const std::string& name) { return values_.erase(name) != 0; }

  std::optional<std::string> take(const std::string& name) {
    const auto node = values_.extract(name);
    if (node.empty()) return std::nullopt;
    return node.mapped();
  }
  std::optional<std::uint64_t> take_number(const std::string& name) {
    const auto text = take(name);
    return text ? std::optional<std::uint64_t>(std::stoull(*text)) : std::nullopt;
  }
  std::optional<float> take_float(const std::string& name) {
    const auto text = take(name);
    return text ? std::optional<float>(std::strtof(text->c_str(), nullptr)) : std::nullopt;
  }
  DataType take_type(const std::string& name, DataType fallback) {
    const auto text = take(name);
    return text ? parse_data_type(*text).value() : fallback;
  }
  Matrix take_matrix(const std::string& suffix, DataType type, Layout layout) {
    Matrix out{.type = type, .layout = layout};
    if (const auto text = take("--layout-" + suffix)) out.layout = parse_layout(*text).value();
    out.ld = take_number("--ld-" + suffix);
    out.batch_stride = take_number("--batch-stride-" + suffix);
    if (const auto value = take_number("--alignment-" + suffix)) {
      out.alignment = static_cast<std::uint32_t>(*value);
    }
    return out;
  }
  bool empty() const { return values_.empty(); }

 private:
  std::map<std::string, std::string> values_;
};

Problem parse_line(const std::string& line) {
  Flags flags(line);
  Problem p;
  p.m = flags.take_number("--m").value();
  p.n = flags.take_number("--n").value();
  p.k = flags.take_number("--k").value();
  p.batch = flags.take_number("--batch").value_or(1);
  if (const auto gated = flags.take("--gated")) {
    const std::size_t colon = gated->find(':');
    p.gated = Gated{.gate = parse_gate(gated->substr(0, colon)).value()};
    if (colon != std::string::npos) p.gated->b = parse_gated_b(gated->substr(colon + 1)).value();
  }
  if (const auto groups = flags.take_number("--group-count")) {
    p.grouping = Grouping{.groups = static_cast<std::uint32_t>(*groups)};
    p.grouping->along = parse_group_along(flags.take("--group-along").value()).value();
    if (const auto type = flags.take("--offset-type")) {
      p.grouping->offsets = parse_offset_type(*type).value();
    }
    if (flags.take_switch("--b-per-group")) p.grouping->b = GroupedB::per_group;
  }
  const DataType type = flags.take_type("--dtype", DataType::f16);
  p.a = flags.take_matrix("a", type, Layout::row_major);
  p.b = flags.take_matrix("b", flags.take_type("--dtype-b", type), Layout::row_major);
  if (const auto f32 = flags.take("--f32")) p.f32_arithmetic = parse_f32_arithmetic(*f32).value();
  p.d = flags.take_matrix("d", flags.take_type("--dtype-d", DataType::f16), Layout::row_major);
  Epilogue& e = p.epilogue;
  e.alpha = flags.take_float("--alpha").value_or(1.0f);
  e.beta = flags.take_float("--beta").value_or(0.0f);
  if (e.beta != 0.0f) {
    p.c = flags.take_matrix("c", flags.take_type("--dtype-c", DataType::f16), p.d.layout);
  }
  if (const auto bias = flags.take("--bias-mode")) {
    e.bias = parse_bias(*bias).value();
    e.bias_type = flags.take_type("--dtype-bias", DataType::f32);
    e.bias_batch_stride = flags.take_number("--batch-stride-bias").value_or(0);
  }
  if (const auto activation = flags.take("--activation")) {
    e.activation = parse_activation(*activation).value();
  }
  e.clamp_min = flags.take_float("--clamp-min");
  e.clamp_max = flags.take_float("--clamp-max");
  e.aux = flags.take_switch("--with-aux");
  if (e.aux) {
    p.aux = flags.take_matrix("aux", flags.take_type("--dtype-aux", DataType::f16), p.d.layout);
  }
  EXPECT_TRUE(flags.empty()) << line;
  return p;
}

TEST(Problem, CommandLineOfAPlainProductIsShort) {
  Problem p = test::gemm(5, 6, 7);
  EXPECT_EQ(to_command_line(p), "--m 5 --n 6 --k 7 --dtype f16 --dtype-d f16");
  p.a.type = p.b.type = DataType::f32;
  p.f32_arithmetic = F32Arithmetic::bf16x9;
  EXPECT_EQ(to_command_line(p), "--m 5 --n 6 --k 7 --dtype f32 --dtype-d f16 --f32 bf16x9");
}

TEST(Problem, CommandLineSaysEverythingThatCounts) {
  std::mt19937 random(7);
  const auto chance = [&] { return random() % 2 == 0; };
  const auto number = [&] { return std::uint64_t{random()} << random() % 32; };
  const auto real = [&] {
    const float values[] = {0.5f,   -1.0f,          0.1f,
                            1e-45f, -3.4028235e38f, 16777217.0f,
                            -0.0f,  0.3333333433f,  std::numeric_limits<float>::infinity()};
    return values[random() % std::size(values)];
  };
  const auto type = [&] { return static_cast<DataType>(random() % 3); };
  const auto layout = [&] { return static_cast<Layout>(random() % 2); };
  const auto matrix = [&] {
    Matrix out{.type = type(), .layout = layout()};
    if (chance()) out.ld = number();
    if (chance()) out.batch_stride = number();
    if (chance()) out.alignment = 1u << random() % 10;
    return out;
  };
  for (int i = 0; i < 2000; ++i) {
    Problem p{
        .m = number(), .n = number(), .k = number(), .a = matrix(), .b = matrix(), .d = matrix()};
    if (chance()) p.batch = number();
    if (chance()) {
      p.gated =
          Gated{.gate = static_cast<Gate>(random() % 6), .b = static_cast<GatedB>(random() % 3)};
    }
    if (chance()) {
      p.grouping = Grouping{.groups = static_cast<std::uint32_t>(number()),
                            .offsets = static_cast<OffsetType>(random() % 2),
                            .along = static_cast<GroupAlong>(random() % 2),
                            .b = static_cast<GroupedB>(random() % 2)};
    }
    p.f32_arithmetic = static_cast<F32Arithmetic>(random() % 4);
    Epilogue& e = p.epilogue;
    if (chance()) e.alpha = real();
    if (chance()) e.beta = real();
    if (e.beta != 0.0f)
      p.c = matrix();
    else
      e.beta = 0.0f;
    if (chance()) {
      e.bias = chance() ? Bias::along_n : Bias::along_m;
      e.bias_type = type();
      if (chance()) e.bias_batch_stride = number();
    }
    e.activation = static_cast<Activation>(random() % 7);
    if (chance()) e.clamp_min = real();
    if (chance()) e.clamp_max = real();
    e.aux = chance();
    if (e.aux) p.aux = matrix();
    const std::string line = to_command_line(p);
    ASSERT_EQ(parse_line(line), p) << line;
    ASSERT_EQ(line.find_first_of("'\"$;&|<>()\\\n\t*?"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace vkgemm
