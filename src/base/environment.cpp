#include "base/environment.hpp"

#include <cstdlib>

#if defined(__linux__)
#include <sys/auxv.h>
#elif !defined(_WIN32)
#include <unistd.h>
#endif

namespace vkgemm {
namespace {

bool has_more_rights() noexcept {
#if defined(__linux__)
  return getauxval(AT_SECURE) != 0;
#elif defined(_WIN32)
  return false;  // not asked there
#else
  return issetugid() != 0;
#endif
}

}  // namespace

const char* environment_variable(const char* name) noexcept {
  return has_more_rights() ? nullptr : std::getenv(name);
}

}  // namespace vkgemm
