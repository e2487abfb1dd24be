#include "hazards.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "base/text.hpp"

namespace vkgemm::test {
namespace {

// Classes of stages.
constexpr std::uint32_t compute = 1, transfer = 2, host = 4;
constexpr std::array classes = {compute, transfer, host};

constexpr VkPipelineStageFlags all_commands = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT |
                                              VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT |
                                              VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;

std::uint32_t classes_of(VkPipelineStageFlags stages) {
  std::uint32_t out = 0;
  if ((stages & (VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | all_commands)) != 0) out |= compute;
  if ((stages & (VK_PIPELINE_STAGE_TRANSFER_BIT | all_commands)) != 0) out |= transfer;
  if ((stages & VK_PIPELINE_STAGE_HOST_BIT) != 0) out |= host;
  return out;
}
// The first scope of a barrier ends, and the second one begins, with nothing at these stages.
std::uint32_t source_classes(VkPipelineStageFlags stages) {
  return classes_of(stages & ~VkPipelineStageFlags{VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT});
}
std::uint32_t destination_classes(VkPipelineStageFlags stages) {
  return classes_of(stages & ~VkPipelineStageFlags{VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT});
}

VkAccessFlags read_at(std::uint32_t stage) {
  return stage == compute    ? VK_ACCESS_SHADER_READ_BIT
         : stage == transfer ? VK_ACCESS_TRANSFER_READ_BIT
                             : VK_ACCESS_HOST_READ_BIT;
}
VkAccessFlags write_at(std::uint32_t stage) {
  return stage == compute ? VK_ACCESS_SHADER_WRITE_BIT : VK_ACCESS_TRANSFER_WRITE_BIT;
}

// True if a mask names this access of this class of stages.
bool names_read(VkAccessFlags mask, std::uint32_t stage) {
  return (mask & (read_at(stage) | VK_ACCESS_MEMORY_READ_BIT)) != 0;
}
bool names_write(VkAccessFlags mask, std::uint32_t stage) {
  return (mask & (write_at(stage) | VK_ACCESS_MEMORY_WRITE_BIT)) != 0;
}

std::size_t place_of(std::uint32_t stage) {
  return static_cast<std::size_t>(std::ranges::find(classes, stage) - classes.begin());
}

// --- regions

// Neighbours become one piece, and lines that go on through all matrices are those of one.
Region simplified(Region r) {
  const auto join = [](Region& region, Region::Repeat& repeat) {
    if (repeat.count > 1 && repeat.pitch > region.bytes) return;
    region.bytes += (repeat.count - 1) * repeat.pitch;
    repeat = {};
  };
  join(r, r.lines);
  if (r.lines.count == 1) {
    join(r, r.matrices);
    if (r.matrices.count > 1) r.lines = std::exchange(r.matrices, {});
  } else if (r.matrices.pitch == r.lines.pitch * r.lines.count) {
    r.lines.count *= std::exchange(r.matrices, {}).count;
  }
  return r;
}

// The repetitions, of pieces of so many bytes, that may have a byte of [begin, end).
struct Range {
  std::uint64_t first, end;
};
Range touched(std::uint64_t address, std::uint64_t bytes, const Region::Repeat& repeat,
              std::uint64_t begin, std::uint64_t end) {
  if (end <= address) return {0, 0};
  if (repeat.pitch == 0) return {0, address + bytes > begin ? repeat.count : 0};
  const std::uint64_t first =
      begin < address + bytes ? 0 : (begin - address - bytes) / repeat.pitch + 1;
  return {first, std::min(repeat.count, (end - 1 - address) / repeat.pitch + 1)};
}

std::uint64_t line_extent(const Region& r) { return (r.lines.count - 1) * r.lines.pitch + r.bytes; }

bool touches(const Region& r, std::uint64_t begin, std::uint64_t end) {
  const Range matrices = touched(r.address, line_extent(r), r.matrices, begin, end);
  for (std::uint64_t i = matrices.first; i < matrices.end; ++i) {
    const Range lines = touched(r.address + i * r.matrices.pitch, r.bytes, r.lines, begin, end);
    if (lines.first < lines.end) return true;
  }
  return false;
}

// True if all distances are multiples of one that keeps the pieces of both apart.
bool are_apart_modulo(const Region& a, const Region& b) {
  std::uint64_t pitch = 0;
  for (const Region* r : {&a, &b}) {
    for (const Region::Repeat& repeat : {r->lines, r->matrices}) {
      if (repeat.count > 1) pitch = std::gcd(pitch, repeat.pitch);
    }
  }
  if (pitch == 0 || a.bytes > pitch || b.bytes > pitch) return false;
  const std::uint64_t distance = (b.address % pitch + pitch - a.address % pitch) % pitch;
  return distance >= a.bytes && distance + b.bytes <= pitch;
}

// True if all of it is within one piece of memory.
bool contains(const Region& piece, const Region& r) {
  return piece.address <= r.address && r.end() <= piece.end();
}

constexpr std::uint64_t most_tries = 1 << 20;

// --- messages

std::string hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string place(const Access& access) {
  return concat(access.what, " [", hex(access.region.address), ", ", hex(access.region.end()), ")");
}

std::string_view verb(const Access& access) {
  if (access.reads && access.writes) return "reads and writes";
  return access.writes ? "writes" : "reads";
}

bool are_parts_of_one_grid(const Command& a, const Command& b) {
  if (!a.part || !b.part || a.part->grid != b.part->grid) return false;
  const auto apart = [](std::uint64_t first, std::uint64_t count, std::uint64_t other,
                        std::uint64_t other_count) {
    return first + count <= other || other + other_count <= first;
  };
  const GridPart &x = *a.part, &y = *b.part;
  return apart(x.first_tile, x.tiles, y.first_tile, y.tiles) ||
         apart(x.first_batch, x.batches, y.first_batch, y.batches);
}

}  // namespace

bool overlap(const Region& one, const Region& other) noexcept {
  if (one.is_empty() || other.is_empty()) return false;
  if (one.end() <= other.address || other.end() <= one.address) return false;
  Region a = simplified(one), b = simplified(other);
  if (are_apart_modulo(a, b)) return false;
  const auto pieces = [](const Region& r) { return r.lines.count * r.matrices.count; };
  if (pieces(a) > pieces(b)) std::swap(a, b);
  const Range matrices = touched(a.address, line_extent(a), a.matrices, b.address, b.end());
  std::uint64_t tries = 0;
  for (std::uint64_t i = matrices.first; i < matrices.end; ++i) {
    const std::uint64_t matrix = a.address + i * a.matrices.pitch;
    const Range lines = touched(matrix, a.bytes, a.lines, b.address, b.end());
    for (std::uint64_t j = lines.first; j < lines.end; ++j) {
      const std::uint64_t begin = matrix + j * a.lines.pitch;
      if (++tries > most_tries || touches(b, begin, begin + a.bytes)) return true;
    }
  }
  return false;
}

void HazardChecker::add(const Event& event) {
  std::visit([this](const auto& what) { run(what); }, event);
}

std::vector<std::string> HazardChecker::take() { return std::exchange(found_, {}); }

void HazardChecker::run(const Submission&) {
  ++submissions_;
  commands_ = 0;
}

void HazardChecker::run(const Barrier& barrier) {
  const std::uint32_t from = source_classes(barrier.src_stages);
  const std::uint32_t to = destination_classes(barrier.dst_stages);
  for (Pending& before : pending_) {
    const std::uint32_t stage = classes_of(before.command.stage);
    const bool direct = (from & stage) != 0;
    if (!direct && (from & before.waiting) == 0) continue;
    before.waiting |= to;
    const auto show = [&](Shown& shown) {
      if (direct && names_write(barrier.src_access, stage)) shown.available = true;
      if (!shown.available) return;
      for (std::size_t i = 0; i < classes.size(); ++i) {
        if ((to & classes[i]) != 0) shown.visible[i] |= barrier.dst_access;
      }
    };
    if (barrier.memory) before.parts.emplace_back(*barrier.memory, before.all);
    if (!barrier.memory) show(before.all);
    for (auto& [part, shown] : before.parts) {
      if (!barrier.memory || contains(*barrier.memory, part)) show(shown);
    }
  }
}

// Of what both regions share.
VkAccessFlags HazardChecker::Pending::visible(std::size_t place, const Region& one,
                                              const Region& other) const {
  VkAccessFlags out = all.visible[place];
  for (const auto& [part, shown] : parts) {
    if (contains(part, one) || contains(part, other)) out |= shown.visible[place];
  }
  return out;
}

void HazardChecker::run(const HostWait& wait) {
  const auto is_over = [&](const Pending& before) { return before.submission <= wait.submissions; };
  for (const Pending& before : pending_) {
    if (!is_over(before)) continue;
    for (const Access& access : before.command.accesses) {
      const bool looks = access.host_reads && access.writes && !access.region.is_empty();
      if (!looks) continue;
      if (names_read(before.visible(place_of(host), access.region, access.region), host)) continue;
      found_.push_back(concat("the host reads ", place(access), ", which command ", before.number,
                              " (", before.command.name,
                              ") writes: no barrier makes that visible to the host"));
    }
  }
  std::erase_if(pending_, is_over);
}

void HazardChecker::run(const Command& command) {
  const Pending now{.command = command, .number = ++commands_, .submission = submissions_};
  for (const Pending& before : pending_) check(before, now);
  // Nothing is left to be found of a command that everything waits for and sees.
  std::erase_if(pending_, [](const Pending& before) {
    bool seen = before.waiting == (compute | transfer | host);
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const VkAccessFlags visible = before.all.visible[i];
      seen = seen && names_read(visible, classes[i]) &&
             (classes[i] == host || names_write(visible, classes[i]));
    }
    return seen;
  });
  pending_.push_back(now);
}

void HazardChecker::check(const Pending& before, const Pending& now) {
  const std::uint32_t stage = classes_of(now.command.stage);
  const bool waits = (before.waiting & stage) != 0;
  const VkAccessFlags visible_of_all = before.all.visible[place_of(stage)];
  if (waits && names_read(visible_of_all, stage) && names_write(visible_of_all, stage)) return;
  if (are_parts_of_one_grid(before.command, now.command)) return;
  for (const Access& first : before.command.accesses) {
    for (const Access& second : now.command.accesses) {
      if (!first.writes && !second.writes) continue;
      if (first.atomic && second.atomic) continue;
      const VkAccessFlags visible = before.visible(place_of(stage), first.region, second.region);
      const bool unseen = first.writes && ((second.reads && !names_read(visible, stage)) ||
                                           (second.writes && !names_write(visible, stage)));
      if (waits && !unseen) continue;
      if (!overlap(first.region, second.region)) continue;
      const std::string_view why =
          waits ? "no barrier makes the write visible to it" : "no barrier makes it wait";
      const std::string earlier =
          before.submission == now.submission ? "" : " of an earlier submission";
      found_.push_back(concat("command ", now.number, " (", now.command.name, ") ", verb(second),
                              ' ', place(second), ", which command ", before.number, earlier, " (",
                              before.command.name, ") ", verb(first), " as ", place(first), ": ",
                              why));
      return;
    }
  }
}

std::vector<std::string> find_hazards(std::span<const Event> events) {
  HazardChecker checker;
  for (const Event& event : events) checker.add(event);
  return checker.take();
}

}  // namespace vkgemm::test
