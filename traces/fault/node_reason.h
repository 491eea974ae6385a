/*
 * node_reason.h - what the reason of a drain says: did something break, or was it planned?
 *
 *     NHC: nvidia-smi: 7 of 8 GPUs      something broke
 *     Kill task failed                  something broke: nobody announced it
 *     maintenance: firmware             planned
 */
#ifndef MSIM_TRACES_FAULT_NODE_REASON_H
#define MSIM_TRACES_FAULT_NODE_REASON_H

#include <stdbool.h>

/* Does the text name broken hardware or a node that did not answer, and not planned work? */
bool node_reason_is_failure(const char *reason);

#endif
