// SPDX-License-Identifier: MIT
// Runs the command line and prints its error, once for a job that fails as a whole.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/cli.h"

// The number that a launcher gave this process, before any communicator exists; NULL: there is no launcher.
static const char *launched_rank(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *rank = getenv(variables[i]);
        if (rank != NULL) {
            return rank;
        }
    }
    return NULL;
}

// Launchers end all processes when one exits with an error. So the others leave it to the first to speak: one that is
// still there after three seconds has failed alone.
static void print_error(const status *result, const struct text_buffer *errors)
{
    const char *rank     = launched_rank();
    bool        is_first = rank == NULL || strcmp(rank, "0") == 0;
    if (!is_first) {
        sleep(3);
    }
    if (failed(result)) {
        fprintf(stderr, "%sgswbench: %s%s%s%s\n", errors->text == NULL ? "" : errors->text, is_first ? "" : "rank ",
                is_first ? "" : rank, is_first ? "" : ": ", result->text);
    }
}

int main(int argc, char *argv[])
{
    struct text_buffer errors = {0};
    status             result = cli_run(argc, argv, &errors);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !failed(&result)) {
        result = fail_as(EXIT_OUTPUT, "cannot write to standard output: %s", strerror(errno));
    }
    if (result.exit_code != EXIT_VALID) {
        print_error(&result, &errors);
    }
    text_free(&errors);
    return result.exit_code;
}
