/*
 * The command line as a function, so that the program and the Python package
 * run the same one.
 */
#ifndef PF_CLI_MAIN_H
#define PF_CLI_MAIN_H

#include <stdbool.h>

#include "plateflow/error.h"

/*
 * Run one command; returns its exit status. As a program (`adopted` false) it
 * owns the process: it prints, handles signals, and redirects what steps
 * print. Adopted by a running interpreter it touches no stdout, signal or file
 * descriptor: what it would have printed is in *message (malloc'd; NULL if
 * memory ran out). `message` may be NULL only as a program.
 */
PF_API int pf_main(int argc, char **argv, bool adopted, char **message);

#endif
