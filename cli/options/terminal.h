/*
 * terminal.h - whether a stream is a terminal, how wide it is, and how wide a text is on it.
 */
#ifndef MSIM_CLI_OPTIONS_TERMINAL_H
#define MSIM_CLI_OPTIONS_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* A person may be reading. Open MPI gives each rank a terminal of its own for standard output and copies what comes there to
 * wherever mpirun's goes, so a rank's terminal is none. */
bool terminal_is(FILE *stream);

/* Columns of the terminal behind a stream: COLUMNS of the environment, or what the terminal says; 0: unknown, as of a file or a
 * pipe. At least 20 otherwise. */
int terminal_width(FILE *stream);

/* Columns that a text takes on a terminal. */
int text_width(const char *utf8);

#endif
