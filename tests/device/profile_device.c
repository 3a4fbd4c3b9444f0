// SPDX-License-Identifier: MIT
// Tests the NVTX ranges of GPU runs, and when they start and stop the profiler. Steps are enqueued by one thread, or
// captured once and replayed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "gswbench/cli.h"
#include "profile_log.h"

#ifdef GSWBENCH_EMULATED
#define TOLD(text) text    // only the emulated CUDA runtime logs profiler calls
#else
#define TOLD(text) ""
#endif

#define SMALL                                                                                                          \
    "run.layers=1 model.hidden=32 model.heads=2 model.kv_heads=1 model.head_dim=16 model.ffn=32 model.vocab=64 "       \
    "train.sequence=16 train.micro_batch=1 train.global_batch=2"

static const struct {
    const char *overrides;    // added to the settings SMALL
    int         ranks;
    int64_t     issues;    // NVTX ranges of each op, in all steps and in the capture
    const char *story;
} cases[] = {
    {"run.graphs=off", 1, 4, "step0 step1 step2 step3"},
    {"run.graphs=off profile.start_step=1 profile.stop_step=2", 1, 4,
     "step0 " TOLD("start ") "profile( step1 step2 ) " TOLD("stop ") "step3"},
    {"run.graphs=on profile.start_step=3", 1, 2,
     "step0 capture step1 step2 " TOLD("start ") "profile( step3 )" TOLD(" stop")},
    {"run.graphs=on trace.steps=2", 1, 4, "step0 capture step1 step2 step3 step4 step5"},
    {"parallel.dp=2 run.ranks_per_device=2 profile.start_step=2", 2, 4,
     "step0 step1 " TOLD("start ") "profile( step2 ) " TOLD("stop ") "step3"},
};

static int run(size_t number, char *folder)
{
    char  overrides[1024], ranks[16];
    char *words[64] = {
        "gswbench", "run",          "--config", "tiny-llama", "--steps", "4",    "--warmup", "1",   "--backend",
        "cuda",     "--comm",       "local",    "--quiet",    "--out",   folder, "--ranks",  ranks, "--deterministic",
        "--set",    "trace.steps=0"};
    int                count  = 20;
    struct text_buffer errors = {.text = NULL};
    snprintf(ranks, sizeof(ranks), "%d", cases[number].ranks);
    snprintf(overrides, sizeof(overrides), SMALL " %s", cases[number].overrides);
    for (char *rest = overrides, *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        words[count++] = "--set";
        words[count++] = word;
    }
    status ran = cli_run(count, words, &errors);
    if (ran.exit_code != 0) {
        fprintf(stderr, "%s%s\n", errors.text != NULL ? errors.text : "", ran.text);
    }
    text_free(&errors);
    return ran.exit_code;
}

int main(void)
{
    char folder[] = "/tmp/gswbench-device-XXXXXX", log_path[128], command[128];
    int  wrong    = 0;
    device_require();
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    snprintf(log_path, sizeof(log_path), "%s/log", folder);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char                overrides[1024];
        struct profile_seen seen;
        snprintf(overrides, sizeof(overrides), SMALL " %s", cases[i].overrides);
        struct profile_expected expected = profile_expect(overrides, cases[i].ranks, cases[i].issues);
        profile_log_open(log_path);
        int         exit_code = run(i, folder);
        const char *finding   = profile_log_check(log_path, &expected, &seen);
        if (exit_code != 0 || finding[0] != '\0' || strcmp(seen.story, cases[i].story) != 0) {
            printf("%s:\n  %s\n  %s\n", cases[i].overrides, finding, seen.story);
            wrong++;
        }
    }
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return wrong + (system(command) != 0);
}
