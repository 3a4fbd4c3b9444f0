// SPDX-License-Identifier: MIT
// Tests the signals that a run catches, handlers that libraries install over them, and a second signal.
#include "gswbench/signals.h"

#include <criterion/criterion.h>
#include <signal.h>

static void debugger(int number)
{
    (void)number;
}

// UCX, which Open MPI 5 loads in MPI_Init, installs a handler for SIGHUP. signals_keep must install the run's own
// again.
Test(signals, a_library_takes_no_signal_from_a_run)
{
    signals_catch(true, 0);
    signal(SIGHUP, debugger);
    signals_keep();
    raise(SIGHUP);
    cr_assert_eq(signals_caught(), SIGHUP);
    cr_assert_eq(signals_caught_end(), SIGHUP);
}

Test(signals, a_second_signal_kills, .signal = SIGTERM)
{
    signals_catch(true, 0);
    signals_keep();
    raise(SIGTERM);
    cr_assert_eq(signals_caught(), SIGTERM);
    signals_keep();    // this is called once per rank, and ranks can be threads of one process
    raise(SIGTERM);
    cr_assert_fail("the second SIGTERM did not kill");
}

Test(signals, sigusr1_lets_the_step_end_and_sigusr2_asks)
{
    signals_catch(true, 0);
    signals_keep();
    raise(SIGUSR2);
    cr_assert(signals_take_question());
    cr_assert_not(signals_take_question());
    raise(SIGUSR1);
    cr_assert_eq(signals_caught(), SIGUSR1);
    cr_assert_eq(signals_caught_end(), 0);
}
