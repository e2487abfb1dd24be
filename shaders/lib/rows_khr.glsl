// The values of a tile as a row reduction needs them, on khr: fragments hide the coordinates of
// their elements, so that they go through shared memory, a slice at a time as in store_tile(), and
// every invocation keeps the quads that it reads there instead of the fragments.
const uint VALUE_SLICES = SUBTILES;
const uint SLICE_VALUES = SLICE_TURNS;  // quads of an invocation in a slice
const uint VALUE_ROWS = SLICE_ROWS;     // of a slice
const uint VALUE_STRIDE = SLICE_STRIDE;

bool has_value(const uint i) {
    return SLICE_QUADS % LOCAL_SIZE == 0 ||
           gl_LocalInvocationIndex + i * LOCAL_SIZE < SLICE_QUADS;
}

// Row of the slice and quad of the row.
uvec2 value_place(const uint i) {
    const uint quad = gl_LocalInvocationIndex + i * LOCAL_SIZE;
    return uvec2(quad / QUADS_PER_ROW, quad % QUADS_PER_ROW);
}

// Row of the tile.
uint value_row(const uint slice, const uint line) {
    return line / SLICE_SUBGROUP_ROWS * SUBGROUP_M + slice * SLICE_SUBGROUP_ROWS +
           line % SLICE_SUBGROUP_ROWS;
}

void begin_slice(const Acc acc, const uint slice) {
    barrier();
    put_slice(acc, slice);
    barrier();
}

vec4 slice_value(const Acc acc, const uint slice, const uint i) {
    const uvec2 at = value_place(i);
    return uintBitsToFloat(sh[at.x * SLICE_STRIDE + at.y]);
}

// Shared memory of VALUE_ROWS rows of quads, VALUE_STRIDE apart. A quad's place is free once its
// invocation has read it.
void set_scratch(const uint at, const vec2 value) { sh[at] = floatBitsToUint(vec4(value, 0.0, 0.0)); }
vec2 scratch(const uint at) { return uintBitsToFloat(sh[at].xy); }
