/*
 * kernel_event.h - errors of GPUs in lines of a kernel log.
 *
 *     NVRM: Xid (PCI:0000:3b:00): 79, ...                                       xid.h
 *     NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT Fatal XC0 ...             Xids 144 to 150 say themselves whether they are
 * fatal NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.                       also without an Xid nvidia-nvswitch3: SXid
 * (PCI:0000:85:00.0): 20034, Fatal, Link 30 ...      NVSwitch: fatal ones amdgpu 0000:c1:00.0: amdgpu: 1 uncorrectable hardware
 * errors detected in umc block amdgpu 0000:a1:00.0: amdgpu: GPU reset end with ret = -62                 other than 0
 */
#ifndef MSIM_TRACES_FAULT_KERNEL_EVENT_H
#define MSIM_TRACES_FAULT_KERNEL_EVENT_H

#include <stdbool.h>

#include "traces/fault/xid.h"

enum kernel_event_kind { EVENT_NONE, EVENT_XID, EVENT_SXID, EVENT_OFF_THE_BUS, EVENT_AMDGPU };

struct kernel_event {
    enum kernel_event_kind kind;
    enum xid_class class;
    int number;          /* of the Xid or SXid; 0: none. -1: the line has none that could be read */
    const char *numeral; /* where it stands */
    const char *message; /* where the driver's own words begin; the time and the host stand before */
    char cause[96];
};

/* What the line reports; false: nothing that ends a job or could be wrong. */
bool kernel_event_find(const char *line, struct kernel_event *event);

#endif
