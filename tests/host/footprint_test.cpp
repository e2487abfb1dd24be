// Shared memory: what the shaders declare against what legality believes. Evaluates the
// specialization constants in the SPIR-V of every kernel that the built-in tables lead to, and
// specialises these kernels: one in forty, or all if VKGEMM_NIGHTLY is set. If VKGEMM_SPIRV_VAL
// names the validator, it checks each of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "embedded/embedded.hpp"
#include "kernels/dispatch_plan.hpp"
#include "kernels/footprint.hpp"
#include "kernels/legality.hpp"
#include "kernels/lowering.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/parts/quantised.hpp"
#include "kernels/quantise_rows.hpp"
#include "kernels/steps.hpp"
#include "lib/footprint.h"
#include "problem/data_type.hpp"
#include "problem/resolve.hpp"
#include "self_test/self_test.hpp"
#include "specialise/module.hpp"
#include "specialise/specialise.hpp"
#include "specialise/values.hpp"
#include "test_devices.hpp"
#include "tuning/row_variants.hpp"
#include "tuning/table.hpp"

namespace vkgemm {
namespace {

// --- SPIR-V
// -----------------------------------------------------------------------------------------

using spirv::Instruction;
using spirv::Module;

// A module, its types' sizes and its variables in shared memory.
class SharedMemory {
 public:
  explicit SharedMemory(const Module& module) : module_(module) {}

  // Returns the bytes of all variables in shared memory, or nothing if the length of an array is
  // not known.
  std::optional<std::uint64_t> bytes(std::span<const std::uint32_t> constants) const {
    const spirv::Values values(module_, constants);
    constexpr auto workgroup = static_cast<std::uint32_t>(spv::StorageClass::Workgroup);
    std::uint64_t sum = 0;
    for (const Instruction& i : module_.instructions().first(module_.first_function())) {
      if (i.op != spv::Op::OpVariable || i.operand(0) != workgroup) continue;
      const auto bytes = bytes_of(module_.definition(i.type)->operand(1), values);
      if (!bytes) return std::nullopt;
      sum += *bytes;
    }
    return sum;
  }

 private:
  std::optional<std::uint64_t> bytes_of(std::uint32_t type, const spirv::Values& values) const {
    const Instruction& i = *module_.definition(type);
    const std::uint64_t width = module_.scalar_type(type).width;
    switch (i.op) {
      case spv::Op::OpTypeInt:
      case spv::Op::OpTypeFloat:
        return width / 8;
      case spv::Op::OpTypeVector:
        return product(bytes_of(i.operand(0), values), i.operand(1));
      case spv::Op::OpTypeArray:
        return product(bytes_of(i.operand(0), values), values.scalar(i.operand(1)));
      case spv::Op::OpTypeStruct: {
        std::uint64_t sum = 0;
        for (const std::uint32_t member : i.operands) {
          const auto bytes = bytes_of(member, values);
          if (!bytes) return std::nullopt;
          sum += *bytes;
        }
        return sum;
      }
      default:
        return std::nullopt;
    }
  }

  static std::optional<std::uint64_t> product(std::optional<std::uint64_t> a,
                                              std::optional<std::uint64_t> b) {
    return a && b ? std::optional(*a * *b) : std::nullopt;
  }

  const Module& module_;
};

bool is_specialization_constant(const Instruction& instruction) {
  switch (instruction.op) {
    case spv::Op::OpSpecConstantTrue:
    case spv::Op::OpSpecConstantFalse:
    case spv::Op::OpSpecConstant:
    case spv::Op::OpSpecConstantComposite:
    case spv::Op::OpSpecConstantOp:
      return true;
    default:
      return false;
  }
}

void expect_specialises(const PipelineKey& key, std::span<const std::uint32_t> words) {
  const auto made = specialise(words, key.constants);
  ASSERT_TRUE(made) << key.module << ": " << made.error().message;
  EXPECT_LT(made->size(), words.size()) << key.module;
  const Result<Module> module = Module::parse(*made);
  ASSERT_TRUE(module) << key.module << ": " << module.error().message;
  EXPECT_TRUE(std::ranges::none_of(module->instructions(), is_specialization_constant))
      << key.module;
  const char* const validator = std::getenv("VKGEMM_SPIRV_VAL");
  if (validator == nullptr) return;
  const std::string file = concat(testing::TempDir(), "vkgemm.", PipelineKeyHash{}(key), ".spv");
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(made->data()),
             static_cast<std::streamsize>(made->size() * sizeof(std::uint32_t)));
  const std::string command = concat(validator, " --target-env vulkan1.3 ", file);
  EXPECT_EQ(std::system(command.c_str()), 0) << key.module;
  std::remove(file.c_str());
}

struct Known {
  std::vector<std::uint32_t> words;
  Module module;  // of the words
};

const Known& known_module(std::string_view name) {
  static std::map<std::string_view, Known> modules;
  auto found = modules.find(name);
  if (found == modules.end()) {
    std::vector<std::uint32_t> words = embedded::spirv(*embedded::find_module(name));
    Module module = Module::parse(words).value();
    found = modules.emplace(name, Known{std::move(words), std::move(module)}).first;
  }
  return found->second;
}

std::optional<std::uint64_t> declared_bytes(const PipelineKey& key) {
  static std::unordered_map<PipelineKey, std::optional<std::uint64_t>, PipelineKeyHash> known;
  static const bool specialises_all = std::getenv("VKGEMM_NIGHTLY") != nullptr;
#ifdef __SANITIZE_ADDRESS__  // takes 40 times as long
  constexpr std::size_t share = 400;
#else
  constexpr std::size_t share = 40;
#endif
  const auto [entry, is_new] = known.try_emplace(key);
  if (!is_new) return entry->second;
  const Known& module = known_module(key.module);
  entry->second = SharedMemory(module.module).bytes(key.constants);
  if (specialises_all || known.size() % share == 1) expect_specialises(key, module.words);
  testing::Test::RecordProperty("pipelines", static_cast<int>(known.size()));
  return entry->second;
}

// --- what is lowered
// -----------------------------------------------------------------------------------------

// A device on which all rows are legal, whatever they are for.
DeviceCaps any_device() {
  DeviceCaps caps = test::h200();
  caps.name = "any device";
  caps.architecture = "generic";
  caps.limits.max_shared_memory_bytes = 1 << 20;
  caps.limits.min_subgroup_size = 8;
  caps.limits.max_subgroup_size = 128;
  caps.limits.max_subgroups_per_workgroup = 64;
  caps.limits.compute_units = 0;  // not known
  for (const DataType type : {DataType::f16, DataType::bf16, DataType::s8, DataType::e4m3}) {
    caps.flexible_shapes.push_back(
        {type, input_of(type).accumulator, MatrixScope::subgroup, 8, 8, 8, 0});
  }
  caps.fragment_shapes.push_back(test::shape(DataType::f16, 8, 8, 8));
  DeviceCaps trusted = trusting(caps);
  // Codes in every run that a table proposes.
  const std::vector<Verdict> verdicts = trusted.verdicts;
  for (Verdict verdict : verdicts) {
    std::uint32_t* const code_run = find_number(verdict.kind, "code_run");
    if (code_run == nullptr || operands_of(verdict.kind) == KindOperands::a_in_rows) continue;
    for (const std::uint32_t run : {1u, 2u, 4u, 8u}) {
      *code_run = run;
      trusted.verdicts.push_back(verdict);
    }
  }
  return trusted;
}

class Footprint : public testing::Test {
 protected:
  // Single words are counted whether or not a kernel has them, hence the difference.
  static void expect_agreement(const PipelineKey& key, std::uint64_t computed,
                               const Config& config) {
    const std::optional<std::uint64_t> declared = declared_bytes(key);
    ASSERT_TRUE(declared) << to_string(config);
    ASSERT_LE(*declared, computed) << key.module << ", " << to_string(config);
    ASSERT_LT(computed - *declared, 32u) << key.module << ", " << to_string(config);
  }

  static std::uint32_t pack_bytes(std::string_view module) {
    if (module == "pack" || module == "pack_bf16") return PACK_BYTES;
    if (module.ends_with("_f32_in_bf16")) return PACK_FRAGMENTS_BYTES(3 * 2, false);
    if (module.ends_with("_f32_in_f16")) return PACK_FRAGMENTS_BYTES(2 * 2, true);
    return PACK_FRAGMENTS_BYTES(module.ends_with("_s8") ? 1 : 2, false);
  }

  // Whatever a plan of it would dispatch, if it is legal.
  void check(const Config& config, const ResolvedProblem& problem, const DeviceCaps& caps) {
    if (!is_legal(config, problem, caps)) return;
    const DispatchPlan kernel = lower(config, problem, caps);
    std::uint64_t computed = kernel.shared_memory_bytes;
    if (config.path() == Path::nv) computed -= caps.limits.nv_reserved_shared_memory_bytes;
    expect_agreement(kernel.product.key, computed, config);
    modules_.emplace(kernel.product.key.module);
    for (const auto* steps : {&kernel.before, &kernel.after}) {
      for (const Step& step : *steps) {
        const std::string_view name = step.key.module;
        modules_.emplace(name);
        expect_agreement(step.key,
                         name.starts_with("pack") ? pack_bytes(name)
                         : name == "reduce_rows"  ? REDUCE_ROWS_BYTES
                         : name == "sum_columns"  ? COLUMNS_LOCAL_SIZE * UNIT_BYTES
                         : name == "group_table"  ? GROUP_TABLE_LOCAL_SIZE * sizeof(std::uint32_t)
                         : name.starts_with("gemm") || name.starts_with("reduce_tiles") ? computed
                                                                                        : 0,
                         config);
      }
    }
    ++count_;
  }

  // The configuration as a row has it, and with all that changes its kernels.
  void check_all(Config row, const ResolvedProblem& problem, const DeviceCaps& caps) {
    row.pack_b = row.pack_b || problem.b.quantisation;
    for (const RowVariant& variant : row_variants(row, problem, caps)) {
      check(variant.config, problem, caps);
    }
    if (problem.rows) return;
    Config config = row;
    config.schedule = Schedule::persistent;
    check(config, problem, caps);
    config = row;
    config.pack_a = config.pack_b = true;
    check(config, problem, caps);
    config = row;
    config.slices = 3;
    for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver,
                                     ReductionMode::device_barrier}) {
      config.reduction_mode = mode;
      check(config, problem, caps);
    }
  }

  std::set<std::string_view> modules_;
  int count_ = 0;
};

std::vector<Problem> parts_of(Problem problem) {
  std::vector<Problem> out{problem};
  if (problem.a.type == DataType::f32 && problem.f32_arithmetic == F32Arithmetic::ieee) {
    for (const F32Arithmetic arithmetic : {F32Arithmetic::bf16x9, F32Arithmetic::f16x3}) {
      problem.f32_arithmetic = arithmetic;
      const std::vector<Problem> in_parts = parts_of(problem);
      out.insert(out.end(), in_parts.begin(), in_parts.end());
    }
    problem.f32_arithmetic = F32Arithmetic::ieee;
  }
  for (const GatedB b : {GatedB::halves, GatedB::interleaved}) {
    out.push_back(problem);
    out.back().gated = Gated{.gate = Gate::swiglu, .b = b};
  }
  for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
    if (problem.f32_arithmetic == F32Arithmetic::f16x3 && along == GroupAlong::k) continue;
    out.push_back(problem);
    out.back().grouping = Grouping{.groups = 9, .along = along};
  }
  if (multiplies_codes(problem.b.type) && problem.b.layout == Layout::row_major) {
    Problem codes = problem;
    codes.b = {.type = problem.b.type, .packing = Packing::packed};
    codes.quantised_b = {.type = CodeType::int4, .group_k = 32};
    out.push_back(codes);
    if (problem.b.type != DataType::bf16) {
      codes.d.type = DataType::f16;
      codes.a_group_k = 64;
      codes.epilogue.row_scales = Scales::shared;
      if (!multiplies_integers(problem.b.type)) codes.quantised_b->type = CodeType::e4m3;
      out.push_back(codes);
      out.push_back(codes);
      out.back().grouping = Grouping{.groups = 9};
      out.push_back(codes);
      out.back().row_reduction = {.op = RowOp::layer_norm};
      out.back().max_workspace_bytes = std::uint64_t{1} << 30;
    }
  }
  for (const RowOp op : {RowOp::layer_norm, RowOp::logsumexp}) {
    out.push_back(problem);
    out.back().row_reduction = {.op = op};
    out.back().max_workspace_bytes = std::uint64_t{1} << 30;
  }
  if (!is_integer(problem.d.type)) {
    out.push_back(problem);
    out.back().epilogue.tensors[0] = TensorShape::along_n;
    out.back().epilogue.steps[0] = {.op = StepOp::sum_columns, .operand = StepOperand::t0};
    out.back().t0.type = DataType::f32;
    out.push_back(problem);
    out.back().grouping =
        Grouping{.groups = 9, .bounds = GroupBounds::sizes, .d_rows = 250, .d_terms = 4};
  }
  return out;
}

TEST_F(Footprint, IsWhatTheShadersDeclare) {
  const DeviceCaps caps = any_device();
  for (const embedded::File& table : embedded::tables()) {
    const TuningTable& built_in = built_in_table(table.name);
    if (!built_in.device_ids.empty()) continue;  // its rows are the architecture's
    ASSERT_EQ(built_in.architecture, table.name);
    for (const TuningRow& row : built_in.rows) {
      const int before = count_;
      for (const Input* input : inputs()) {
        const bool has_any =
            has_kernels(MainLoop::fma, *input) || has_kernels(MainLoop::khr, *input);
        if (!has_any || input->group_sums) continue;  // parts_of() has what codes need
        for (const Layout a : {Layout::row_major, Layout::col_major}) {
          for (const Layout b : {Layout::row_major, Layout::col_major}) {
            Problem whole = test::gemm(1000, 256, 1000, input->given);
            whole.a.layout = a;
            whole.b.layout = b;
            if (is_float8(input->given)) whole.multiply_as = input->given;
            for (const Problem& problem : parts_of(whole)) {
              Result<ResolvedProblem> resolved = resolve(problem);
              ASSERT_TRUE(resolved) << resolved.error().message;
              const LoopDescriptor& loop = descriptor(row.config);
              if (resolved->b.quantisation && loop.takes_fragments()) {
                resolved->b.fragments = loop.fragment_order(row.config, false);
              }
              check_all(row.config, *resolved, caps);
              if (HasFatalFailure()) return;
            }
          }
        }
      }
      EXPECT_GT(count_, before) << to_string(row.config) << " is never legal";
    }
  }
  // All kernels of products.
  for (const embedded::Module& module : embedded::modules()) {
    if (module.name.starts_with("ceiling") || module.name == "bandwidth") continue;
    if (module.name.starts_with("pack_codes")) continue;  // of plans that pack: below
    if (module.name == "quantise_rows") continue;         // of plans of its own: below
    if (without_in_memory(module.name) != module.name || module.name == "carry") continue;  // below
    EXPECT_TRUE(modules_.contains(module.name)) << module.name << " was never lowered";
  }
}

TEST_F(Footprint, IsTheSameWithParametersInMemory) {
  DeviceCaps caps = any_device();
  caps.limits.max_push_constant_bytes = 128;
  for (const TuningRow& row : built_in_table("generic").rows) {
    for (const Input* input : inputs()) {
      if (!has_kernels(MainLoop::fma, *input)) continue;
      for (const Problem& problem : parts_of(test::gemm(1000, 256, 1000, input->given))) {
        check_all(row.config, resolve(problem).value(), caps);
        if (HasFatalFailure()) return;
      }
    }
  }
  for (const embedded::Module& module : embedded::modules()) {
    if (without_in_memory(module.name) == module.name) continue;
    EXPECT_TRUE(modules_.contains(module.name)) << module.name << " was never lowered";
  }
  for (const std::string_view module : modules_) {
    const bool product = input_of_module(module) != nullptr && !module.starts_with("pack");
    EXPECT_TRUE(in_memory(module).empty()) << module << " with its parameters in push constants";
    EXPECT_TRUE(!product || without_in_memory(module) != module) << module << " has no other form";
  }
}

// Rests of means take shared memory where there are means.
TEST_F(Footprint, StatesWithoutMomentsHaveNoRests) {
  for (const RowOp op : {RowOp::layer_norm, RowOp::softmax}) {
    const bool moments = op == RowOp::layer_norm;
    Problem problem = test::gemm(1000, 256, 1000, DataType::f32);
    problem.row_reduction = {.op = op};
    problem.max_workspace_bytes = std::uint64_t{1} << 30;
    for (const RowStrategy strategy : {RowStrategy::two_pass, RowStrategy::recompute}) {
      Config config = test::config("fma:tile=128x128x16,fragment=8x8,swizzle=1");
      config.rows = strategy;
      const DispatchPlan plan = lower(config, resolve(problem).value(), any_device());
      const bool tiles = strategy == RowStrategy::recompute;
      const PipelineKey& key = tiles ? plan.product.key : plan.after.back().key;
      const auto words = specialise(known_module(key.module).words, key.constants);
      ASSERT_TRUE(words) << words.error().message;
      const Module module = Module::parse(*words).value();
      const std::uint64_t states =
          tiles ? ROW_PART_BYTES(128, 128, moments) : ROW_LOCAL_SIZE * ROW_STATE_BYTES(moments);
      const std::uint64_t other = tiles ? plan.shared_memory_bytes - states : 0;
      EXPECT_LE(SharedMemory(module).bytes(key.constants), states + other) << key.module;
      EXPECT_GT(SharedMemory(module).bytes(key.constants).value() + 32, states + other)
          << key.module;
    }
  }
}

TEST_F(Footprint, IsWhatKernelsThatPackCodesDeclare) {
  for (const DataType type : {DataType::f16, DataType::bf16}) {
    Problem problem = test::gemm(1, 256, 256, type);
    problem.quantised_b = Quantisation{.type = CodeType::int4, .group_k = 32};
    const CodeSource source = code_source(problem, 1).value();
    problem.b = {.type = type, .packing = Packing::packed};
    ResolvedMatrix copy = resolve(problem).value().b;
    problem.b = {.type = type};
    const Limits limits = test::h200().limits;
    EXPECT_EQ(declared_bytes(pack_codes_step(problem, source, copy, 1, limits).key), 0u);
    copy.fragments = FragmentOrder{.mn = 16, .k = 16, .subgroup_size = 32};
    EXPECT_EQ(declared_bytes(pack_codes_step(problem, source, copy, 1, limits).key),
              std::uint64_t{PACK_TILE} * KHR_LINE(PACK_TILE, 2) * UNIT_BYTES);
  }
}

TEST_F(Footprint, IsWhatTheKernelThatQuantisesRowsDeclares) {
  const ResolvedRowQuantisation rows = resolve(RowQuantisation{.rows = 3, .columns = 8}).value();
  Limits limits = test::h200().limits;
  for (const std::uint32_t invocations : {128u, 256u, 1024u}) {
    limits.max_invocations = invocations;
    EXPECT_EQ(declared_bytes(quantise_rows_step(rows, limits).key),
              QUANTISE_ROWS_BYTES(std::min(invocations, std::uint32_t{QUANTISE_LOCAL_SIZE})));
  }
}

}  // namespace
}  // namespace vkgemm
