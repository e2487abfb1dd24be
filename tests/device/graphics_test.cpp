// tests/examples/graphics.cpp as it stands: a device with features of an application, an image that
// becomes A, and a product.
#include <volk.h>

#include "../examples/graphics.cpp"
#include "harness.hpp"
#include "problem/convert.hpp"

namespace vkgemm::test {
namespace {

// An image of the frame's size in memory of its own.
class Image {
 public:
  Image(headless::Runner& runner, std::uint32_t width, std::uint32_t height)
      : device_(runner.device()) {
    VkImageCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
    info.imageType = VK_IMAGE_TYPE_2D;
    info.format = VK_FORMAT_R16G16B16A16_SFLOAT;
    info.extent = {width, height, 1};
    info.mipLevels = info.arrayLayers = 1;
    info.samples = VK_SAMPLE_COUNT_1_BIT;
    info.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
    EXPECT_EQ(vkCreateImage(device_, &info, nullptr, &image), VK_SUCCESS);
    VkMemoryRequirements needs;
    vkGetImageMemoryRequirements(device_, image, &needs);
    VkMemoryAllocateInfo memory_info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    memory_info.allocationSize = needs.size;
    memory_info.memoryTypeIndex =
        static_cast<std::uint32_t>(std::countr_zero(needs.memoryTypeBits));
    EXPECT_EQ(vkAllocateMemory(device_, &memory_info, nullptr, &memory_), VK_SUCCESS);
    EXPECT_EQ(vkBindImageMemory(device_, image, memory_, 0), VK_SUCCESS);
    VkImageViewCreateInfo view_info{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
    view_info.image = image;
    view_info.viewType = VK_IMAGE_VIEW_TYPE_2D;
    view_info.format = info.format;
    view_info.subresourceRange = whole_image;
    EXPECT_EQ(vkCreateImageView(device_, &view_info, nullptr, &view), VK_SUCCESS);
  }
  ~Image() {
    vkDestroyImageView(device_, view, nullptr);
    vkDestroyImage(device_, image, nullptr);
    vkFreeMemory(device_, memory_, nullptr);
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  VkImage image = VK_NULL_HANDLE;
  VkImageView view = VK_NULL_HANDLE;

 private:
  VkDevice device_;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
};

bool draws(const headless::Runner& runner) {
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(runner.physical_device(), &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(runner.physical_device(), &count, families.data());
  return (families[runner.queue_family()].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0;
}

TEST(Graphics, DrawsAndMultiplies) {
  auto needs =
      query_requirements(runner().instance(), runner().physical_device(), vkGetInstanceProcAddr);
  ASSERT_TRUE(needs);
  GraphicsFeatures features(*needs);
  const auto own = another_runner({.features = &features.all});
  if (!draws(*own)) GTEST_SKIP() << "the queue of " << caps().name << " doesn't draw";

  constexpr std::uint32_t width = 16, height = 8, n = 24, k = 4 * width;
  const auto plan =
      own->context().plan({.m = height, .n = n, .k = k, .d = {.type = DataType::f32}});
  ASSERT_TRUE(plan) << plan.error().message;
  // Column j of B has j in all rows.
  std::vector<std::uint16_t> b(k * n);
  for (std::size_t i = 0; i < b.size(); ++i) {
    store_element(reinterpret_cast<std::byte*>(b.data()), DataType::f16, i,
                  static_cast<double>(i % n));
  }
  const auto allocate = [&](std::uint64_t bytes) { return std::move(*own->allocate(bytes)); };
  const headless::Buffer at_a = allocate(height * k * 2), at_b = allocate(b.size() * 2);
  const headless::Buffer at_d = allocate(height * n * 4), at_w = allocate(plan->workspace_bytes());
  ASSERT_TRUE(own->upload(at_b, 0, b.data(), b.size() * 2));
  const Image image(*own, width, height);
  const Frame frame{.image = image.image,
                    .view = image.view,
                    .width = width,
                    .height = height,
                    .a_buffer = at_a.handle(),
                    .a = at_a.span(),
                    .b = at_b.span(),
                    .d = at_d.span(),
                    .workspace = at_w.span()};
  const auto submitted = own->submit([&](VkCommandBuffer commands) {
    draw(commands, frame, {.float32 = {0.5f, 1.0f, 2.0f, -1.0f}});
    return multiply(commands, frame, *plan);
  });
  ASSERT_TRUE(submitted) << submitted.error().message;
  std::vector<float> d(height * n);
  ASSERT_TRUE(own->download(at_d, 0, d.data(), d.size() * 4));
  for (std::size_t i = 0; i < d.size(); ++i) {
    EXPECT_EQ(d[i], 2.5f * width * static_cast<float>(i % n)) << i;
  }
  EXPECT_EQ(own->validation_messages(), 0u);
}

}  // namespace
}  // namespace vkgemm::test
