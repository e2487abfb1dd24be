// elements.glsl: where the elements of operands stand.
#include "types.glsl"

// A static size is a constant to the compiler, a dynamic one is read from the parameters.
uint size_n() { return STATIC_N != 0 ? STATIC_N : p.n; }

uint64_t element(uint64_t base, const uint type, uint row, uint ld, uint col) {
    return base + (uint64_t(row) * ld + col) * type_size(type);
}

// The same of C, D and aux, which may be column-major, and how far apart neighbours of a row stand.
uint64_t element(uint64_t base, const uint type, const bool col_major, uint row, uint ld,
                 uint col) {
    return element(base, type, col_major ? col : row, ld, col_major ? row : col);
}
uint64_t row_step(const uint type, const bool col_major, uint ld) {
    return uint64_t(col_major ? ld : 1) * type_size(type);
}
