// khr_slices.glsl: khr's accumulators in slices. Fragments hide the coordinates of their elements,
// so a slice is a copy in shared memory. It takes an equal number of fragment rows from every
// subgroup, which keeps all of them busy, and holds whole rows of the tile, so that global accesses
// are as wide as the tile.
const uint VALUE_SLICES = SUBTILES;
const uint VALUE_ROWS = TILE_M / SUBTILES;
const uint VALUE_STRIDE = KHR_SLICE_LINE(TILE_N);
const uint SLICE_SIZE = KHR_SLICE(TILE_M, TILE_N, SUBTILES);

const uint SLICE_FRAGMENTS = ROWS / SUBTILES;
const uint SLICE_SUBGROUP_ROWS = SLICE_FRAGMENTS * FRAGMENT_M;  // of one subgroup

// Among whom the values of a slice are dealt out: the workgroup; or, where nothing else is in that
// memory (SLICES_ALONE) and nobody needs whole rows of the tile (WHOLE_SLICES), each subgroup has its
// own, and waits for no other.
#if defined(SLICES_ALONE) && !defined(WHOLE_SLICES)
const bool BY_SUBGROUP = (GATED ? SUBGROUPS_K * SUBGROUPS_N : SUBGROUPS_K) == 1;
#else
const bool BY_SUBGROUP = false;
#endif
const uint DEALERS = BY_SUBGROUP ? LOCAL_SIZE / SUBGROUPS_MN : LOCAL_SIZE;

const uint ROW_X4 = TILE_COLUMNS / 4 / (BY_SUBGROUP ? SUBGROUPS_N : 1);  // of D
const uint SLICE_X4 = (BY_SUBGROUP ? SLICE_SUBGROUP_ROWS : VALUE_ROWS) * ROW_X4;
const uint SLICE_VALUES = (SLICE_X4 + DEALERS - 1) / DEALERS;
const uint MOST_SLICE_VALUES = (VALUE_ROWS * (TILE_N / 4) + LOCAL_SIZE - 1) / LOCAL_SIZE;

uint value_number(const uint i) {
    return (BY_SUBGROUP ? gl_SubgroupInvocationID : gl_LocalInvocationIndex) + i * DEALERS;
}

bool has_value(const uint i) { return SLICE_X4 % DEALERS == 0 || value_number(i) < SLICE_X4; }

uvec2 value_place(const uint i) {
    const uint at = value_number(i);
    const uvec2 place = uvec2(at / ROW_X4, at % ROW_X4);
    return BY_SUBGROUP ? subgroup_position() * uvec2(SLICE_SUBGROUP_ROWS, ROW_X4) + place : place;
}

uint value_row(const uint slice, const uint row) {
    return row / SLICE_SUBGROUP_ROWS * SUBGROUP_M + slice * SLICE_SUBGROUP_ROWS +
           row % SLICE_SUBGROUP_ROWS;
}

void wait_for_slice() {
    if (BY_SUBGROUP) subgroupBarrier();
    else barrier();
}

void begin_slice(const Acc acc, const uint slice) {
    const uvec2 at = subgroup_position();
    wait_for_slice();
    EACH_FRAGMENT(i, j) {
        if (i / SLICE_FRAGMENTS == slice)
            coopMatStore(acc.fragment[i][j], sh,
                         subgroup_k() * SLICE_SIZE +
                             (at.x * SLICE_SUBGROUP_ROWS + i % SLICE_FRAGMENTS * FRAGMENT_M) *
                                 VALUE_STRIDE +
                             (at.y * SUBGROUP_N + j * FRAGMENT_N) / 4,
                         VALUE_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
    }
    wait_for_slice();
}

// The sum, over the subgroups that share K, of what stands at a place of a slice.
ACC4 slice_sum(const uint place) {
    ACC4 sum = acc_of_bits(sh[place]);
    [[unroll]] for (uint k = 1; k < SUBGROUPS_K; ++k)
        sum += acc_of_bits(sh[place + k * SLICE_SIZE]);
    return sum;
}

ACC4 slice_value(const Acc acc, const uint slice, const uint i) {
    const uvec2 at = value_place(i);
    return slice_sum(at.x * VALUE_STRIDE + at.y);
}

AccPair4 slice_pair(const Acc acc, const uint slice, const uint i) {
    const uvec2 at = value_place(i);
    const uint line = at.x * VALUE_STRIDE;
    const ACC4 one = slice_sum(line + (B_PAIRS != 0 ? 2 * at.y : at.y));
    const ACC4 other = slice_sum(line + (B_PAIRS != 0 ? 2 * at.y + 1 : at.y + HALF_N / 4));
    return B_PAIRS != 0 ? paired(one, other) : AccPair4(one, other);
}

// Slices share their code, which takes longer to compile than all the rest (H200, driver
// 580.159.04: 0.8 instead of 1.2 s).
#define EACH_SLICE(slice) [[dont_unroll]] for (uint slice = 0; slice < VALUE_SLICES; ++slice)

// An invocation loads C of so many values before it computes the first one: the cost of a loop over
// single values is the latency of these loads (H200, driver 580.159.04, residual of 8192x8192: 3.36
// instead of 3.50 ms). The array has a fixed size, because arrays whose size chooses between
// specialization constants are left in memory there.
#define MOST_BATCH KHR_EPILOGUE_LOADS
const uint FULL_BATCH = SLICE_VALUES < MOST_BATCH ? SLICE_VALUES : MOST_BATCH;
const uint BATCH = C_VECTOR == 0 ? 1 : PEEL == 0 ? 1 : FULL_BATCH;
// The condition is has_value(first), said so that the number of turns is not a constant: nothing
// unrolls the loop.
#define EACH_BATCH(first) \
    for (uint first = 0; value_number(first) < SLICE_X4; first += BATCH)

// All values of an invocation have the same columns, and so the same bias along N, where rows
// divide evenly over the dealers.
const bool KEEPS_BIAS = DEALERS % ROW_X4 == 0;
const uint VALUE_COLUMNS = 1;
#define MOST_VALUE_COLUMNS 1
uint value_column(const uint i) { return 0; }

// The memory of a slice is the scratch memory, too.
void begin_scratch() {}
void set_scratch(const uint at, const vec4 value) { sh[at] = floatBitsToUint(value); }
vec4 scratch(const uint at) { return uintBitsToFloat(sh[at]); }

// The columns of an invocation's values repeat: legality keeps SUMS to KHR_MOST_SUMS. Its first SUMS
// values are of a block of whole rows, those of all dealers together.
#define REPEATS(count) ((count) * DEALERS % ROW_X4 == 0)
const uint SUMS = REPEATS(1)   ? 1
                  : REPEATS(2) ? 2
                  : REPEATS(3) ? 3
                  : REPEATS(4) ? 4
                  : REPEATS(5) ? 5
                  : REPEATS(6) ? 6
                  : REPEATS(7) ? 7
                               : KHR_MOST_SUMS;
#define MOST_SUMS KHR_MOST_SUMS
const uint BLOCK_X4 = SUMS * DEALERS < SLICE_X4 ? SUMS * DEALERS : SLICE_X4;
const uint BLOCK_LINES = BLOCK_X4 / ROW_X4;
const uint SUM_LINES = BY_SUBGROUP ? SUBGROUPS_M * BLOCK_LINES : BLOCK_LINES;
bool has_sum(const uint j) { return value_number(j) < BLOCK_X4; }
uint sum_line(const uint j) {
    return (BY_SUBGROUP ? subgroup_position().x * BLOCK_LINES : 0) + value_number(j) / ROW_X4;
}
