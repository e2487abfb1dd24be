// khr_fragments.hpp: what the main loops on subgroup-scope matrices share.
#pragma once

#include "kernels/loops/loops.hpp"

namespace vkgemm {

// The parameters that all of them have.
template <class Loop>
inline constexpr Parameter khr_parameters[] = {
    of_loop<Loop, &Loop::fragment_m, &Loop::fragment_n, &Loop::fragment_k>(
        {.name = "fragment",
         .fields = {"fragment_m", "fragment_n", "fragment_k"},
         .min = 1,
         .max = largest_tile,
         .forms_tile = true}),
    of_loop<Loop, &Loop::subgroups_m, &Loop::subgroups_n>({.name = "subgroups",
                                                           .fields = {"subgroups_m", "subgroups_n"},
                                                           .min = 1,
                                                           .max = largest_tile,
                                                           .forms_tile = true,
                                                           .scales = true}),
    of_loop<Loop, &Loop::subgroup_size>({.name = "subgroup_size",
                                         .fields = {"subgroup_size"},
                                         .min = 1,
                                         .max = 128,
                                         .left_out = 0,
                                         .forms_tile = true,
                                         .scales = true}),
    of_loop<Loop, &Loop::subtiles>({.name = "subtiles",
                                    .fields = {"subtiles"},
                                    .min = 1,
                                    .max = largest_tile,
                                    .left_out = 1,
                                    .forms_tile = true,
                                    .scales = true}),
    of_loop<Loop, &Loop::peel>({.name = "peel", .fields = {"peel"}, .max = 1, .left_out = 1}),
};

// The parameters of any khr loop; the configuration must be of one of them.
const KhrLoop& khr(const Config& config);
KhrLoop& khr(Config& config);

std::uint32_t khr_invocations(const Config& config);
std::uint32_t khr_accumulators(const Config& config);
TilePart khr_part(const Config& config);
bool check_khr(const Case& s);
void specialize_khr(Constants& constants, const Config& config);

// The shared memory of a main loop that takes so many units (lib/footprint.h), or of the epilogue
// that follows it.
std::uint64_t khr_shared_memory_bytes(const Config& config, std::uint64_t main_loop);

// Slices of the epilogue so small that they need no more memory than the main loop, if they can be.
void cut_epilogue(Config& config, const ResolvedProblem& problem, const DeviceCaps& caps);

// Subgroups arranged as square as can be, the epilogue cut as above.
std::optional<Config> reshape_khr(const Config& config, const TilePart& tile,
                                  const ResolvedProblem& problem, const DeviceCaps& caps);

// The grid of tiles that a tuner begins with, of the loops made by `make`, at these depths of
// fragments.
void propose_khr(std::vector<Config>& out, const ResolvedProblem& problem, const DeviceCaps& caps,
                 std::span<const std::uint32_t> depths, Config (*make)(const KhrLoop&));

// The steps in which a tuner changes several parameters at once.
inline constexpr void (*khr_steps[])(Config&) = {
    [](Config& c) { khr(c).subgroups_m *= 2, khr(c).subgroups_n /= 2; },
    [](Config& c) { khr(c).subgroups_m /= 2, khr(c).subgroups_n *= 2; },
    // With as much work for each subgroup.
    [](Config& c) { c.tile_m *= 2, khr(c).subgroups_m *= 2; },
    [](Config& c) { c.tile_n *= 2, khr(c).subgroups_n *= 2; },
    [](Config& c) { c.tile_m /= 2, khr(c).subgroups_m /= 2; },
    [](Config& c) { c.tile_n /= 2, khr(c).subgroups_n /= 2; },
};

// Staged element by element. Less than nv's: loads from shared memory stay wide. Fitted with
// nvidia_sm90's timing. Large shapes lose more, 136 TFLOP/s at 4097x4095x4093 against 303 at
// 4096x4096x4096 (H200, driver 580.159.04, 2026-11-21), but those are packed instead.
inline constexpr double khr_misaligned = 2.05;

// True if it is a multiple of a shape of flexible dimensions.
bool is_flexible(const Size3& fragment, DataType input, const DeviceCaps& caps);

// The numbers of a kind. The last two are khr_direct's alone.
struct FragmentKind {
  std::uint32_t m = 0;
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  std::uint32_t subgroup_size = 0;
  std::uint32_t a_in_rows = 0;  // 1: A is not packed
  std::uint32_t code_run = 0;   // KhrDirectLoop::code_run of a quantised B; else 0
};
inline constexpr std::string_view fragment_numbers[] = {
    "m", "n", "k", "subgroup_size", "a_in_rows", "code_run"};
inline FragmentKind fragment_of(const KernelKind& kind) { return numbers_of<FragmentKind>(kind); }

// The self-test of a loop: kinds by fragment and subgroup size, and small configurations, of khr.
void add_fragment_kinds(std::vector<KernelKind>& kinds, MainLoop loop, const FragmentShape& shape,
                        const DeviceCaps& caps);
std::vector<Config> khr_trials(const KernelKind& kind, const DeviceCaps& caps);
std::string khr_kind_text(const KernelKind& kind);

bool khr_denied(const Denial& denial, const Config& config);
bool khr_covers(const KernelKind& kind, const Config& config);

// The fields that their descriptors share.
inline constexpr LoopDescriptor khr_fragments_loop{
    .shows_stores = true,
    .keeps_values = true,
    .multiplies_pairs = true,
    .kin = MainLoop::khr,
    .invocations = khr_invocations,
    .accumulators = khr_accumulators,
    .part = khr_part,
    .load_vector = load_width,
    .specialize = specialize_khr,
    .subgroup_size = [](const Config& c) { return khr(c).subgroup_size; },
    .cost = {.misaligned = khr_misaligned},
    .reshaped = reshape_khr,
    .steps = khr_steps,
    .refit = cut_epilogue,
    .covers = khr_covers,
    .denied = khr_denied,
    .kind_text = khr_kind_text,
    .kind_numbers = std::span(fragment_numbers).first<4>(),
};

}  // namespace vkgemm
