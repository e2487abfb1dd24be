// hazards.hpp: accesses to memory that nothing orders. Vulkan's validation layers look for them in
// buffers that are bound, and see none of what kernels do by address; this is told what they do.
// Pure.
//
// The model: commands of one queue, in the order of their submission, on the stages compute,
// transfer and host. A command waits for an earlier one if a barrier, or a chain of barriers, makes
// it; it may read or overwrite what that wrote if the write was made available, and visible to this
// access. When the host has waited for a submission, all of it is over.
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace vkgemm::test {

// Bytes of memory: pieces of one size, in lines, which are in matrices.
struct Region {
  struct Repeat {
    std::uint64_t pitch = 0;  // bytes from one to the next
    std::uint64_t count = 1;
  };

  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // of a piece
  Repeat lines = {};
  Repeat matrices = {};

  bool is_empty() const noexcept { return bytes == 0 || lines.count == 0 || matrices.count == 0; }
  // Behind the last byte. Not of an empty one.
  std::uint64_t end() const noexcept {
    return address + (lines.count - 1) * lines.pitch + (matrices.count - 1) * matrices.pitch +
           bytes;
  }
};

// True if a byte belongs to both. Of regions that interleave in more than a million ways it may say
// so without being sure.
bool overlap(const Region& a, const Region& b) noexcept;

// What a command does to a region.
struct Access {
  std::string_view what;  // static storage: "d", "partial results"
  Region region;
  bool reads = false;
  bool writes = false;
  bool atomic = false;      // needs no order among others that are
  bool host_reads = false;  // the host looks, without a command, when it has waited
};

// The part of a kernel's grid that a dispatch covers. Workgroups of one grid agree among themselves
// on who accesses what, so dispatches of different parts of it need no order.
struct GridPart {
  std::vector<std::uint32_t> grid;  // the same for all dispatches of a grid
  std::uint32_t first_tile = 0;
  std::uint32_t tiles = 0;
  std::uint32_t first_batch = 0;
  std::uint32_t batches = 0;
};

// A dispatch, copy or fill.
struct Command {
  std::string name;
  VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;  // or TRANSFER
  std::vector<Access> accesses;
  std::optional<GridPart> part = std::nullopt;
};

// A pipeline barrier with at most one memory barrier, of all memory or of a buffer's.
struct Barrier {
  VkPipelineStageFlags src_stages = 0;
  VkPipelineStageFlags dst_stages = 0;
  VkAccessFlags src_access = 0;
  VkAccessFlags dst_access = 0;
  std::optional<Region> memory = std::nullopt;  // one piece
};

// What follows belongs to another submission.
struct Submission {};

// The host has waited for so many submissions, counted from the first.
struct HostWait {
  std::uint64_t submissions = std::numeric_limits<std::uint64_t>::max();
};

using Event = std::variant<Command, Barrier, Submission, HostWait>;

class HazardChecker {
 public:
  void add(const Event& event);

  // How many submissions were begun by an event.
  std::uint64_t submissions() const noexcept { return submissions_; }

  // What was found since the last call, a line each: at most one for each two commands.
  std::vector<std::string> take();

 private:
  // What barriers have done with writes. Each class of stages has a place.
  struct Shown {
    bool available = false;
    std::array<VkAccessFlags, 3> visible = {};
  };
  // A command, and what barriers behind it have done.
  struct Pending {
    VkAccessFlags visible(std::size_t place, const Region& one, const Region& other) const;

    Command command;
    std::uint64_t number = 0;  // in its submission, from 1
    std::uint64_t submission = 0;
    std::uint32_t waiting = 0;  // the classes of stages that wait for it
    Shown all = {};
    std::vector<std::pair<Region, Shown>> parts = {};  // of the memory, and what is true of all
  };

  void run(const Command& command);
  void run(const Barrier& barrier);
  void run(const Submission&);
  void run(const HostWait& wait);
  void check(const Pending& before, const Pending& now);

  std::vector<Pending> pending_;
  std::vector<std::string> found_;
  std::uint64_t submissions_ = 0;
  std::uint64_t commands_ = 0;  // of this submission
};

// All that is found in a list.
std::vector<std::string> find_hazards(std::span<const Event> events);

}  // namespace vkgemm::test
