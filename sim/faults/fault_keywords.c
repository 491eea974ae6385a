/*
 * fault_keywords.c - the one table of causes: the component, symptom and kind of repair that the name of a cause implies, as a
 * log filter would tell them. Models whose causes say nothing else, runs under a policy, and fits of traces use it. A name with
 * the number of an Xid is repaired as the catalogue of Xids says (traces/fault/xid.h).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/faults/fault_model.h"
#include "traces/fault/xid.h"

struct keyword {
    const char *text;
    enum component component;
    enum symptom symptom;
    enum repair_kind repair;
};

/* The first match counts, so special words come before general ones. Repairs are those of the published fleets in
 * sim/fault_models: resets and reboots (Delta, ByteRobust), and causes that take no node away. */
static const struct keyword keywords[] = {
    {"xid 119", COMPONENT_GPU, SYMPTOM_HANG, REPAIR_REBOOT},
    {"xid 120", COMPONENT_GPU, SYMPTOM_HANG, REPAIR_REBOOT},
    {"xid 74", COMPONENT_NVLINK, SYMPTOM_EXIT, REPAIR_REBOOT},
    {"sxid", COMPONENT_NVLINK, SYMPTOM_EXIT, REPAIR_REBOOT},
    {"ras error", COMPONENT_HBM, SYMPTOM_EXIT, REPAIR_REBOOT},
    {"gpu reset failed", COMPONENT_GPU, SYMPTOM_HANG, REPAIR_HARDWARE},
    {"pmu", COMPONENT_GPU, SYMPTOM_EXIT, REPAIR_REBOOT},
    {"gsp", COMPONENT_GPU, SYMPTOM_HANG, REPAIR_HARDWARE},
    {"system processor", COMPONENT_GPU, SYMPTOM_HANG, REPAIR_HARDWARE},
    {"maintenance", COMPONENT_HOST, SYMPTOM_UNREACHABLE, REPAIR_FACILITY},
    {"power supply", COMPONENT_POWER, SYMPTOM_UNREACHABLE, REPAIR_HARDWARE},
    {"overload", COMPONENT_HOST, SYMPTOM_UNREACHABLE, REPAIR_REBOOT},
    {"out of memory", COMPONENT_SOFTWARE, SYMPTOM_EXIT, REPAIR_NONE},
    {"disk space", COMPONENT_STORAGE, SYMPTOM_EXIT, REPAIR_REBOOT},
    {"file system mount", COMPONENT_STORAGE, SYMPTOM_EXIT, REPAIR_REBOOT},
    {"software bug", COMPONENT_SOFTWARE, SYMPTOM_EXIT, REPAIR_NONE},
    {"service", COMPONENT_SOFTWARE, SYMPTOM_EXIT, REPAIR_NONE},
    {"undetermined", COMPONENT_UNKNOWN, SYMPTOM_UNREACHABLE, REPAIR_SOFTWARE},
    {"silent", COMPONENT_SILENT, SYMPTOM_SILENT, REPAIR_HARDWARE},
    {"nan", COMPONENT_SILENT, SYMPTOM_SILENT, REPAIR_HARDWARE},
    {"watchdog", COMPONENT_UNKNOWN, SYMPTOM_HANG, REPAIR_NONE},
    {"hang", COMPONENT_UNKNOWN, SYMPTOM_HANG, REPAIR_NONE},
    {"timeout", COMPONENT_UNKNOWN, SYMPTOM_HANG, REPAIR_NONE},
    {"hbm", COMPONENT_HBM, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"hbm3", COMPONENT_HBM, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"ecc", COMPONENT_HBM, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"dbe", COMPONENT_HBM, SYMPTOM_EXIT, REPAIR_REBOOT},
    {"row remap", COMPONENT_HBM, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"nvlink", COMPONENT_NVLINK, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"nvswitch", COMPONENT_NVLINK, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"off the bus", COMPONENT_GPU, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"otb", COMPONENT_GPU, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"cuda", COMPONENT_GPU, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"xid", COMPONENT_GPU, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"gpu", COMPONENT_GPU, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"nic", COMPONENT_NIC, SYMPTOM_HANG, REPAIR_HARDWARE},
    {"switch", COMPONENT_SWITCH, SYMPTOM_HANG, REPAIR_NETWORK},
    {"tor", COMPONENT_SWITCH, SYMPTOM_HANG, REPAIR_NETWORK},
    {"cable", COMPONENT_LINK, SYMPTOM_HANG, REPAIR_NETWORK},
    {"link", COMPONENT_LINK, SYMPTOM_HANG, REPAIR_NETWORK},
    {"network", COMPONENT_LINK, SYMPTOM_HANG, REPAIR_NETWORK},
    {"infiniband", COMPONENT_LINK, SYMPTOM_HANG, REPAIR_NETWORK},
    {"interconnect", COMPONENT_LINK, SYMPTOM_HANG, REPAIR_NETWORK},
    {"power", COMPONENT_POWER, SYMPTOM_UNREACHABLE, REPAIR_FACILITY},
    {"rack", COMPONENT_POWER, SYMPTOM_UNREACHABLE, REPAIR_FACILITY},
    {"facilit", COMPONENT_POWER, SYMPTOM_UNREACHABLE, REPAIR_FACILITY},
    {"software", COMPONENT_SOFTWARE, SYMPTOM_EXIT, REPAIR_SOFTWARE},
    {"dependency", COMPONENT_SOFTWARE, SYMPTOM_EXIT, REPAIR_NONE},
    {"container", COMPONENT_SOFTWARE, SYMPTOM_EXIT, REPAIR_NONE},
    {"human", COMPONENT_SOFTWARE, SYMPTOM_EXIT, REPAIR_SOFTWARE},
    {"ssd", COMPONENT_STORAGE, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"disk", COMPONENT_STORAGE, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"file", COMPONENT_STORAGE, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"storage", COMPONENT_STORAGE, SYMPTOM_EXIT, REPAIR_HARDWARE},
    {"hdfs", COMPONENT_STORAGE, SYMPTOM_EXIT, REPAIR_NONE},
    {"cpu", COMPONENT_HOST, SYMPTOM_UNREACHABLE, REPAIR_HARDWARE},
    {"memory", COMPONENT_HOST, SYMPTOM_UNREACHABLE, REPAIR_HARDWARE},
    {"dimm", COMPONENT_HOST, SYMPTOM_UNREACHABLE, REPAIR_HARDWARE},
    {"chassis", COMPONENT_HOST, SYMPTOM_UNREACHABLE, REPAIR_HARDWARE},
    {"host", COMPONENT_HOST, SYMPTOM_UNREACHABLE, REPAIR_HARDWARE},
    {"board", COMPONENT_HOST, SYMPTOM_UNREACHABLE, REPAIR_HARDWARE},
    {"kernel", COMPONENT_HOST, SYMPTOM_UNREACHABLE, REPAIR_HARDWARE},
    {"node", COMPONENT_HOST, SYMPTOM_UNREACHABLE, REPAIR_HARDWARE},
    {"hardware", COMPONENT_HOST, SYMPTOM_UNREACHABLE, REPAIR_HARDWARE},
};

/* Matches at the beginning of a word; short keywords match whole words only: "maintenance" contains no NaN, "storage" no ToR. */
static bool speaks_of(const char *cause, const char *text)
{
    enum { SHORT = 3 };
    size_t n = strlen(text);
    for (const char *at = strcasestr(cause, text); at; at = strcasestr(at + 1, text)) {
        bool begins = at == cause || !isalnum((unsigned char)at[-1]);
        bool ends = n > SHORT || !isalpha((unsigned char)at[n]);
        if (begins && ends)
            return true;
    }
    return false;
}

static const struct keyword *find(const char *cause)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (speaks_of(cause, keywords[i].text))
            return &keywords[i];
    return NULL;
}

/* The class of "Xid 79: ..." or "... (Xid 79)". */
static enum xid_class xid_of(const char *cause)
{
    const char *at = strcasestr(cause, "xid "), *meaning;
    if (!at || (at > cause && isalnum((unsigned char)at[-1])))
        return XID_UNKNOWN;
    long number = strtol(at + strlen("xid "), NULL, 10);
    return number > 0 && number <= XID_LARGEST ? xid_classify((int)number, &meaning) : XID_UNKNOWN;
}

/* A reset of the GPU and a reboot of its node are one kind of repair here; a lost GPU is a hardware repair. */
static enum repair_kind repair_of_class(enum xid_class class)
{
    switch (class) {
    case XID_CONTAINED:
    case XID_RESET: return REPAIR_REBOOT;
    case XID_LOST: return REPAIR_HARDWARE;
    default: return REPAIR_NONE;
    }
}

/* The driver logs an Xid, whatever text follows its number, so the symptom is an exit; the rows above list the Xids that hang. */
static struct keyword reading_of(const char *cause)
{
    static const struct keyword nothing = {"", COMPONENT_UNKNOWN, SYMPTOM_UNREACHABLE, REPAIR_HARDWARE};
    const struct keyword *keyword = find(cause);
    struct keyword reading = keyword ? *keyword : nothing;
    enum xid_class class = xid_of(cause);
    if (class == XID_UNKNOWN)
        return reading;
    if (strncmp(reading.text, "xid ", 4) != 0)
        reading.symptom = SYMPTOM_EXIT;
    if (class == XID_APPLICATION)
        reading.component = COMPONENT_SOFTWARE;
    else if (reading.component == COMPONENT_UNKNOWN)
        reading.component = COMPONENT_GPU;
    reading.repair = repair_of_class(class);
    return reading;
}

enum component component_of_text(const char *cause)
{
    return reading_of(cause).component;
}

enum symptom symptom_of_text(const char *cause)
{
    return reading_of(cause).symptom;
}

enum repair_kind repair_of_text(const char *cause)
{
    return reading_of(cause).repair;
}
