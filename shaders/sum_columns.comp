// The sums of columns (StepOp::sum_columns) from those of tiles: a workgroup adds the rows of COLUMNS_X4
// x4s. Its invocations take every STRANDS-th row each, and add what they have as a binary tree: always in
// the same order. Workgroup y is a matrix of the batch or a group.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS SumColumnsParams
#include "lib/common.glsl"
#include "lib/elements.glsl"

uint capacity() { return p.rows; }
#include "lib/schedule/group_offsets.glsl"

const uint STRANDS = LOCAL_SIZE / COLUMNS_X4;
shared vec4 strand_sums[LOCAL_SIZE];

// The rows of sums of a matrix, or of a group: those of the slots of its tiles (group_map.glsl).
struct Rows {
    uint first, count;
};

Rows rows_of(const uint batch) {
    if (GROUPED != GROUPED_ALONG_M) return Rows(0, p.rows);
    const uint begin = group_begin(batch), end = max(group_end(batch), begin);
    return Rows(first_slot(batch), (end - begin + TILE_M - 1) / TILE_M);
}

// The sum of a strand's rows. In place of those beyond the last one that is loaded again: no branch
// around a load.
vec4 strand_sum(const uint64_t base, const uint strand, const Rows rows, const uint col) {
    precise vec4 sum = vec4(0.0);
    [[dont_unroll]] for (uint row = strand; row < rows.count; row += STRANDS * COLUMNS_UNROLL) {
        vec4 part[COLUMNS_UNROLL];
        [[unroll]] for (uint i = 0; i < COLUMNS_UNROLL; ++i) {
            const uint own = min(row + i * STRANDS, rows.count - 1);
            part[i] = F32x4(base + uint64_t(rows.first + own) * p.extra_row + col * 4).x;
        }
        [[unroll]] for (uint i = 0; i < COLUMNS_UNROLL; ++i)
            if (row + i * STRANDS < rows.count) sum += part[i];
    }
    return sum;
}

void main() {
    const uint lane = gl_LocalInvocationIndex % COLUMNS_X4;
    const uint strand = gl_LocalInvocationIndex / COLUMNS_X4;
    const uint batch = first_batch() + gl_WorkGroupID.y;
    const uint64_t col = ((uint64_t(first_tile()) + gl_WorkGroupID.x) * COLUMNS_X4 + lane) * 4;
    const bool exists = col < size_n();
    if (exists)
        strand_sums[gl_LocalInvocationIndex] =
            strand_sum(p.extra + uint64_t(batch) * p.extra_batch, strand, rows_of(batch), uint(col));
    [[unroll]] for (uint half_of = STRANDS / 2; half_of > 0; half_of /= 2) {
        barrier();
        if (exists && strand < half_of) {
            precise const vec4 sum = strand_sums[gl_LocalInvocationIndex] +
                                     strand_sums[gl_LocalInvocationIndex + half_of * COLUMNS_X4];
            strand_sums[gl_LocalInvocationIndex] = sum;
        }
    }
    if (!exists || strand != 0) return;
    const uint64_t to = p.column_sums + uint64_t(batch) * p.column_sums_batch + col * 4;
    [[unroll]] for (uint e = 0; e < 4; ++e)
        if (col + e < size_n()) F32(to + e * 4).x = strand_sums[lane][e];
}
