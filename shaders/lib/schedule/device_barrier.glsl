// device_barrier.glsl: workgroups of a dispatch that wait for one another.
//
// Vulkan promises no progress between workgroups, so nobody may wait for one that might never
// start, nor for ever. Work is taken by ticket, so that any number of workgroups, down to one, does
// all of it, and what is waited for is that all of it is done: by workgroups that have started,
// since they hold the tickets. Who comes when the last ticket is gone ends at once. (Occupancy
// discovery, Sorensen et al., Portable inter-workgroup barrier synchronisation for GPUs, OOPSLA
// 2016, has workgroups enrol instead; 128 of them that enrol by compare-and-swap took 25 us on an
// H200.) Whoever waits too long poisons the word that all wait for: it is passed by all or by
// nobody, and if by nobody the dispatch that is recorded behind, which else ends at once, does
// everything anew (GUARDED).

#include "shared_word.glsl"

shared uint broadcast_word;

bool is_leader() { return gl_LocalInvocationIndex == 0; }

// The leader's value, for all. The first barrier is for those that still read the last one.
uint broadcast(uint value) {
    barrier();
    if (is_leader()) broadcast_word = value;
    barrier();
    return broadcast_word;
}

// Makes the writes of all invocations available to other workgroups, if the leader's next atomic
// tells them so; and the other way round. A plain barrier() does not cover buffers.
void exchange_writes() {
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeQueueFamily, gl_StorageSemanticsBuffer,
                   gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable |
                       gl_SemanticsMakeVisible);
}

// Counts at `counter`, which was 0, and says whether this was the last of `all` workgroups, which
// then sees what the others have written.
bool is_last_of(const uint all, uint64_t counter) {
    exchange_writes();
    uint before = 0;
    if (is_leader()) before = atomicAdd(SharedWord(counter).x, 1, IN_ORDER);
    const bool last = broadcast(before) == all - 1;
    exchange_writes();
    return last;
}

bool is_poisoned() {
    uint done = 0;
    if (is_leader()) done = atomicLoad(SharedWord(CONTROL_WORD(CONTROL_DONE)).x, RELAXED);
    return (broadcast(done) & POISONED) != 0;
}

// The next one, from 0; none is left once they are poisoned.
uint take_ticket() {
    uint ticket = 0;
    if (is_leader()) {
        const uint done = atomicLoad(SharedWord(CONTROL_WORD(CONTROL_DONE)).x, RELAXED);
        ticket = atomicAdd(SharedWord(CONTROL_WORD(CONTROL_TICKETS)).x, 1, RELAXED);
        if ((done & POISONED) != 0) ticket = POISONED;
    }
    return broadcast(ticket);
}

// The workgroups that took part in a barrier.
struct Participants {
    uint number;  // of this workgroup among them
    uint count;   // 0: one of them waited too long, and no workgroup passes
};

// Waits until the work of `all` tickets is done. This workgroup did `own` of them, at least one. After
// the wait every participant sees what all participants have written.
Participants wait_for_all(const uint own, const uint all) {
    exchange_writes();
    uint seen = 0, enrolled = 0;
    if (is_leader()) {
        const uint64_t done = CONTROL_WORD(CONTROL_DONE);
        enrolled = atomicAdd(SharedWord(CONTROL_WORD(CONTROL_ENROLLED)).x, 1, RELAXED);
        seen = atomicAdd(SharedWord(done).x, own, IN_ORDER) + own;
        for (uint turn = 0; seen != all && (seen & POISONED) == 0; ++turn) {
            if (turn < SPIN_LIMIT) {
                seen = atomicLoad(SharedWord(done).x, ACQUIRED);
                continue;
            }
            // Fails as often as others are done meanwhile, at most.
            const uint was = atomicCompSwap(SharedWord(done).x, seen, POISONED,
                                            gl_ScopeQueueFamily, gl_StorageSemanticsBuffer,
                                            gl_SemanticsAcquireRelease, gl_StorageSemanticsBuffer,
                                            gl_SemanticsAcquire);
            if (was == seen && p.aborts != 0) atomicAdd(SharedWord(p.aborts).x, 1, RELAXED);
            seen = was == seen ? POISONED : was;
        }
    }
    const uint number = broadcast(enrolled);
    const bool passed = broadcast(seen) == all;
    exchange_writes();
    // All have enrolled before they were done.
    uint count = 0;
    if (is_leader() && passed)
        count = atomicLoad(SharedWord(CONTROL_WORD(CONTROL_ENROLLED)).x, RELAXED);
    return Participants(number, broadcast(count));
}
