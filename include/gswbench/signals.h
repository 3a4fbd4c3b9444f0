// SPDX-License-Identifier: MIT
// Handles the signals that end a run or ask for its state.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Until signals_keep is called, SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGALRM (time limit) end the process at once, as
// there is no result to lose. Afterwards the run ends after the current step and keeps its result, and the same signal
// again kills the process. signals_name(0) names an end without a signal: the launcher has ended.
//
// signals_catch: is_first: this process prints why it ends. seconds: time limit; 0: none.
void        signals_catch(bool is_first, int64_t seconds);
void        signals_keep(void);          // also sets the handlers again, which libraries may have replaced
void        signals_release(void);       // restores the default actions
int         signals_caught(void);        // the signal's number, or 0
int         signals_caught_end(void);    // like signals_caught, but 0 for SIGUSR1: the last step may take any time
const char *signals_name(int number);
bool        signals_take_question(void);    // whether SIGUSR2 came since the last call
