// SPDX-License-Identifier: MIT
// Runs the command line (src/cli) and prints its error, once per job.
#include <jansson.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/backend.h"
#include "gswbench/cli.h"
#include "gswbench/comm.h"
#include "gswbench/output.h"
#include "gswbench/show.h"
#include "gswbench/terminal.h"

// A launcher kills all processes when one exits with an error, so ranks above 0 let rank 0 print the error first. If a
// rank is still alive after five seconds, it failed before the ranks met, and prints its own error.
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

// With --json, standard output has the error if it has no document yet, so that scripts need not parse the text.
static void print_json_error(int argc, char *const argv[], const status *result, const struct text_buffer *errors)
{
    bool is_early = result->exit_code == EXIT_USAGE || result->exit_code == EXIT_CONFIG ||
                    result->exit_code == EXIT_LAUNCH || result->exit_code == EXIT_MEMORY;
    for (int i = 1; i < argc && failed(result) && is_early && !show_has_json(); i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json_t *error = json_pack("{s:s, s:s, s:i}", "error", result->text, "details",
                                      errors->text != NULL ? errors->text : "", "exit_code", result->exit_code);
            json_dumpf(error, stdout, JSON_INDENT(2));
            fputc('\n', stdout);
            json_decref(error);
            return;
        }
    }
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
        result = output_cannot("write to", "standard output");
    }
    if (result.exit_code != EXIT_VALID) {
        print_json_error(argc, argv, &result, &errors);
        print_error(&result, &errors);
    }
    text_free(&errors);
    return result.exit_code;
}
