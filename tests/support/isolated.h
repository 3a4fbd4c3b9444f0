// SPDX-License-Identifier: MIT
// Cases in a process of their own making: one that ends its process takes no other with it, and is named.
#ifndef GSWBENCH_TESTS_ISOLATED_H
#define GSWBENCH_TESTS_ISOLATED_H

enum outcome { OUTCOME_PASSED, OUTCOME_FAILED, OUTCOME_SKIPPED, OUTCOME_COUNT };

// Functions are called in the worker process; what run has to say of a case it prints.
struct isolated {
    int count;
    void (*name)(int index, char *text, int bytes);
    void (*open)(void);    // once a worker, before its first case; NULL: nothing
    enum outcome (*run)(int index);
    void (*close)(void);    // after its last case; NULL: nothing
    int seconds;            // that a case may take
};

// Runs all cases in order in a worker, and in a new one from the next case on when the worker ends in the middle of
// one, which has failed then. Counts outcomes. Returns 0, or the exit code of a worker that did not get to a case.
int isolated_run(const struct isolated *cases, int counts[OUTCOME_COUNT]);

#endif
