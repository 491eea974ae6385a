/* Recovery policies: what is accepted can be written and read again, and every fault finds its way through it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/weeks/recovery_machine.h"
#include "tests/fuzz/fuzz.h"

static void round_trip(const struct robust_policy *policy, struct diags *diags)
{
    static struct robust_policy again;
    char *text = robust_policy_to_json(policy);
    fuzz_expect(robust_policy_parse("again", text, strlen(text), &again, diags) == STATUS_OK, "a written policy is read");
    char *twice = robust_policy_to_json(&again);
    fuzz_expect(strcmp(text, twice) == 0, "and is the same");
    free(twice);
    free(text);
}

static void run_cases(const struct robust_policy *policy)
{
    double heartbeat, hang;
    robust_policy_alarms(policy, 1536, &heartbeat, &hang);
    fuzz_expect(isfinite(heartbeat) && heartbeat >= 0 && isfinite(hang) && hang >= 0, "false alarms have a rate");
    for (int i = 0; i < 2 * N_COMPONENTS * N_SYMPTOMS; i++) {
        struct fault_case c = {.component = (enum component)(i / 2 % N_COMPONENTS),
                               .symptom = (enum symptom)(i / 2 / N_COMPONENTS),
                               .broken = i % 2,
                               .nodes = 1536};
        struct random_stream random = random_stream_named(1, 2, (uint64_t)i);
        struct verdict verdict = recovery_machine_run(policy, &c, &random);
        fuzz_expect(verdict.detect >= 0 && verdict.diagnose >= 0 && verdict.human >= 0 && verdict.relapse >= 0, "times");
        fuzz_expect(!c.broken || verdict.found || verdict.relapse > 0, "what is broken is found or comes back");
        fuzz_expect(verdict.found_by < policy->tests.n && verdict.n_condemned >= 0, "who found it");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct robust_policy policy;
    struct diags diags = {0};
    char *text = fuzz_text(data, size);
    if (robust_policy_parse("input", text, size, &policy, &diags) == STATUS_OK) {
        round_trip(&policy, &diags);
        run_cases(&policy);
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    free(text);
    diags_free(&diags);
    return 0;
}
