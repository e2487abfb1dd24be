// The workgroups of the same rows, a panel, tell each other what they know of them, through states in
// the workspace. A state is told by two words that say themselves whether they are there (as in the
// decoupled look-back of Merrill and Garland, Single-pass parallel prefix scan, 2016): no other order
// of memory accesses is needed, and nobody waits for more than it needs.
//
// Waiting is safe as in device_barrier.glsl. Tiles are taken by ticket, so that what is missing of a
// panel is on its way, or taken by whoever ends next. Nobody waits for ever: a workgroup that gives up
// has told what it knows, stores nothing, and leaves its tile to the dispatch behind
// (ROW_STAGE_GUARDED), which finds all states there. Once one has given up, nobody waits any more.

const uint UNTOLD = 0xffffffffu;  // a NaN that is never told

struct Panel {
    uint64_t states;   // of the panel: [column of tiles][row of the tile], two words each
    uint64_t own;      // of the tile
    uint64_t stored;   // a word that says that the tile was left to nobody
};

Panel panel_of(const Tile t, uint64_t batch) {
    const uint row = t.row / TILE_M, column = t.col / TILE_N;
    const uint64_t number = batch * tile_rows() + row;
    Panel panel;
    panel.states = p.row_states + number * tile_columns() * TILE_M * 8;
    panel.own = panel.states + uint64_t(column) * TILE_M * 8;
    panel.stored = p.control + (CONTROL_WORDS + number * tile_columns() + column) * 4;
    return panel;
}

// In the order of tickets. One that is the last to begin has all others begun before it.
uint next_ticket() {
    uint ticket = 0;
    if (is_leader()) ticket = atomicAdd(SharedWord(control_word(CONTROL_TICKETS)).x, 1, RELAXED);
    return broadcast(ticket);
}

bool is_stored(const Panel panel) { return SharedWord(panel.stored).x != 0; }

void tell(uint64_t at, float value) {
    const uint word = is_nan(value) ? 0x7fc00000u : floatBitsToUint(value);
    atomicStore(SharedWord(at).x, word, RELAXED);
}

void tell_panel(const Panel panel, const uint row, const RowState s) {
    tell(panel.own + row * 8, s.x);
    if (ROW_HAS_Y) tell(panel.own + row * 8 + 4, s.y);
}

bool has_given_up() {
    return (atomicLoad(SharedWord(control_word(CONTROL_DONE)).x, RELAXED) & POISONED) != 0;
}

// Neighbouring tiles whose states are asked for at once.
const uint BLOCK_TILES = ROW_BLOCK / TILE_N;
const uint MOST_BLOCK_TILES = 32;  // tiles are at least 32 columns wide

// Says to all that wait that one has waited too long; the first time it counts.
void give_up() {
    const uint before = atomicOr(SharedWord(control_word(CONTROL_DONE)).x, POISONED, RELAXED);
    if ((before & POISONED) == 0 && p.aborts != 0) atomicAdd(SharedWord(p.aborts).x, 1, RELAXED);
}

// What the panel knows of a row: a tree up to ROW_BLOCK columns, then from left to right. False: it
// took too long. `left`: how often this invocation may still ask, for all of its rows.
bool panel_state(const Panel panel, const uint row, const bool waits, inout uint left,
                 out RowState total) {
    const uint columns = tile_columns();
    bool in_time = true;
    total = no_row_state();
    [[dont_unroll]] for (uint first = 0; first < columns; first += BLOCK_TILES) {
        uvec2 words[MOST_BLOCK_TILES];
        [[dont_unroll]] while (true) {
            bool told = true;
            [[unroll]] for (uint i = 0; i < BLOCK_TILES; ++i) {
                // The last one once more instead of none: no branch around a load.
                const uint column = min(first + i, columns - 1);
                const uint64_t at = panel.states + (uint64_t(column) * TILE_M + row) * 8;
                words[i] = uvec2(0);
                words[i].x = atomicLoad(SharedWord(at).x, RELAXED);
                if (ROW_HAS_Y) words[i].y = atomicLoad(SharedWord(at + 4).x, RELAXED);
                if (words[i].x == UNTOLD || words[i].y == UNTOLD) told = false;
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
                s[i] = RowState(float(min(size_n() - (first + i) * TILE_N, TILE_N)),
                                uintBitsToFloat(words[i].x), uintBitsToFloat(words[i].y));
        }
        [[unroll]] for (uint width = 1; width < BLOCK_TILES; width *= 2)
            [[unroll]] for (uint i = 0; i < BLOCK_TILES; i += 2 * width)
                s[i] = merge_rows(s[i], s[i + width], false);
        total = first == 0 ? s[0] : merge_rows(total, s[0], false);
    }
    return in_time;
}

shared uint untold_rows;

// Whether all invocations know their rows: the tile is this workgroup's to store.
bool may_store(const Panel panel, const bool known) {
    if (is_leader()) untold_rows = 0;
    barrier();
    if (!known) atomicAdd(untold_rows, 1);
    barrier();
    const bool all_known = untold_rows == 0;
    if (is_leader() && all_known) SharedWord(panel.stored).x = 1;
    return all_known;
}
