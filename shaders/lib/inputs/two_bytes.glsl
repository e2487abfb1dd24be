// two_bytes.glsl: elements of 2 bytes: their loads, and their places in tiles and in fragments.
const uint IN_BYTES = 2;
const bool CONVERTED_TO = true;
uint load_bits(uint64_t at) { return uint(U16(at).x); }

#define X8 uvec4
#define SET_X8S(tile, at, group) tile[at] = group;

#define SET_WORD(fragment, w, bits)         \
    {                                       \
        const WORD word_ = word_from(bits); \
        fragment[2 * (w)] = word_.x;        \
        fragment[2 * (w) + 1] = word_.y;    \
    }
#define GET_WORD(fragment, w) bits_of(WORD(fragment[2 * (w)], fragment[2 * (w) + 1]))
