/* Traces of profilers: whatever is taken has times that sum to the step. */
#include <math.h>

#include "tests/fuzz/fuzz.h"
#include "traces/profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct layout layout = {.tp = 2, .cp = 1, .pp = 4, .vpp = 1, .dp = 8, .ep = 4};
    struct diags diags = {0};
    struct profile profile;
    if (profile_parse((const char *)data, size, "input", &layout, NULL, &profile, &diags) == STATUS_OK) {
        struct profile_account account = profile_account_of(&profile);
        double sum = 0;
        for (int k = 0; k < N_PROFILE_KINDS; k++) {
            fuzz_expect(account.exposed_s[k] >= 0 && account.hidden_s[k] >= 0, "seconds are not negative");
            sum += account.exposed_s[k];
        }
        fuzz_expect(isfinite(sum) && fabs(sum - account.step_s) <= 1e-6 * (account.step_s + 1), "kinds sum to the step");
        profile_free(&profile);
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    diags_free(&diags);
    return 0;
}
