// Workgroups that wait for one another, on devices that promise nothing: whatever comes late, never
// comes or gives up, the results are right and the same, and no dispatch waits for ever. A hang is
// for whoever started this process to notice (tests/CMakeLists.txt: a limit for each).
#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "harness.hpp"
#include "oracle/heavy_epilogue.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

using headless::Buffer;
using headless::Runner;

// One product that is recorded again and again, each time into a D of its own.
class Repeated {
 public:
  Repeated(Runner& runner, const Problem& problem, std::uint32_t copies)
      : runner_(runner), problem_(problem), copies_(copies) {
    const PerOperand<std::uint64_t> bytes = operand_bytes(problem);
    d_bytes_ = (bytes[OperandId::d] + 255) / 256 * 256;
    a_ = allocate(bytes[OperandId::a]);
    b_ = allocate(bytes[OperandId::b]);
    d_ = allocate(d_bytes_ * copies);
    std::mt19937 random(7);
    for (const Buffer* operand : {&a_, &b_}) {
      std::vector<std::uint16_t> values(operand->bytes() / 2);
      // Halves and upper halves of floats, of moderate size, so that every order of adding shows.
      for (std::uint16_t& value : values) {
        value = static_cast<std::uint16_t>(0x3400 + random() % 0x800);
      }
      EXPECT_TRUE(succeeds(runner.upload(*operand, 0, values.data(), operand->bytes())));
    }
  }

  // Into all copies by one submission.
  testing::AssertionResult run(const Plan& plan) {
    if (workspace_.bytes() < plan.workspace_bytes()) workspace_ = allocate(plan.workspace_bytes());
    if (auto filled = runner_.fill(d_, 0xffffffffu); !filled) return succeeds(filled);
    return succeeds(runner_.submit([&](VkCommandBuffer commands) -> Result<void> {
      for (std::uint32_t i = 0; i < copies_; ++i) {
        const Operands operands{.a = a_.span(),
                                .b = b_.span(),
                                .d = d_.span(i * d_bytes_, d_bytes_),
                                .workspace = workspace_.span()};
        if (auto recorded = plan.record(commands, operands); !recorded) return recorded;
      }
      return {};
    }));
  }

  // All modes must give what two_dispatches gives.
  testing::AssertionResult expect_of(Config config) {
    config.reduction_mode = ReductionMode::two_dispatches;
    config.workgroups = 0;
    config.spin_limit = default_spin_limit;
    const auto plan = runner_.context().plan(problem_, config);
    if (!plan) return succeeds(plan);
    if (auto ran = run(*plan); !ran) return ran;
    expected_.resize(operand_bytes(problem_)[OperandId::d]);
    return succeeds(runner_.download(d_, 0, expected_.data(), expected_.size()));
  }

  testing::AssertionResult is_as_expected() {
    std::vector<std::byte> all(d_bytes_ * copies_);
    if (auto got = runner_.download(d_, 0, all.data(), all.size()); !got) return succeeds(got);
    for (std::uint32_t i = 0; i < copies_; ++i) {
      if (std::memcmp(all.data() + i * d_bytes_, expected_.data(), expected_.size()) != 0) {
        return testing::AssertionFailure() << "repetition " << i << " has other bits";
      }
    }
    return testing::AssertionSuccess();
  }

 private:
  Buffer allocate(std::uint64_t bytes) {
    auto made = runner_.allocate(bytes);
    EXPECT_TRUE(succeeds(made));
    return made ? std::move(*made) : Buffer();
  }

  Runner& runner_;
  Problem problem_;
  std::uint32_t copies_;
  std::uint64_t d_bytes_ = 0;
  Buffer a_, b_, d_, workspace_;
  std::vector<std::byte> expected_;
};

class DeviceBarrier : public EachPath {
 protected:
  void SetUp() override {
    VKGEMM_SKIP_IF(why_skip(GetParam()));
    if (GetParam() == Path::nv) GTEST_SKIP() << "path nv has no reduction mode device_barrier";
  }

  DataType input() const { return inputs_of(GetParam()).front(); }
  Config config(std::uint32_t slices = 8) const {
    Config config = small_configs(GetParam(), input()).front();
    config.slices = slices;
    config.reduction_mode = ReductionMode::device_barrier;
    config.spin_limit = patient_spin_limit();
    return config;
  }
  // The code that waits is one piece for all paths.
  static bool is_selection() { return on_cpu() && GetParam() == Path::khr && !is_nightly(); }
  // Far more than can be there at once; each of them takes a CPU its time.
  static std::uint32_t too_many() { return on_cpu() && !is_nightly() ? 1000 : 65535; }
  // Two times two tiles.
  Problem problem() const {
    const Config c = config();
    return gemm({c.tile_m + 3, c.tile_n + 1, 8 * c.tile_k}, input());
  }

  // On a device of its own: a barrier that is given up is the last one there.
  testing::AssertionResult passes(const Config& config) const {
    const std::unique_ptr<Runner> runner = another_runner();
    Repeated repeated(*runner, problem(), 5);
    if (auto ran = repeated.expect_of(config); !ran) return ran;
    const auto plan = runner->context().plan(problem(), config);
    if (!plan) return succeeds(plan);
    if (auto ran = repeated.run(*plan); !ran) return ran;
    if (auto same = repeated.is_as_expected(); !same) {
      return same << "\n  " << describe(config, problem());
    }
    // Nobody has to wait who is alone, and nobody gives up who has patience; but a CPU that is busy
    // with other things may let a workgroup sleep for as long as it likes.
    const bool patient = config.spin_limit == patient_spin_limit() && !on_cpu();
    const std::uint32_t aborts = runner->context().barrier_aborts();
    if (aborts != 0 && (config.workgroups == 1 || patient)) {
      return testing::AssertionFailure() << aborts << " barriers were given up";
    }
    return testing::AssertionSuccess();
  }
};
VKGEMM_ON_EACH_PATH(DeviceBarrier);

// More workgroups than there is work, and so many that some cannot be resident; fewer, down to one.
TEST_P(DeviceBarrier, AnyNumberOfWorkgroups) {
  const std::uint32_t all = 4 * 8;
  for (const std::uint32_t launched : {1u, 2u, all - 1, all, all + 1, too_many()}) {
    if (is_selection() && launched > 1 && launched != all - 1 && launched <= all + 1) continue;
    Config some = config();
    some.workgroups = launched;
    EXPECT_TRUE(passes(some));
  }
}

TEST_P(DeviceBarrier, AnySpinLimit) {
  std::mt19937 random(11);
  std::size_t turn = 0;
  for (const std::uint32_t limit : {0u, 1u, 2u, static_cast<std::uint32_t>(random() % 100),
                                    static_cast<std::uint32_t>(random() % 10000)}) {
    ++turn;
    if (is_selection() && turn != 1 && turn != 4) continue;
    for (const std::uint32_t launched : {0u, too_many()}) {
      // A CPU compiles anew for each device: few and many take turns.
      if (on_cpu() && !is_nightly() && (turn % 2 == 0) != (launched == 0)) continue;
      Config impatient = config();
      impatient.spin_limit = limit;
      impatient.workgroups = launched;
      EXPECT_TRUE(passes(impatient)) << "spin limit " << limit;
    }
  }
}

// After the first barrier that was given up, plans that have one do without, no other one is made,
// and results stay right.
TEST_P(DeviceBarrier, GivenUpOnceMeansNeverAgain) {
  const std::unique_ptr<Runner> runner = another_runner();
  const Context& context = runner->context();
  Repeated repeated(*runner, problem(), 20);
  Config impatient = config();
  impatient.spin_limit = 0;
  ASSERT_TRUE(repeated.expect_of(impatient));
  const auto plan = context.plan(problem(), impatient);
  ASSERT_TRUE(succeeds(plan));
  EXPECT_EQ(context.barrier_aborts(), 0u);
  for (int turn = 0; turn < 100 && context.barrier_aborts() == 0; ++turn) {
    ASSERT_TRUE(repeated.run(*plan));
    ASSERT_TRUE(repeated.is_as_expected());
  }
  const std::uint32_t aborts = context.barrier_aborts();
  if (aborts == 0) GTEST_SKIP() << "no two workgroups run at the same time on this device";
  EXPECT_LE(aborts, 20u) << "one each at most";

  ASSERT_TRUE(repeated.run(*plan));
  EXPECT_TRUE(repeated.is_as_expected());
  EXPECT_EQ(context.barrier_aborts(), aborts) << "not tried again";
  EXPECT_TRUE(fails_with(context.plan(problem(), config()), Status::unsupported,
                         {"device_barrier", "gave up waiting"}));
  Problem wish = problem();
  wish.split_k = {.slices = 8, .reduction_mode = ReductionMode::device_barrier};
  EXPECT_TRUE(fails_with(context.plan(wish), Status::unsupported, {"gave up waiting"}));
  wish.split_k.reduction_mode = ReductionMode::last_arriver;
  EXPECT_TRUE(succeeds(context.plan(wish)));
}

// With everything that reads and writes elements, in place: D is C, which must be whole when
// somebody else computes it anew.
TEST_P(DeviceBarrier, GivenUpInPlace) {
  const std::unique_ptr<Runner> runner = another_runner();
  const Context& context = runner->context();
  Problem whole = problem();
  whole.batch = 3;
  whole.c.type = whole.d.type = whole.aux.type = DataType::f32;
  whole.epilogue = oracle::heavy_epilogue();
  Config impatient = config();
  impatient.spin_limit = 0;
  Config plain = impatient;
  plain.reduction_mode = ReductionMode::two_dispatches;
  plain.spin_limit = default_spin_limit;
  Trial trial(whole, Fill::random, {.in_place = true, .on = runner.get()});
  ASSERT_TRUE(trial.run(plain));
  ASSERT_TRUE(trial.is_within_bound());
  const auto plan = context.plan(whole, impatient);
  ASSERT_TRUE(succeeds(plan));
  for (int turn = 0; turn < 30 && context.barrier_aborts() == 0; ++turn) {
    ASSERT_TRUE(trial.repeats(*plan));
  }
  if (context.barrier_aborts() == 0) GTEST_SKIP() << "no barrier was given up";
  EXPECT_TRUE(trial.repeats(*plan)) << "not tried again";
}

TEST_P(DeviceBarrier, ManyTimesTheSameBits) {
  const std::unique_ptr<Runner> runner = another_runner();
  const Context& context = runner->context();
  Repeated repeated(*runner, problem(), 100);
  for (const ReductionMode mode : {ReductionMode::last_arriver, ReductionMode::device_barrier}) {
    Config again = config();
    again.reduction_mode = mode;
    ASSERT_TRUE(repeated.expect_of(again));
    if (mode == ReductionMode::last_arriver) again.spin_limit = default_spin_limit;
    const auto plan = context.plan(problem(), again);
    ASSERT_TRUE(succeeds(plan));
    for (int turn = 0; turn < 10; ++turn) {
      ASSERT_TRUE(repeated.run(*plan));
      ASSERT_TRUE(repeated.is_as_expected()) << to_string(again);
    }
  }
  if (!on_cpu()) {
    EXPECT_EQ(context.barrier_aborts(), 0u);
  }
}

// A second device keeps the hardware busy meanwhile.
testing::AssertionResult soak(const Config& config, const Problem& problem, int turns) {
  constexpr std::uint32_t per_turn = 100;
  const std::unique_ptr<Runner> patient = another_runner(), busy = another_runner();
  Repeated repeated(*patient, problem, per_turn), other(*busy, problem, per_turn);
  if (auto ran = repeated.expect_of(config); !ran) return ran;
  const auto plan = patient->context().plan(problem, config);
  if (!plan) return succeeds(plan);
  Config plain = config;
  plain.reduction_mode = ReductionMode::two_dispatches;
  plain.spin_limit = default_spin_limit;
  const auto noise = busy->context().plan(problem, plain);
  if (!noise) return succeeds(noise);

  std::atomic<bool> done = false, noisy = true;
  testing::AssertionResult ran = testing::AssertionSuccess();
  std::thread thread([&] {
    while (!done && noisy) noisy = static_cast<bool>(other.run(*noise));
  });
  for (int turn = 0; turn < turns && ran; ++turn) {
    ran = repeated.run(*plan);
    if (ran) ran = repeated.is_as_expected();
  }
  done = true;
  thread.join();
  if (!ran) return ran;
  if (!noisy) return testing::AssertionFailure() << "the other device stopped";
  const std::uint32_t aborts = patient->context().barrier_aborts();
  if (aborts == 0 || on_cpu()) return ran;
  return testing::AssertionFailure() << aborts << " barriers were given up";
}

TEST_P(DeviceBarrier, BesideABusyDevice) { EXPECT_TRUE(soak(config(), problem(), 3)); }

// 10^5 dispatches on a GPU.
TEST_P(DeviceBarrier, NightlySoak) {
  const int turns = on_cpu() ? 50 : 1000;
  EXPECT_TRUE(soak(config(), problem(), turns));
  Config last = config();
  last.reduction_mode = ReductionMode::last_arriver;
  last.spin_limit = default_spin_limit;
  EXPECT_TRUE(soak(last, problem(), turns));
}

}  // namespace
}  // namespace vkgemm::test
