// An application without exceptions and RTTI that includes every public header.
#include <vkgemm/vkgemm.h>
#include <cstdio>
#include <vkgemm/vkgemm.hpp>

int main() {
  const vkgemm::Result<vkgemm::Config> good =
      vkgemm::parse_config("fma:tile=32x32x16,fragment=4x4");
  const vkgemm::Result<vkgemm::Config> bad = vkgemm::parse_config("fma:tile=none");
  std::uint32_t major = 0, minor = 0, patch = 0;
  if (vkgemm_version(&major, &minor, &patch) != VKGEMM_SUCCESS || !good || bad) return 1;
  std::printf("vkgemm %u.%u.%u: %s; %s\n", major, minor, patch, to_string(*good).c_str(),
              bad.error().message.c_str());
  return 0;
}
