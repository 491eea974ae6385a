/* null_checks.c - see null_checks.h. */
#include "tests/gpu/null_checks.h"

void null_reference(struct kernel_case *c)
{
    (void)c;
}

bool null_run_check(const struct kernel_run *run, char *why, size_t size)
{
    (void)run, (void)why, (void)size;
    return true;
}

bool null_run_equal(const struct kernel_run *a, const struct kernel_run *b)
{
    (void)a, (void)b;
    return true;
}

double null_run_error(const struct kernel_run *run)
{
    (void)run;
    return 0;
}
