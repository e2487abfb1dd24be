// No kernel touches a byte outside its operands' spans. On a CPU device addresses are host
// addresses: the operands stand in imported host memory, with pages that nobody may access before
// and behind.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "harness.hpp"
#include "oracle/groups.hpp"
#include "oracle/quantised.hpp"
#include "problem/convert.hpp"
#include "problem/resolved_problem.hpp"
#include "quantise_rows.hpp"
#include "runtime/operand_check.hpp"
#include "trial.hpp"

#if __has_include(<sys/mman.h>)
#include <signal.h>
#include <sys/mman.h>

namespace vkgemm::test {
namespace {

enum class Guard : bool { before, behind };  // which of them the operand touches

// Memory of the host that the device uses, between two guards.
class Guarded {
 public:
  static constexpr std::uint64_t capacity = std::uint64_t{1} << 20;
  static constexpr std::uint64_t guard = std::uint64_t{1} << 24;  // more than any stride here

  explicit Guarded(headless::Runner& owner) : device_(owner.device()) {
    void* all = mmap(nullptr, capacity + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return;
    memory_ = static_cast<std::byte*>(all) + guard;
    if (mprotect(memory_, capacity, PROT_READ | PROT_WRITE) != 0) return;
    import();
  }
  ~Guarded() {
    vkDestroyBuffer(device_, buffer_, nullptr);
    vkFreeMemory(device_, imported_, nullptr);
    if (memory_ != nullptr) munmap(memory_ - guard, capacity + 2 * guard);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  // True if device and host see the same bytes at the same address.
  bool works() const {
    return address_ != 0 && address_ == reinterpret_cast<std::uintptr_t>(memory_);
  }

  DeviceSpan place(std::uint64_t bytes, std::uint64_t alignment, Guard touched) {
    const std::uint64_t aligned = (bytes + alignment - 1) / alignment * alignment;
    begin_ = touched == Guard::before ? 0 : capacity - aligned;
    bytes_ = bytes;
    return {address_ + begin_, bytes};
  }
  std::byte* data() const { return memory_ + begin_; }

  // Where in the span, or outside it, an address lies; nothing if it is none of this memory.
  std::optional<std::int64_t> offset(const void* address) const {
    const std::int64_t at = static_cast<const std::byte*>(address) - memory_;
    if (at < -std::int64_t{guard} || at >= std::int64_t{capacity + guard}) return std::nullopt;
    return at - static_cast<std::int64_t>(begin_);
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void import() {
    constexpr auto type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    VkExternalMemoryBufferCreateInfo external{};
    external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
    external.handleTypes = type;
    VkBufferCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.pNext = &external;
    info.size = capacity;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    if (vkCreateBuffer(device_, &info, nullptr, &buffer_) != VK_SUCCESS) return;

    VkMemoryRequirements needed{};
    vkGetBufferMemoryRequirements(device_, buffer_, &needed);
    VkMemoryHostPointerPropertiesEXT possible{};
    possible.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT;
    if (vkGetMemoryHostPointerPropertiesEXT(device_, type, memory_, &possible) != VK_SUCCESS)
      return;
    const std::uint32_t types = needed.memoryTypeBits & possible.memoryTypeBits;
    if (types == 0 || needed.size > capacity) return;

    VkImportMemoryHostPointerInfoEXT pointer{};
    pointer.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT;
    pointer.handleType = type;
    pointer.pHostPointer = memory_;
    VkMemoryAllocateFlagsInfo flags{};
    flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
    flags.pNext = &pointer;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo allocation{};
    allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    allocation.pNext = &flags;
    allocation.allocationSize = capacity;
    allocation.memoryTypeIndex = static_cast<std::uint32_t>(std::countr_zero(types));
    if (vkAllocateMemory(device_, &allocation, nullptr, &imported_) != VK_SUCCESS) return;
    if (vkBindBufferMemory(device_, buffer_, imported_, 0) != VK_SUCCESS) return;
    VkBufferDeviceAddressInfo address{};
    address.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
    address.buffer = buffer_;
    address_ = vkGetBufferDeviceAddress(device_, &address);
  }

  VkDevice device_;
  std::byte* memory_ = nullptr;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory imported_ = VK_NULL_HANDLE;
  VkDeviceAddress address_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t bytes_ = 0;
};

// The test that runs at the moment, for the handler below.
struct Running {
  std::span<const std::unique_ptr<Guarded>> memories;
  std::array<std::string_view, 9> names;
  std::string text;
};
Running running;

// An access to a guard ends the process, as it should; but first it says which it was.
void on_fault(int number, siginfo_t* fault, void*) {
  for (std::size_t i = 0; i < running.memories.size(); ++i) {
    if (running.memories[i] == nullptr) continue;  // no test of this device has any
    if (const auto offset = running.memories[i]->offset(fault->si_addr)) {
      std::fprintf(stderr, "access outside %.*s, at byte %lld of %llu\n  %s\n",
                   static_cast<int>(running.names[i].size()), running.names[i].data(),
                   static_cast<long long>(*offset),
                   static_cast<unsigned long long>(running.memories[i]->bytes()),
                   running.text.c_str());
    }
  }
  signal(number, SIG_DFL);  // the access is tried again, and fails for good
}

bool lists_host_memory() {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(runner().physical_device(), nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  vkEnumerateDeviceExtensionProperties(runner().physical_device(), nullptr, &count, all.data());
  return std::ranges::any_of(all, [](const VkExtensionProperties& extension) {
    return std::strcmp(extension.extensionName, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) == 0;
  });
}

class Guards : public EachPath {
 protected:
  static void SetUpTestSuite() { begin(true); }
  // `trusts`: the loops that need a self-test that passed.
  static void begin(bool trusts) {
    if (!on_cpu() || !lists_host_memory()) return;
    own_runner_ =
        another_runner({.extensions = {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME}}, trusts);
    for (auto& memory : memories_) memory = std::make_unique<Guarded>(*own_runner_);
  }
  static void TearDownTestSuite() {
    for (auto& memory : memories_) memory.reset();
    own_runner_.reset();
  }
  void SetUp() override {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before_);
    running.memories = memories_;
  }
  void TearDown() override {
    running = {};
    sigaction(SIGSEGV, &before_, nullptr);
  }

  static std::string why_not() {
    if (!on_cpu()) return "device addresses of " + caps().name + " are not the host's";
    if (!lists_host_memory()) {
      return caps().name + " does not list " VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
    }
    if (!std::ranges::all_of(memories_, &Guarded::works, &std::unique_ptr<Guarded>::operator*)) {
      return caps().name + " gives imported host memory other addresses than the host";
    }
    return {};
  }

  static void expect_inside(const std::vector<Config>& configs, DataType input, bool aligned);

  // Every element of the span, those between rows too: what is read has a value of its own, what is
  // written is NaN.
  static void fill(const Guarded& memory, const Problem& problem, DeviceSpan Operands::*operand,
                   std::uint64_t seed) {
    std::optional<DataType> read;
    if (operand == &Operands::a) read = problem.a.type;
    if (operand == &Operands::b || operand == &Operands::b_right) read = problem.b.type;
    if (operand == &Operands::c) read = problem.c.type;
    if (operand == &Operands::bias) read = problem.epilogue.bias_type;
    std::memset(memory.data(), 0xff, memory.bytes());
    if (!read) return;
    for (std::uint64_t e = 0; e < memory.bytes() / size_in_bytes(*read); ++e) {
      store_element(memory.data(), *read, e, fill_value(Fill::random, seed, e));
    }
  }

  // Every span of the least size that record() accepts. Offsets of groups may be bad, but what they
  // are to compute must be certain, or isn't compared.
  static void expect_inside(const Config& config, const Problem& problem,
                            std::span<const std::int64_t> offsets = {}, bool certain = true) {
    if (is_left_out(config, problem)) return;
    SCOPED_TRACE(describe(config, problem));
    std::vector<std::byte> encoded;
    if (problem.grouping) encoded = oracle::encode_offsets(offsets, problem.grouping->offsets);
    const auto plan = own_runner_->context().plan(problem, config);
    ASSERT_TRUE(succeeds(plan));
    const OperandRules rules(resolve(problem).value(), plan->workspace_bytes());
    for (const Guard touched : {Guard::before, Guard::behind}) {
      Operands operands;
      std::size_t i = 0;
      for (const Operand& rule : rules.operands()) {
        running.names[i] = rule.name;
        ASSERT_LE(rule.bytes, Guarded::capacity);
        operands.*rule.span = memories_[i]->place(rule.bytes, rule.alignment, touched);
        fill(*memories_[i], problem, rule.span, i);
        if (rule.span == &Operands::offsets) {
          std::ranges::copy(encoded, memories_[i]->data());
        }
        ++i;
      }
      running.text = describe(config, problem);
      EXPECT_TRUE(succeeds(own_runner_->submit(
          [&](VkCommandBuffer commands) { return plan->record(commands, operands); })));
      if (!certain) continue;
      const oracle::VerifyReport report =
          oracle::verify(problem,
                         {{OperandId::a, host(operands.a)},
                          {OperandId::b, host(operands.b)},
                          {OperandId::c, host(operands.c)},
                          {OperandId::bias, host(operands.bias)},
                          {OperandId::offsets, encoded.data()},
                          {OperandId::b_right, host(operands.b_right)},
                          {OperandId::d, host(operands.d)},
                          {OperandId::aux, host(operands.aux)}},
                         {.threads = 1});
      EXPECT_TRUE(report.passed()) << report.first_failure;
    }
  }

  static void* host(const DeviceSpan& span) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(span.address));
  }

  // A packed B, which stands for `elements` of `plain`.
  struct PackedB {
    const std::vector<std::byte>& copy;
    const Fingerprint& fingerprint;
    const Problem& plain;
    const std::vector<std::byte>& elements;
  };
  static void expect_inside(const Config& config, const Problem& problem, Guard touched,
                            const PackedB& b) {
    SCOPED_TRACE(describe(config, b.plain));
    const auto plan = own_runner_->context().plan(problem, config);
    ASSERT_TRUE(succeeds(plan));
    const std::uint64_t workspace = plan->workspace_bytes();
    const std::uint64_t values = problem.m * problem.n, inputs = problem.m * problem.k;
    running.names = {"packed b", "a", "d", "workspace"};
    running.text = describe(config, b.plain);
    Operands operands;
    operands.b = memories_[0]->place(b.copy.size(), 256, touched);
    std::ranges::copy(b.copy, memories_[0]->data());
    operands.b_fingerprint = b.fingerprint;
    operands.a = memories_[1]->place(inputs * sizeof(std::uint16_t), 2, touched);
    operands.d = memories_[2]->place(values * sizeof(std::uint16_t), 2, touched);
    operands.workspace = memories_[3]->place(workspace, 256, touched);
    fill(*memories_[1], problem, &Operands::a, 1);
    fill(*memories_[2], problem, &Operands::d, 2);
    ASSERT_TRUE(succeeds(own_runner_->submit(
        [&](VkCommandBuffer commands) { return plan->record(commands, operands); })));
    const oracle::VerifyReport report = oracle::verify(b.plain,
                                                       {{OperandId::a, host(operands.a)},
                                                        {OperandId::b, b.elements.data()},
                                                        {OperandId::d, host(operands.d)}},
                                                       {.threads = 1});
    EXPECT_TRUE(report.passed()) << report.first_failure;
  }
  static void expect_codes_inside(const Problem& problem, Path path, std::size_t turn);
  static void expect_rows_inside(DataType type);
  static void expect_all_codes_inside(Path path);

 private:
  static inline std::unique_ptr<headless::Runner> own_runner_;
  static inline std::array<std::unique_ptr<Guarded>, 9> memories_;
  struct sigaction before_ {};
};
VKGEMM_ON_EACH_PATH(Guards);

// Codes in fragment order; and in rows, on a device that doesn't trust the direct loop. Path nv
// takes none.
class GuardsOfFragments : public Guards {};
INSTANTIATE_TEST_SUITE_P(, GuardsOfFragments, testing::Values(Path::khr), path_name);
class GuardsOfRows : public Guards {
 protected:
  static void SetUpTestSuite() { begin(false); }
};
INSTANTIATE_TEST_SUITE_P(, GuardsOfRows, testing::Values(Path::khr, Path::fma), path_name);

// The epilogue that reads and writes all that there is, in types that change from case to case.
void add_epilogue(Problem& problem, std::size_t turn) {
  constexpr DataType types[] = {DataType::f32, DataType::f16, DataType::bf16};
  problem.epilogue = {.alpha = 0.5f,
                      .beta = 0.25f,
                      .bias = turn % 2 == 0 ? Bias::along_n : Bias::along_m,
                      .bias_type = types[(turn + 2) % 3],
                      .aux = true};
  problem.c.type = types[turn % 3];
  problem.d.type = problem.aux.type = types[(turn + 1) % 3];
  const Layout layout = turn % 4 < 2 ? Layout::row_major : Layout::col_major;
  problem.c.layout = problem.d.layout = problem.aux.layout = layout;
}

// Shapes around the tile and of no relation to it. All configurations together see every pair of
// layouts; in the nightly test each sees one here and its opposite where `aligned` is another: K is
// the inner and the outer direction of its A and of its B. (A column-major D swaps A and B, so D's
// layout is the same in both.)
void Guards::expect_inside(const std::vector<Config>& configs, DataType input, bool aligned) {
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const Config& config = configs[i];
    // Every second configuration has elementwise accesses, the others those of vectors; of either
    // every second one has pipelines without edges, the others pack. Other types begin elsewhere.
    const bool all = is_nightly();
    const std::size_t choice = i + static_cast<std::size_t>(input) + (aligned ? 3 : 0);
    if (!all && choice % 2 != 0) continue;
    const bool without_edges = all || choice % 4 == 0;
    const bool packs = input != DataType::f32 && (all || choice % 4 != 0);
    const std::size_t pair = !all ? choice / 2 % 4 : aligned ? 3 - i % 4 : i % 4;
    const std::size_t turn = !all ? choice / 2 : 2 * i + (aligned ? 1 : 0);
    const std::uint64_t m = config.tile_m, n = config.tile_n;
    const std::uint64_t k = k_step(config);
    std::vector<Shape> any = {{m + 1, n - 1, k + 1},
                              {m - 1, n + 1, k - 1},
                              {2 * m + 1, 2 * n + 1, 4 * k + 1},
                              {1, 1, 1},
                              {1, n + 1, k - 1},
                              {m + 1, 1, 2 * k + 1},
                              {31, 37, 41},
                              {2, 3, 5}};
    // Rows that can be loaded 16 bytes at a time.
    std::vector<Shape> multiples = {
        {m + 8, n + 8, k + 8}, {m + 8, n + 24, 8}, {8, 8, 8}, {m + 8, n + 8, 4 * k + 8}};
    // Pipelines without edges, without a tail, without both: with either kind of access.
    if (without_edges) {
      any.insert(any.end(), {{m + 1, n + 1, 2 * k}, {m, n, k + 1}, {m, n, 2 * k}});
      multiples.insert(multiples.end(), {{2 * m + 8, 8, 3 * k}, {m, n, k + 8}, {m, n, 2 * k}});
    }
    for (const Shape& shape : aligned ? multiples : any) {
      Problem problem = gemm(shape, input);
      problem.a.layout = pair / 2 == 0 ? Layout::row_major : Layout::col_major;
      problem.b.layout = pair % 2 == 0 ? Layout::row_major : Layout::col_major;
      add_epilogue(problem, turn);
      expect_inside(config, with_padding(problem, 0, aligned));
      expect_inside(config, with_padding(problem, aligned ? 8 : 1, aligned));
      if (packs) {
        Config packing = config;
        packing.pack_a = config.pack_a || i % 3 != 0;
        packing.pack_b = config.pack_b || i % 3 != 1;
        packing.slices = i % 2 == 0 ? 1 : 3;
        expect_inside(packing, with_padding(problem, aligned ? 8 : 1, aligned));
      }
      problem.batch = 3;
      expect_inside(config, with_padding(problem, aligned ? 8 : 1, aligned));
      if (HasFailure()) return;
    }
  }
}

TEST_P(Guards, StandBesideElementwiseAccesses) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  for (const DataType input : inputs_of(GetParam())) {
    expect_inside(small_configs(GetParam(), input), input, false);
  }
}

TEST_P(Guards, StandBesideVectorAccesses) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  for (const DataType input : inputs_of(GetParam())) {
    expect_inside(small_configs(GetParam(), input), input, true);
  }
}

// Halves of B that end beside a guard, or beside the other half.
TEST_P(Guards, StandBesideGates) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(GetParam() == Path::nv ? "gated products are not built on path nv"
                                        : why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const Config config =
      parse_config(GetParam() == Path::khr ? "khr:tile=16x16x16,fragment=8x8x8,subgroups=2x1,"
                                             "subgroup_size=8,subtiles=1,swizzle=2,peel=0"
                                           : "fma:tile=16x16x8,fragment=4x8,swizzle=2,peel=0")
          .value();
  const Config skinny = parse_config("skinny:tile=3x16x32,swizzle=2").value();
  for (const GatedB b : {GatedB::halves, GatedB::separate, GatedB::interleaved}) {
    for (const bool aligned : {false, true}) {
      const std::vector<Shape> shapes =
          aligned ? std::vector<Shape>{{24, 24, 24}, {8, 8, 8}, {40, 8, 40}}
                  : std::vector<Shape>{{17, 9, 17}, {1, 1, 1}, {15, 7, 33}, {2, 10, 5}};
      for (const Shape& shape : shapes) {
        Problem problem = gemm(shape, input);
        problem.gated = {.gate = Gate::reglu, .b = b};
        problem.epilogue = {.alpha = 0.5f, .bias = Bias::along_n, .aux = true};
        problem.b.layout = aligned == (b == GatedB::halves) ? Layout::row_major : Layout::col_major;
        expect_inside(config, with_padding(problem, 0, aligned));
        problem.batch = 2;
        problem = with_padding(problem, aligned ? 8 : 1, aligned);
        expect_inside(config, problem);
        if (GetParam() == Path::fma) expect_inside(skinny, problem);
        if (!aligned && b != GatedB::halves) continue;  // as halves, before and after the sum
        expect_inside(sliced(config, 2), problem);
      }
    }
  }
}

// Codes, scales and zero points of B beside guards while they are packed, then what they became
// while it is multiplied, by one of the path's configurations.
void Guards::expect_codes_inside(const Problem& problem, Path path, std::size_t turn) {
  oracle::CodeMatrix matrix(problem);
  matrix.quantise([](std::uint64_t of, std::uint64_t k, std::uint64_t n) {
    return fill_value(Fill::random, of, 1000 * k + n);
  });
  Problem packed = problem;
  packed.b = {.type = problem.b.type, .packing = Packing::packed};
  const Context& context = own_runner_->context();
  const auto candidates = context.candidates(packed);
  ASSERT_TRUE(succeeds(candidates));
  std::vector<Config> configs;
  for (const Candidate& candidate : *candidates) {
    if (candidate.config.path() == path) configs.push_back(candidate.config);
  }
  ASSERT_FALSE(configs.empty());
  const Config& config = configs[turn % configs.size()];
  if (is_left_out(config, packed)) return;
  // The oracle multiplies the same elements as the kernel.
  Problem plain = problem;
  plain.b = {.type = oracle::rounds_b(packed, config) ? problem.b.type : DataType::f32};
  plain.quantised_b.reset();
  const std::vector<float> exact = matrix.elements(plain);
  std::vector<std::byte> elements(exact.size() * size_in_bytes(plain.b.type));
  for (std::size_t i = 0; i < exact.size(); ++i) {
    store_element(elements.data(), plain.b.type, i, double{exact[i]});
  }
  const auto plan = context.plan_pack(problem, PackedOperand::b);
  ASSERT_TRUE(succeeds(plan));
  running.names = {"codes", "scales", "zeros", "copy"};
  running.text = describe(Config{}, problem);
  for (const Guard touched : {Guard::before, Guard::behind}) {
    const auto source = [&](std::size_t i, const std::vector<std::byte>& bytes,
                            std::uint64_t alignment) {
      const DeviceSpan span = memories_[i]->place(bytes.size(), alignment, touched);
      std::ranges::copy(bytes, memories_[i]->data());
      return span;
    };
    const CodeSource& lies = matrix.source();
    const CodeSpans spans{.codes = source(0, matrix.codes, lies.codes.alignment),
                          .scales = source(1, matrix.scales, lies.scales.alignment),
                          .zeros = source(2, matrix.zeros, 1)};
    ASSERT_LE(plan->layout().bytes, Guarded::capacity);
    const DeviceSpan copy =
        memories_[3]->place(plan->layout().bytes, plan->layout().alignment, touched);
    ASSERT_TRUE(succeeds(own_runner_->submit(
        [&](VkCommandBuffer commands) { return plan->record_codes(commands, spans, copy); })));
    const std::vector<std::byte> copied(memories_[3]->data(),
                                        memories_[3]->data() + plan->layout().bytes);
    expect_inside(config, packed, touched, {copied, plan->layout().fingerprint, plain, elements});
  }
}

void Guards::expect_all_codes_inside(Path path) {
  constexpr CodeLayout ggml = CodeLayout::ggml_blocks;
  const Quantisation kinds[] = {
      {.type = CodeType::int8, .group_k = 32},
      {.type = CodeType::int8, .group_n = 0, .scale_type = DataType::f32},
      {.type = CodeType::int8, .layout = ggml},
      {.type = CodeType::int4, .group_k = 64, .zeros = true},
      {.type = CodeType::int4, .scale_type = DataType::bf16, .zeros = true},
      {.type = CodeType::int4, .layout = ggml},
      {.type = CodeType::e4m3, .group_k = 128, .group_n = 128, .scale_type = DataType::f32},
      {.type = CodeType::e5m2},
      {.type = CodeType::mxfp4},
      {.type = CodeType::mxfp4, .layout = ggml},
  };
  std::size_t turn = 0;
  bool small = false;
  for (const Quantisation& q : kinds) {
    for (const Layout layout : {Layout::row_major, Layout::col_major}) {
      const bool in_blocks = q.layout == ggml;
      if (in_blocks && layout == Layout::row_major) continue;
      small = !small;
      for (const Shape& shape : {Shape{3, 5, 33}, Shape{17, 40, 66}}) {
        // Where compiling is slow, the shapes take turns.
        if (on_cpu() && !is_nightly() && (shape.m == 3) != small) continue;
        Problem problem = gemm(shape, DataType::f16);
        problem.d.type = DataType::f16;
        problem.a.alignment = problem.d.alignment = 2;
        if (in_blocks) problem.k = rounded_up(problem.k, std::uint64_t{32});
        problem.b.layout = layout;
        problem.quantised_b = q;
        expect_codes_inside(problem, path, turn++);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(GuardsOfFragments, StandBesideCodes) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  expect_all_codes_inside(GetParam());
}

TEST_P(GuardsOfRows, StandBesideCodes) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  expect_all_codes_inside(GetParam());
}

// Rows, their codes and scales beside guards.
void Guards::expect_rows_inside(DataType type) {
  running.names = {"source", "codes", "scales"};
  for (const std::uint64_t columns : {1u, 8u, 9u, 40u, 257u, 9000u}) {
    for (const bool aligned : {false, true}) {
      RowQuantisation q{.rows = 3, .columns = columns, .batch = 2, .source = {.type = type}};
      q = with_padding(q, aligned ? 16 - columns % 16 : 1, aligned);
      const auto plan = own_runner_->context().plan_quantise_rows(q);
      ASSERT_TRUE(succeeds(plan));
      running.text = concat(columns, " columns of ", to_string(type));
      for (const Guard touched : {Guard::before, Guard::behind}) {
        QuantisedRows rows(q);
        rows.fill(1);
        const QuantiseSpans spans{
            .source = memories_[0]->place(plan->source_bytes(), q.source.alignment, touched),
            .codes = memories_[1]->place(plan->codes_bytes(), q.codes.alignment, touched),
            .scales = memories_[2]->place(plan->scales_bytes(), sizeof(float), touched)};
        std::memcpy(memories_[0]->data(), rows.source_bytes().data(), plan->source_bytes());
        std::memset(memories_[1]->data(), 0xff, plan->codes_bytes());
        EXPECT_TRUE(succeeds(own_runner_->submit(
            [&](VkCommandBuffer commands) { return plan->record(commands, spans); })));
        ASSERT_TRUE(rows.run());  // elsewhere, the same bytes
        EXPECT_EQ(std::memcmp(memories_[1]->data(), rows.codes_bytes().data(), plan->codes_bytes()),
                  0);
        EXPECT_EQ(
            std::memcmp(memories_[2]->data(), rows.scales_bytes().data(), plan->scales_bytes()), 0);
      }
    }
  }
}

// No path has a part in it: once.
TEST_P(Guards, StandBesideQuantisedRows) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(why_not_quantised());
  VKGEMM_SKIP_IF(GetParam() == Path::fma ? "" : "rows are quantised alike on all paths");
  for (const DataType type : {DataType::f16, DataType::bf16, DataType::f32}) {
    expect_rows_inside(type);
  }
}

// Groups whose offsets say all sorts of things.
TEST_P(Guards, StandBesideGroups) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  struct Groups {
    std::array<std::int64_t, 4> offsets;
    bool certain;
  };
  constexpr Groups cases[] = {
      {{0, 19, 19, 41}, true},    {{5, 6, 39, 40}, true},        {{-7, 20, 30, 60}, true},
      {{50, 60, 70, 80}, true},   {{-most, -3, 41, most}, true}, {{most, -most, most, 0}, false},
      {{41, 20, 30, -20}, false},
  };
  const DataType input = inputs_of(GetParam()).front();
  // Rings and the skinny loop first, among those that compile quickly.
  std::vector<Config> configs = small_configs(GetParam(), input);
  std::erase_if(configs, [](const Config& c) {
    return c.path() == Path::khr && (peels(c) || c.main_loop() == MainLoop::khr_direct);
  });
  const auto is_special = [](const Config& c) {
    return is_ring(c) || c.main_loop() == MainLoop::skinny;
  };
  std::ranges::stable_partition(configs, is_special);
  configs.resize(std::min<std::size_t>(configs.size(), 3));
  for (const Config& one : small_configs(GetParam(), input)) {  // copies by slots
    if (one.main_loop() == MainLoop::khr_direct) configs.push_back(one);
  }
  for (std::size_t i = 0; i < configs.size(); ++i) {
    for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
      const bool rows = along == GroupAlong::m;
      Problem problem = gemm(rows ? Shape{41, 24, 40} : Shape{24, 40, 41}, input);
      problem.grouping = {.groups = 3, .offsets = OffsetType::int64, .along = along};
      if (rows) problem.grouping->b = GroupedB::per_group;
      problem.a.layout = i % 2 == 0 ? Layout::row_major : Layout::col_major;
      problem.b.layout = i / 2 == 0 ? Layout::row_major : Layout::col_major;
      add_epilogue(problem, 2 * i);
      if (rows) problem.c.layout = problem.d.layout = problem.aux.layout = Layout::row_major;
      if (GetParam() == Path::nv) problem.d.type = problem.aux.type = DataType::f32;
      problem.epilogue.bias_batch_stride = 48;
      configs[i].schedule = i % 2 == 0 ? Schedule::simple : Schedule::persistent;
      for (const Groups& groups : cases) {
        expect_inside(configs[i], with_padding(problem, 8, true), groups.offsets, groups.certain);
      }
    }
  }
}

}  // namespace
}  // namespace vkgemm::test

#endif
