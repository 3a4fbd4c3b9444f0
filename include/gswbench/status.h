// SPDX-License-Identifier: MIT
// Errors that the user can fix by editing the job. They are returned up the call chain, and main prints them once.
#pragma once

#include <stdbool.h>

// Exit codes, documented in docs/method.md. 16, 17, 110, 124, 126-165 and 253 are left to launchers and shells.
enum exit_code {
    EXIT_VALID      = 0,
    EXIT_INTERNAL   = 1,     // a bug in gswbench
    EXIT_USAGE      = 2,     // command line
    EXIT_CONFIG     = 3,     // configuration
    EXIT_LAUNCH     = 4,     // wrong launch or environment (ranks, devices, versions)
    EXIT_INVALID    = 5,     // the run finished but its numbers failed a check
    EXIT_GATE       = 6,     // a threshold, comparison, acceptance test or preflight failed
    EXIT_HANG       = 7,     // watchdog
    EXIT_LOST       = 8,     // a rank, node, or communication library failed
    EXIT_OUTPUT     = 9,     // output cannot be written
    EXIT_CHECKPOINT = 10,    // checkpoint or weights file corrupt or unusable
    EXIT_MEMORY     = 11,    // out of memory
    EXIT_STOPPED    = 12,    // signal or time limit, partial result kept
    EXIT_COMPARE    = 13,    // results cannot be compared
    EXIT_NUMBER     = 14,    // a checked op produced a NaN or an infinity
    EXIT_UNDECIDED  = 15,    // a requested comparison or acceptance test is inconclusive
};

// text is empty on success; several errors are separate lines.
typedef struct status {
    int  exit_code;
    char text[1020];
} status;

// fail returns a configuration error (EXIT_CONFIG), fail_as an error with another exit code. The text becomes one
// printable line.
status fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
status fail_as(int exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Appends an error as a new line and keeps the first exit code. Ignores OK, and an error that does not fit.
void status_add(status *errors, status error);
// Appends a configuration error with this text if a rule is broken.
void status_add_if(status *errors, bool is_broken, const char *format, ...) __attribute__((format(printf, 3, 4)));

static inline bool failed(const status *result)
{
    return result->text[0] != '\0';
}

#define OK ((status){.exit_code = EXIT_VALID, .text = ""})
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        status status_ = (call);                                                                                       \
        if (failed(&status_)) {                                                                                        \
            return status_;                                                                                            \
        }                                                                                                              \
    } while (0)

// Return from the function with an error if a rule is broken: FAIL_IF with a configuration error, FAIL_AS_IF with
// another exit code. The arguments of the message are evaluated only then.
#define FAIL_IF(is_broken, ...)                                                                                        \
    do {                                                                                                               \
        if (is_broken) {                                                                                               \
            return fail(__VA_ARGS__);                                                                                  \
        }                                                                                                              \
    } while (0)
#define FAIL_AS_IF(is_broken, ...)                                                                                     \
    do {                                                                                                               \
        if (is_broken) {                                                                                               \
            return fail_as(__VA_ARGS__);                                                                               \
        }                                                                                                              \
    } while (0)
