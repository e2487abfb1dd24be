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
#include "vkgemm/tune.hpp"

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

// The packing of bytes with this fingerprint. Old bytes may be in rows although the device packs
// fragments now, because a self-test or another table changed the order. As Matrix::packing,
// packed_rows lets a product use them, at the speed of rows. The fingerprint must be one that a
// PackedLayout gave; for others the result is unspecified.
VKGEMM_API Packing packing_of(const Fingerprint& fingerprint);

// The layout of a packed operand. Its matrices are contiguous.
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
// ignored.
//
// Overlap: D may be the same bytes as C (in place), if type, layout and strides are the same.
// Otherwise an operand that the plan writes must not share a byte with any other operand: D, aux,
// stored tensors, row_values and packed; of plan_quantise_rows() codes and scales. Adjacent columns
// of one larger matrix share none. A, B, C, bias and other tensors may overlap.
//
// Alignment: matrices as the problem promises (Problem::a and others), packed ones to
// PackedLayout::alignment, vectors to their element type, the workspace to 256 bytes.
struct Operands {
  DeviceSpan a = {};
  DeviceSpan b = {};
  DeviceSpan b_right = {};  // GatedB::separate: the right half of B
  DeviceSpan c = {};        // if beta is not 0
  DeviceSpan d = {};
  DeviceSpan bias = {};           // N values, or M (Bias::along_m); 2N of a gated product
  DeviceSpan row_scales = {};     // Epilogue::row_scales: M factors, f32
  DeviceSpan column_scales = {};  // Epilogue::column_scales: N factors, f32; 2N of a gated product
  DeviceSpan aux = {};            // as large as D; 2N columns of a gated product
  DeviceSpan offsets = {};        // grouped: groups + 1 values, or groups starts: GroupBounds
  DeviceSpan group_sizes = {};    // grouped: groups values, of the offsets' type
  DeviceSpan row_index = {};      // Grouping::a_rows, d_rows: M values, u32
  DeviceSpan row_weights = {};    // Grouping::row_weights: d_rows · d_terms factors, f32
  DeviceSpan b_index = {};        // Grouping::b_matrices: groups values, u32
  DeviceSpan gamma = {};          // RowReduction::gamma: N factors
  DeviceSpan beta = {};           // RowReduction::beta: N summands
  DeviceSpan row_values = {};     // scalar row operations: M values for each matrix, written
  DeviceSpan t0 = {};             // Epilogue::tensors; written by store and sum_columns
  DeviceSpan t1 = {};
  DeviceSpan t2 = {};
  DeviceSpan t3 = {};
  DeviceSpan workspace = {};  // Plan::workspace_bytes(), if that is not 0

  // Plans that prepare operands use these: Context::plan_pack(), plan_quantise_rows().
  DeviceSpan source = {};  // elements to be packed or quantised
  DeviceSpan codes = {};   // read by plan_pack(), written by plan_quantise_rows()
  DeviceSpan scales = {};  // likewise
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

  // At most one of these two.
  //
  // The application's cache: vkgemm never destroys it. If it was made with
  // VK_PIPELINE_CACHE_CREATE_EXTERNALLY_SYNCHRONIZED_BIT, synchronise plan() as well.
  //
  // A file: create() reads it if it fits this device and driver. save_pipeline_cache() and the
  // destructor replace it atomically, unless the device is lost. A symbolic link is neither read
  // nor replaced. The driver trusts the content, so no other user may be able to write the file.
  VkPipelineCache pipeline_cache = VK_NULL_HANDLE;
  std::filesystem::path pipeline_cache_file = {};

  // The sources of verdicts on kernels of this device.
  SelfTest self_test = {};

  // A tuning table for this device's architecture, as `vkgemm tune` writes it. Priority: the file
  // that the environment variable VKGEMM_TUNING names, then tuning_file, then default_tuning_file()
  // if it exists, then the built-in tables.
  //
  // A table only proposes: vkgemm never chooses a configuration that is not legal. It chooses one
  // that a table denies or refuses only if no other one computes the problem. Then the log gets a
  // warning, and Plan::explain() says so.
  //
  // An invalid tuning_file (unreadable, malformed, of another architecture) makes create() fail,
  // with line and field. Other invalid files are warnings in the log. VKGEMM_TUNING=0 turns the
  // default file off.
  std::filesystem::path tuning_file = {};

  // If true, create() reads default_tuning_file(): what tune() and `vkgemm tune` stored there.
  bool read_default_tuning_file = true;

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
// live until every command buffer with a recorded plan has finished executing or was reset. All of
// them must be destroyed before the VkDevice.
class VKGEMM_API Plan {
 public:
  // The problem that was planned, and the configuration chosen for it. Defaults if the plan is no
  // product.
  const Problem& problem() const noexcept;
  const Config& config() const noexcept;

  // The layout of the operand that this plan packs. 0 bytes if packing gains nothing on this
  // device, or the plan packs nothing.
  const PackedLayout& layout() const noexcept;

  // The bytes that a recording touches of each operand, from its first element to its last, the
  // workspace included. Addresses are 0. record() ignores what it is given for an operand that
  // needs 0 bytes.
  Operands operands() const noexcept;

  // Bytes of scratch memory that record() needs as operands.workspace, 256-byte aligned: for slices
  // of K, packed operands, row reductions, column sums, tables of groups and rows that are added
  // up. At most Problem::max_workspace_bytes, unless the caller chose the configuration. 0: none.
  //
  // A grouped plan uses the first 4 bytes to report bad offsets and indices. If it needs no
  // workspace and max_workspace_bytes is below 4, it reports nothing. Set the word to UINT32_MAX
  // before execution, visible to shader reads and writes. Once shader writes are visible to the
  // reader, it holds the index of the first group whose offsets, sizes or indices are bad (struct
  // Grouping), or still UINT32_MAX. vkgemm does not clear the word, so several plans may share it.
  // All else begins at byte 256, and plans may share the workspace on one queue.
  std::uint64_t workspace_bytes() const noexcept;

  // Several lines for people: path, configuration and its provenance, grid, shared memory, and the
  // causes that make it slower than it could be (alignment, conversion of bf16, …). If the epilogue
  // has steps, one line is its formula.
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
  // the plan reads and VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT for those that it writes. After the
  // plan, the caller records a barrier whose source is VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT with
  // VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT, before a command uses operands that the plan writes. The
  // barriers of vkgemm below replace neither.
  //
  // A plan without a workspace records no barrier, with two exceptions. One stands between the two
  // passes of a row reduction whose values are in D, one after the dispatch that sets amax to 0. A
  // grouped plan that neither packs, sums columns nor finds amax records none. Other plans record
  // barriers from compute shaders to compute shaders:
  // - one first, so that consecutive recordings on a queue may share a workspace. It also keeps the
  //   plan from running at the same time as earlier dispatches.
  // - one after the dispatches that prepare the workspace: packed operands, words that workgroups
  //   share, amax.
  // - one before each dispatch that adds slices of K, adds column sums, or reduces, merges or
  //   recomputes rows, and before each fallback for an aborted barrier. If the plan counts aborts
  //   (barrier_aborts()), these also make shader writes visible to the host. That does not replace
  //   the barrier that the caller records after the plan.
  // - one between parts: of a row reduction in two passes, or of a product whose copy of A doesn't
  //   fit the workspace at once (before and after each copy).
  // - one between the repetitions of a batch of two dimensions, if the plan has a workspace.
  //
  // A range records some of the dispatches, with the barriers before each. Ranges may be in several
  // command buffers, if all are recorded with the same operands, once each, and submitted to one
  // queue in their order. Until the last range has ended, no other command may write the operands
  // that the plan reads, or access the workspace or written operands. A range beyond
  // dispatch_count() is an error.
  Result<void> record(VkCommandBuffer command_buffer, const Operands& operands,
                      DispatchRange range = {}) const;

  // How many dispatches record() records; see Problem::max_dispatch_ms.
  std::uint32_t dispatch_count() const noexcept;

  // The estimated time of all of them in milliseconds, before Problem::estimate_scale. Nothing for
  // an empty problem, or if no table has a row like the configuration. Estimates of chosen and of
  // given configurations may differ: compare like with like.
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
  // Errors:
  // - invalid_argument: a member of info is missing or contradicts another, or info.tuning_file is
  //   malformed.
  // - io_error: info.tuning_file cannot be read.
  // - missing_feature: not even the fma path can run with the enabled extensions and features.
  // - the driver's VkResult, with the name of the query that failed.
  // - with SelfTest::only: device_lost, or the VkResult of a wait, with the kind of kernel.
  static Result<Context> create(const ContextCreateInfo& info);

  // Assignment destroys the old context at once. A context that was moved from may only be
  // destroyed or assigned to.
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

  // The device's capabilities, with what was enabled on it. The reference is valid as long as the
  // context. If a queue was lent, later calls may return capabilities with more verdicts.
  const DeviceCaps& caps() const noexcept;

  // The verdicts on its kernels: caps().verdicts.
  std::span<const Verdict> verdicts() const noexcept;

  // Adds a function for steps of epilogues: the value is for Epilogue::function, in problems of
  // this context. It stays as long as the context. Any thread.
  //
  // Fails with invalid_argument if `spirv` has no function of the right name and type, unsupported
  // if the function needs what kernels do not have. The error names it.
  Result<std::uint32_t> add_function(const EpilogueFunction& function) const;

  // Validates the problem, chooses a configuration and builds its pipelines. Building is the only
  // slow step, and happens only if a pipeline is needed for the first time. vkgemm builds several
  // pipelines at the same time, on threads that end before plan() returns. With
  // ContextCreateInfo::pipeline_cache it builds them one by one, on this thread.
  //
  // If ContextCreateInfo::self_test lends a queue, plan() first tests the kinds of kernel that it
  // would use and that have no verdict. Kinds that fail are not used.
  //
  // Fails with invalid_argument for a problem that contradicts itself, unsupported if no
  // configuration computes it here, device_lost or the driver's VkResult. If no configuration
  // computes it, the error names the cause; the log gets the other reasons, as LogLevel::info.
  Result<Plan> plan(const Problem& problem) const;

  // The same with a given configuration. unsupported if it is not legal here, or if a tuning table
  // refuses it and leaves others.
  Result<Plan> plan(const Problem& problem, const Config& config) const;

  // Configurations for the problem, preferred ones first. If this shape or a near one was tuned,
  // its configuration comes first. All legal configurations of the tuning tables' rows follow, some
  // again with slices of K or packed operands, if that is estimated to be faster. The list is empty
  // for an empty problem, and if no configuration computes it: plan() then fails and gives the
  // reasons. candidates() tests nothing. It leaves out configurations that need a verdict and have
  // none.
  Result<std::vector<Candidate>> candidates(const Problem& problem) const;

  // Times configurations of the problem on a lent queue, and keeps the fastest: from then on plan()
  // takes it for this problem, and explain() says when it was measured. Problems that tuning tables
  // can't tell apart (TUNING.md) share the result, nearby shapes consider it. Plans that exist keep
  // their configuration. A run that came to no candidate keeps nothing.
  //
  // The run allocates device memory for operands of its own, as large as the problem's, and fills
  // them with random numbers. Groups have the sizes of TuneInfo::offsets. It times the
  // configuration that plan() takes now and candidates by the tables' estimates, the best ones in
  // turns. It leaves out configurations that fail, whose results differ from the first one's by
  // more than rounding, or that are not compiled in time. The fastest configuration replaces the
  // one of plan() only if it is at least 1 % faster.
  //
  // The new configuration may add K in another order, in slices for example: D may differ in its
  // last bits from D of earlier plans. Each plan gives the same bits in every run.
  //
  // Errors:
  // - invalid_argument: a field of info is out of its range, there is no queue, or the queue family
  //   has no timestamps.
  // - unsupported, or what else plan() returns for the problem.
  // - out_of_device_memory: the operands do not fit.
  // - io_error, invalid_argument: info.file cannot be read or written, or belongs to another device
  //   or driver. The context keeps the result.
  // - device_lost. driver_error: an execution did not end within ten seconds. Its memory leaks, and
  //   the queue may still be busy.
  Result<TuneResult> tune(const Problem& problem, const TuneInfo& info = {}) const;

  // The layout of an operand of the problem when it is packed: in the order that the problem's
  // Matrix::packing asks for by packed_rows or packed_fragments, otherwise in the device's order.
  //
  // The device's order is fragments if all of these hold, otherwise rows:
  // - the tuning tables propose main loop khr_direct for the input, or for the codes of B;
  // - its configuration is legal here, so its kernels passed the self-test;
  // - by the estimates of the same table, no configuration that reads rows is faster.
  // The estimates are those of a product whose M, N and K are 4096, with both operands packed, or B
  // as codes. The order depends on the device, the tables, the verdicts and the type, and not on
  // the problem's sizes. So one packed B serves every M, and a packed A fits a packed B. s8 and f32
  // in parts have no rows. explain() of the plan that packs gives the order and the reason.
  //
  // Returns 0 bytes if packing is not supported or gains nothing: then leave the operand plain.
  // That holds for A of a grouped product, for both operands if groups are along K, and for any
  // operand on some devices. It holds for f32, unless it is multiplied in parts or as a 16-bit
  // type. A quantised B can be packed on every device. Fails as plan() does if the fields that
  // plan_pack() reads contradict each other, and with unsupported if the operand has no such order
  // here.
  Result<PackedLayout> packed_layout(const Problem& problem, PackedOperand operand) const;

  // Plans the packing of an operand. Pack weights once: they serve every product that
  // PackedLayout::fingerprint allows. The problem describes the source: any layout, leading
  // dimension, strides and alignment. Packing::plain asks for the device's order, packed_rows for
  // rows, packed_fragments for fragments. plan_pack() reads only this operand's matrix and sizes,
  // batch, grouping, gated, f32_arithmetic, multiply_as, quantised_b, and d.layout with
  // row_reduction. With GatedB::separate, pack b and b_right one by one with the same plan.
  //
  // Operands: reads `source`. For a quantised B (Problem::quantised_b) reads `codes` and, if they
  // are separate, `scales` and `zeros`. Writes `packed`: all matrices, with zeros for padding, but
  // not the bytes after the last one.
  //
  // Alignment: the source as the problem promises. Codes and zero points may have any address (q4_0
  // and q8_0: an even one), scales a multiple of their size. Kernels read codes, scales and zero
  // points in four-byte words: up to three bytes before and after them, within the same page.
  //
  // Records the smallest number of dispatches, whatever max_dispatch_ms is, and no barrier. If the
  // layout has 0 bytes, the plan is valid and record() records nothing. Fails as packed_layout()
  // and plan() do, and with invalid_argument if the operand's packing is Packing::packed.
  Result<Plan> plan_pack(const Problem& problem, PackedOperand operand) const;

  // Plans the quantisation of rows, by the formula of RowQuantisation.
  //
  // Operands: reads `source`, writes `codes` and `scales`. Source and codes are aligned as the
  // RowQuantisation promises. Scales are f32, one for each row, contiguous over the batch, aligned
  // to 4 bytes.
  //
  // Records the smallest number of dispatches, and no barrier. Errors:
  // - invalid_argument: fields contradict each other.
  // - unsupported: another type, layout or packing than RowQuantisation names, or a device without
  //   DeviceCaps::int8_arithmetic.
  // - device_lost, or the driver's VkResult.
  Result<Plan> plan_quantise_rows(const RowQuantisation& quantisation) const;

  // Plan::record() for code with plans of several devices: wrong_context if another context made
  // the plan.
  Result<void> record(const Plan& plan, VkCommandBuffer command_buffer, const Operands& operands,
                      DispatchRange range = {}) const;

  // How often workgroups gave up waiting for one another (ReductionMode::device_barrier,
  // RowStrategy::panel). The results are still correct. After the first abort, later recordings
  // avoid the barrier (a row panel then takes about twice as long), and plan() no longer chooses
  // such plans. Counts finished work, on queues of any family. The first such plan allocates the
  // counter, 64 bytes of host-visible memory. A context holds no other; self-tests and tune()
  // allocate memory while they run.
  std::uint32_t barrier_aborts() const noexcept;

  // Call this when the application sees VK_ERROR_DEVICE_LOST. From then on plan(), candidates(),
  // record() and save_pipeline_cache() return device_lost; everything may still be destroyed.
  // plan() and save_pipeline_cache() do the same if the driver returns VK_ERROR_DEVICE_LOST.
  void notify_device_lost() const noexcept;

  // True after notify_device_lost(), or if the driver returned VK_ERROR_DEVICE_LOST.
  bool device_lost() const noexcept;

  // Writes the pipelines built so far to info.pipeline_cache_file, if there is one. On a lost
  // device it returns device_lost and leaves the file as it is, since the driver's data may be
  // damaged.
  Result<void> save_pipeline_cache() const;

  struct Impl;

 private:
  explicit Context(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace vkgemm
