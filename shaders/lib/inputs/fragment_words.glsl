// fragment_words.glsl: fragments of A and B in memory, in *fragment order*. For each step of
// FRAGMENT_K, from k = 0 on, stand all fragments along M or N, and of each the 16 bytes of every
// invocation of a subgroup: its elements, in the order in which the matrix shows them.
//
// The driver alone knows which elements these are, and the specification doesn't promise that two
// pipelines agree on it: the self-test finds out whether they do (KernelKind, khr_direct).
//
// A sum over K may be taken in any order. With INTERLEAVE_K each 64 bytes of K, seen as a square
// of words, four lines of four, are transposed. Where four invocations share a row of A, and hold
// words of it by turns, 16 neighbouring bytes of a row are then one invocation's, of two
// steps of 32 bytes: A needs no copy.
#extension GL_KHR_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types : require

const uint FRAGMENT_LANES = FRAGMENT_M * FRAGMENT_K / GROUP;  // the subgroup's invocations

// The elements of a word.
#if IN_TYPE == TYPE_F16
#define WORD f16vec2
WORD word_from(const uint bits) { return unpackFloat2x16(bits); }
uint bits_of(const WORD word) { return packFloat2x16(word); }
#elif IN_TYPE == TYPE_BF16
#define WORD bf16vec2
WORD word_from(const uint bits) { return uintBitsToBFloat16EXT(unpackUint2x16(bits)); }
uint bits_of(const WORD word) { return packUint2x16(bfloat16BitsToUintEXT(word)); }
#elif IN_TYPE == TYPE_S8
#define WORD i8vec4
WORD word_from(const uint bits) { return unpack8(int(bits)); }
uint bits_of(const WORD word) { return uint(pack32(word)); }
#else
#error no fragments of this type
#endif

#define FRAGMENT_A coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_K, gl_MatrixUseA>
#define FRAGMENT_B coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_K, FRAGMENT_N, gl_MatrixUseB>

// Where in memory word `w` of an invocation's four stands. NVIDIA's compiler keeps the registers of
// an A fragment in the order 0, 2, 1, 3: in that order nothing is moved before a product (driver
// 580.159.04).
uint a_place(const uint w) { return SWAP_A != 0 && (w == 1 || w == 2) ? 3 - w : w; }

// The place in fragment order of word `word` of K's.
uint word_place(const uint word) {
    const uint within = word % INTERLEAVED_WORDS;
    return INTERLEAVE_K != 0 ? word - within + within % 4 * 4 + within / 4 : word;
}

#if IN_BYTES == 1
// By shifts: taken apart by unpack8() it costs 9 instead of 6 instructions (NVIDIA, driver 580.159.04).
#define SET_WORD(fragment, w, bits)                  \
    {                                                \
        const int word_ = int(bits);                 \
        fragment[4 * (w)] = int8_t(word_);           \
        fragment[4 * (w) + 1] = int8_t(word_ >> 8);  \
        fragment[4 * (w) + 2] = int8_t(word_ >> 16); \
        fragment[4 * (w) + 3] = int8_t(word_ >> 24); \
    }
#define GET_WORD(fragment, w)                              \
    bits_of(WORD(fragment[4 * (w)], fragment[4 * (w) + 1], \
                 fragment[4 * (w) + 2], fragment[4 * (w) + 3]))
#else
#define SET_WORD(fragment, w, bits)         \
    {                                       \
        const WORD word_ = word_from(bits); \
        fragment[2 * (w)] = word_.x;        \
        fragment[2 * (w) + 1] = word_.y;    \
    }
#define GET_WORD(fragment, w) bits_of(WORD(fragment[2 * (w)], fragment[2 * (w) + 1]))
#endif
