#include <vkgemm/vkgemm.hpp>

// Scores of attention, for a group of query heads that share a key head. Q is
// [key heads][group][queries][k], K is [key heads][keys][k], D [key heads][group][queries][keys].
vkgemm::Result<vkgemm::Plan> plan_scores(const vkgemm::Context& context, std::uint64_t key_heads,
                                         std::uint64_t group, std::uint64_t queries,
                                         std::uint64_t keys, std::uint64_t k) {
  const vkgemm::Problem problem{
      .m = queries,
      .n = keys,
      .k = k,
      .batch = group,
      .outer_batch = key_heads,
      .b = {.layout = vkgemm::Layout::col_major, .batch_stride = 0},
  };
  return context.plan(problem);
}
