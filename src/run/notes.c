// SPDX-License-Identifier: MIT
// Adds notes on a run's conditions before it starts.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/text.h"
#include "internal.h"

static void add_warning(struct result *result, const struct benchmark *benchmark)
{
    struct result_reason reason = {.verdict = VERDICT_VALID, .id = "tp-across-nodes", .rank = -1, .step = -1};
    if (job_warning(&benchmark->job, reason.message, sizeof(reason.message)) != NULL) {
        result_add_reason(result, &reason);
    }
}

static double threads_a_core(const struct environment_cores *cores)
{
    return (double)(cores->threads * cores->sharers) / (double)cores->cores;
}

// Judges the rank with the most threads per core. Within threads_per_core, the degree is capped: at most a note.
static void add_oversubscription(struct result *result, const struct environment_peer *peers,
                                 const struct run_config *run)
{
    enum { NOTED_MOST = 2 };
    struct environment_cores worst = peers_share_cores(peers, &peers[0].topology, run->threads);
    int                      where = 0;
    for (int rank = 1; rank < peers[0].topology.ranks; rank++) {
        struct environment_cores cores = peers_share_cores(peers, &peers[rank].topology, run->threads);
        if (threads_a_core(&cores) > threads_a_core(&worst)) {
            worst = cores;
            where = rank;
        }
    }
    double degree = threads_a_core(&worst);
    result_judge(result, QUALITY_SHARING, degree > (double)run->threads_per_core ? degree : fmin(degree, NOTED_MOST),
                 where, "%" PRId64 " threads of %" PRId64 " rank%s share %" PRId64 " core%s of %s",
                 worst.threads * worst.sharers, worst.sharers, worst.sharers == 1 ? "" : "s", worst.cores,
                 worst.cores == 1 ? "" : "s", peers[where].topology.host);
}

// Ranks that share a device do not measure it, so the run has no peak.
static void add_sharing(struct result *result, const struct environment_devices *devices)
{
    if (devices->sharers > 1) {
        struct result_reason reason = {.verdict = VERDICT_VALID, .id = "shared-device", .rank = -1, .step = -1};
        snprintf(reason.message, sizeof(reason.message),
                 "%" PRId64 " ranks share a device: step times do not measure the device", devices->sharers);
        result_add_reason(result, &reason);
        result->peak = NAN;
        text_copy(result->peak_source, sizeof(result->peak_source), "ranks share a device");
    }
}

static void add_check(struct result *result, const struct benchmark *benchmark)
{
    if (benchmark->job.config.run.check == CHECK_OPS) {
        struct result_reason reason = {.verdict = VERDICT_DEGRADED, .id = RESULT_CHECKED, .rank = -1, .step = -1};
        snprintf(reason.message, sizeof(reason.message),
                 "run.check = ops waits for each op and checks its outputs: step times are not those of a normal run");
        result_add_reason(result, &reason);
    }
}

static void add_place(struct result *result, const struct environment_notes *notes)
{
    for (int i = 0; i < notes->count; i++) {
        struct result_reason reason = {.verdict = VERDICT_VALID, .rank = -1, .step = -1};
        text_copy(reason.id, sizeof(reason.id), notes->list[i].id);
        text_copy(reason.message, sizeof(reason.message), notes->list[i].text);
        result_add_reason(result, &reason);
    }
}

void notes_add(struct result *result, const struct benchmark *benchmark, const struct rank_environment *environment)
{
    add_warning(result, benchmark);
    add_oversubscription(result, environment->peers, &benchmark->job.config.run);
    add_sharing(result, &environment->devices);
    add_check(result, benchmark);
    add_place(result, &environment->notes);
}
