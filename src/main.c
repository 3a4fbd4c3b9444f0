// SPDX-License-Identifier: MIT
// Runs the command line and prints its error, once per job.
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/backend.h"
#include "gswbench/cli.h"
#include "gswbench/comm.h"
#include "gswbench/terminal.h"

// A launcher kills all processes when one exits with an error, so other ranks wait for the first one to report. A rank
// that is still alive after five seconds failed before the ranks met, and reports its own error.
static void print_error(const status *result, const struct text_buffer *errors)
{
    int  rank    = comm_launched_rank();
    char who[32] = "";
    if (rank > 0) {
        sleep(failed(result) ? 5 : 1);
        snprintf(who, sizeof(who), "rank %d: ", rank);
    }
    if (failed(result)) {
        fprintf(stderr, "%sgswbench: %s%s\n", errors->text == NULL ? "" : errors->text, who, result->text);
    }
}

// Verification and prediction build plans of megabytes one after the other. These thresholds keep their memory in the
// process; malloc would return it to the system after each plan.
static void keep_memory(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

int main(int argc, char *argv[])
{
    keep_memory();
    signal(SIGXFSZ, SIG_IGN);    // a write beyond the file size limit then fails with EFBIG, which is reported
    struct text_buffer errors = {0};
    if (comm_launched_ranks() > 0) {
        terminal_hide();
    }
    status result = backend_check_processor();
    if (!failed(&result)) {
        result = cli_run(argc, argv, &errors);
    }
    if ((fflush(stdout) != 0 || ferror(stdout)) && !failed(&result)) {
        result = fail_as(EXIT_OUTPUT, "cannot write to standard output: %s", strerror(errno));
    }
    if (result.exit_code != EXIT_VALID) {
        print_error(&result, &errors);
    }
    text_free(&errors);
    return result.exit_code;
}
