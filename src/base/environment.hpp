// environment.hpp: variables of the environment.
#pragma once

#include <string>

namespace vkgemm {

// The variable's value. Empty if there is none and, but for Windows, in a process that has more
// rights than whoever started it (set-user-ID, file capabilities): that one's environment must not
// name files here.
std::string environment_variable(const char* name);

}  // namespace vkgemm
