// Makes the table of groups from the caller's sizes, or starts and sizes (GROUP_ENDS), as
// group_offsets.glsl reads it. One workgroup. Sizes below 0 count as 0. Sums end at the largest int32, which is
// beyond every capacity. Reports groups whose size is below 0, or which begin before the last one ends.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS GroupTableParams
#include "lib/common.glsl"
#include "lib/schedule/shared_word.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer I32 { int x; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer I64 { int64_t x; };

const uint MOST = 0x7fffffff;
shared uint sums[LOCAL_SIZE];

int64_t number(const uint64_t numbers, const uint group) {
    return OFFSETS_64 != 0 ? I64(numbers + uint64_t(group) * 8).x
                           : int64_t(I32(numbers + uint64_t(group) * 4).x);
}
void set_entry(const uint entry, const int64_t offset) {
    U32(p.offsets + uint64_t(entry) * 4).x = uint(int(clamp(offset, int64_t(-1), int64_t(MOST))));
}
void report(const uint group) {
    if (p.bad_group != 0) atomicMin(SharedWord(p.bad_group).x, group, RELAXED);
}

// The sum of what this invocation and those before it have.
uint sum_until(const uint own) {
    const uint i = gl_LocalInvocationIndex;
    barrier();
    sums[i] = own;
    [[dont_unroll]] for (uint distance = 1; distance < LOCAL_SIZE; distance *= 2) {
        barrier();
        const uint other = i >= distance ? sums[i - distance] : 0;
        barrier();
        sums[i] = min(sums[i] + other, MOST);
    }
    barrier();
    return sums[i];
}

void main() {
    uint before = 0;
    [[dont_unroll]] for (uint first = 0; first < p.groups; first += LOCAL_SIZE) {
        const uint group = first + gl_LocalInvocationIndex;
        const bool exists = group < p.groups;
        const int64_t size = exists ? number(p.group_sizes, group) : 0;
        if (size < 0) report(group);
        const uint own = uint(clamp(size, int64_t(0), int64_t(MOST)));
        if (GROUP_ENDS != 0) {
            if (!exists) continue;
            const int64_t start =
                clamp(number(p.given_offsets, group), int64_t(-1), int64_t(MOST));
            if (group + 1 < p.groups && number(p.given_offsets, group + 1) < start + own)
                report(group + 1);
            set_entry(group, start);
            set_entry(p.groups + group, start + own);
            continue;
        }
        const uint end = min(before + sum_until(own), MOST);
        if (exists) set_entry(group + 1, end);
        if (group == 0) set_entry(0, 0);
        before = min(before + sums[LOCAL_SIZE - 1], MOST);
    }
}
