// The workgroups of the same rows, a panel, tell each other what they know of them: through states
// in the workspace and a word for each panel that counts who has told. Waiting is as in
// device_barrier.glsl: tiles are taken by ticket, so that a panel's missing ones are taken by
// whoever ends next; who waits too long poisons the word, so that all of a panel pass or nobody; and
// dispatches behind redo the panels that nobody has passed (ROW_STAGE_GUARDED).

layout(buffer_reference, std430, buffer_reference_align = 8) queuefamilycoherent buffer SharedState {
    vec2 xy;
};

struct Panel {
    uint64_t states;   // of the panel: [column of tiles][row of the tile]
    uint64_t counter;  // workgroups that have told
};

Panel panel_of(const Tile t, uint64_t batch) {
    const uint64_t number = batch * tile_rows() + t.row / TILE_M;
    return Panel(p.row_states + number * tile_columns() * TILE_M * 8,
                 p.control + (CONTROL_WORDS + number) * 4);
}

bool is_complete(const Panel panel) {
    return SharedWord(panel.counter).x == tile_columns();
}

uint64_t shared_state(const Panel panel, const uint column, const uint row) {
    return panel.states + (uint64_t(column) * TILE_M + row) * 8;
}

void tell_panel(const Panel panel, const Tile t, const uint row, const RowState s) {
    SharedState(shared_state(panel, t.col / TILE_N, row)).xy = vec2(s.x, s.y);
}

// Counts this workgroup as one that has told, and waits for all of the panel; false: one of them has
// waited too long.
bool wait_for_panel(const Panel panel) {
    exchange_writes();
    uint seen = 0;
    if (is_leader()) {
        const uint all = tile_columns();
        const uint64_t poison = control_word(CONTROL_DONE);
        seen = atomicAdd(SharedWord(panel.counter).x, 1, IN_ORDER) + 1;
        for (uint turn = 0; seen != all && (seen & POISONED) == 0; ++turn) {
            // Once one has given up, nobody waits any more.
            const bool given_up =
                (atomicLoad(SharedWord(poison).x, RELAXED) & POISONED) != 0;
            if (turn < p.spin_limit && !given_up) {
                seen = atomicLoad(SharedWord(panel.counter).x, ACQUIRED);
                continue;
            }
            const uint was = atomicCompSwap(SharedWord(panel.counter).x, seen, POISONED,
                                            gl_ScopeQueueFamily, gl_StorageSemanticsBuffer,
                                            gl_SemanticsAcquireRelease, gl_StorageSemanticsBuffer,
                                            gl_SemanticsAcquire);
            if (was == seen && !given_up) {
                atomicOr(SharedWord(poison).x, POISONED, RELAXED);
                if (p.aborts != 0) atomicAdd(SharedWord(p.aborts).x, 1, RELAXED);
            }
            seen = was == seen ? POISONED : was;
        }
    }
    const bool passed = broadcast(seen) == tile_columns();
    exchange_writes();
    return passed;
}

// What all of them know of a row: a tree up to ROW_BLOCK columns, then from left to right.
const uint BLOCK_TILES = ROW_BLOCK / TILE_N;
const uint MOST_BLOCK_TILES = 32;  // tiles are at least 32 columns wide

RowState panel_state(const Panel panel, const uint row) {
    const uint columns = tile_columns();
    RowState total = no_row_state();
    [[dont_unroll]] for (uint first = 0; first < columns; first += BLOCK_TILES) {
        RowState s[MOST_BLOCK_TILES];
        [[unroll]] for (uint i = 0; i < BLOCK_TILES; ++i) {
            // The last one once more instead of none: no branch around a load.
            const uint column = min(first + i, columns - 1);
            const vec2 xy = SharedState(shared_state(panel, column, row)).xy;
            const uint col = (first + i) * TILE_N;
            s[i] = no_row_state();
            if (first + i < columns)
                s[i] = RowState(float(min(size_n() - col, TILE_N)), xy.x, xy.y);
        }
        [[unroll]] for (uint width = 1; width < BLOCK_TILES; width *= 2)
            [[unroll]] for (uint i = 0; i < BLOCK_TILES; i += 2 * width)
                s[i] = merge_rows(s[i], s[i + width]);
        total = first == 0 ? s[0] : merge_rows(total, s[0]);
    }
    return total;
}
