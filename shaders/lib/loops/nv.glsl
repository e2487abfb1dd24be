// nv.glsl: VK_NV_cooperative_matrix2: the whole tile is one workgroup-scope matrix, loaded
// and stored through tensor layouts. Its elements show their coordinates only to per-element
// functions, and stores take whole matrices, so it has its own store_tile; no gates, no row
// reductions.
#define OWN_STORE_TILE
#extension GL_KHR_cooperative_matrix : require
#extension GL_NV_cooperative_matrix2 : require

#define Acc coopmat<ACC_SCALAR, gl_ScopeWorkgroup, TILE_M, TILE_N, gl_MatrixUseAccumulator>
#define MATRIX_A coopmat<IN_SCALAR, gl_ScopeWorkgroup, TILE_M, TILE_K, gl_MatrixUseA>
#define MATRIX_B coopmat<IN_SCALAR, gl_ScopeWorkgroup, TILE_K, TILE_N, gl_MatrixUseB>
#define CLAMPED gl_CooperativeMatrixClampModeConstantNV  // zero outside the dimensions
#define UNCLAMPED gl_CooperativeMatrixClampModeUndefinedNV

layout(buffer_reference, std430, buffer_reference_align = 16) buffer In16 { IN_SCALAR x[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer In2 { IN_SCALAR x[]; };

void acc_clear(inout Acc acc) { acc = Acc(0.0); }

// The compiler sees the alignment of a row only from the leading dimension's zero bits. Telling it
// is worth a factor of 2 to 3 (H200, driver 580.159.04).
uint aligned(uint ld, const uint multiple) { return multiple != 0 ? ld & ~(multiple - 1) : ld; }

// Loads A[row…, k…] and B[k…, col…] relative to the tile's own corner, so that 32-bit element
// offsets suffice for any matrix. `mode`: clamp mode; `a_dim`, `b_dim`: rows × columns in memory
// that exist from the corner on.
#define LOAD_OPERAND(matrix, BUFFER, address, ld, mode, dim, k_inner, mn_tile, k, transposed_view) \
    {                                                                                              \
        tensorLayoutNV<2, mode> layout_ = createTensorLayoutNV(2, mode);                           \
        layout_ = setTensorLayoutDimensionNV(layout_, dim.x, dim.y);                               \
        layout_ = setTensorLayoutStrideNV(layout_, ld, 1);                                         \
        if (k_inner)                                                                               \
            layout_ = sliceTensorLayoutNV(layout_, 0, mn_tile, k, TILE_K);                         \
        else                                                                                       \
            layout_ = sliceTensorLayoutNV(layout_, k, TILE_K, 0, mn_tile);                         \
        if (transposed_view)                                                                       \
            coopMatLoadTensorNV(matrix, BUFFER(address).x, 0, layout_, transpose_view);            \
        else                                                                                       \
            coopMatLoadTensorNV(matrix, BUFFER(address).x, 0, layout_);                            \
    }

#define STEP(mode, k)                                                                              \
    {                                                                                              \
        MATRIX_A a_;                                                                               \
        MATRIX_B b_;                                                                               \
        if (A_VECTOR != 0)                                                                         \
            LOAD_OPERAND(a_, In16, a, lda, mode, a_dim, A_COL_MAJOR == 0, TILE_M, k,               \
                         A_COL_MAJOR != 0)                                                         \
        else                                                                                       \
            LOAD_OPERAND(a_, In2, a, lda, mode, a_dim, A_COL_MAJOR == 0, TILE_M, k,                \
                         A_COL_MAJOR != 0)                                                         \
        if (B_VECTOR != 0)                                                                         \
            LOAD_OPERAND(b_, In16, b, ldb, mode, b_dim, B_COL_MAJOR != 0, TILE_N, k,               \
                         B_COL_MAJOR != 0)                                                         \
        else                                                                                       \
            LOAD_OPERAND(b_, In2, b, ldb, mode, b_dim, B_COL_MAJOR != 0, TILE_N, k,                \
                         B_COL_MAJOR != 0)                                                         \
        acc = coopMatMulAdd(a_, b_, acc);                                                          \
    }

void mma_tile(inout Acc acc, const Tile t) {
    const uint lda = aligned(size_lda(), A_VECTOR), ldb = aligned(size_ldb(), B_VECTOR);
    const uint depth = t.k_end - t.k_begin;
    const uint rows = t.row_end - t.row, cols = size_n() - t.col;
    const uint64_t a_corner = A_COL_MAJOR == 0 ? uint64_t(t.row) * lda + t.k_begin
                                               : uint64_t(t.k_begin) * lda + t.row;
    const uint64_t b_corner = B_COL_MAJOR == 0 ? uint64_t(t.k_begin) * ldb + t.col
                                               : uint64_t(t.col) * ldb + t.k_begin;
    const uint64_t a = t.a + a_corner * IN_SIZE, b = t.b + b_corner * IN_SIZE;
    const uvec2 a_dim = A_COL_MAJOR == 0 ? uvec2(rows, depth) : uvec2(depth, rows);
    const uvec2 b_dim = B_COL_MAJOR == 0 ? uvec2(depth, cols) : uvec2(cols, depth);
    tensorViewNV<2, false, 1, 0> transpose_view = createTensorViewNV(2, false, 1, 0);

    // Tiles that reach past M or N load everything clamped, which is slower; the others only the
    // last, incomplete step of K.
    uint k = 0;
    if (EDGES == 0 || (rows >= TILE_M && cols >= TILE_N)) {
        const uint unrolled = depth / (UNROLL_K * TILE_K) * (UNROLL_K * TILE_K);
        [[dont_unroll]] for (; k < unrolled; k += UNROLL_K * TILE_K)
            [[unroll]] for (uint u = 0; u < UNROLL_K; ++u) STEP(UNCLAMPED, k + u * TILE_K)
    }
    if (EDGES != 0 || K_TAIL != 0)
        [[dont_unroll]] for (; k < depth; k += TILE_K) STEP(CLAMPED, k)
}

bool is_outside(const Tile t, const uint row, const uint col) {
    return EDGES != 0 && (t.row + row >= t.row_end || t.col + col >= size_n());
}

float pre_element(const in uint row, const in uint col, const in float v, const in Tile t) {
    if (is_outside(t, row, col)) return 0.0;
    return epilogue_pre(t, t.row + row, t.col + col, v);
}

// Conversions between matrices may round in any way: NVIDIA's driver 580.159.04 truncates f32 to
// bf16. A value that is rounded beforehand converts exactly.
float round_bf16(float v) { return uintBitsToFloat(float_to_bf16(v) & 0xffff0000u); }

float d_element(const float v) {
    const float d = clamped(v);
    return D_TYPE == TYPE_BF16 ? round_bf16(d) : d;
}

float post_element(const in uint row, const in uint col, const in float v) {
    return d_element(activated(v));
}

float stepped_element(const in uint row, const in uint col, const in float v, const in Tile t) {
    if (is_outside(t, row, col)) return 0.0;
    return d_element(with_steps(t, t.row + row, t.col + col, activated(v)));
}

float aux_element(const in uint row, const in uint col, const in float v) {
    return round_bf16(v);
}

layout(buffer_reference, std430, buffer_reference_align = 2) buffer OutIn { IN_SCALAR x[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer OutF32 { float x[]; };

#define STORE_MODE(acc, SCALAR, USE, BUFFER, mode, address, ld)                                    \
    {                                                                                              \
        tensorLayoutNV<2, mode> layout_ = createTensorLayoutNV(2, mode);                           \
        layout_ = setTensorLayoutDimensionNV(layout_, t.row_end - t.row, size_n() - t.col);        \
        layout_ = setTensorLayoutStrideNV(layout_, ld, 1);                                         \
        layout_ = sliceTensorLayoutNV(layout_, 0, TILE_M, 0, TILE_N);                              \
        coopmat<SCALAR, gl_ScopeWorkgroup, TILE_M, TILE_N, USE> out_ =                             \
            coopmat<SCALAR, gl_ScopeWorkgroup, TILE_M, TILE_N, USE>(acc);                          \
        coopMatStoreTensorNV(out_, BUFFER(address).x, 0, layout_);                                 \
    }

#define STORE(acc, SCALAR, USE, BUFFER, address, ld)                                               \
    if (EDGES == 0 || (t.row_end - t.row >= TILE_M && size_n() - t.col >= TILE_N))                 \
        STORE_MODE(acc, SCALAR, USE, BUFFER, UNCLAMPED, address, ld)                               \
    else                                                                                           \
        STORE_MODE(acc, SCALAR, USE, BUFFER, CLAMPED, address, ld)

// D and aux are of the input type or f32 here (is_legal refuses the rest).
void store_tile(Acc acc, const Tile t) {
    // Tensor stores cannot be made visible to other workgroups of the same dispatch, so here only
    // another one adds the partial results (is_legal refuses the rest).
    if (SPLIT != SPLIT_NONE) {
        const uint64_t partial = element(t.partial, TYPE_F32, t.row, partial_ld(), t.col);
        STORE(acc, float, gl_MatrixUseAccumulator, OutF32, partial, partial_ld())
        return;
    }
    coopMatPerElementNV(acc, acc, pre_element, t);
    // D may be C: nothing is stored before everything is read, whoever holds which element.
    if (C_TYPE != TYPE_NONE)
        controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer,
                       gl_SemanticsAcquireRelease);
    if (AUX_TYPE != TYPE_NONE) {
        const uint64_t at = element(t.aux, AUX_TYPE, t.row, p.ld_aux, t.col);
        if (AUX_TYPE == TYPE_F32) {
            STORE(acc, float, gl_MatrixUseAccumulator, OutF32, at, p.ld_aux)
        } else if (AUX_TYPE == IN_TYPE) {
            Acc aux = acc;
            if (AUX_TYPE == TYPE_BF16) coopMatPerElementNV(aux, acc, aux_element);
            STORE(aux, IN_SCALAR, IN_STORE_USE, OutIn, at, p.ld_aux)
        }
    }
    if (STEP_COUNT != 0) coopMatPerElementNV(acc, acc, stepped_element, t);
    else if (ACTIVATION != ACTIVATION_NONE || CLAMP != 0 || D_TYPE == TYPE_BF16)
        coopMatPerElementNV(acc, acc, post_element);
    const uint64_t at = element(t.d, D_TYPE, t.row, p.ldd, t.col);
    if (D_TYPE == TYPE_F32) {
        STORE(acc, float, gl_MatrixUseAccumulator, OutF32, at, p.ldd)
    } else if (D_TYPE == IN_TYPE) {
        STORE(acc, IN_SCALAR, IN_STORE_USE, OutIn, at, p.ldd)
    }
}
