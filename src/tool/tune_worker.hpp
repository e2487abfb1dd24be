// tune_worker.hpp: the part of `vkgemm tune` that has a device, in a process that may die of it.
#pragma once

#include <functional>
#include <string>

#include "tool/tune_session.hpp"
#include "tool/tune_task.hpp"

namespace vkgemm::tool {

// Measures what the session lacks, and says so (tuner/tune_session.hpp). True if there is nothing
// left to do, or nothing can be done.
bool tune_work(const TuneTask& task, TuneSession session,
               const std::function<void(std::string)>& say);

}  // namespace vkgemm::tool
