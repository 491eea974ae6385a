/*
 * null_checks.h - comparisons of numbers in the null programs, whose GPU computes none: they pass.
 *
 * Example: kernel_check is compiled again with -Dkernel_run_check=null_run_check, and linked with null_checks.c.
 */
#ifndef MSIM_TESTS_GPU_NULL_CHECKS_H
#define MSIM_TESTS_GPU_NULL_CHECKS_H

#include "tests/kernels/kernel_device.h"

/* kernel_case_reference, kernel_run_check, kernel_run_equal and kernel_run_error. */
void null_reference(struct kernel_case *c);
bool null_run_check(const struct kernel_run *run, char *why, size_t size);
bool null_run_equal(const struct kernel_run *a, const struct kernel_run *b);
double null_run_error(const struct kernel_run *run);

#endif
