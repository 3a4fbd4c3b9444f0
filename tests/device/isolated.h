// SPDX-License-Identifier: MIT
// Runs test cases in worker processes. Through a pipe, a worker reports which case it runs and the outcome. If a case
// kills its process, the case is named and another worker runs the remaining cases.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum outcome { OUTCOME_PASSED, OUTCOME_FAILED, OUTCOME_SKIPPED, OUTCOME_COUNT };

// These functions are called in the worker. `run` prints its findings.
struct isolated {
    int count;
    void (*name)(int index, char *text, int bytes);
    void (*open)(void);    // called once per worker before its first case, or NULL
    enum outcome (*run)(int index);
    void (*close)(void);    // called after its last case, or NULL
    int seconds;            // time limit of a case
};

struct message {
    int index, outcome;    // outcome is OUTCOME_COUNT if the case starts
};

static void tell(int pipe, int index, enum outcome outcome)
{
    fflush(NULL);
    struct message message = {index, (int)outcome};
    if (write(pipe, &message, sizeof(message)) != sizeof(message)) {
        _exit(EXIT_FAILURE);
    }
}

static void work(const struct isolated *cases, int first, int pipe)
{
    if (cases->open != NULL) {
        cases->open();
    }
    for (int i = first; i < cases->count; i++) {
        tell(pipe, i, OUTCOME_COUNT);
        alarm((unsigned)cases->seconds);
        enum outcome outcome = cases->run(i);
        alarm(0);
        tell(pipe, i, outcome);
    }
    if (cases->close != NULL) {
        cases->close();
    }
    fflush(NULL);
}

// Reads the messages of a worker until it ends. Returns the case that it was running then, or -1.
static int follow(int pipe, int counts[OUTCOME_COUNT], int *next)
{
    int            current = -1;
    struct message message;
    while (read(pipe, &message, sizeof(message)) == sizeof(message)) {
        if (message.outcome == OUTCOME_COUNT) {
            current = message.index;
        } else {
            counts[message.outcome]++;
            current = -1;
            *next   = message.index + 1;
        }
    }
    return current;
}

static void report_end(const struct isolated *cases, int index, int ended)
{
    char name[256];
    cases->name(index, name, sizeof(name));
    if (WIFSIGNALED(ended)) {
        printf("FAIL %s: its process ended by signal %d (%s)\n", name, WTERMSIG(ended), strsignal(WTERMSIG(ended)));
    } else {
        printf("FAIL %s: its process ended with exit code %d\n", name, WEXITSTATUS(ended));
    }
}

// Runs all cases in order and counts the outcomes. If a worker ends during a case, this case fails, and a new worker
// continues with the next one. Returns 0, or the exit code of a worker that reached no case.
static int isolated_run(const struct isolated *cases, int counts[OUTCOME_COUNT])
{
    memset(counts, 0, sizeof(*counts) * OUTCOME_COUNT);
    for (int next = 0; next < cases->count;) {
        int ends[2], ended, first = next;
        fflush(NULL);
        if (pipe(ends) != 0) {
            perror("pipe");
            return EXIT_FAILURE;
        }
        pid_t worker = fork();
        if (worker == 0) {
            close(ends[0]);
            work(cases, first, ends[1]);
            _exit(EXIT_SUCCESS);
        }
        close(ends[1]);
        int died = follow(ends[0], counts, &next);
        close(ends[0]);
        if (worker < 0 || waitpid(worker, &ended, 0) != worker) {
            perror("worker");
            return EXIT_FAILURE;
        }
        if (died >= 0) {
            report_end(cases, died, ended);
            counts[OUTCOME_FAILED]++;
            next = died + 1;
        } else if (next == first) {    // no case started, so another worker would fail as well
            return WIFEXITED(ended) && WEXITSTATUS(ended) != 0 ? WEXITSTATUS(ended) : EXIT_FAILURE;
        } else if (next < cases->count || !WIFEXITED(ended) || WEXITSTATUS(ended) != 0) {
            printf("FAIL a process ended between two cases, or at its end\n");
            counts[OUTCOME_FAILED]++;
        }
    }
    return 0;
}
