// shared_word.glsl: words in memory that the workgroups of a dispatch share.
#ifndef SHARED_WORD
#define SHARED_WORD
layout(buffer_reference, std430, buffer_reference_align = 4) queuefamilycoherent buffer SharedWord {
    uint x;
};

#define IN_ORDER gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease
#define ACQUIRED gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsAcquire
#define RELAXED gl_ScopeQueueFamily, 0, gl_SemanticsRelaxed

// The address of a word at the parameter block's `control`.
#define CONTROL_WORD(index) (p.control + (index) * 4)

const uint POISONED = 0x80000000u;  // in CONTROL_DONE: nobody passes
#endif
