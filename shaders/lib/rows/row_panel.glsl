// row_panel.glsl: the workgroups of the same rows, a panel, tell each other what they know of them.
// The words of a state say themselves whether they are there (as in the decoupled look-back of
// Merrill and Garland, Single-pass parallel prefix scan, 2016): no other order of memory accesses
// is needed, and nobody waits for more than it needs.
//
// Waiting is safe as in device_barrier.glsl. Tiles are taken by ticket, so that what is missing of
// a panel is on its way, or taken by whoever ends next. Nobody waits for ever: a workgroup that
// gives up has told what it knows, stores nothing, and leaves its tile to the dispatch behind
// (ROW_STAGE_GUARDED), which finds all states there. Once one has given up, nobody waits any more.

#include "row_panel_state.glsl"

struct Panel {
    uint64_t states;  // of the panel
    uint64_t own;     // of the tile
    uint64_t stored;  // a word that says that the tile was left to nobody
};

Panel panel_of(const Tile t, uint64_t batch) {
    const uint row = t.row / TILE_M, column = t.col / TILE_N;
    const uint64_t number = batch * panel_count() + row;
    Panel panel;
    panel.states = panel_states(number);
    panel.own = panel.states + uint64_t(column) * TILE_M * STATE_BYTES;
    panel.stored = CONTROL_WORD(CONTROL_WORDS + number * panel_tiles() + column);
    return panel;
}

// The number of this workgroup in the order in which they begin.
uint next_ticket() {
    uint ticket = 0;
    if (is_leader()) ticket = atomicAdd(SharedWord(CONTROL_WORD(CONTROL_TICKETS)).x, 1, RELAXED);
    return broadcast(ticket);
}

bool is_stored(const Panel panel) { return SharedWord(panel.stored).x != 0; }

void tell(uint64_t at, float value) {
    const uint word = is_nan(value) ? 0x7fc00000u : floatBitsToUint(value);
    atomicStore(SharedWord(at).x, word, RELAXED);
}

void tell_panel(const Panel panel, const uint row, const RowState s) {
    const vec3 kept = kept_state(s);
    [[unroll]] for (uint word = 0; word < STATE_WORDS; ++word)
        tell(state_word(panel.own, row, word), kept[word]);
}

bool has_given_up() {
    return (atomicLoad(SharedWord(CONTROL_WORD(CONTROL_DONE)).x, RELAXED) & POISONED) != 0;
}

// Tells all that wait that one has waited too long; counts the first time.
void give_up() {
    const uint before = atomicOr(SharedWord(CONTROL_WORD(CONTROL_DONE)).x, POISONED, RELAXED);
    if ((before & POISONED) == 0 && p.aborts != 0) atomicAdd(SharedWord(p.aborts).x, 1, RELAXED);
}

shared uint untold_rows;

// True if all invocations know their rows: the tile is this workgroup's to store.
bool may_store(const Panel panel, const bool known) {
    if (is_leader()) untold_rows = 0;
    barrier();
    if (!known) atomicAdd(untold_rows, 1);
    barrier();
    const bool all_known = untold_rows == 0;
    if (is_leader() && all_known) SharedWord(panel.stored).x = 1;
    return all_known;
}
