/*
 * The command line as a function, for the program and for Python.
 */
#ifndef PLATEFLOW_MAIN_H
#define PLATEFLOW_MAIN_H

#include <stdbool.h>

#include "plateflow/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Run one command; returns its exit status, and does not exit. Call it without
 * the GIL. As a program (`adopted` false) it owns the process: it prints,
 * handles signals, and redirects what steps print. Adopted by a running
 * interpreter it touches no stdout, signal or file descriptor: what it would
 * have printed is in *message (malloc'd; NULL if memory ran out). `message`
 * may be NULL only as a program.
 */
PF_API int pf_main(int argc, char **argv, bool adopted, char **message);

#ifdef __cplusplus
}
#endif
#endif
