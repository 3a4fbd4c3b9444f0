// SPDX-License-Identifier: MIT
// Errors that the user cannot fix by editing the job: print where and why, end the whole job.
#ifndef GSWBENCH_FATAL_H
#define GSWBENCH_FATAL_H

#include <stdnoreturn.h>

// Called after the message is printed; ends every rank (MPI_Abort). The default is _exit(exit_code).
typedef void fatal_hook(int exit_code);
void         fatal_set_hook(fatal_hook *hook);

// The rank named in the message; -1 (the default) before it is known.
void fatal_set_rank(int rank);

noreturn void fatal_at(const char *file, int line, int exit_code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define FATAL(exit_code, ...) fatal_at(__FILE__, __LINE__, exit_code, __VA_ARGS__)

#endif
