// staging.glsl: moves k-tiles of A and B, TILE_K deep, from global memory to registers, 16 bytes at
// a time, for the main loops that stage in shared memory. How a k-tile stands there is the loop's
// business (store_group).
//
// An operand's k-tile is `outer` lines of `inner` elements that are adjacent in memory: K is the
// inner direction of a row-major A and of a column-major B. One load is a group of GROUP adjacent
// elements; group i of an invocation, i < LOADS, belongs to A if i < A_LOADS, else to B. Every i
// is a constant once the loops are unrolled, so the choices below cost nothing.
//
// The loop says by SPREAD_LINES whether store_group writes a group as one piece of 16 bytes.
//
// Every load, but for those of codes, keeps a 64-bit address and advances it by a constant: cheaper than offsets computed
// anew (on an H200 15 % of the whole kernel), and nothing overflows however large the operand is.
#include "../inputs/codes.glsl"
#include "../inputs/converted.glsl"
#include "staged_scales.glsl"

const bool A_K_INNER = A_COL_MAJOR == 0;
const bool B_K_INNER = B_COL_MAJOR != 0;
const uint A_INNER = A_K_INNER ? TILE_K : TILE_M;
const uint A_OUTER = A_K_INNER ? TILE_M : TILE_K;
const uint B_INNER = B_K_INNER ? TILE_K : TILE_N;
const uint B_OUTER = B_K_INNER ? TILE_N : TILE_K;
const uint A_GROUPS = A_OUTER * A_INNER / GROUP;
const uint B_GROUPS = B_OUTER * B_INNER / GROUP;
const uint A_LOADS = (A_GROUPS + LOCAL_SIZE - 1) / LOCAL_SIZE;
const uint B_LOADS = (B_GROUPS + LOCAL_SIZE - 1) / LOCAL_SIZE;
const uint LOADS = A_LOADS + B_LOADS;

uint64_t stage_address[LOADS];
uint stage_valid[LOADS];  // elements of the group inside M or N; only for element-wise loads
uvec4 stage_data[LOADS];
uvec4 stage_rest[LOADS];  // the second halves of groups of f32 that are converted; zero points of codes

// A group of a quantised B is as many codes of a column. Its address is that of the matrix; the column
// stands in stage_valid. Codes without scales, where k-tiles are whole blocks and have no zero points, keep the address of their
// codes instead.
uint stage_k;
#ifdef HAS_SCALED_SUMS
const uint BLOCK_REST = CODE_GROUP_K == 0 ? 0 : TILE_K % CODE_DEPTH(CODE_GROUP_K, SCALE_TYPE);
const bool CODES_ARE_BYTES = IN_BYTES != 1;  // of f16, until they are converted
const bool CODES_ADVANCE = (CODE_ZEROS == ZEROS_INTEGERS ? 1 : BLOCK_REST) == 0;
#else
const bool CODES_ARE_BYTES = false;
const bool CODES_ADVANCE = false;
#endif

bool is_a(const uint i) { return i < A_LOADS; }
bool is_quantised(const uint i) { return QUANTISED && !is_a(i); }
bool k_inner(const uint i) { return is_a(i) ? A_K_INNER : B_K_INNER; }
uint element_size(const uint i) { return is_a(i) ? A_SIZE : B_SIZE; }
bool vector_loads(const uint i) { return (is_a(i) ? A_VECTOR : B_VECTOR) != 0; }
// True if a group is converted when it is stored: a conversion when it is loaded would wait for the load. Until then
// stage_data and stage_rest hold its bytes.
bool converts(const uint i) { return (is_a(i) ? A_CONVERTED : B_CONVERTED) && vector_loads(i); }
uint type_of(const uint i) { return is_a(i) ? A_TYPE : B_TYPE; }
bool padded(const uint i) { return (is_a(i) ? A_PADDED : B_PADDED) != 0; }

// Groups need not divide over the workgroup: then the last turn has invocations without one.
// They load the operand's last group once more and do not store it: a branch around a load would
// make the compiler keep these arrays in memory (H200, driver 580.159.04: 297 -> 236 TFLOP/s).
const bool EVEN_LOADS = A_GROUPS % LOCAL_SIZE + B_GROUPS % LOCAL_SIZE == 0;

// Position of group i in its k-tile, in groups of the operand.
uint unclamped_group_index(const uint i) {
    return gl_LocalInvocationIndex + (is_a(i) ? i : i - A_LOADS) * LOCAL_SIZE;
}
uint group_index(const uint i) {
    return min(unclamped_group_index(i), (is_a(i) ? A_GROUPS : B_GROUPS) - 1);
}
bool has_group(const uint i) { return unclamped_group_index(i) < (is_a(i) ? A_GROUPS : B_GROUPS); }

// The line of the k-tile that an invocation takes in its first turn, where lines divide evenly over
// the workgroup. Hardware stores 16 bytes of 8 invocations to shared memory at a time. Where these
// are not of one line, they shouldn't be of neighbouring lines, whose banks overlap
// (KHR_LINE), but of lines as far apart as 8 of them allow (H200, driver 580.159.04: up to 5 %
// of the whole kernel).
uint first_line(const uint per_line) {
    const uint at = gl_LocalInvocationIndex / per_line;
    const uint at_once = max(8 / per_line, 1);  // lines that are stored at a time
    if (!SPREAD_LINES || LOCAL_SIZE % (8 * per_line) != 0) return at;
    return at / 8 * 8 + at % at_once * (8 / at_once) + at % 8 / at_once;
}

// Line and first element of the group within the k-tile. Split so that, where lines divide evenly
// over the workgroup, only the line depends on i, and that by a constant. Codes differ: neighbouring
// invocations load codes of neighbouring columns, which are contiguous. They store to different banks.
uint group_line(const uint i) {
    if (is_quantised(i)) return group_index(i) % B_OUTER;
    const uint per_line = (is_a(i) ? A_INNER : B_INNER) / GROUP;
    const uint turn = is_a(i) ? i : i - A_LOADS;
    return EVEN_LOADS && LOCAL_SIZE % per_line == 0
        ? first_line(per_line) + turn * (LOCAL_SIZE / per_line)
        : group_index(i) / per_line;
}
uint group_column(const uint i) {
    if (is_quantised(i)) return group_index(i) / B_OUTER * GROUP;
    const uint per_line = (is_a(i) ? A_INNER : B_INNER) / GROUP;
    return (EVEN_LOADS && LOCAL_SIZE % per_line == 0 ? gl_LocalInvocationIndex % per_line
                                                     : group_index(i) % per_line) * GROUP;
}

// True if a line, or a group's first element, is of the right half of a gated product's B.
bool in_right_half(const uint i) {
    return B_HALVES != 0 && !is_a(i) && (k_inner(i) ? group_line(i) : group_column(i)) >= HALF_N;
}

// Points the loads at the first k-tile of the tile. Lines and groups past the edge of M or N are
// moved onto the last one that exists: what they load ends in rows and columns of D that are never
// stored, and the main loop needs no bounds checks.
void stage_begin(const Tile t) {
    stage_k = t.k_begin;
    [[unroll]] for (uint i = 0; i < LOADS; ++i) {
        const bool right = in_right_half(i);
        const uint mn_begin = is_a(i) ? t.row : b_column(t.col) - (right ? HALF_N : 0);
        const uint mn_size = is_a(i) ? t.row_end : b_columns();
        const uint64_t ld = is_a(i) ? size_lda() : size_ldb();
        const uint64_t base = is_a(i) ? t.a : right ? t.b + p.b_right : t.b;
        uint line = group_line(i), column = group_column(i);
        stage_valid[i] = GROUP;
        if (k_inner(i)) {
            line = min(mn_begin + line, mn_size - 1);
            if (is_a(i)) line = row_of_a(line);
            column += t.k_begin;
        } else {
            line += t.k_begin;
            column += mn_begin;
            if (EDGES != 0) {
                const uint readable = padded(i) ? uint(ld) : mn_size;
                const uint last = vector_loads(i) ? readable - GROUP : mn_size - 1;
                column = min(column, last);
                stage_valid[i] = min(GROUP, mn_size - column);
            }
        }
        stage_address[i] = base + (line * ld + column) * element_size(i);
        if (is_quantised(i)) {
            stage_address[i] = CODES_ADVANCE ? codes_address(base, t.k_begin + group_column(i), line) : base;
            stage_valid[i] = line;
        }
    }
}

void stage_advance(const uint i) {
    if (is_quantised(i)) {
        if (CODES_ADVANCE)
            stage_address[i] += CODE_GROUP_K == 0
                ? uint64_t(size_ldb()) * (TILE_K / 8 * CODE_WIDTH)
                : uint64_t(size_ldb()) * (TILE_K / CODE_DEPTH(CODE_GROUP_K, SCALE_TYPE) * BLOCK_BYTES);
        return;
    }
    const uint64_t lines = k_inner(i) ? 1 : (is_a(i) ? size_lda() : size_ldb());
    stage_address[i] += TILE_K * lines * element_size(i);
}

// Loads a group of elements, of which the first `valid` exist.
void load_stage_group(const uint i, uint64_t at, uint valid) {
    if (vector_loads(i)) {
        if (converts(i) && is_byte(type_of(i))) stage_data[i].xy = U32x2(at).x;
        else stage_data[i] = U32x4(at).x;
        if (converts(i) && type_of(i) == TYPE_F32) stage_rest[i] = U32x4(at + 16).x;
    } else if (is_a(i) ? A_CONVERTED : B_CONVERTED) {
        stage_data[i] = load_converted(at, type_of(i), false, valid);
    } else {
        stage_data[i] = load_elements(at, valid);
    }
}

// Keeps the first elements of a loaded group. The others become zero.
void keep_stage_elements(const uint i, uint count) {
    if (converts(i) && type_of(i) == TYPE_F32) {
        [[unroll]] for (uint e = 0; e < 4; ++e) {
            if (e >= count) stage_data[i][e] = 0;
            if (4 + e >= count) stage_rest[i][e] = 0;
        }
    } else if ((converts(i) && is_byte(type_of(i))) || (is_quantised(i) && CODES_ARE_BYTES)) {
        [[unroll]] for (uint e = 0; e < GROUP; ++e)
            if (e >= count) stage_data[i][e / 4] &= ~(0xffu << e % 4 * 8);
    } else {
        stage_data[i] = keep_elements(stage_data[i], count);
    }
}

// Loads a group of codes, with k of its first one, at the group's address.
void load_stage_codes(const uint i, uint64_t at, const uint k) {
#ifdef HAS_SCALED_SUMS
    stage_data[i] = code_words(CODES_ADVANCE ? at : codes_address(at, k, stage_valid[i]));
    if (CODE_ZEROS == ZEROS_INTEGERS) stage_rest[i].x = load_entry(at, k, stage_valid[i]).y;
#else
    stage_data[i] = quantised_group(at, k, stage_valid[i]);
#endif
}

// A loop calls this before it stores a group.
void convert_stage_group(const uint i) {
#ifdef HAS_SCALED_SUMS
    if (is_quantised(i)) stage_data[i] = unscaled_group(stage_data[i], stage_rest[i].x);
#endif
    if (converts(i)) stage_data[i] = converted_group(stage_data[i], stage_rest[i], type_of(i));
}

// Loads the next k-tile, which lies within K as a whole.
void stage_load() {
    [[unroll]] for (uint i = 0; i < LOADS; ++i) {
        const uint valid = k_inner(i) || EDGES == 0 ? GROUP : stage_valid[i];
        if (is_quantised(i)) load_stage_codes(i, stage_address[i], stage_k + group_column(i));
        else load_stage_group(i, stage_address[i], valid);
        stage_advance(i);
    }
    stage_k += TILE_K;
}

// Loads a k-tile of which only `depth` <= TILE_K elements of K exist; the rest is zero in both
// operands, because 0 × NaN is not 0. Groups that have nothing to load read element (0, 0) instead.
void stage_load_tail(const Tile t, uint depth) {
    [[unroll]] for (uint i = 0; i < LOADS; ++i) {
        const uint k = k_inner(i) ? group_column(i) : group_line(i);
        const uint left = k < depth ? depth - k : 0;  // of K, in the direction of K
        const uint64_t at = left != 0 ? stage_address[i] : (is_a(i) ? t.a : t.b);
        const uint valid = left == 0 ? 1 : k_inner(i) ? min(GROUP, left) : stage_valid[i];
        if (is_quantised(i)) {
            const uint64_t first = CODES_ADVANCE ? codes_address(t.b, 0, 0) : stage_address[i];
            load_stage_codes(i, left != 0 ? stage_address[i] : first, left != 0 ? stage_k + k : 0);
        } else load_stage_group(i, at, valid);
        keep_stage_elements(i, k_inner(i) ? left : left == 0 ? 0 : GROUP);
    }
}
