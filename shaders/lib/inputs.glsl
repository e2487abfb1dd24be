// A and B as they lie in memory: elements of IN_TYPE, loaded 16 bytes, a group, at a time.
#if IN_TYPE == TYPE_F32
const uint IN_SIZE = 4;
#else
const uint IN_SIZE = 2;
#endif
const uint GROUP = 16 / IN_SIZE;

float group_element(uvec4 data, const uint e) {
#if IN_TYPE == TYPE_F32
    return uintBitsToFloat(data[e]);
#elif IN_TYPE == TYPE_BF16
    return uintBitsToFloat(e % 2 == 0 ? data[e / 2] << 16 : data[e / 2] & 0xffff0000u);
#else
    return unpackHalf2x16(data[e / 2])[e % 2];
#endif
}
