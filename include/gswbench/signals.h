// SPDX-License-Identifier: MIT
// Signals that what is measured is ended by, or asked by.
#ifndef GSWBENCH_SIGNALS_H
#define GSWBENCH_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

// signals.c: a signal ends the process at once until something is kept (keep), with a word from the first one; later
// the run, after the step that it falls in, and a second one the process. So does a time limit, as SIGALRM after so
// many seconds; 0: there is none. Called by every process, keep by every rank. caught: by which number, 0 for none;
// caught_end: likewise, but not of one that leaves the step its time. take_question: whether SIGUSR2 has come since the
// last call.
void        signals_catch(bool is_first, int64_t seconds);
void        signals_keep(void);
void        signals_release(void);    // what comes from now on ends the process, as it would have before
int         signals_caught(void);
int         signals_caught_end(void);
const char *signals_name(int number);
bool        signals_take_question(void);

#endif
