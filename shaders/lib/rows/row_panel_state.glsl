// row_panel_state.glsl: what the tiles of a panel, those of the same rows, have told of these rows.
// The workspace holds the states: [panel][column of tiles][word][row of the tile]. A word is UNTOLD until
// its tile has written it. Neighbouring invocations load neighbouring words.
const uint UNTOLD = 0xffffffffu;  // a NaN that is never told

uint panel_count() { return (p.m + TILE_M - 1) / TILE_M; }  // in a matrix
uint panel_tiles() { return (size_n() + TILE_N - 1) / TILE_N; }
uint64_t panel_states(uint64_t number) {
    return p.partial + number * panel_tiles() * TILE_M * STATE_BYTES;
}

// Word `word` of a row's state, among those of its tile: 0 x, 1 y, 2 z.
uint64_t state_word(uint64_t states, const uint row, const uint word) {
    return states + (word * TILE_M + row) * 4;
}

// Supplied by the kernel: tells all that wait that one has waited too long, and whether one has.
void give_up();
bool has_given_up();

// Neighbouring tiles whose states are asked for at once.
const uint BLOCK_TILES = ROW_BLOCK / TILE_N;
const uint MOST_BLOCK_TILES = ROW_BLOCK / ROW_LEAST_TILE_N;

// The state of a row of a panel: a tree up to ROW_BLOCK columns, then from left to right. False:
// not all tiles have told theirs in time. `left`: how often this invocation may still ask, for all
// of its rows.
bool panel_state(const uint64_t states, const uint row, const bool waits, inout uint left,
                 inout RowState total) {
    const uint columns = panel_tiles();
    bool in_time = true;
    total = no_row_state();
    [[dont_unroll]] for (uint first = 0; first < columns; first += BLOCK_TILES) {
        uvec3 words[MOST_BLOCK_TILES];
        [[dont_unroll]] while (true) {
            bool told = true;
            [[unroll]] for (uint i = 0; i < BLOCK_TILES; ++i) {
                // The last one once more instead of none: no branch around a load.
                const uint column = min(first + i, columns - 1);
                const uint64_t at = states + uint64_t(column) * TILE_M * STATE_BYTES;
                words[i] = uvec3(0);
                [[unroll]] for (uint word = 0; word < STATE_WORDS; ++word)
                    words[i][word] = atomicLoad(SharedWord(state_word(at, row, word)).x, RELAXED);
                if (any(equal(words[i], uvec3(UNTOLD)))) told = false;
            }
            if (told || !waits) break;
            if (left == 0) give_up();
            if (left == 0 || has_given_up()) {
                left = 0;
                in_time = false;
                break;
            }
            --left;
        }
        RowState s[MOST_BLOCK_TILES];
        [[unroll]] for (uint i = 0; i < BLOCK_TILES; ++i) {
            s[i] = no_row_state();
            if (first + i < columns)
                s[i] = known_row_state(min(size_n() - (first + i) * TILE_N, TILE_N),
                                       uintBitsToFloat(words[i]));
        }
        [[unroll]] for (uint width = 1; width < BLOCK_TILES; width *= 2)
            [[unroll]] for (uint i = 0; i < BLOCK_TILES; i += 2 * width)
                s[i] = merge_rows(s[i], s[i + width], false);
        total = first == 0 ? s[0] : merge_rows(total, s[0], false);
    }
    return in_time;
}
