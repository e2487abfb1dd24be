// environment.hpp: variables of the environment.
#pragma once

namespace vkgemm {

// The variable's value. Null if there is none and, but for Windows, in a process that has more
// rights than whoever started it (set-user-ID, file capabilities): that one's environment must not
// name files here.
const char* environment_variable(const char* name) noexcept;

}  // namespace vkgemm
