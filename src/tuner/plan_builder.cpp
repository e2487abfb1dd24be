#include "tuner/plan_builder.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace vkgemm::tuner {

PlanBuilder::PlanBuilder(Build build, std::uint32_t threads) : build_(std::move(build)) {
  for (std::uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

std::uint32_t PlanBuilder::default_threads() {
  return std::max(std::thread::hardware_concurrency(), 2U) - 1;
}

PlanBuilder::~PlanBuilder() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void PlanBuilder::want(std::size_t index, const Problem& problem,
                       const std::vector<Config>& configs) {
  if (threads_.empty()) return;
  const std::scoped_lock lock(mutex_);
  for (const Config& config : configs) {
    if (find(index, config) != nullptr) continue;
    jobs_[index].push_back(std::make_shared<Job>(Job{.config = config, .problem = &problem}));
  }
  changed_.notify_all();
}

std::optional<std::size_t> PlanBuilder::next(std::size_t index, const std::vector<Config>& configs,
                                             std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  std::optional<std::size_t> place;
  changed_.wait_for(lock, patience, [&] {
    for (std::size_t i = 0; i < configs.size() && !place; ++i) {
      const auto job = find(index, configs[i]);
      if (job == nullptr || job->state == State::ready) place = i;
    }
    return place.has_value();
  });
  return place;
}

Result<Plan> PlanBuilder::take(std::size_t index, const Problem& problem, const Config& config) {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Job> job = find(index, config);
  if (job == nullptr || job->state == State::wanted) {
    if (job != nullptr) std::erase(jobs_[index], job);
    lock.unlock();
    return build_(problem, config);
  }
  changed_.wait(lock, [&] { return job->state == State::ready; });
  std::erase(jobs_[index], job);
  return *std::move(job->plan);
}

void PlanBuilder::drop_wanted(std::size_t index) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(jobs_[index], [](const auto& job) { return job->state == State::wanted; });
}

void PlanBuilder::forget(std::size_t index) {
  drop_wanted(index);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return std::ranges::none_of(jobs_[index],
                                [](const auto& job) { return job->state == State::building; });
  });
  jobs_.erase(index);
}

void PlanBuilder::rest() {
  std::unique_lock lock(mutex_);
  resting_ = true;
  changed_.wait(lock, [&] { return building_ == 0; });
}

void PlanBuilder::go_on() {
  const std::scoped_lock lock(mutex_);
  resting_ = false;
  changed_.notify_all();
}

void PlanBuilder::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    std::shared_ptr<Job> job;
    changed_.wait(lock, [&] {
      job = resting_ ? nullptr : first_wanted();
      return stop_ || job != nullptr;
    });
    if (stop_) return;
    job->state = State::building;
    ++building_;
    lock.unlock();
    Result<Plan> plan = build_(*job->problem, job->config);
    lock.lock();
    job->plan = std::move(plan);
    job->state = State::ready;
    --building_;
    changed_.notify_all();
  }
}

std::shared_ptr<PlanBuilder::Job> PlanBuilder::find(std::size_t index, const Config& config) const {
  const auto jobs = jobs_.find(index);
  if (jobs == jobs_.end()) return nullptr;
  const auto job = std::ranges::find_if(
      jobs->second, [&](const auto& candidate) { return candidate->config == config; });
  return job == jobs->second.end() ? nullptr : *job;
}

std::shared_ptr<PlanBuilder::Job> PlanBuilder::first_wanted() const {
  for (const auto& [index, jobs] : jobs_) {
    for (const auto& job : jobs) {
      if (job->state == State::wanted) return job;
    }
  }
  return nullptr;
}

}  // namespace vkgemm::tuner
