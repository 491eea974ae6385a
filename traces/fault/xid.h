/*
 * xid.h - what NVIDIA's Xid errors mean for a job and its node.
 *
 * The classes follow NVIDIA's catalogue of Xid errors (docs.nvidia.com/deploy/xid-errors) and the actions that it recommends,
 * from memory; numbers that it reserves, or gives to displays and video alone, are unknown here.
 */
#ifndef MSIM_TRACES_FAULT_XID_H
#define MSIM_TRACES_FAULT_XID_H

enum xid_class {
    XID_UNKNOWN,
    XID_INFORMATION, /* nothing ends by it: what was recorded, corrected, or cleaned up behind another error */
    XID_APPLICATION, /* the program's own error ends its work; node and GPU are well */
    XID_CONTAINED,   /* of the hardware, but it hits one program alone; the GPU is reset when that is convenient */
    XID_RESET,       /* the GPU works again after a reset, or its node after a reboot */
    XID_LOST,        /* the GPU is gone, or has to be looked at */
};

enum { XID_LARGEST = 1000 }; /* numbers of Xids have three digits */

/* *meaning, "Xid 79: GPU has fallen off the bus", is written where the class is known. */
enum xid_class xid_classify(int number, const char **meaning);

#endif
