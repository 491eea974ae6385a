#include "traces/fault/xid.h"

#include <stddef.h>

/* In order of number. */
static const struct {
    int number;
    enum xid_class class;
    const char *meaning;
} known[] = {
    {6, XID_APPLICATION, "Xid 6: invalid push buffer stream (software)"},
    {7, XID_APPLICATION, "Xid 7: invalid push buffer address (software)"},
    {8, XID_APPLICATION, "Xid 8: GPU stopped processing (software)"},
    {11, XID_APPLICATION, "Xid 11: invalid push buffer stream (software)"},
    {13, XID_APPLICATION, "Xid 13: graphics engine exception (software)"},
    {31, XID_APPLICATION, "Xid 31: GPU memory page fault (software)"},
    {32, XID_APPLICATION, "Xid 32: invalid push buffer stream (software)"},
    {38, XID_RESET, "Xid 38: GPU driver firmware error"},
    {43, XID_APPLICATION, "Xid 43: GPU stopped processing (software)"},
    {44, XID_APPLICATION, "Xid 44: fault during a context switch (software)"},
    {45, XID_INFORMATION, "Xid 45: preemptive cleanup behind another error"},
    {46, XID_RESET, "Xid 46: GPU stopped processing"},
    {48, XID_RESET, "Xid 48: double-bit ECC error"},
    {54, XID_LOST, "Xid 54: GPU without auxiliary power"},
    {58, XID_RESET, "Xid 58: GPU memory interface error"},
    {61, XID_RESET, "Xid 61: internal microcontroller breakpoint (GPU)"},
    {62, XID_RESET, "Xid 62: internal microcontroller halt (GPU)"},
    {63, XID_INFORMATION, "Xid 63: row remap recorded (ECC)"},
    {64, XID_LOST, "Xid 64: row remap failed (ECC)"},
    {68, XID_APPLICATION, "Xid 68: video decoder exception (software)"},
    {69, XID_APPLICATION, "Xid 69: graphics engine class error (software)"},
    {74, XID_RESET, "Xid 74: NVLink error"},
    {79, XID_LOST, "Xid 79: GPU has fallen off the bus"},
    {92, XID_INFORMATION, "Xid 92: high single-bit ECC rate"},
    {93, XID_INFORMATION, "Xid 93: InfoROM wear limit"},
    {94, XID_CONTAINED, "Xid 94: contained ECC error"},
    {95, XID_RESET, "Xid 95: uncontained ECC error"},
    {109, XID_APPLICATION, "Xid 109: context switch timeout (software)"},
    {110, XID_LOST, "Xid 110: GPU security fault"},
    {119, XID_RESET, "Xid 119: GSP RPC timeout"},
    {120, XID_RESET, "Xid 120: GSP error"},
    {121, XID_INFORMATION, "Xid 121: corrected C2C link error"},
    {122, XID_INFORMATION, "Xid 122: GPU flash read failure"},
    {123, XID_RESET, "Xid 123: GPU power management error"},
    {125, XID_INFORMATION, "Xid 125: InfoROM file system error"},
    {137, XID_APPLICATION, "Xid 137: illegal NVLink peer access (software)"},
    {140, XID_RESET, "Xid 140: unrecovered ECC error"},
    {143, XID_RESET, "Xid 143: GPU initialisation failure"},
    {144, XID_RESET, "Xid 144: NVLink SAW error"},
    {145, XID_RESET, "Xid 145: NVLink RLW error"},
    {146, XID_RESET, "Xid 146: NVLink TLW error"},
    {147, XID_RESET, "Xid 147: NVLink TREX error"},
    {148, XID_RESET, "Xid 148: NVLink NVLPW error"},
    {149, XID_RESET, "Xid 149: NVLink NETIR error"},
    {150, XID_RESET, "Xid 150: NVLink MSE error"},
    {154, XID_INFORMATION, "Xid 154: GPU recovery action changed"},
    {156, XID_INFORMATION, "Xid 156: GPU resource retired"},
    {157, XID_LOST, "Xid 157: GPU resource retirement failed"},
    {158, XID_RESET, "Xid 158: GPU fatal timeout"},
    {160, XID_INFORMATION, "Xid 160: GPU memory channel retired"},
    {161, XID_LOST, "Xid 161: GPU memory channel retirement failed"},
    {162, XID_INFORMATION, "Xid 162: power smoothing engaged again"},
    {163, XID_INFORMATION, "Xid 163: power smoothing disengaged"},
    {167, XID_LOST, "Xid 167: fatal PCIe timeout (GPU)"},
    {171, XID_INFORMATION, "Xid 171: particulars of a DRAM error"},
    {172, XID_INFORMATION, "Xid 172: particulars of an SRAM error"},
};

enum xid_class xid_classify(int number, const char **meaning)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].number == number) {
            *meaning = known[i].meaning;
            return known[i].class;
        }
    return XID_UNKNOWN;
}
