// s8.glsl: elements of s8. Their products are added up by integers.glsl or scaled_sums.glsl.
#extension GL_EXT_shader_explicit_arithmetic_types : require
#define IN_SCALAR int8_t
#define SUM_SCALAR int
#define HAS_DOT_PRODUCTS
const uint IN_TYPE = TYPE_S8;

const uint IN_BYTES = 1;
#include "unconverted.glsl"
uint load_bits(uint64_t at) { return uint(U8(at).x); }

int unpack_S8(uvec4 group, const uint e) {
    return bitfieldExtract(int(group[e / 4]), int(e % 4 * 8), 8);
}
int group_element(uvec4 group, const uint e) { return unpack_S8(group, e); }

#define X8 uvec2
#define SET_X8S(tile, at, group) \
    tile[at] = group.xy;         \
    tile[at + 1] = group.zw;

#define WORD i8vec4
WORD word_from(const uint bits) { return unpack8(int(bits)); }
uint bits_of(const WORD word) { return uint(pack32(word)); }
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
