#include "model/spec/offload.h"

#include <string.h>

const char *const offload_words[N_OFFLOADS + 1] = {"none", "optimizer", "activations", "optimizer+activations"};

int offload_parse(const char *text)
{
    for (int i = 0; i < N_OFFLOADS; i++)
        if (strcmp(text, offload_words[i]) == 0)
            return i;
    return strcmp(text, "activations+optimizer") == 0 ? OFFLOAD_OPTIMIZER | OFFLOAD_ACTIVATIONS : -1;
}
