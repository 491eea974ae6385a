/* Records of other systems, as texts, and what they are as fault traces, as a text. */
#ifndef MSIM_TESTS_TRACES_CONVERTED_H
#define MSIM_TESTS_TRACES_CONVERTED_H

#include <check.h>
#include <string.h>

#include "traces/fault/trace_convert.h"

#define MINUTE (60 * NANOS_PER_SECOND)
extern const struct convert_options usual; /* an hour down, repeats within five minutes */

enum { FILES_MAX = 3 };
struct files {
    char paths[FILES_MAX][32];
    const char *names[FILES_MAX];
    int n;
};
/* One more, in the working folder; unlink its name. */
void files_add(struct files *files, const char *text);

typedef enum status several(const char *const *paths, int n, const struct convert_options *options, struct fault_trace *trace,
                            struct diags *diags);
/* The readers of one file, as those of several. */
enum status jobs(const char *const *paths, int n, const struct convert_options *options, struct fault_trace *trace,
                 struct diags *diags);
enum status titan(const char *const *paths, int n, const struct convert_options *options, struct fault_trace *trace,
                  struct diags *diags);
enum status nodes(const char *const *paths, int n, const struct convert_options *options, struct fault_trace *trace,
                  struct diags *diags);

/* What a reader makes of texts, each in a file of its own, the last NULL: "second node down detail;" of every fault, " planned"
 * behind those that are, or the mistakes; notes behind. Until the next call. */
const char *converted(several *reader, struct convert_options options, const char *const *texts);
/* The host of the first fault in a kernel log; "the file" where it is that. Until the next call. */
const char *host_of_first(const char *text);
/* The usual options for `length` from a local time on; NULL: from the beginning. */
struct convert_options window(const char *from, nanos length);

#define ONE(text)           ((const char *const[]){text, NULL})
#define XID(options, t)     converted(xid_trace_read, options, ONE(t))
#define SMI(options, t)     converted(smi_trace_read, options, ONE(t))
#define JOBS(options, t)    converted(jobs, options, ONE(t))
#define NODES(options, t)   converted(nodes, options, ONE(t))
#define STARTS(text, begin) ck_assert_msg(strncmp(text, begin, strlen(begin)) == 0, "%s", text)
#define HAS(text, part)     ck_assert_msg(strstr(text, part) != NULL, "%s", text)

/* Lines of a kernel log, of dmesg, and of DCGM's metrics. */
#define LINE(time, host, xid) time " " host " kernel: NVRM: Xid (PCI:0000:1b:00): " xid ", x\n"
#define BARE(time, xid)       time " NVRM: Xid (PCI:0000:1b:00): " xid ", x\n"
#define GAUGE(gpu)            "DCGM_FI_DEV_XID_ERRORS{gpu=\"" gpu "\",Hostname=\"n1\"} "

#endif
