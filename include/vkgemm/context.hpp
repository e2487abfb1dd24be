// vkgemm/context.hpp: from a Problem to commands in the application's command buffer.
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"
#include "vkgemm/export.h"
#include "vkgemm/problem.hpp"
#include "vkgemm/result.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm {

// Bytes on the device, [address, address + bytes). The buffer must be created with
// VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT, and its memory allocated with
// VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT. A span may be larger than 4 GiB.
struct DeviceSpan {
  VkDeviceAddress address = 0;
  VkDeviceSize bytes = 0;
};

// Identifies packed bytes: the device, the driver, the order and the matrix they were packed for.
// Opaque. Store it with the bytes. If it does not match, record() fails and names the field that
// differs.
struct Fingerprint {
  std::array<std::uint8_t, 64> bytes{};
  bool operator==(const Fingerprint&) const = default;
};

// The first field in which two fingerprints differ, with both values: "driver_version is 2, wanted
// is 3". Empty if they are alike.
VKGEMM_API std::string difference(const Fingerprint& given, const Fingerprint& wanted);

// How a packed operand lies. Its matrices are contiguous.
struct PackedLayout {
  VkDeviceSize bytes = 0;  // of all matrices; 0: this device gains nothing, leave the operand plain
  VkDeviceSize matrix_bytes = 0;  // from one matrix to the next
  VkDeviceSize alignment = 0;     // of the address
  Fingerprint fingerprint = {};
};

// The operands that can be packed.
enum class PackedOperand : std::uint8_t { a, b };

// The memory that one recording computes on. A span starts at element (0, 0) of batch 0 and must
// reach to the last element that the problem touches. Operands that the problem does not use are
// ignored. D may be the very same bytes as C (in place, same type, layout and strides); otherwise
// D, aux and row_values share no byte with each other or any other operand. Columns of one larger
// matrix, side by side, share none. A, B, C and bias may overlap.
//
// Matrices are aligned as the problem promises (Problem::a and others), packed ones to
// PackedLayout::alignment; vectors to their element type, the workspace to 256 bytes.
struct Operands {
  DeviceSpan a = {};
  DeviceSpan b = {};
  DeviceSpan b_right = {};  // GatedB::separate: the right half of B
  DeviceSpan c = {};        // if beta is not 0
  DeviceSpan d = {};
  DeviceSpan bias = {};        // N values, or M (Bias::along_m); 2N of a gated product
  DeviceSpan row_scales = {};  // Epilogue::row_scales: M factors, f32; so column_scales
  DeviceSpan column_scales = {};
  DeviceSpan aux = {};      // as large as D; 2N columns of a gated product
  DeviceSpan offsets = {};  // grouped: groups + 1 values, where groups begin and the last one ends
  DeviceSpan gamma = {};    // RowReduction::gamma: N factors
  DeviceSpan beta = {};     // RowReduction::beta: N summands
  DeviceSpan row_values = {};  // scalar row operations: M values for each matrix, written
  DeviceSpan workspace = {};   // Plan::workspace_bytes(), if that is not 0

  // Plans that prepare operands use these: Context::plan_pack(), plan_quantise_rows().
  DeviceSpan source = {};  // elements to be packed or quantised
  DeviceSpan codes = {};   // read by plan_pack(), written by plan_quantise_rows(); so scales
  DeviceSpan scales = {};
  DeviceSpan zeros = {};   // zero points of codes
  DeviceSpan packed = {};  // written: PackedLayout::bytes

  // PackedLayout::fingerprint of each packed operand, b_right too. Ignored for plain operands.
  Fingerprint a_fingerprint = {};
  Fingerprint b_fingerprint = {};
  Fingerprint b_right_fingerprint = {};
};

// How much a message matters.
enum class LogLevel : std::uint8_t { info, warning, error };

// Is handed a message that is valid during the call.
using LogCallback = std::function<void(LogLevel, std::string_view message)>;

// The device that a context is made for, and the options it is made with.
struct ContextCreateInfo {
  // Owned by the application; they must outlive the context and every plan made from it.
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;

  // The extensions and features that the device was created with: usually
  // Requirements::extensions() and features(), else the application's own lists. A path whose
  // extension or feature bit is not among them stays off. Both are read during create() only.
  std::span<const char* const> enabled_extensions = {};
  const VkPhysicalDeviceFeatures2* enabled_features = nullptr;

  // At most one of these two. The application's cache is used and never destroyed; one made with
  // VK_PIPELINE_CACHE_CREATE_EXTERNALLY_SYNCHRONIZED_BIT needs plan() to be synchronised as well. A
  // file is read if it fits this device and driver, discarded if not, and replaced atomically by
  // save_pipeline_cache() and on destruction, unless the device is lost. A symbolic link is neither
  // read nor replaced. The driver believes what it says: it must stand where nobody else can write.
  VkPipelineCache pipeline_cache = VK_NULL_HANDLE;
  std::filesystem::path pipeline_cache_file = {};

  // The test by which the device proves what it advertises, and the place where verdicts are kept.
  SelfTest self_test = {};

  // A tuning table for this device's architecture, as `vkgemm tune` writes it. Priority: the file
  // that the environment variable VKGEMM_TUNING names, then tuning_file, then the built-in tables.
  // A table only proposes: vkgemm never chooses a configuration that is not legal. vkgemm chooses a
  // configuration that a table denies or refuses only if nothing else computes the problem; then
  // the log gets a warning, and Plan::explain() says so. An invalid tuning_file (unreadable,
  // malformed, of another architecture) makes create() fail, with line and field. An invalid
  // VKGEMM_TUNING file is a warning in the log.
  std::filesystem::path tuning_file = {};

  // Called from the thread that calls vkgemm, so possibly from several at once. Must not throw.
  // Without one the library is silent, unless the environment variable VKGEMM_LOG is set (to
  // "stderr" or a file's path).
  LogCallback log = {};
};

// One legal way to compute a problem, with where its row in the tuning tables comes from.
struct Candidate {
  Config config;
  std::string provenance;  // "measured: NVIDIA H200 …", "compiled: …", "derived: …"
};

// Some of the dispatches of a plan, in the order in which they are recorded.
struct DispatchRange {
  std::uint32_t first = 0;
  std::uint32_t count = UINT32_MAX;  // UINT32_MAX: all that follow
};

class Context;

// A product, the packing of an operand, or the quantisation of rows, bound to pipelines. Immutable;
// may be recorded from several threads at once. Cheap to copy. It keeps what it needs of its
// context alive.
//
// Lifetime: pipelines are destroyed with the last of the Context and its Plans. One of them must
// live until every command buffer that a plan was recorded into has finished executing or was
// reset, and all of them must be gone before the VkDevice.
class VKGEMM_API Plan {
 public:
  // The problem that was planned, and the configuration chosen for it. Defaults if the plan is no
  // product.
  const Problem& problem() const noexcept;
  const Config& config() const noexcept;

  // How the operand lies that this plan packs. 0 bytes if the device gains nothing by packing it,
  // or the plan packs nothing.
  const PackedLayout& layout() const noexcept;

  // The bytes that a recording touches of each operand, from its first element to its last, the
  // workspace included. Addresses are 0. record() ignores operands of 0 bytes.
  Operands operands() const noexcept;

  // Bytes of scratch memory that record() wants as operands.workspace, 256-byte aligned, for slices
  // of K, packed operands and row reductions; at most Problem::max_workspace_bytes, unless the
  // caller chose the configuration. 0: none.
  //
  // A grouped plan uses the first 4 bytes to report bad offsets (none if max_workspace_bytes is
  // less). Set the word to UINT32_MAX before execution, visible to shader reads and writes.
  // Afterwards it holds the index of the first group whose offsets decrease or are not within
  // [0, capacity], or still UINT32_MAX. vkgemm does not clear the word, and several plans may share
  // it. If the plan packs operands, the copies begin at byte 256, and plans may share the workspace
  // on one queue.
  std::uint64_t workspace_bytes() const noexcept;

  // Why this kernel: path, configuration and its provenance, what is slower than it could be and
  // why (alignment, conversion of bf16, …), grid, shared memory. For people; several lines.
  std::string explain() const;

  // The product as one `vkgemm run …` command line that repeats it. Empty if the plan is no
  // product.
  std::string command_line() const;

  // Records the plan into a command buffer in the recording state, outside a render pass.
  // Checks every span first; on any error nothing is recorded. Never allocates on success, never
  // compiles, never submits.
  //
  // Disturbs: the compute bind point's pipeline and the push constants. Descriptor sets stay.
  //
  // Synchronisation: before, the caller makes operands available and visible to
  // VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, with VK_ACCESS_2_SHADER_STORAGE_READ_BIT for those that
  // the plan reads and VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT for those that it writes. After, the
  // caller waits for the same stage and access before anything uses the written ones.
  //
  // vkgemm records no barrier if the plan has no workspace, or is grouped and packs nothing; except
  // one between the two passes of a row reduction whose values wait in D. Other plans record
  // barriers from compute shaders to compute shaders:
  // - one first, so that recordings that follow each other on a queue may share a workspace.
  // - one after the dispatches that prepare the workspace: packed operands, words that workgroups
  //   share.
  // - one before each dispatch that adds slices of K, reduces, merges or recomputes rows, or stands
  //   in for a barrier that was given up. The last one makes writes visible to the host, too.
  // - one between parts: of a row reduction in two passes, or of a product whose copy of A doesn't
  //   fit the workspace at once (before and after each copy).
  //
  // A range records some of the dispatches, with the barriers before each. Ranges may be in several
  // command buffers, if all are recorded with the same operands, once each, and submitted to one
  // queue in their order. Until the last range has ended nothing may write operands that the plan
  // reads, and nothing else may touch the workspace or written operands. A range beyond
  // dispatch_count() is an error.
  Result<void> record(VkCommandBuffer command_buffer, const Operands& operands,
                      DispatchRange range = {}) const;

  // How many dispatches record() records; see Problem::max_dispatch_ms.
  std::uint32_t dispatch_count() const noexcept;

  // The milliseconds that all of them are estimated to take, before Problem::estimate_scale.
  // Nothing for an empty problem, or if no table has a row like the configuration. The estimate of
  // a configuration that the caller chose may be another one: compare like with like.
  std::optional<double> estimated_ms() const noexcept;

  struct Impl;

 private:
  friend class Context;
  friend struct InternalAccess;  // tests and benchmarks
  explicit Plan(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// vkgemm on one VkDevice. All members may be called from several threads at once.
class VKGEMM_API Context {
 public:
  // Fails with invalid_argument if a member of info is missing or contradicts another, or for what
  // is in info.tuning_file, io_error if that cannot be read, missing_feature if not even the fma
  // path can run with what is enabled, and with the driver's VkResult if a query fails, naming the
  // query. With the self-test also with device_lost, or the driver's VkResult if a wait fails,
  // naming the kind of kernel that did it.
  static Result<Context> create(const ContextCreateInfo& info);

  // Assignment ends at once what this context held, as its destructor would. A context that was
  // moved from may be destroyed or assigned to, and nothing else.
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

  // The device's capabilities, with what was enabled on it.
  const DeviceCaps& caps() const noexcept;

  // The self-test's verdicts on its kernels (caps().verdicts). They never change: another context
  // sees later ones.
  std::span<const Verdict> verdicts() const noexcept;

  // Validates the problem, chooses a configuration and builds its pipelines. Building is the only
  // slow step, and happens only the first time that a pipeline is needed. Several pipelines are
  // built at the same time, on threads that end before plan() returns; with
  // ContextCreateInfo::pipeline_cache they are built one by one, on this thread. Fails with
  // invalid_argument for a problem that contradicts itself, unsupported if nothing computes it
  // here, device_lost or the driver's VkResult. Where nothing computes it the error names the
  // cause, and the log gets what else speaks against each configuration, as LogLevel::info.
  Result<Plan> plan(const Problem& problem) const;

  // The same with a configuration of the caller's choice; unsupported if it is not legal here, or
  // refused by a tuning table that leaves others.
  Result<Plan> plan(const Problem& problem, const Config& config) const;

  // The one that was tuned for this shape, or a near one, if there is such; then every legal
  // configuration of the tuning tables' rows for this problem, preferred ones first, and some of
  // them once more with slices of K or packed operands, where that is estimated to pay. None for an
  // empty problem.
  Result<std::vector<Candidate>> candidates(const Problem& problem) const;

  // How an operand of the problem lies when it is packed (Packing::packed), whether or not the
  // problem says that it is. Returns 0 bytes if packing is not supported or gains nothing: f32
  // (unless multiplied in parts), A of a grouped product, both operands if groups are along K, or
  // any operand on some devices. Then leave the operand plain. A quantised B can be packed on every
  // device. Fails as plan() does if the fields that plan_pack() reads contradict each other.
  Result<PackedLayout> packed_layout(const Problem& problem, PackedOperand operand) const;

  // Plans the packing of an operand. It lies as the problem says: Packing::plain, any layout,
  // leading dimension, strides and alignment. Only this operand's matrix, the sizes that it has,
  // batch, grouping, gated and d.layout count. GatedB::separate: b and b_right are packed one by
  // one with the same plan. Weights are constant: once packed, they serve every product that
  // PackedLayout::fingerprint allows.
  //
  // Operands: reads `source`, or of a quantised B (Problem::quantised_b) `codes` and, if they lie
  // apart, `scales` and `zeros`. Writes `packed`, all of PackedLayout::bytes but what follows the
  // last matrix, with zeros for padding. The source is aligned as the problem promises. Codes and
  // zero points may lie at any address (q4_0 and q8_0: an even one), scales at multiples of their
  // size. Kernels read codes, scales and zero points in words of four bytes, so up to three bytes
  // before and after them: never of another page.
  //
  // Records as few dispatches as can be, whatever max_dispatch_ms is, and no barrier. Fails as
  // packed_layout() and plan() do.
  Result<Plan> plan_pack(const Problem& problem, PackedOperand operand) const;

  // Plans the quantisation of rows, by the formula of RowQuantisation.
  //
  // Operands: reads `source`, writes `codes` and `scales`. Source and codes are aligned as the
  // RowQuantisation promises. Scales are f32, one for each row, contiguous over the batch, aligned
  // to 4 bytes.
  //
  // Records as few dispatches as can be, and no barrier. Fails with invalid_argument for what
  // contradicts itself; unsupported for other types, layouts and packings than RowQuantisation
  // names, and on a device without shaderInt8 and storageBuffer8BitAccess
  // (DeviceCaps::int8_arithmetic); device_lost or the driver's VkResult.
  Result<Plan> plan_quantise_rows(const RowQuantisation& quantisation) const;

  // Plan::record for code that keeps plans of several devices: wrong_context if the plan is not
  // one of this context.
  Result<void> record(const Plan& plan, VkCommandBuffer command_buffer, const Operands& operands,
                      DispatchRange range = {}) const;

  // How often workgroups gave up waiting for one another (ReductionMode::device_barrier,
  // RowStrategy::panel). The results are still correct. After the first abort, later recordings
  // avoid the barrier (a row panel then takes about twice as long), and plan() no longer chooses
  // such plans. Counts finished work, on queues of any family. The first such plan allocates the
  // counter, 64 bytes of host-visible memory; a context holds no other (a self-test allocates some
  // while it runs).
  std::uint32_t barrier_aborts() const noexcept;

  // Tells the context that the application saw VK_ERROR_DEVICE_LOST, as plan() and
  // save_pipeline_cache() tell it themselves when the driver answers so. From then on they,
  // candidates() and record() return device_lost; everything may still be destroyed.
  void notify_device_lost() const noexcept;

  // True once it was told so, or the driver answered so.
  bool device_lost() const noexcept;

  // Writes the pipelines built so far to info.pipeline_cache_file, if there is one. device_lost on
  // a lost device: what its driver would hand out may be damaged, and the file stays as it was.
  Result<void> save_pipeline_cache() const;

  struct Impl;

 private:
  explicit Context(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace vkgemm
