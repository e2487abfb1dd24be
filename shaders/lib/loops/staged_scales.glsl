// staged_scales.glsl: the scales of a k-tile in shared memory, in the loops that stage one k-tile at a time, for sums
// over groups of K (scaled_sums.glsl). For the other inputs all of it is empty. The loop supplies
// set_staged_scale(place, value), and calls set_stage_scales() where it stores a k-tile.
#ifdef HAS_SCALED_SUMS
const uint SCALED_DEPTH = SCALED_SUM_DEPTH(TILE_K, A_GROUP_K, CODE_GROUP_K);
const uint TILE_SUMS = TILE_K / SCALED_DEPTH;
const uint SCALED_ROWS = A_GROUP_K == 0 ? 0 : TILE_M;
// The floats of a sum: of rows, of columns, and minima of columns. Their places.
const uint SCALE_LINE = SCALED_ROWS + 2 * TILE_N;
#define STAGED_SCALES_SIZE STAGED_SCALES(TILE_M, TILE_N, TILE_K, A_GROUP_K, CODE_GROUP_K)

// An item is a scale of a row, or a scale and a minimum of a column.
const uint SUM_ITEMS = SCALED_ROWS + TILE_N;
const uint SCALE_ITEMS = TILE_SUMS * SUM_ITEMS;
const uint SCALE_LOADS = (SCALE_ITEMS + LOCAL_SIZE - 1) / LOCAL_SIZE;
uvec2 stage_scales[SCALE_LOADS];  // a row's scale, or the entry of a column (load_entry())

uint scale_item(const uint i) { return min(gl_LocalInvocationIndex + i * LOCAL_SIZE, SCALE_ITEMS - 1); }

// The scales of the k-tile that begins at k. Rows, columns and groups beyond the last ones are the last ones again.
void load_stage_scales(const Tile t, const uint k) {
    [[unroll]] for (uint i = 0; i < SCALE_LOADS; ++i) {
        const uint item = scale_item(i), x = item % SUM_ITEMS;
        const uint at = min(k + item / SUM_ITEMS * SCALED_DEPTH, t.k_end - 1);
        const uint column = x - SCALED_ROWS;
        const bool right = B_HALVES != 0 && column >= HALF_N;
        const uint n = min(b_column(t.col) + column - (right ? HALF_N : 0), b_columns() - 1);
        if (x >= SCALED_ROWS) {
            stage_scales[i] = load_entry(right ? t.b + p.b_right : t.b, at, n);
        } else if (A_GROUP_K != 0) {
            const uint row = row_of_a(min(t.row + x, t.row_end - 1));
            stage_scales[i].x = U32(row_scale_at(t, row, at)).x;
        }
    }
}

void set_staged_scale(const uint place, const float value);

void set_stage_scales() {
    [[unroll]] for (uint i = 0; i < SCALE_LOADS; ++i) {
        const uint item = scale_item(i), x = item % SUM_ITEMS;
        const uint place = item / SUM_ITEMS * SCALE_LINE + x;
        if (SCALE_ITEMS % LOCAL_SIZE != 0 && gl_LocalInvocationIndex + i * LOCAL_SIZE >= SCALE_ITEMS) continue;
        const bool is_column = x >= SCALED_ROWS;
        const vec2 scales = is_column ? column_scales(stage_scales[i]) : uintBitsToFloat(stage_scales[i]);
        set_staged_scale(place, scales.x);
        if (HAS_MINIMA && is_column) set_staged_scale(place + TILE_N, scales.y);
    }
}
#else
#define STAGED_SCALES_SIZE 0
void load_stage_scales(const Tile t, const uint k) {}
void set_stage_scales() {}
#endif
