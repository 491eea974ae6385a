/*
 * xid.h - the meaning of NVIDIA's Xid errors for a job and its node.
 *
 *     Xid 79   GPU has fallen off the bus     the GPU is gone, or must be inspected
 *     Xid 31   GPU memory page fault          the program's own error: its work ends, the node is well
 *
 * The classes follow the immediate actions of NVIDIA's Xid catalogue as of 29 October 2025, which has the numbers 1 to 172
 * (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html): RESTART_APP is the program's own error, IGNORE and numbers
 * without an action are information, RESET_GPU, RESTART_VM and the workflows of Xids 48, 74 and 144 to 150 are resets, RESTART_BM
 * and CHECK_MECHANICALS lose the GPU. Where msim says otherwise, the table says why. Numbers that the catalogue calls unused on
 * A100 and later and that no older guide explains are unknown here.
 */
#ifndef MSIM_TRACES_FAULT_XID_H
#define MSIM_TRACES_FAULT_XID_H

#define XID_CATALOGUE "NVIDIA's catalogue of October 2025"

enum xid_class {
    XID_UNKNOWN,
    XID_INFORMATION, /* nothing ends: it was recorded, corrected, or cleaned up after another error */
    XID_APPLICATION, /* the program's own error ends its work; node and GPU are well */
    XID_CONTAINED,   /* an error of the hardware that ends one program; the GPU is reset later */
    XID_RESET,       /* the GPU works again after a reset, or after a reboot of its node */
    XID_LOST,        /* the GPU is gone, or must be inspected */
};

enum {
    XID_LARGEST = 1000, /* numbers of Xids have three digits */
    XID_OFF_THE_BUS = 79,
    XID_NVLINK5_FIRST = 144, /* these name their severity in the kernel's log */
    XID_NVLINK5_LAST = 150,
};

/* *meaning, "Xid 79: GPU has fallen off the bus", is written if the class is known. */
enum xid_class xid_classify(int number, const char **meaning);

#endif
