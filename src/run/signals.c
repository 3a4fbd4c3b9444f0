// SPDX-License-Identifier: MIT
// Signals that a run is ended by, or asked by.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "internal.h"

static atomic_int  caught;    // any thread may run the handler
static atomic_bool is_asked;

static void catch_end(int number)
{
    caught = number;
}

static void catch_question(int number)
{
    (void)number;
    is_asked = true;
}

static void set_handlers(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    struct sigaction end       = {.sa_handler = catch_end, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    struct sigaction question  = {.sa_handler = catch_question, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        sigaction(numbers[i], &end, NULL);
    }
    sigaction(SIGUSR2, &question, NULL);
    // A reader that went away is found by the failing write.
    signal(SIGPIPE, SIG_IGN);
}

// Ranks may be threads of one process.
void signals_catch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_handlers);
}

int signals_caught(void)
{
    return caught;
}

int signals_caught_end(void)
{
    return caught == SIGUSR1 ? 0 : caught;
}

bool signals_take_question(void)
{
    return is_asked && atomic_exchange(&is_asked, false);
}
