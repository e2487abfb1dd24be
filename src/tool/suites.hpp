// suites.hpp: sets of problems under a name, to be timed again and again.
#pragma once

#include <string>
#include <vector>

#include "tool/cases.hpp"

namespace vkgemm::tool {

// Every suite and the options of its cases.
void list_suites();

// The cases of these suites; a Failure names one that is not known.
std::vector<BenchCase> suite_cases(const std::vector<std::string>& names);

}  // namespace vkgemm::tool
