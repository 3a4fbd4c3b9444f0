// SPDX-License-Identifier: MIT
// Runs a job several times in one launch, and prints the differences between runs.
#include <stdio.h>

#include "gswbench/benchmark.h"
#include "gswbench/table.h"

// Adds comparable runs to the table.
static void conclude(void *context, struct result *result)
{
    if (result_is_shown(result)) {
        table_add(context, result);
    }
}

static void print_table(struct table *table)
{
    if (table->run_count > 1) {
        table_finish(table);
        table_write_text(table, stdout);
    }
}

// Stops after a stopped or wrong run, but not after a missed threshold.
static bool goes_on(const status *result)
{
    return !failed(result) &&
           (result->exit_code == EXIT_VALID || result->exit_code == EXIT_GATE || result->exit_code == EXIT_UNDECIDED);
}

status benchmark_repeat_rank(const void *shared, struct comm *comm)
{
    const struct repeated_benchmark *repeated  = shared;
    struct benchmark                 benchmark = repeated->benchmark;
    struct table                     table     = {.rows = NULL};
    int                              code      = EXIT_VALID;
    status                           result    = OK;
    benchmark.conclude                         = conclude;
    benchmark.context                          = &table;
    for (int64_t i = 0; i < repeated->times && goes_on(&result); i++) {
        result = benchmark_run_rank(&benchmark, comm);
        code   = code == EXIT_VALID || result.exit_code == EXIT_GATE ? result.exit_code : code;
    }
    if (comm->topology.rank == 0) {
        print_table(&table);
    }
    table_free(&table);
    result.exit_code = goes_on(&result) ? code : result.exit_code;
    return result;
}
