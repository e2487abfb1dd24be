// D = row operation(values): the second pass over values that a product has left in memory, in f32.
// A workgroup reduces TILE_M rows at once, each by TILE_N / 4 / ROW_LANE_X4 invocations, which take
// TILE_N columns at a time.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS ReduceRowsParams
#include "lib/common.glsl"
#include "lib/elements.glsl"
#include "lib/epilogue/store_d.glsl"
#include "lib/rows/row_state.glsl"
#include "lib/rows/row_result.glsl"
#include "lib/rows/row_scalar.glsl"

const uint LANES = LOCAL_SIZE / TILE_M;  // of a row
const uint BLOCK_LANES = ROW_BLOCK / 4 / ROW_LANE_X4;
const uint TREE_LANES = LANES < BLOCK_LANES ? LANES : BLOCK_LANES;
shared vec2 lane_states[ROW_LOCAL_SIZE];
shared float lane_distances[ROW_LOCAL_SIZE];

struct Piece {
    vec4 x4[ROW_LANE_X4];
};

// Values stand where the product has put them: rows are padded to multiples of 4. `own`: the first
// columns of this invocation.
Piece load_piece(uint64_t values, uint row, uint first, uint own) {
    Piece piece;
    [[unroll]] for (uint x = 0; x < ROW_LANE_X4; ++x) {
        // Some once more instead of none: no branch around a load. Where D replaces the values,
        // those that this invocation has replaced itself.
        const uint again = own + 4 * x < size_n() ? own + 4 * x : 0;
        const uint at = EDGES == 0 || first + own + 4 * x < size_n() ? first + own + 4 * x : again;
        piece.x4[x] = load4(element(values, TYPE_F32, row, p.values_ld, at), TYPE_F32,
                            A_VECTOR != 0, size_n() - at);
    }
    return piece;
}

uint columns_at(uint col, const uint width) {
    if (EDGES == 0) return width;
    return col < size_n() ? min(size_n() - col, width) : 0;
}

RowState piece_state(const Piece piece, uint col) {
    RowState s[ROW_LANE_X4];
    [[unroll]] for (uint x = 0; x < ROW_LANE_X4; ++x) {
        s[x] = no_row_state();
        if (columns_at(col + 4 * x, 4) != 0)
            s[x] = row_state(piece.x4[x], size_n() - col - 4 * x);
    }
    return merge_four(s);
}

// The state of the columns of so many lanes, from `first` on.
RowState lanes_state(const uint lane, uint first, const uint lanes) {
    const uint at = gl_LocalInvocationIndex / LANES * LANES + lane;
    const uint col = first + lane * 4 * ROW_LANE_X4;
    return known_row_state(columns_at(col, lanes * 4 * ROW_LANE_X4),
                           vec3(lane_states[at], ROW_MOMENTS ? lane_distances[at] : 0.0));
}

void keep_lane(const RowState s) {
    lane_states[gl_LocalInvocationIndex] = vec2(s.x, s.y);
    if (ROW_MOMENTS) lane_distances[gl_LocalInvocationIndex] = s.z;
}

// All invocations of a row get the state of TILE_N columns from `first` on, merged with that of
// those before.
RowState merge_lanes(const RowState before, const RowState own, uint first) {
    const uint lane = gl_LocalInvocationIndex % LANES;
    barrier();
    keep_lane(own);
    barrier();
    [[dont_unroll]] for (uint width = 1; width < TREE_LANES; width *= 2) {
        if (lane % (2 * width) == 0) {
            const RowState s = merge_halves(lanes_state(lane, first, width),
                                            lanes_state(lane + width, first, width));
            keep_lane(s);
        }
        barrier();
    }
    RowState total = before;
    [[dont_unroll]] for (uint block = 0; block < LANES; block += TREE_LANES) {
        const RowState s = lanes_state(block, first, TREE_LANES);
        if (first == 0 && block == 0) total = s;
        else if (columns_at(first + block * 4 * ROW_LANE_X4, 1) != 0)
            total = merge_rows(total, s, false);
    }
    return total;
}

void store_piece(uint64_t d, uint row, uint col, const Piece piece, const vec3 coefficients) {
    [[unroll]] for (uint x = 0; x < ROW_LANE_X4; ++x) {
        const uint at = col + 4 * x;
        if (columns_at(at, 4) == 0) continue;
        store_d4(d, row, at,
                 row_result4(piece.x4[x], coefficients, row_vectors4(at)));
    }
}

void main() {
    const uint64_t batch = first_batch() + gl_WorkGroupID.y;
    const uint64_t values = p.values + batch * p.values_batch, d = p.d + batch * p.d_batch;
    const uint row =
        (first_tile() + gl_WorkGroupID.x) * TILE_M + gl_LocalInvocationIndex / LANES;
    const uint seen_row = min(row, p.m - 1);  // all take part in barriers
    const uint own = gl_LocalInvocationIndex % LANES * 4 * ROW_LANE_X4;

    RowState state = no_row_state();
    Piece piece;
    [[dont_unroll]] for (uint first = 0; first < size_n(); first += TILE_N) {
        piece = load_piece(values, seen_row, first, own);
        state = merge_lanes(state, piece_state(piece, first + own), first);
    }
    if (row >= p.m) return;
    if (ROW_HAS_VALUE && own == 0) store_row_scalar(batch, row, state);
    if (D_TYPE == TYPE_NONE) return;
    const vec3 coefficients = row_coefficients(state);
    if (size_n() <= TILE_N) {
        store_piece(d, row, own, piece, coefficients);
        return;
    }
    [[dont_unroll]] for (uint first = 0; first < size_n(); first += TILE_N)
        store_piece(d, row, first + own, load_piece(values, row, first, own), coefficients);
}
