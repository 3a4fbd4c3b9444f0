// SPDX-License-Identifier: MIT
// What all ranks of a run share: the job and its configuration as text.
#include "gswbench/benchmark.h"

#include <xxhash.h>

#include "gswbench/fatal.h"
#include "internal.h"

static char *print_config(const struct config *config, size_t *bytes)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, bytes);
    if (file != NULL) {
        config_write(config, file);
    }
    if (file == NULL || fclose(file) != 0) {
        FATAL(EXIT_MEMORY, "out of host memory");
    }
    return text;
}

status benchmark_read(struct benchmark *benchmark, const struct job_selection *selection, struct text_buffer *errors)
{
    struct job_selection launched = *selection;
    TRY(launch_count_ranks(&launched, errors));
    TRY(job_read(&benchmark->job, &launched, errors));
    TRY(benchmark->job.support);
    benchmark->config_text = print_config(&benchmark->job.config, &benchmark->config_bytes);
    return OK;
}

uint64_t benchmark_hash(const struct benchmark *benchmark)
{
    bool writes_weights = benchmark->weights_out != NULL;
    return XXH3_64bits_withSeed(benchmark->config_text, benchmark->config_bytes, writes_weights);
}
