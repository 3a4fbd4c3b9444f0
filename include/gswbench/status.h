// SPDX-License-Identifier: MIT
// Errors that the user can fix by editing the job: returned up the call chain, printed once by main.
#ifndef GSWBENCH_STATUS_H
#define GSWBENCH_STATUS_H

#include <stdbool.h>

// The process exit codes, documented in docs/method.md. 16, 17, 110, 124, 126-165 and 253 belong to launchers and
// shells.
enum exit_code {
    EXIT_VALID      = 0,
    EXIT_INTERNAL   = 1,     // a bug in gswbench
    EXIT_USAGE      = 2,     // command line
    EXIT_CONFIG     = 3,     // configuration
    EXIT_LAUNCH     = 4,     // wrong launch or environment (ranks, devices, versions)
    EXIT_INVALID    = 5,     // the run finished but its numbers failed a check
    EXIT_GATE       = 6,     // below a threshold that the user asked for, or that its like set
    EXIT_HANG       = 7,     // watchdog
    EXIT_LOST       = 8,     // a rank, node, or communication library failed
    EXIT_OUTPUT     = 9,     // output cannot be written
    EXIT_CHECKPOINT = 10,    // checkpoint or weights file corrupt or unusable
    EXIT_MEMORY     = 11,    // does not fit
    EXIT_STOPPED    = 12,    // signal or time limit, partial result kept
    EXIT_COMPARE    = 13,    // results cannot be compared
    EXIT_NUMBER     = 14,    // an op that was checked made a NaN or an infinity
    EXIT_UNDECIDED  = 15,    // a comparison or an acceptance that was asked for cannot tell
};

// text is empty on success. Several errors may be joined by newlines.
typedef struct status {
    int  exit_code;
    char text[1020];
} status;

// A configuration error (EXIT_CONFIG); fail_as() names another code. The text becomes printable and one line, whatever
// the arguments are.
status fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
status fail_as(int exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Adds an error on a line of its own; the exit code is the first one's. An error that does not fit is left out.
void status_add(status *errors, status error);

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

#endif
