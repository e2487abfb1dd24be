// types.h: the element types, one row each. Compiled as C++ and GLSL; types.glsl says how a type is
// loaded, stored and converted.
#ifndef VKGEMM_TYPES_H
#define VKGEMM_TYPES_H

// The values of the constants *_TYPE and of IN_TYPE: consecutive from 1.
#define TYPE_NONE 0
#define TYPE_F16 1
#define TYPE_BF16 2
#define TYPE_F32 3
#define TYPE_S8 4
#define TYPE_S32 5
#define TYPE_U8 6
#define TYPE_E4M3 7
#define TYPE_E5M2 8

// X(name, NAME, bytes of an element): the enumerators of DataType and of VkgemmDataType, in the order
// of the values above.
#define VKGEMM_FLOATS(X) \
    X(f16, F16, 2)       \
    X(bf16, BF16, 2)     \
    X(f32, F32, 4)

#define VKGEMM_INTEGERS(X) \
    X(s8, S8, 1)           \
    X(s32, S32, 4)

#define VKGEMM_RESULT_BYTES(X) \
    X(u8, U8, 1)               \
    X(e4m3, E4M3, 1)           \
    X(e5m2, E5M2, 1)

#define VKGEMM_TYPES(X) VKGEMM_FLOATS(X) VKGEMM_INTEGERS(X) VKGEMM_RESULT_BYTES(X)

#endif
