#include <algorithm>
#include <iterator>

#include "kernels/main_loop.hpp"

namespace vkgemm {

extern const LoopDescriptor nv_loop;
extern const LoopDescriptor khr_loop;
extern const LoopDescriptor khr_ring_loop;
extern const LoopDescriptor khr_direct_loop;
extern const LoopDescriptor fma_loop;
extern const LoopDescriptor skinny_loop;

namespace {

constexpr const LoopDescriptor* descriptors[] = {
    &nv_loop, &khr_loop, &khr_ring_loop, &khr_direct_loop, &fma_loop, &skinny_loop,
};
static_assert(std::size(descriptors) == std::variant_size_v<decltype(Config::loop)>);

}  // namespace

std::span<const LoopDescriptor* const> main_loops() noexcept { return descriptors; }

const LoopDescriptor& descriptor(MainLoop loop) noexcept {
  return *descriptors[static_cast<std::size_t>(loop)];
}

}  // namespace vkgemm
