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
 * Run the command line `argv` (argv[0] is the program's name) and return its
 * exit status. Call it without the GIL; it does not exit the process.
 *
 * As the program (`adopted` false) it redirects standard output and error
 * while steps run, handles signals, and prints. Inside a running Python
 * (`adopted` true) it does none of these; *message then is the malloc'd
 * closing text or error for people, or NULL.
 */
PF_API int pf_main(int argc, char **argv, bool adopted, char **message);

#ifdef __cplusplus
}
#endif
#endif
