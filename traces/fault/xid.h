/*
 * xid.h - the meaning of NVIDIA's Xid errors for a job and its node.
 *
 *     Xid 79   GPU has fallen off the bus     the GPU is gone, or must be inspected
 *     Xid 31   GPU memory page fault          the program's own error: its work ends, the node is well
 *
 * The classes follow NVIDIA's catalogue of Xid errors (docs.nvidia.com/deploy/xid-errors) and the actions that it recommends,
 * from memory. Numbers that are reserved, or that only displays and video use, are unknown here.
 */
#ifndef MSIM_TRACES_FAULT_XID_H
#define MSIM_TRACES_FAULT_XID_H

enum xid_class {
    XID_UNKNOWN,
    XID_INFORMATION, /* nothing ends: it was recorded, corrected, or cleaned up after another error */
    XID_APPLICATION, /* the program's own error ends its work; node and GPU are well */
    XID_CONTAINED,   /* an error of the hardware that ends one program; the GPU is reset later */
    XID_RESET,       /* the GPU works again after a reset, or after a reboot of its node */
    XID_LOST,        /* the GPU is gone, or must be inspected */
};

enum { XID_LARGEST = 1000 }; /* numbers of Xids have three digits */

/* *meaning, "Xid 79: GPU has fallen off the bus", is written if the class is known. */
enum xid_class xid_classify(int number, const char **meaning);

#endif
