// pack.hpp: operands that are copied before they are multiplied, in the form that the main loops
// load best: K is the outer direction, rows begin at cache lines, and the padding may be read; or
// in fragment order (shaders/lib/inputs/fragment_words.glsl). Into the workspace, or once by the
// caller (Packing::packed).
#pragma once

#include <optional>

#include "kernels/part.hpp"

namespace vkgemm {

// The configuration that takes packed what the caller packed, and codes in the longest runs that
// the device passed.
Config as_given(Config config, const ResolvedProblem& problem, const DeviceCaps& caps);

// True if the configuration takes the operands that the caller packed in the order that they have.
bool takes_given(const Config& config, const ResolvedProblem& problem);

// A bound on the microseconds that copies take: those without padding.
double least_copy_time(const Config& config, const ResolvedProblem& problem,
                       const TimingModel& timing);

// Sets the order of an operand that the caller packed, and the bytes that it takes: fragments are
// read beyond its end.
void set_order(ResolvedMatrix& matrix, const std::optional<FragmentOrder>& order);

// Why an operand is too large to be packed; nothing: it isn't. `matrices`: how many copies.
std::optional<std::string> why_not_packed(const ResolvedMatrix& copy, std::uint64_t matrices,
                                          const Limits& limits);

// The tiles of one packed matrix, each of which a workgroup packs.
std::uint64_t pack_tiles(const ResolvedMatrix& copy);

// Makes a step that packs rows one that packs the fragments of `copy`.
void pack_fragments(Step& step, Constants& constants, const ResolvedMatrix& copy,
                    const Limits& limits);

// The dispatch that packs A or B of a problem to `copy`, whose groups have no slots yet: the rows
// and matrices of `chunk`.
Step pack_step(const ResolvedProblem& problem, const ResolvedProblem& chunk,
               const ResolvedMatrix& copy, const Limits& limits);

}  // namespace vkgemm
