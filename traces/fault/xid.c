/* xid.c - the table of NVIDIA's Xid errors. */
#include "traces/fault/xid.h"

#include <stddef.h>

/* In order of number. */
static const struct {
    int number;
    enum xid_class class;
    const char *meaning;
} known[] = {
    {6, XID_APPLICATION, "Xid 6: invalid push buffer stream (software)"},  /* older GPUs */
    {7, XID_APPLICATION, "Xid 7: invalid push buffer address (software)"}, /* older GPUs */
    {8, XID_APPLICATION, "Xid 8: GPU stopped processing (software)"},
    {11, XID_APPLICATION, "Xid 11: invalid push buffer stream (software)"},
    {13, XID_APPLICATION, "Xid 13: graphics engine exception (software)"},
    {25, XID_APPLICATION, "Xid 25: illegal push buffer stream (software)"},
    {31, XID_APPLICATION, "Xid 31: GPU memory page fault (software)"},
    {32, XID_APPLICATION, "Xid 32: invalid push buffer stream (software)"},
    {37, XID_INFORMATION, "Xid 37: driver firmware error (method)"},
    {38, XID_INFORMATION, "Xid 38: driver firmware error (watchdog)"},
    {39, XID_APPLICATION, "Xid 39: copy engine exception (software)"},
    {40, XID_APPLICATION, "Xid 40: copy engine exception (software)"},
    {41, XID_APPLICATION, "Xid 41: copy engine exception (software)"},
    {43, XID_APPLICATION, "Xid 43: GPU stopped processing (software)"},        /* IGNORE: the program that caused it ends */
    {44, XID_APPLICATION, "Xid 44: fault during a context switch (software)"}, /* likewise */
    {45, XID_INFORMATION, "Xid 45: preemptive cleanup behind another error"},
    {46, XID_RESET, "Xid 46: GPU stopped processing"},
    {48, XID_RESET, "Xid 48: double-bit ECC error"},
    {54, XID_LOST, "Xid 54: GPU without auxiliary power"},
    {58, XID_RESET, "Xid 58: GPU memory interface error"}, /* older GPUs */
    {60, XID_APPLICATION, "Xid 60: video processor exception (software)"},
    {61, XID_RESET, "Xid 61: internal microcontroller breakpoint (GPU)"}, /* older GPUs */
    {62, XID_RESET, "Xid 62: internal microcontroller halt (GPU)"},
    {63, XID_INFORMATION, "Xid 63: row remap recorded (ECC)"},
    {64, XID_RESET, "Xid 64: row remap failed (ECC)"},
    {66, XID_INFORMATION, "Xid 66: illegal access by the driver"},
    {67, XID_INFORMATION, "Xid 67: illegal access by the driver"},
    {68, XID_APPLICATION, "Xid 68: video decoder exception (software)"},
    {69, XID_APPLICATION, "Xid 69: graphics engine class error (software)"},
    {70, XID_APPLICATION, "Xid 70: copy engine exception (software)"},
    {71, XID_APPLICATION, "Xid 71: copy engine exception (software)"},
    {72, XID_APPLICATION, "Xid 72: copy engine exception (software)"},
    {74, XID_RESET, "Xid 74: NVLink error"},
    {75, XID_APPLICATION, "Xid 75: copy engine exception (software)"},
    {76, XID_APPLICATION, "Xid 76: copy engine exception (software)"},
    {77, XID_APPLICATION, "Xid 77: copy engine exception (software)"},
    {78, XID_APPLICATION, "Xid 78: virtual GPU did not start (software)"},
    {79, XID_LOST, "Xid 79: GPU has fallen off the bus"},
    {80, XID_APPLICATION, "Xid 80: corrupt data sent to the GPU (software)"},
    {82, XID_APPLICATION, "Xid 82: JPEG engine exception (software)"},
    {83, XID_APPLICATION, "Xid 83: video decoder exception (software)"},
    {84, XID_APPLICATION, "Xid 84: video decoder exception (software)"},
    {85, XID_APPLICATION, "Xid 85: copy engine exception (software)"},
    {86, XID_APPLICATION, "Xid 86: optical flow engine exception (software)"},
    {88, XID_APPLICATION, "Xid 88: video decoder exception (software)"},
    {89, XID_APPLICATION, "Xid 89: video decoder exception (software)"},
    {92, XID_INFORMATION, "Xid 92: high single-bit ECC rate"},
    {93, XID_INFORMATION, "Xid 93: InfoROM wear limit"},
    {94, XID_CONTAINED, "Xid 94: contained ECC error"},
    {95, XID_RESET, "Xid 95: uncontained ECC error"},
    {96, XID_APPLICATION, "Xid 96: video decoder exception (software)"},
    {97, XID_APPLICATION, "Xid 97: video decoder exception (software)"},
    {98, XID_APPLICATION, "Xid 98: video decoder exception (software)"},
    {99, XID_APPLICATION, "Xid 99: JPEG engine exception (software)"},
    {100, XID_APPLICATION, "Xid 100: JPEG engine exception (software)"},
    {101, XID_APPLICATION, "Xid 101: JPEG engine exception (software)"},
    {102, XID_APPLICATION, "Xid 102: JPEG engine exception (software)"},
    {103, XID_APPLICATION, "Xid 103: JPEG engine exception (software)"},
    {104, XID_APPLICATION, "Xid 104: JPEG engine exception (software)"},
    {105, XID_APPLICATION, "Xid 105: JPEG engine exception (software)"},
    {106, XID_INFORMATION, "Xid 106: test message"},
    {107, XID_INFORMATION, "Xid 107: test message"},
    {108, XID_INFORMATION, "Xid 108: remote NVLink translation error"},
    {109, XID_RESET, "Xid 109: GPU context switch timeout"},
    {110, XID_RESET, "Xid 110: GPU security fault"},
    {119, XID_RESET, "Xid 119: GSP RPC timeout"},
    {120, XID_RESET, "Xid 120: GSP error"},
    {121, XID_INFORMATION, "Xid 121: corrected C2C link error"},
    {122, XID_INFORMATION, "Xid 122: GPU flash read failure"}, /* unused on A100 and later, and so 123 to 125 */
    {123, XID_RESET, "Xid 123: GPU power management error"},   /* older guide: reset */
    {124, XID_INFORMATION, "Xid 124: GPU flash erase failure"},
    {125, XID_INFORMATION, "Xid 125: InfoROM file system error"},
    {126, XID_APPLICATION, "Xid 126: copy engine exception (software)"},
    {127, XID_APPLICATION, "Xid 127: copy engine exception (software)"},
    {128, XID_APPLICATION, "Xid 128: copy engine exception (software)"},
    {129, XID_APPLICATION, "Xid 129: copy engine exception (software)"},
    {130, XID_APPLICATION, "Xid 130: copy engine exception (software)"},
    {131, XID_APPLICATION, "Xid 131: copy engine exception (software)"},
    {132, XID_APPLICATION, "Xid 132: copy engine exception (software)"},
    {133, XID_APPLICATION, "Xid 133: copy engine exception (software)"},
    {134, XID_APPLICATION, "Xid 134: copy engine exception (software)"},
    {135, XID_APPLICATION, "Xid 135: copy engine exception (software)"},
    {136, XID_RESET, "Xid 136: NVLink training failed"},
    {137, XID_APPLICATION, "Xid 137: illegal NVLink peer access (software)"}, /* IGNORE: the program that caused it ends */
    {139, XID_APPLICATION, "Xid 139: optical flow engine exception (software)"},
    {140, XID_RESET, "Xid 140: unrecovered ECC error"},
    {141, XID_INFORMATION, "Xid 141: CUDA fast path error"},
    {142, XID_APPLICATION,
     "Xid 142: video encoder exception (software)"}, /* CONTACT_SUPPORT, as engines of its kind RESTART_APP */
    {143, XID_RESET, "Xid 143: GPU initialisation failure"},
    /* 144 to 150 without their severity: that of most of their rows, and a reset where rows are of both kinds */
    {144, XID_RESET, "Xid 144: NVLink SAW error"},
    {145, XID_RESET, "Xid 145: NVLink RLW error"},
    {146, XID_RESET, "Xid 146: NVLink TLW error"},
    {147, XID_INFORMATION, "Xid 147: NVLink TREX error"},
    {148, XID_INFORMATION, "Xid 148: NVLink NVLPW error"},
    {149, XID_RESET, "Xid 149: NVLink NETIR error"},
    {150, XID_RESET, "Xid 150: NVLink MSE error"},
    {151, XID_RESET, "Xid 151: key rotation error (GPU)"},
    {152, XID_INFORMATION, "Xid 152: DLA memory error"},
    {153, XID_INFORMATION, "Xid 153: DLA timeout"},
    {154, XID_INFORMATION, "Xid 154: GPU recovery action changed"},
    {155, XID_RESET, "Xid 155: NVLink software-defined error"},
    {156, XID_RESET, "Xid 156: GPU resource retired"},
    {157, XID_INFORMATION, "Xid 157: GPU resource retirement failed"},
    {158, XID_RESET, "Xid 158: GPU fatal timeout"},
    {159, XID_INFORMATION, "Xid 159: CHI error without data"},
    {160, XID_INFORMATION, "Xid 160: GPU memory channel retired"},
    {161, XID_INFORMATION, "Xid 161: GPU memory channel retirement failed"},
    {162, XID_INFORMATION, "Xid 162: power smoothing engaged again"},
    {163, XID_INFORMATION, "Xid 163: power smoothing disengaged"},
    {164, XID_INFORMATION, "Xid 164: power smoothing near the end of its life"},
    {165, XID_INFORMATION, "Xid 165: power smoothing at the end of its life"},
    {166, XID_INFORMATION, "Xid 166: NVLink traffic before encryption"},
    {167, XID_LOST, "Xid 167: fatal PCIe timeout (GPU)"}, /* no action in the catalogue; the GPU does not answer */
    {168, XID_INFORMATION, "Xid 168: less GPU memory than built in"},
    {169, XID_RESET, "Xid 169: internal microcontroller halt (GPU)"}, /* no action in the catalogue; as 62 */
    {170, XID_INFORMATION, "Xid 170: NVLink interrupt in confidential mode"},
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
