// SPDX-License-Identifier: MIT
// What all ranks of a run share: the job and its configuration as text.
#include "gswbench/benchmark.h"

#include <xxhash.h>

#include "internal.h"

status benchmark_read(struct benchmark *benchmark, const struct job_selection *selection, struct text_buffer *errors)
{
    struct job_selection launched = *selection;
    TRY(launch_count_ranks(&launched, errors));
    TRY(job_read(&benchmark->job, &launched, errors));
    TRY(benchmark->job.support);
    struct text_stream text;
    text_stream_open(&text);
    config_write(&benchmark->job.config, text.file);
    text_stream_close(&text);
    benchmark->config_text  = text.data;
    benchmark->config_bytes = text.bytes;
    return OK;
}

uint64_t benchmark_hash(const struct benchmark *benchmark)
{
    bool writes_weights = benchmark->weights_out != NULL;
    return XXH3_64bits_withSeed(benchmark->config_text, benchmark->config_bytes, writes_weights);
}
