// SPDX-License-Identifier: MIT
// Runs the command line and prints its error, once for the whole job.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/cli.h"

// True on the rank that speaks for the job: launchers number their processes before any communicator exists.
static bool is_first_process(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *rank = getenv(variables[i]);
        if (rank != NULL) {
            return strcmp(rank, "0") == 0;
        }
    }
    return true;
}

int main(int argc, char *argv[])
{
    struct text_buffer errors = {0};
    status             result = cli_run(argc, argv, &errors);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !failed(&result)) {
        result = fail_as(EXIT_OUTPUT, "cannot write to standard output: %s", strerror(errno));
    }
    if (failed(&result) && is_first_process()) {
        fprintf(stderr, "%sgswbench: %s\n", errors.text == NULL ? "" : errors.text, result.text);
    } else if (failed(&result)) {
        // Launchers end all processes when one exits with an error: the one that speaks may be behind.
        sleep(1);
    }
    text_free(&errors);
    return result.exit_code;
}
