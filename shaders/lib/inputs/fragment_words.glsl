// fragment_words.glsl: fragments of A and B in memory, in *fragment order*. For each step of
// FRAGMENT_K, from k = 0 on, stand all fragments along M or N, and of each the 16 bytes of every
// invocation of a subgroup: its elements, in the order in which the matrix shows them.
//
// The driver alone knows which elements these are, and the specification doesn't promise that two
// pipelines agree on it: the self-test finds out whether they do.
//
// A sum over K may be taken in any order. With INTERLEAVE_K each 64 bytes of K, seen as a square
// of words, four lines of four, are transposed. Where four invocations share a row of A, and hold
// words of it by turns, 16 neighbouring bytes of a row are then one invocation's, of two
// steps of 32 bytes: A needs no copy.
#extension GL_KHR_cooperative_matrix : require

const uint FRAGMENT_LANES = FRAGMENT_M * FRAGMENT_K / GROUP;  // the subgroup's invocations

#define FRAGMENT_A coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_M, FRAGMENT_K, gl_MatrixUseA>
#define FRAGMENT_B coopmat<IN_SCALAR, gl_ScopeSubgroup, FRAGMENT_K, FRAGMENT_N, gl_MatrixUseB>

// The place in memory of word `w` of an invocation's four. NVIDIA's compiler keeps the registers of
// an A fragment in the order 0, 2, 1, 3. Words in that order need no moves before a product (driver
// 580.159.04).
uint a_place(const uint w) { return SWAP_A != 0 && (w == 1 || w == 2) ? 3 - w : w; }

// The place in fragment order of word `word` of K's.
uint word_place(const uint word) {
    const uint within = word % INTERLEAVED_WORDS;
    return INTERLEAVE_K != 0 ? word - within + within % 4 * 4 + within / 4 : word;
}
