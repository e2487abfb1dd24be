#include <algorithm>
#include <iterator>

#include "kernels/loops/list.hpp"
#include "kernels/main_loop.hpp"

namespace vkgemm {

#define VKGEMM_DESCRIPTOR(name, NAME) extern const LoopDescriptor name##_loop;
VKGEMM_MAIN_LOOPS(VKGEMM_DESCRIPTOR)
#undef VKGEMM_DESCRIPTOR

namespace {

#define VKGEMM_DESCRIPTOR(name, NAME) &name##_loop,
constexpr const LoopDescriptor* descriptors[] = {VKGEMM_MAIN_LOOPS(VKGEMM_DESCRIPTOR)};
#undef VKGEMM_DESCRIPTOR
static_assert(std::size(descriptors) == std::variant_size_v<decltype(Config::loop)>);

}  // namespace

std::span<const LoopDescriptor* const> main_loops() noexcept { return descriptors; }

const LoopDescriptor& descriptor(MainLoop loop) noexcept {
  return *descriptors[static_cast<std::size_t>(loop)];
}

}  // namespace vkgemm
