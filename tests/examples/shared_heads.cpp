#include <vkgemm/vkgemm.hpp>

// Scores of attention: several query heads share a key head. Q is [tokens][heads][k], K is
// [keys][key heads][k], D is [heads][tokens][keys].
vkgemm::Result<vkgemm::Plan> plan_scores(const vkgemm::Context& context, std::uint64_t heads,
                                         std::uint64_t key_heads, std::uint64_t tokens,
                                         std::uint64_t keys, std::uint64_t k) {
  const std::uint64_t group = heads / key_heads;
  const vkgemm::Problem problem{
      .m = tokens,
      .n = keys,
      .k = k,
      .batch = group,
      .outer_batch = key_heads,
      .a = {.ld = heads * k, .batch_stride = k, .outer_batch_stride = group * k},
      .b = {.layout = vkgemm::Layout::col_major,
            .ld = key_heads * k,
            .batch_stride = 0,
            .outer_batch_stride = k},
  };
  return context.plan(problem);
}
