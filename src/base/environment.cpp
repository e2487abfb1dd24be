#include "base/environment.hpp"

#include "base/system.hpp"

namespace vkgemm {

std::string environment_variable(const char* name) {
  return os::has_more_rights() ? std::string() : os::environment(name);
}

}  // namespace vkgemm
