// Rows of f16, bf16 or f32 become codes of 8 bits and a scale each:
//   scale = max|row| / 127,  code = nearest integer to x * (127 / max|row|)
// A row here is a whole row or, with A_GROUP_K, a group of A_GROUP_K columns. A workgroup quantises TILE_M rows at once,
// each by LANES invocations. A_VECTOR: these load 16 bytes and
// store 8 codes at a time. Magnitudes are compared as bits, in whose order Inf and NaN are the largest.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS QuantiseRowsParams
#include "lib/common.glsl"
#include "lib/types.glsl"
#include "lib/rows/row_codes.glsl"

const uint LANES = LOCAL_SIZE / TILE_M;    // of a row
const uint STEP = LANES * QUANTISE_PIECE;  // columns of a row that its lanes take at a time
const uint FAN = LANES < 16 ? LANES : 16;  // lanes that merge what all have found
shared uint lane_most[QUANTISE_ROWS_BYTES(LOCAL_SIZE) / 4];

// The number of columns that share a scale: of a row, or of a group.
uint columns;

struct Piece {
    float x[QUANTISE_PIECE];
};

// The column of element e of an invocation's piece. Element by element, neighbours are of different lanes.
uint column(uint first, const uint e) {
    const uint lane = gl_LocalInvocationIndex % LANES;
    return A_VECTOR != 0 ? first + lane * QUANTISE_PIECE + e : first + e * LANES + lane;
}
bool is_whole(uint first) { return A_VECTOR != 0 && column(first, QUANTISE_PIECE - 1) < columns; }

// Zero where there is no column.
Piece load_piece(uint64_t source, uint first) {
    const uint bytes = type_size(SOURCE_TYPE);
    Piece piece;
    if (is_whole(first)) {
        const uint64_t at = source + uint64_t(column(first, 0)) * bytes;
        uvec4 groups[2];
        groups[0] = U32x4(at).x;
        if (QUANTISE_PIECE * bytes > 16) groups[1] = U32x4(at + 16).x;
#define UNPACK_IF(name, NAME, bytes) \
        if (SOURCE_TYPE == TYPE_##NAME) \
            [[unroll]] for (uint e = 0; e < QUANTISE_PIECE; ++e) \
                piece.x[e] = unpack_##NAME(groups[e * bytes / 16], e % (16 / bytes));
        VKGEMM_FLOATS(UNPACK_IF)
    } else {
        [[unroll]] for (uint e = 0; e < QUANTISE_PIECE; ++e) {
            const uint col = column(first, e);
            piece.x[e] = 0.0;
            if (col < columns) piece.x[e] = load1(source + uint64_t(col) * bytes, SOURCE_TYPE);
        }
    }
    return piece;
}

uint most_of(const Piece piece) {
    uint most = 0;
    [[unroll]] for (uint e = 0; e < QUANTISE_PIECE; ++e)
        most = max(most, floatBitsToUint(piece.x[e]) & 0x7fffffffu);
    return most;
}

// All lanes of a row get the most of them. Only one of FAN lanes reads a place, until all do.
uint merge_lanes(const uint own) {
    const uint lane = gl_LocalInvocationIndex % LANES, row = gl_LocalInvocationIndex - lane;
    lane_most[gl_LocalInvocationIndex] = own;
    barrier();
    if (LANES > FAN) {
        uint most = 0;
        if (lane < FAN)
            [[unroll]] for (uint i = 0; i < LANES / FAN; ++i)
                most = max(most, lane_most[row + i * FAN + lane]);
        if (lane < FAN) lane_most[gl_LocalInvocationIndex] = most;
        barrier();
    }
    uint most = 0;
    [[unroll]] for (uint i = 0; i < FAN; ++i) most = max(most, lane_most[row + i]);
    return most;
}

// |x| is at most 127 over the factor, to which that quotient was rounded: no code is larger.
uint code(float x, const float factor) { return uint(int(roundEven(x * factor))) & 0xffu; }

void store_piece(uint64_t codes, uint first, const Piece piece, const float factor) {
    if (is_whole(first)) {
        uvec2 words = uvec2(0);
        [[unroll]] for (uint e = 0; e < QUANTISE_PIECE; ++e)
            words[e / 4] |= code(piece.x[e], factor) << (e % 4 * 8);
        U32x2(codes + column(first, 0)).x = words;
    } else {
        [[unroll]] for (uint e = 0; e < QUANTISE_PIECE; ++e) {
            const uint col = column(first, e);
            if (col < columns) U8(codes + col).x = uint8_t(code(piece.x[e], factor));
        }
    }
}

// Without a factor every code is 0, whatever the elements are.
void store_zeros(uint64_t codes) {
    Piece zeros;
    [[unroll]] for (uint e = 0; e < QUANTISE_PIECE; ++e) zeros.x[e] = 0.0;
    [[dont_unroll]] for (uint first = 0; first < columns; first += STEP)
        store_piece(codes, first, zeros, 0.0);
}

void main() {
    const uint64_t batch = first_batch() + gl_WorkGroupID.y;
    const uint row = (first_tile() + gl_WorkGroupID.x) * TILE_M + gl_LocalInvocationIndex / LANES;
    const uint groups = A_GROUP_K == 0 ? 1 : (p.columns + A_GROUP_K - 1) / CODE_DIVISOR(A_GROUP_K);
    const uint rows = p.rows * groups;
    const uint seen_row = min(row, rows - 1);  // all take part in barriers
    const uint from = seen_row % groups * A_GROUP_K, line = seen_row / groups;
    columns = A_GROUP_K == 0 ? p.columns : min(A_GROUP_K, p.columns - from);
    const uint64_t source = p.source + batch * p.source_batch +
                            (uint64_t(line) * p.source_ld + from) * type_size(SOURCE_TYPE);
    const uint64_t codes = p.codes + batch * p.codes_batch + uint64_t(line) * p.codes_ld + from;

    Piece kept[QUANTISE_KEPT];
    [[unroll]] for (uint i = 0; i < QUANTISE_KEPT; ++i) kept[i] = load_piece(source, i * STEP);
    uint most = 0;
    [[unroll]] for (uint i = 0; i < QUANTISE_KEPT; ++i) most = max(most, most_of(kept[i]));
    [[dont_unroll]] for (uint first = QUANTISE_KEPT * STEP; first < columns; first += STEP)
        most = max(most, most_of(load_piece(source, first)));
    most = merge_lanes(most);
    if (row >= rows) return;

    if (gl_LocalInvocationIndex % LANES == 0)
        U32(p.scales + (batch * rows + row) * 4).x = code_scale(most);
    if (!has_codes(most)) {
        store_zeros(codes);
        return;
    }
    const float factor = code_factor(most);
    [[unroll]] for (uint i = 0; i < QUANTISE_KEPT; ++i)
        store_piece(codes, i * STEP, kept[i], factor);
    [[dont_unroll]] for (uint first = QUANTISE_KEPT * STEP; first < columns; first += STEP)
        store_piece(codes, first, load_piece(source, first), factor);
}
