// parts.glsl: the caller's elements are f32. Each becomes F32_PARTS elements, its parts, whose sum is the f32,
// or nearly. A part is the rest that the parts before it leave, rounded. If the f32 is NaN or infinite, so is
// the first part, and the others are 0.
const uint IN_PARTS = F32_PARTS;
#define IN_CODES false

const uint SOURCE_BYTES = 4;
uint load_source_bits(uint64_t at) { return U32(at).x; }

// Rounds by integers: NVIDIA's driver (580.159.04) replaces an f32 that was converted to f16 and back by the
// f32 itself.
uint[IN_PARTS] split(const float x) {
    const uint dropped = 24 - F32_PART_BITS, mask = (1u << dropped) - 1, largest = 0x7f7fffffu & ~mask;
    precise float rest = x;
    uint parts[IN_PARTS];
    [[unroll]] for (uint q = 0; q < IN_PARTS; ++q) {
        const uint bits = floatBitsToUint(rest), magnitude = bits & 0x7fffffffu;
        const uint rounded = (magnitude + (mask >> 1) + (magnitude >> dropped & 1u)) & ~mask;
        const uint part = min(rounded, largest) | bits & 0x80000000u;
        parts[q] = part_of(part);
        rest -= uintBitsToFloat(part);
    }
    if ((floatBitsToUint(x) & 0x7fffffffu) < 0x7f800000u) return parts;
    [[unroll]] for (uint q = 0; q < IN_PARTS; ++q) parts[q] = q == 0 ? part_of_special(x) : 0;
    return parts;
}

// The scales of a matrix's lines along M or N, f32, precede its fragments.
const uint LINE_SCALE_BYTES = F32_LINE_SCALE_BYTES;
uint64_t scales_bytes(const uint lines) { return F32_SCALES_BYTES(lines); }
#define SOURCE_VALUE(bits, line) F32_VALUE(bits, line)
#define SET_GROUP set_parts
#define PACK F32_PACK

#define MULTIPLY multiply_parts
#define MMA_TILE mma_parts
