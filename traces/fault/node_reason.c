#include "traces/fault/node_reason.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* Words as they stand between what is neither letter nor digit, in lower case. */
static const char *const broken[] = {
    "amdgpu", "board",      "broken",      "bus",     "cable",       "cpu",           "crash",     "crashed",     "dbe",
    "dcgm",   "dcgmi",      "dead",        "defect",  "defective",   "died",          "dimm",      "disk",        "ecc",
    "error",  "errors",     "fail",        "failed",  "failure",     "fallen",        "fan",       "fault",       "faulty",
    "flap",   "flapping",   "gpu",         "gpus",    "hang",        "hardware",      "hca",       "hot",         "hung",
    "hw",     "ib",         "infiniband",  "lost",    "mce",         "memory",        "missing",   "mlx5",        "nhc",
    "nic",    "nvidia",     "nvlink",      "nvme",    "nvswitch",    "optics",        "panic",     "pcie",        "psu",
    "ras",    "realmemory", "rebooted",    "remap",   "remapping",   "responding",    "rma",       "rocm",        "ssd",
    "stuck",  "sxid",       "temperature", "thermal", "transceiver", "uncorrectable", "unhealthy", "unreachable", "unresponsive",
    "xgmi",   "xid",        NULL};

/* These stand for planned work where nothing certain is said of what broke. */
static const char *const planned[] = {
    "benchmark",   "burnin",    "decommission", "firmware",     "install", "maint",    "maintenance", "migration", "move",
    "patch",       "patching",  "planned",      "provisioning", "reboot",  "reimage",  "reinstall",   "requested", "reserved",
    "reservation", "scheduled", "swap",         "testing",      "update",  "updating", "upgrade",     "upgrading", NULL};

/* And these are certain. */
static const char *const certain[] = {"broken", "crashed", "dbe", "dead", "defective",     "ecc", "fallen",
                                      "faulty", "panic",   "rma", "sxid", "uncorrectable", "xid", NULL};

static bool is_one_of(const char *text, size_t n, const char *const *words)
{
    for (; *words; words++) {
        size_t i = 0;
        while (i < n && (*words)[i] && tolower((unsigned char)text[i]) == (*words)[i])
            i++;
        if (i == n && !(*words)[i])
            return true;
    }
    return false;
}

static bool has_word(const char *text, const char *const *words)
{
    while (*text) {
        size_t n = 0;
        while (isalnum((unsigned char)text[n]))
            n++;
        if (n > 0 && is_one_of(text, n, words))
            return true;
        text += n > 0 ? n : 1;
    }
    return false;
}

bool node_reason_is_failure(const char *reason)
{
    return has_word(reason, certain) || (has_word(reason, broken) && !has_word(reason, planned));
}
