// tune_problems.hpp: which problems `vkgemm tune` is for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tool/groups.hpp"
#include "tool/job.hpp"
#include "tool/planning.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::tool {

struct TuneProblem {
  std::string arguments;  // of `vkgemm run`; with the sizes of groups, if they are uneven
  Problem problem;
  Groups groups;
  std::string list = "problems";  // the log that it is from, without folder and extension
};

// One problem for each of the shapes ("512,64x8192x8192"; empty: the one that the options name).
std::vector<TuneProblem> problems_of(const JobOptions& options, const std::string& shapes);

// The problems of a log (files/plan_log.hpp). Lines that are no command of this version are
// counted and told, on stderr. A Failure if the file cannot be read.
std::vector<TuneProblem> problems_of_log(const std::string& file);

// The problem of a `vkgemm run` with these arguments. Throws what CLI11 does, or a Failure.
TuneProblem problem_of_command(const std::string& arguments);

// Appends those that are not there already.
void add_problems(std::vector<TuneProblem>& problems, std::vector<TuneProblem> more);

}  // namespace vkgemm::tool
