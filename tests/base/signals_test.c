// SPDX-License-Identifier: MIT
// Tests the signals that a run catches, handlers that libraries install over them, and a second signal.
#include "gswbench/signals.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gswbench/status.h"

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
    signals_keep();    // every rank calls this, and ranks can be threads of one process
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

// Returns the exit code of a process that gets a signal before signals_keep, and the text that it prints.
static int end_early(int number, bool is_first, int64_t seconds, char text[256])
{
    int ends[2], ended = 0;
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signals_catch(is_first, seconds);
        raise(number);
        _exit(EXIT_VALID);
    }
    close(ends[1]);
    ssize_t bytes               = read(ends[0], text, 255);
    text[bytes > 0 ? bytes : 0] = '\0';
    close(ends[0]);
    waitpid(child, &ended, 0);
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

Test(signals, a_time_limit_that_is_too_short_says_how_long_it_is)
{
    char text[256];

    cr_expect_eq(end_early(SIGALRM, true, 3600, text), EXIT_STOPPED);
    cr_expect_str_eq(text, "gswbench: the time limit of 3600 s ended before anything was measured: raise --time-limit "
                           "(run.time_limit), or set it to 0 for none\n");
    cr_expect_eq(end_early(SIGTERM, true, 3600, text), EXIT_STOPPED);
    cr_expect_str_eq(text, "gswbench: stopped by a signal before anything was measured\n");
    cr_expect_eq(end_early(SIGALRM, true, 0, text), EXIT_STOPPED, "from another process");
    cr_expect_str_eq(text, "gswbench: stopped by a signal before anything was measured\n");
    cr_expect_eq(end_early(SIGALRM, false, 3600, text), EXIT_STOPPED);
    cr_expect_str_empty(text, "only the first rank says it");
}
