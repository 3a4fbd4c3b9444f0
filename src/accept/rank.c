// SPDX-License-Identifier: MIT
// One rank of an acceptance test: preflight, then the run unless there are outliers, then the verdict.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/accept.h"
#include "gswbench/output.h"
#include "gswbench/place.h"
#include "gswbench/signature.h"
#include "gswbench/text.h"

static void add_host(struct result_acceptance *acceptance, const char *host)
{
    size_t used = strlen(acceptance->drain);
    snprintf(acceptance->drain + used, sizeof(acceptance->drain) - used, "%s%s", used > 0 ? "," : "", host);
}

static void take_preflight(struct accept *accept)
{
    const struct preflight_report *report = &accept->report;
    accept->acceptance.outliers           = report->outlier_count;
    for (int64_t i = 0; i < report->drain_count; i++) {
        add_host(&accept->acceptance, report->drain[i].host);
    }
}

// Adds the host of the rank that made the run INVALID, if a single rank did.
static void drain_invalid(struct accept *accept, const struct result *result)
{
    for (int64_t i = 0; i < result->reason_count; i++) {
        const struct result_reason *reason = &result->reasons[i];
        if (reason->verdict == VERDICT_INVALID && reason->rank >= 0 && reason->rank < accept->report.rank_count &&
            accept->acceptance.drain[0] == '\0') {
            add_host(&accept->acceptance, accept->report.ranks[reason->rank].host);
        }
    }
}

// Concludes before the run's files are written, so they have the verdict.
static void conclude(void *context, struct result *result)
{
    struct accept *accept = context;
    drain_invalid(accept, result);
    result->acceptance = accept->acceptance;
    result_accept(result);
    accept->acceptance = result->acceptance;
    accept->step       = result->figures.step;
    text_copy(accept->run_id, sizeof(accept->run_id), result->run_id);
    text_copy(accept->run_verdict, sizeof(accept->run_verdict), result_verdict_names[result->verdict]);
}

// Without a run, preflight alone decides.
static void refuse(struct accept *accept)
{
    struct result none = {.acceptance = accept->acceptance};
    result_accept(&none);
    accept->acceptance = none.acceptance;
    accept->step       = (struct statistics){.median = NAN, .low = NAN, .high = NAN, .variation = NAN};
}

static status write_files(const struct accept *accept)
{
    char               path[OUTPUT_PATH_BYTES];
    struct text_stream stream;
    snprintf(path, sizeof(path), "%s/accept.json", accept->preflight.output);
    text_stream_open(&stream);
    accept_write_json(accept, stream.file);
    text_stream_close(&stream);
    status      written = output_replace(path, stream.data, stream.bytes);
    const char *key     = accept->preflight.benchmark.sign_key;
    if (!failed(&written) && key != NULL) {
        written = signature_make(path, key);
    }
    if (accept->preflight.json) {
        fwrite(stream.data, 1, stream.bytes, stdout);
    } else {
        accept_write_text(accept, stdout);
        fputs("details: ", stdout);
        text_print(path, stdout);
        putchar('\n');
    }
    free(stream.data);
    return written;
}

// The exit code follows from the verdict, which rank 0 broadcasts, not from the run.
static status leave(struct accept *accept, struct comm *comm)
{
    int code = 0;
    TRY(place_agree(comm, comm->place.rank == 0 ? write_files(accept) : OK));
    if (comm->place.rank == 0) {
        code = result_acceptance_code((enum acceptance)accept->acceptance.verdict);
    }
    comm->ops->share(comm, &code, sizeof(code), 0);
    return (status){.exit_code = code};
}

static status run(struct accept *accept, const struct preflight_report *report, struct comm *comm)
{
    const struct benchmark *shared    = &accept->preflight.benchmark;
    struct benchmark        benchmark = *shared;
    bool                    is_first  = comm->place.rank == 0;
    if (is_first && !accept->preflight.json) {
        preflight_write_text(report, stdout);
    }
    if (is_first) {
        accept_expect(&accept->acceptance, &shared->job, report->device);
        take_preflight(accept);
    }
    if (report->outlier_count == 0) {
        benchmark.json = benchmark.is_mute = accept->preflight.json;
        benchmark.conclude                 = conclude;
        benchmark.context                  = accept;
        TRY(benchmark_run_rank(&benchmark, comm));
    } else if (is_first) {
        refuse(accept);
    }
    return leave(accept, comm);
}

status accept_rank(const void *shared, struct comm *comm)
{
    struct accept           accept = {.preflight = ((const struct accept *)shared)->preflight};
    struct preflight_report report = {.ranks = NULL};
    status                  result = preflight_measure(&report, &accept.preflight, comm);
    accept.report                  = report;
    if (!failed(&result)) {
        result = run(&accept, &report, comm);
    }
    preflight_free(&report);
    return result;
}
