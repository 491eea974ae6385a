/* What the name of a cause speaks of, as a filter over the logs would tell it. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "sim/fault_model.h"

struct keyword {
    const char *text;
    enum component component;
    enum symptom symptom;
};

/* The first that occurs counts, so what is special stands before what is general. */
static const struct keyword keywords[] = {
    {"silent", COMPONENT_SILENT, SYMPTOM_SILENT},
    {"nan", COMPONENT_SILENT, SYMPTOM_SILENT},
    {"watchdog", COMPONENT_UNKNOWN, SYMPTOM_HANG},
    {"hang", COMPONENT_UNKNOWN, SYMPTOM_HANG},
    {"timeout", COMPONENT_UNKNOWN, SYMPTOM_HANG},
    {"hbm", COMPONENT_HBM, SYMPTOM_EXIT},
    {"hbm3", COMPONENT_HBM, SYMPTOM_EXIT},
    {"ecc", COMPONENT_HBM, SYMPTOM_EXIT},
    {"dbe", COMPONENT_HBM, SYMPTOM_EXIT},
    {"row remap", COMPONENT_HBM, SYMPTOM_EXIT},
    {"nvlink", COMPONENT_NVLINK, SYMPTOM_EXIT},
    {"nvswitch", COMPONENT_NVLINK, SYMPTOM_EXIT},
    {"off the bus", COMPONENT_GPU, SYMPTOM_EXIT},
    {"otb", COMPONENT_GPU, SYMPTOM_EXIT},
    {"gsp", COMPONENT_GPU, SYMPTOM_HANG},
    {"system processor", COMPONENT_GPU, SYMPTOM_HANG},
    {"cuda", COMPONENT_GPU, SYMPTOM_EXIT},
    {"xid", COMPONENT_GPU, SYMPTOM_EXIT},
    {"gpu", COMPONENT_GPU, SYMPTOM_EXIT},
    {"nic", COMPONENT_NIC, SYMPTOM_HANG},
    {"switch", COMPONENT_SWITCH, SYMPTOM_HANG},
    {"tor", COMPONENT_SWITCH, SYMPTOM_HANG},
    {"cable", COMPONENT_LINK, SYMPTOM_HANG},
    {"link", COMPONENT_LINK, SYMPTOM_HANG},
    {"network", COMPONENT_LINK, SYMPTOM_HANG},
    {"infiniband", COMPONENT_LINK, SYMPTOM_HANG},
    {"interconnect", COMPONENT_LINK, SYMPTOM_HANG},
    {"power", COMPONENT_POWER, SYMPTOM_UNREACHABLE},
    {"rack", COMPONENT_POWER, SYMPTOM_UNREACHABLE},
    {"facilit", COMPONENT_POWER, SYMPTOM_UNREACHABLE},
    {"software", COMPONENT_SOFTWARE, SYMPTOM_EXIT},
    {"dependency", COMPONENT_SOFTWARE, SYMPTOM_EXIT},
    {"container", COMPONENT_SOFTWARE, SYMPTOM_EXIT},
    {"human", COMPONENT_SOFTWARE, SYMPTOM_EXIT},
    {"ssd", COMPONENT_STORAGE, SYMPTOM_EXIT},
    {"disk", COMPONENT_STORAGE, SYMPTOM_EXIT},
    {"file", COMPONENT_STORAGE, SYMPTOM_EXIT},
    {"storage", COMPONENT_STORAGE, SYMPTOM_EXIT},
    {"hdfs", COMPONENT_STORAGE, SYMPTOM_EXIT},
    {"cpu", COMPONENT_HOST, SYMPTOM_UNREACHABLE},
    {"memory", COMPONENT_HOST, SYMPTOM_UNREACHABLE},
    {"dimm", COMPONENT_HOST, SYMPTOM_UNREACHABLE},
    {"chassis", COMPONENT_HOST, SYMPTOM_UNREACHABLE},
    {"host", COMPONENT_HOST, SYMPTOM_UNREACHABLE},
    {"maintenance", COMPONENT_HOST, SYMPTOM_UNREACHABLE},
    {"board", COMPONENT_HOST, SYMPTOM_UNREACHABLE},
    {"kernel", COMPONENT_HOST, SYMPTOM_UNREACHABLE},
    {"node", COMPONENT_HOST, SYMPTOM_UNREACHABLE},
    {"hardware", COMPONENT_HOST, SYMPTOM_UNREACHABLE},
};

/* At the beginning of a word, and short ones as whole words: "maintenance" holds no NaN, and "storage" no ToR. */
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

enum component component_of_text(const char *cause)
{
    const struct keyword *keyword = find(cause);
    return keyword ? keyword->component : COMPONENT_UNKNOWN;
}

enum symptom symptom_of_text(const char *cause)
{
    const struct keyword *keyword = find(cause);
    return keyword ? keyword->symptom : SYMPTOM_UNREACHABLE;
}
