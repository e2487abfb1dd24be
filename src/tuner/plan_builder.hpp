// plan_builder.hpp: threads that build plans before they are wanted: a driver takes up to seconds
// for one, of one core each.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "vkgemm/vkgemm.hpp"

namespace vkgemm::tuner {

class PlanBuilder {
 public:
  // `build` is called from several threads at once. Without threads, take() builds.
  using Build = std::function<Result<Plan>(const Problem&, const Config&)>;
  PlanBuilder(Build build, std::uint32_t threads);

  // One less than the processors: one is left for the thread that measures.
  static std::uint32_t default_threads();
  ~PlanBuilder();  // waits for those that are being built
  PlanBuilder(const PlanBuilder&) = delete;
  PlanBuilder& operator=(const PlanBuilder&) = delete;

  // Plans of problem number `index`: in this order, after those of problems with a smaller number.
  // Configurations that it knows already are passed over. `problem` must outlive it.
  void want(std::size_t index, const Problem& problem, const std::vector<Config>& configs);

  // The place of one that take() gives at once: the first that is ready or was never wanted. If
  // there is none, waits so long and gives nothing. There must be some.
  std::optional<std::size_t> next(std::size_t index, const std::vector<Config>& configs,
                                  std::chrono::milliseconds patience);

  // Built here and now if no thread has begun with it.
  Result<Plan> take(std::size_t index, const Problem& problem, const Config& config);

  // Plans that no thread has begun with are not wanted any more.
  void drop_wanted(std::size_t index);

  // Nothing of the problem is needed any more. Waits for plans of it that are being built.
  void forget(std::size_t index);

  // No thread builds until go_on().
  void rest();
  void go_on();

 private:
  enum class State : std::uint8_t { wanted, building, ready };
  struct Job {
    Config config;
    const Problem* problem = nullptr;
    State state = State::wanted;
    std::optional<Result<Plan>> plan;
  };
  using Jobs = std::vector<std::shared_ptr<Job>>;  // shared with the thread that is at it

  void work();
  std::shared_ptr<Job> find(std::size_t index, const Config& config) const;
  std::shared_ptr<Job> first_wanted() const;

  const Build build_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::map<std::size_t, Jobs> jobs_;
  std::uint32_t building_ = 0;
  bool resting_ = false;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace vkgemm::tuner
