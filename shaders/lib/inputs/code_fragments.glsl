// code_fragments.glsl: codes of B in fragment order (fragment_words.glsl): a row of codes is UNIT_DEPTH
// deep. Of each fragment along N stand the 16 bytes of every invocation: the codes of its elements,
// UNIT_STEPS steps of FRAGMENT_K. Codes of a pair of elements are half a word apart, so that both are
// taken out of it at once.
const uint UNIT_STEPS = CODE_WIDTH == 4 ? 4 : 2;
const uint UNIT_DEPTH = UNIT_STEPS * FRAGMENT_K;

// Where pair `pair` of a step's four stands: in which word, and how far from its lowest bit.
uint pair_word(const uint step, const uint pair) {
    return CODE_WIDTH == 4 ? step : 2 * step + pair / 2;
}
uint pair_shift(const uint pair) { return CODE_WIDTH * (CODE_WIDTH == 4 ? pair : pair % 2); }
const uint PAIR_MASK = CODE_WIDTH == 4 ? 0x000f000fu : 0x00ff00ffu;
