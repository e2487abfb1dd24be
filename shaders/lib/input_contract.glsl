// input_contract.glsl: what every input supplies, and what follows from it. An input is the type of the
// elements that are multiplied, and the way from the caller's elements to them. modules.txt lists the files
// of inputs/ that make up each input. The build includes these files in input.glsl. Kernels and loops use only
// the names below, so that they contain no choice between inputs.
//
// A type supplies (f16.glsl, bf16.glsl, f32.glsl, s8.glsl):
//   IN_TYPE                     its TYPE_*
//   IN_BYTES                    its size
//   IN_SCALAR                   its scalar type, of cooperative matrices
//   IN_STORE_USE                the use of the matrices of this type that nv stores
//   group_element(group, e)     element e of a group, 16 bytes, as a scalar of accumulators
//   load_bits(at)               the bits of one element
//   rounded_bits(float)         the bits of a float: rounded to nearest even, a NaN quiet
//   CONVERTED_TO                whether elements in memory may have another type: converted.glsl
//   rounded_pair(vec2)          the bits of two floats, rounded as by rounded_bits; used if CONVERTED_TO
//   float8_elements(uint, type) the bits of four 8-bit floats, as elements; used if CONVERTED_TO
//   SUM_SCALAR                  the scalar of sums over groups of K, if scaled_sums.glsl adds them up
//   HAS_DOT_PRODUCTS            defined if fma and skinny multiply four elements at once: loops/fma_dots.glsl
//   COMPUTES_IN_F16             defined if the direct loop computes values of codes in f16: codes.glsl
// A type that has fragments also supplies:
//   WORD                        the elements of a word, a vector
//   word_from(bits), bits_of(WORD)
//   SET_WORD(fragment, w, bits), GET_WORD(fragment, w)
//                               word w of an invocation's elements of a fragment
//   X8                          the words of eight elements, a vector
//   SET_X8S(tile, at, group)    stores a group in an array of X8
// A type of which an f32 is made also supplies, for parts.glsl:
//   F32_PARTS, F32_PART_BITS    elements for an f32, and the bits of each
//   part_of(bits)               the element of an f32 that has no more bits
//   part_of_special(float)      the element of a NaN or an infinity
//   F32_LARGEST_APART           defined if the product of the largest parts has its own accumulators
//   F32_LINE_SCALE_BYTES, F32_SCALES_BYTES, F32_VALUE, F32_PACK
//                               as LINE_SCALE_BYTES, scales_bytes, SOURCE_VALUE and PACK below
//   scale_of_line(bits)         the scale of a line, by its largest magnitude, if lines have scales
//
// Its sums supply (floats.glsl, integers.glsl, scaled_sums.glsl):
//   ACC_SCALAR, ACC4            the scalar of accumulators, and a vector of four
//   acc_of_bits(uvec4), bits_of_acc(ACC4)
//   D_IS_SUM                    whether D holds the bits of accumulators, without an epilogue
//   HAS_FLOAT_SUMS              defined if the direct loop can store D in narrow slices
//   HAS_CODES                   whether B holds codes
//   HAS_SCALED_SUMS             defined if accumulators add sums over groups of K, times scales: loops/staged_scales.glsl
//
// The way from the caller's elements supplies (whole.glsl, parts.glsl):
//   IN_PARTS                    elements that one of the caller's becomes, its *parts*
//   IN_CODES                    whether B holds codes: codes.glsl
//   SOURCE_BYTES                the size of the caller's elements
//   load_source_bits(at)        the bits of one of them
//   LINE_SCALE_BYTES            bytes of a line's scale, in front of the fragments; 0: lines have none
//   scales_bytes(lines)         bytes of the scales of `lines` lines
//   SOURCE_VALUE(bits, line)    the caller's f32, over the scale of its line
//   split(float)                the parts of an f32, as bits, if there are several
//   SET_GROUP, PACK             the functions of pack_fragments.comp that pack a group and an operand
//   MULTIPLY, MMA_TILE          the functions of fragments.glsl that multiply fragments and tiles
#include "input.glsl"

// Not every input defines these.
float scale_of_line(const uint largest);
uint[IN_PARTS] split(const float x);

const uint IN_SIZE = IN_BYTES * IN_PARTS;  // of an element, all of its parts
const uint GROUP = 16 / IN_BYTES;          // elements of a group
const uint WORD_ELEMENTS = 4 / IN_BYTES;

// Loads a group element by element. Elements from `valid` on are read from the last valid one, without
// a branch: those past M or N may hold anything, those past K are made zero by the caller.
uvec4 load_elements(uint64_t at, uint valid) {
    uvec4 data = uvec4(0);
    [[unroll]] for (uint e = 0; e < GROUP; ++e)
        data[e / WORD_ELEMENTS] |= load_bits(at + min(e, valid - 1) * IN_BYTES)
                                   << (e % WORD_ELEMENTS * 8 * IN_BYTES);
    return data;
}

// The first `valid` elements of a group, zero from there on.
uvec4 keep_elements(uvec4 data, uint valid) {
    [[unroll]] for (uint w = 0; w < 4; ++w) {
        uint kept = 0;
        [[unroll]] for (uint e = 1; e <= WORD_ELEMENTS; ++e)
            kept = WORD_ELEMENTS * w + e <= valid ? 0xffffffffu >> (32 - e * 8 * IN_BYTES) : kept;
        data[w] &= kept;
    }
    return data;
}
