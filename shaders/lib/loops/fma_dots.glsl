// fma_dots.glsl: main loop fma on words of four s8, whose dot products are added up in s32. A uvec4 in shared memory is
// a block of four lines and four elements of K. If K is the inner direction in memory, each word is a line.
// Otherwise each word is an element of K, and the block is transposed after it is read.
#extension GL_EXT_integer_dot_product : require
#define TERMS4 uvec4
#define SUM4 ivec4
#define ONE_TERM 0x01010101u

// Word i of the result is byte i of each word.
uvec4 transposed(const uvec4 block) {
    const uvec2 even = (block.xz & 0x00ff00ffu) | (block.yw & 0x00ff00ffu) << 8;
    const uvec2 odd = (block.xz >> 8 & 0x00ff00ffu) | (block.yw & 0xff00ff00u);
    return uvec4((even.x & 0xffffu) | even.y << 16, (odd.x & 0xffffu) | odd.y << 16,
                 even.x >> 16 | (even.y & 0xffff0000u), odd.x >> 16 | (odd.y & 0xffff0000u));
}

TERMS4 terms_of(const uvec4 staged, const bool k_inner) { return k_inner ? staged : transposed(staged); }

SUM4 multiply_terms(const uint a, const TERMS4 b, const SUM4 sum) {
    return sum + SUM4(dotPacked4x8EXT(int(a), int(b.x)), dotPacked4x8EXT(int(a), int(b.y)),
                      dotPacked4x8EXT(int(a), int(b.z)), dotPacked4x8EXT(int(a), int(b.w)));
}

// The bytes of l, from the words of a group, and those of r.
uvec2 part_of_pairs(const uvec4 group, const uint right) {
    const uvec4 bytes = group >> right * 8 & 0x00ff00ffu, words = (bytes | bytes >> 8) & 0xffffu;
    return words.xz | words.yw << 16;
}

void store_pairs(const uint i) {
    const uint line = group_line(i), at = B_OFFSET + line / 4 * B_STRIDE + group_column(i) / 8;
    [[unroll]] for (uint right = 0; right < 2; ++right)
        [[unroll]] for (uint w = 0; w < 2; ++w)
            sh[at + right * (HALF_N / 4) + w][line % 4] = part_of_pairs(stage_data[i], right)[w];
}

void store_lines(const uint i, const uint to, const uint stride) {
    const uint line = group_line(i), word = group_column(i) / 4;
    [[unroll]] for (uint w = 0; w < 4; ++w) {
        if (k_inner(i)) sh[to + (word + w) * stride + line / 4][line % 4] = stage_data[i][w];
        else sh[to + line / 4 * stride + word + w][line % 4] = stage_data[i][w];
    }
}
