// SPDX-License-Identifier: MIT
// FATAL ends the whole job after an error that the user cannot fix by editing the job, and prints its location and
// reason. DAMAGE ends it if the step cannot continue because a number is corrupt, such as an impossible row count.
#pragma once

#include <stdnoreturn.h>

// Runs after the message and must end every rank (MPI_Abort). The default is _exit(exit_code).
typedef void fatal_hook(int exit_code);
void         fatal_set_hook(fatal_hook *hook);

// Sets the calling thread's rank for messages; default -1 (unknown).
void fatal_set_rank(int rank);

noreturn void fatal_at(const char *file, int line, int exit_code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// damage_at ends the job as an invalid run (EXIT_INVALID). First it calls the damage hook, if one is set, with the
// calling thread's rank and the text (at most 159 characters). The hook may end the process with a better explanation,
// such as which rank sent the number. If the hook returns, damage_at ends the job with the text 5 s later.
typedef void  damage_hook(void *context, int rank, const char *text);
void          fatal_set_damage_hook(damage_hook *hook, void *context);
noreturn void damage_at(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define DAMAGE(...)           damage_at(__FILE__, __LINE__, __VA_ARGS__)
#define FATAL(exit_code, ...) fatal_at(__FILE__, __LINE__, exit_code, __VA_ARGS__)
