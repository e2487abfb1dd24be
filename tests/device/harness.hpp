// harness.hpp: what all device tests share: one runner per process, and which configurations there
// are to test on its device.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headless/runner.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/target.hpp"
#include "vkgemm/vkgemm.hpp"

namespace vkgemm::test {

struct Settings {
  std::string device;        // --device
  std::optional<Path> path;  // --path: tests of other paths are skipped
};
Settings& settings();

// Created on first use. Messages of the validation layers fail the test that is running, and so do
// hazards (hazards/hazards.hpp) between the commands of any device that is made here.
headless::Runner& runner();
void destroy_runner();
inline const Context& context() { return runner().context(); }
inline const DeviceCaps& caps() { return runner().caps(); }

// A second device and context, e.g. to hand its plans to the first. `options.device` and the
// validation callback are filled in.
// `trusts_direct`: the direct loop is taken to have passed the self-test.
std::unique_ptr<headless::Runner> another_runner(headless::RunnerOptions options = {},
                                                 bool trusts_direct = true);

// Hazards that are found as long as it exists are collected and fail nothing.
class ExpectedHazards {
 public:
  ExpectedHazards();
  ~ExpectedHazards();
  ExpectedHazards(const ExpectedHazards&) = delete;
  ExpectedHazards& operator=(const ExpectedHazards&) = delete;

  // A line each.
  const std::vector<std::string>& found() const { return found_; }

 private:
  friend void tell_hazard(const std::string& text);
  std::vector<std::string> found_;
};

// A CPU: compiles slowly, computes slowly.
inline bool on_cpu() { return caps().type == VK_PHYSICAL_DEVICE_TYPE_CPU; }

// There is time for what tests leave out on a CPU: VKGEMM_NIGHTLY is set, or the test's name begins
// with Nightly.
bool is_nightly();

// True where a CPU leaves a case of a test to the night, because it compiles a pipeline for a
// second or more. It keeps each test's first case, those of one set of pipelines in eight (the same
// ones in every process, which share what was compiled), and what needs only pipelines of those
// that were kept before it in this process.
bool is_left_out(const Config& config, const Problem& problem);
std::size_t left_out_count();  // of this process

// The spin limit of tests that don't expect a barrier to be given up: a CPU that is busy with other
// things may let one of its workers sleep for long.
inline std::uint32_t patient_spin_limit() {
  return on_cpu() ? most_spin_limit : default_spin_limit;
}

// With slices that are added in this way.
inline Config sliced(Config config, std::uint32_t slices,
                     ReductionMode mode = ReductionMode::two_dispatches) {
  config.slices = slices;
  config.reduction_mode = mode;
  if (mode == ReductionMode::device_barrier) config.spin_limit = patient_spin_limit();
  return config;
}

// Small configurations of a path that are legal here for a product of `input` types; each shape
// of matrix that any vendor lists is among them. The first ones are the cheapest to compile.
std::vector<Config> small_configs(Path path, DataType input);

// The device with what the tables that are built in refuse.
Target target();

inline bool is_ring(const Config& config) { return config.main_loop() == MainLoop::khr_ring; }

// The depth of K that an iteration of the main loop takes, if it loads A and B by vectors.
inline std::uint64_t k_step(const Config& config) {
  const auto unroll = descriptor(config).unroll_k;
  return std::uint64_t{config.tile_k} * (unroll != nullptr ? unroll(config) : 1);
}

// True if its code is long (KhrLoop::peel, FmaLoop::peel).
bool peels(const Config& config);

// Why there is nothing to test: the path's own reason, that there is no configuration for these
// inputs, or that it is day: then a CPU runs each test on one of the paths khr and fma, unless
// --path asks for one. Empty if there is.
std::string why_skip(Path path, DataType input = DataType::f16);

// A plan with the first candidate of the path, whichever the library would choose.
Result<Plan> plan_on(Path path, const Problem& problem);

// Makes what compute shaders have written visible to the compute shaders of later commands.
void record_barrier(VkCommandBuffer commands);

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// Element types that the path multiplies on this device.
std::vector<DataType> inputs_of(Path path);

// A suite that runs once for each path.
class EachPath : public testing::TestWithParam<Path> {};
inline std::string path_name(const testing::TestParamInfo<Path>& info) {
  return std::string(to_string(info.param));
}
#define VKGEMM_ON_EACH_PATH(suite) \
  INSTANTIATE_TEST_SUITE_P(, suite, testing::Values(Path::khr, Path::fma, Path::nv), path_name)
#define VKGEMM_SKIP_IF(reason) \
  if (const std::string why = (reason); !why.empty()) GTEST_SKIP() << why

// A suite whose tests leave out unsupported cases of a path. Each test must compute at least one.
class EachPathCounted : public EachPath {
 protected:
  void SetUp() override { VKGEMM_SKIP_IF(why_skip(GetParam())); }
  void TearDown() override {
    if (IsSkipped() || HasFailure()) return;
    EXPECT_GT(computed_, 0u) << "nothing was computed";
  }

  std::size_t computed_ = 0;
};

// `result` is an error of this status whose message contains every one of `parts`.
template <class T>
testing::AssertionResult fails_with(const Result<T>& result, Status status,
                                    std::initializer_list<std::string_view> parts) {
  if (result) return testing::AssertionFailure() << "no error, expected " << to_string(status);
  const Error& error = result.error();
  if (error.status != status) {
    return testing::AssertionFailure() << to_string(error.status) << " (" << error.message
                                       << "), expected " << to_string(status);
  }
  for (const std::string_view part : parts) {
    if (error.message.find(part) == std::string::npos) {
      return testing::AssertionFailure()
             << "message '" << error.message << "' does not say '" << part << "'";
    }
  }
  return testing::AssertionSuccess();
}

template <class T>
testing::AssertionResult succeeds(const Result<T>& result) {
  if (result) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << to_string(result.error().status) << ": " << result.error().message;
}

}  // namespace vkgemm::test
