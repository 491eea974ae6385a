#include "traces/fault/kernel_event.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"

/* The number behind "(PCI:0000:3b:00): "; -1: there is none in `largest` or below. */
static int read_number(const char *text, int largest, const char **numeral)
{
    const char *colon = strstr(text, "): ");
    *numeral = colon ? colon + 3 : NULL;
    if (!colon || !isdigit((unsigned char)colon[3]))
        return -1;
    long number = strtol(colon + 3, NULL, 10);
    return number >= 1 && number <= largest ? (int)number : -1;
}

/* Of Xids 144 to 150 the line says how bad they are: "RLW_SRC_TRACK Nonfatal XC0". */
static enum xid_class severity_of(const char *text, enum xid_class otherwise)
{
    if (strstr(text, "Nonfatal") || strstr(text, "Non-fatal") || strstr(text, "Non-Fatal"))
        return XID_INFORMATION;
    return strstr(text, "Fatal") ? XID_RESET : otherwise;
}

static bool find_xid(const char *line, struct kernel_event *event)
{
    const char *xid = strstr(line, "NVRM: Xid"), *meaning = "";
    if (!xid)
        return false;
    event->kind = EVENT_XID;
    event->message = xid;
    event->number = read_number(xid, XID_LARGEST, &event->numeral);
    if (event->number < 0)
        return true;
    event->class = xid_classify(event->number, &meaning);
    if (event->number >= XID_NVLINK5_FIRST && event->number <= XID_NVLINK5_LAST)
        event->class = severity_of(event->numeral, event->class);
    text_append(event->cause, sizeof event->cause, "%s", meaning);
    return true;
}

/* One line of an SXid says whether it is fatal; those with its data below do not. */
static bool find_sxid(const char *line, struct kernel_event *event)
{
    enum { LARGEST = 999999 };
    const char *sxid = strstr(line, ": SXid (");
    if (!sxid)
        return false;
    while (sxid > line && !isspace((unsigned char)sxid[-1]))
        sxid--;
    event->kind = EVENT_SXID;
    event->message = sxid;
    event->number = read_number(sxid, LARGEST, &event->numeral);
    if (event->number < 0)
        return false;
    event->class = severity_of(event->numeral, XID_UNKNOWN);
    text_append(event->cause, sizeof event->cause, "SXid %d: fatal NVSwitch error", event->number);
    return event->class != XID_UNKNOWN;
}

static bool find_off_the_bus(const char *line, struct kernel_event *event)
{
    const char *nvrm = strstr(line, "NVRM:"), *meaning;
    if (!nvrm || !strstr(nvrm, "fallen off the bus"))
        return false;
    event->kind = EVENT_OFF_THE_BUS;
    event->message = nvrm;
    event->class = xid_classify(XID_OFF_THE_BUS, &meaning); /* by the same name, so both lines are one event */
    text_append(event->cause, sizeof event->cause, "%s", meaning);
    return true;
}

/* "3 uncorrectable hardware errors detected in umc block", also "3 new ..."; totals repeat what was reported before. */
static bool counts_errors(const char *text)
{
    const char *at = strstr(text, "uncorrectable hardware errors detected");
    if (!at || strstr(at, "in total"))
        return false;
    if (at - text > 4 && strncmp(at - 4, "new ", 4) == 0)
        at -= 4;
    while (at > text && at[-1] == ' ')
        at--;
    long n = 0, unit = 1;
    for (; at > text && isdigit((unsigned char)at[-1]) && unit < 100000000; at--, unit *= 10)
        n += (at[-1] - '0') * unit;
    return n > 0;
}

static bool find_amdgpu(const char *line, struct kernel_event *event)
{
    const char *amd = strstr(line, "amdgpu"), *ret = amd ? strstr(amd, "GPU reset end with ret = ") : NULL;
    if (!amd)
        return false;
    event->kind = EVENT_AMDGPU;
    event->message = amd;
    const char *cause = NULL;
    if (counts_errors(amd) || strstr(amd, "RAS event of type ERREVENT_ATHUB_INTERRUPT")) {
        cause = "amdgpu: uncorrectable RAS error";
        event->class = XID_RESET;
    } else if ((ret && strtol(strchr(ret, '=') + 1, NULL, 10) != 0) || (strstr(amd, "GPU reset(") && strstr(amd, ") failed"))) {
        cause = "amdgpu: GPU reset failed";
        event->class = XID_LOST;
    } else if (strstr(amd, "device lost from bus")) {
        cause = "amdgpu: GPU has fallen off the bus";
        event->class = XID_LOST;
    }
    if (cause)
        text_append(event->cause, sizeof event->cause, "%s", cause);
    return cause != NULL;
}

bool kernel_event_find(const char *line, struct kernel_event *event)
{
    bool (*const readers[])(const char *, struct kernel_event *) = {find_xid, find_sxid, find_off_the_bus, find_amdgpu};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        *event = (struct kernel_event){.kind = EVENT_NONE};
        if (readers[i](line, event))
            return true;
    }
    return false;
}
