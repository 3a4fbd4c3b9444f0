// SPDX-License-Identifier: MIT
// Fatal errors, which the user cannot fix by editing the job: prints location and reason, then ends the whole job.
#ifndef GSWBENCH_FATAL_H
#define GSWBENCH_FATAL_H

#include <stdnoreturn.h>

// Runs after the message and must end every rank (MPI_Abort). The default is _exit(exit_code).
typedef void fatal_hook(int exit_code);
void         fatal_set_hook(fatal_hook *hook);

// Sets the calling thread's rank for messages; default -1 (unknown).
void fatal_set_rank(int rank);

noreturn void fatal_at(const char *file, int line, int exit_code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define FATAL(exit_code, ...) fatal_at(__FILE__, __LINE__, exit_code, __VA_ARGS__)

#endif
