#include "sim/network/lockstep.h"

#include <stdlib.h>

#include "model/base/memory.h"

/* Ranks of a block are consecutive and on one stage, so they share a script. */
static bool blocks_share_scripts(const struct program *program, int32_t size)
{
    for (int32_t r = 0; r < program->n_ranks; r++)
        if (program->ranks[r].script != program->ranks[r / size * size].script)
            return false;
    return true;
}

void lockstep_create(const struct program *program, struct lockstep *lockstep)
{
    const struct layout *layout = &program->layout;
    int32_t size = layout->tp * layout->cp;

    *lockstep = (struct lockstep){0};
    if (size <= 1 || program->detail == DETAIL_KERNEL || program->n_ranks != size * layout->dp * layout->pp ||
        !blocks_share_scripts(program, size))
        return;
    lockstep->n_blocks = program->n_ranks / size;
    lockstep->block = memory_new((size_t)program->n_ranks, sizeof *lockstep->block);
    lockstep->members = memory_new((size_t)program->n_ranks, sizeof *lockstep->members);
    lockstep->first = memory_new((size_t)lockstep->n_blocks + 1, sizeof *lockstep->first);
    for (int32_t r = 0; r < program->n_ranks; r++) {
        lockstep->block[r] = r / size;
        lockstep->members[r] = r;
    }
    for (int32_t b = 0; b <= lockstep->n_blocks; b++)
        lockstep->first[b] = b * size;
}

void lockstep_free(struct lockstep *lockstep)
{
    free(lockstep->block);
    free(lockstep->first);
    free(lockstep->members);
    *lockstep = (struct lockstep){0};
}
