// set_environment.hpp: variables of the environment, for a while.
#pragma once

#include <cstdlib>

namespace vkgemm::test {

// Without a value the variable is gone.
inline void set_environment(const char* name, const char* value = "") {
#ifdef _WIN32
  _putenv_s(name, value);
#else
  *value == '\0' ? unsetenv(name) : setenv(name, value, 1);
#endif
}

}  // namespace vkgemm::test
