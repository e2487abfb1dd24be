#include <cstdint>
#include <vkgemm/vkgemm.hpp>

// Features of an application that draws, with those of vkgemm. `all` is VkDeviceCreateInfo::pNext
// and ContextCreateInfo::enabled_features.
struct GraphicsFeatures {
  VkPhysicalDeviceVulkan13Features vulkan13{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDeviceFeatures2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};

  explicit GraphicsFeatures(vkgemm::Requirements& needs) {
    vulkan13.synchronization2 = VK_TRUE;
    vulkan13.dynamicRendering = VK_TRUE;
    all.pNext = &vulkan13;
    needs.merge_into(all);
  }
};

// An image of VK_FORMAT_R16G16B16A16_SFLOAT, whose rows are the rows of A: K = 4 * width. The plan
// computes D = A·B.
struct Frame {
  VkImage image;
  VkImageView view;
  std::uint32_t width, height;
  VkBuffer a_buffer;
  vkgemm::DeviceSpan a, b, d, workspace;
};

constexpr VkImageSubresourceRange whole_image{VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};

void change_layout(VkCommandBuffer commands, VkImageMemoryBarrier2 barrier) {
  barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2;
  barrier.subresourceRange = whole_image;
  VkDependencyInfo dependency{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
  dependency.imageMemoryBarrierCount = 1;
  dependency.pImageMemoryBarriers = &barrier;
  vkCmdPipelineBarrier2(commands, &dependency);
}

void make_visible(VkCommandBuffer commands, VkMemoryBarrier2 barrier) {
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2;
  VkDependencyInfo dependency{VK_STRUCTURE_TYPE_DEPENDENCY_INFO};
  dependency.memoryBarrierCount = 1;
  dependency.pMemoryBarriers = &barrier;
  vkCmdPipelineBarrier2(commands, &dependency);
}

// Draws: clears the image to a colour.
void draw(VkCommandBuffer commands, const Frame& frame, const VkClearColorValue& colour) {
  change_layout(commands, {.dstStageMask = VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT,
                           .dstAccessMask = VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT,
                           .newLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL,
                           .image = frame.image});
  VkRenderingAttachmentInfo attachment{VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO};
  attachment.imageView = frame.view;
  attachment.imageLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
  attachment.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
  attachment.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
  attachment.clearValue.color = colour;
  VkRenderingInfo rendering{VK_STRUCTURE_TYPE_RENDERING_INFO};
  rendering.renderArea.extent = {frame.width, frame.height};
  rendering.layerCount = 1;
  rendering.colorAttachmentCount = 1;
  rendering.pColorAttachments = &attachment;
  vkCmdBeginRendering(commands, &rendering);
  vkCmdEndRendering(commands);
}

// Multiplies what was drawn. vkgemm places no barrier around a plan: those here are the caller's.
vkgemm::Result<void> multiply(VkCommandBuffer commands, const Frame& frame,
                              const vkgemm::Plan& plan) {
  change_layout(commands, {.srcStageMask = VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT,
                           .srcAccessMask = VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT,
                           .dstStageMask = VK_PIPELINE_STAGE_2_COPY_BIT,
                           .dstAccessMask = VK_ACCESS_2_TRANSFER_READ_BIT,
                           .oldLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL,
                           .newLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                           .image = frame.image});
  const VkBufferImageCopy rows{.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                               .imageExtent = {frame.width, frame.height, 1}};
  vkCmdCopyImageToBuffer(commands, frame.image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                         frame.a_buffer, 1, &rows);
  make_visible(commands, {.srcStageMask = VK_PIPELINE_STAGE_2_COPY_BIT,
                          .srcAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT,
                          .dstStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                          .dstAccessMask = VK_ACCESS_2_SHADER_READ_BIT});
  auto recorded = plan.record(
      commands, {.a = frame.a, .b = frame.b, .d = frame.d, .workspace = frame.workspace});
  make_visible(commands, {.srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                          .srcAccessMask = VK_ACCESS_2_SHADER_WRITE_BIT,
                          .dstStageMask = VK_PIPELINE_STAGE_2_COPY_BIT,
                          .dstAccessMask = VK_ACCESS_2_TRANSFER_READ_BIT});
  return recorded;
}
