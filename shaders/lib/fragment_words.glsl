// fragment_words.glsl: fragments of A and B in memory, in *fragment order*. For each step of
// FRAGMENT_K, from k = 0 on, stand all fragments along M or N, and of each the 16 bytes of every
// invocation of a subgroup: its eight elements, in the order in which the matrix shows them.
//
// The driver alone knows which elements these are, and the specification doesn't promise that two
// pipelines agree on it: the self-test finds out whether they do (KernelKind, khr_direct).
//
// A sum over K may be taken in any order. With INTERLEAVE_K each INTERLEAVED_K of K, seen as a square
// of pairs of elements, four lines of four, is transposed. Where four invocations share a row of A, and hold
// pairs of it by turns, eight neighbouring elements of a row are then one invocation's, of two
// steps of 16: A needs no copy.
#extension GL_KHR_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types : require

const uint FRAGMENT_LANES = FRAGMENT_M * FRAGMENT_K / 8;  // the subgroup's invocations

#if IN_TYPE == TYPE_F16
#define ELEMENT_PAIR f16vec2
f16vec2 pair_of(const uint word) { return unpackFloat2x16(word); }
uint word_of(const f16vec2 pair) { return packFloat2x16(pair); }
#elif IN_TYPE == TYPE_BF16
#define ELEMENT_PAIR bf16vec2
bf16vec2 pair_of(const uint word) { return uintBitsToBFloat16EXT(unpackUint2x16(word)); }
uint word_of(const bf16vec2 pair) { return packUint2x16(bfloat16BitsToUintEXT(pair)); }
#else
#error no fragments of this type
#endif

#define FRAGMENT_A coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_K, gl_MatrixUseA>
#define FRAGMENT_B coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_K, FRAGMENT_N, gl_MatrixUseB>

// Where in memory word `w` of an invocation's four stands. NVIDIA's compiler keeps the registers of
// an A fragment in the order 0, 2, 1, 3: in that order nothing is moved before a product (driver
// 580.159.04).
uint a_place(const uint w) { return SWAP_A != 0 && (w == 1 || w == 2) ? 3 - w : w; }

// The place in fragment order of pair `pair` of K's.
uint pair_place(const uint pair) {
    const uint within = pair % (INTERLEAVED_K / 2);
    return INTERLEAVE_K != 0 ? pair - within + within % 4 * 4 + within / 4 : pair;
}

#define SET_WORD(fragment, w, word)               \
    {                                             \
        const ELEMENT_PAIR pair_ = pair_of(word); \
        fragment[2 * (w)] = pair_.x;              \
        fragment[2 * (w) + 1] = pair_.y;          \
    }
#define GET_WORD(fragment, w) word_of(ELEMENT_PAIR(fragment[2 * (w)], fragment[2 * (w) + 1]))
