// SPDX-License-Identifier: MIT
// Runs cases in worker processes: a case that kills its process is named, and the others still run.
#ifndef GSWBENCH_TESTS_ISOLATED_H
#define GSWBENCH_TESTS_ISOLATED_H

enum outcome { OUTCOME_PASSED, OUTCOME_FAILED, OUTCOME_SKIPPED, OUTCOME_COUNT };

// These functions run in the worker. run prints its findings.
struct isolated {
    int count;
    void (*name)(int index, char *text, int bytes);
    void (*open)(void);    // once per worker, before its first case; or NULL
    enum outcome (*run)(int index);
    void (*close)(void);    // after its last case; or NULL
    int seconds;            // time limit of a case
};

// Runs all cases in order in a worker, and counts outcomes. If a worker ends in the middle of a case, that case fails
// and a new worker continues with the next one. Returns 0, or the exit code of a worker that reached no case.
int isolated_run(const struct isolated *cases, int counts[OUTCOME_COUNT]);

#endif
