// SPDX-License-Identifier: MIT
// Parses the log of the fake profiler, with a stack of open ranges for each thread.
#include "profile_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/job.h"
#include "gswbench/library.h"
#include "gswbench/plan_build.h"
#include "gswbench/verify.h"
#include "layouts.h"
#include "training.h"

enum { THREADS_MAX = 64, DEPTH_MAX = 8, NAME_BYTES = 128, WORDS_MAX = 12, STRINGS_MAX = 1024, RANKS_MAX = 8 };

struct thread {
    char stack[DEPTH_MAX][NAME_BYTES];
    int  depth, stream;
    bool runs_steps;    // has opened step ranges
    int  rank;          // from its latest step
};

struct reading {
    const struct profile_expected *expected;
    struct profile_seen           *seen;
    struct thread                  threads[THREADS_MAX];
    int64_t                       *issues[RANKS_MAX];    // [op_count] for each rank
    struct {
        int  thread;
        char name[NAME_BYTES];
    } strings[STRINGS_MAX];
    int  string_count;
    char finding[512];
};

struct line {
    char *words[WORDS_MAX];    // thread, call, name, ...
    int   count;
};

void profile_log_open(const char *path)
{
    char profiler[1024];
    library_beside_program(profiler, sizeof(profiler), "tests/libfake_profiler.so");
    unlink(path);
    setenv("NVTX_INJECTION64_PATH", profiler, 1);
    setenv("FAKE_PROFILER", path, 1);
}

struct profile_expected profile_expect(const char *overrides, int ranks, int64_t issues)
{
    static struct plan plans[RANKS_MAX];
    struct job         job;
    layout_job(&job, "tiny-llama", ranks, overrides);
    for (int rank = 0; rank < ranks; rank++) {
        job.request.rank = rank;
        plan_free(&plans[rank]);
        training_require(plan_build(&plans[rank], &job.request));
    }
    return (struct profile_expected){.plans = plans, .ranks = ranks, .issues = issues};
}

double profile_flops(const struct plan *plan)
{
    struct account *account = memory_allocate(sizeof(*account));
    double          flops   = 0.0;
    plan_account(plan, account);
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        flops += account->flops[phase];
    }
    free(account);
    return flops;
}

__attribute__((format(printf, 2, 3))) static void find(struct reading *reading, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (reading->finding[0] == '\0') {
        vsnprintf(reading->finding, sizeof(reading->finding), format, arguments);
    }
    va_end(arguments);
}

__attribute__((format(printf, 2, 3))) static void tell(struct reading *reading, const char *format, ...)
{
    char   *story = reading->seen->story;
    size_t  used  = strlen(story);
    va_list arguments;
    va_start(arguments, format);
    if (used > 0 && used + 1 < sizeof(reading->seen->story)) {
        story[used++] = ' ';
    }
    vsnprintf(story + used, sizeof(reading->seen->story) - used, format, arguments);
    va_end(arguments);
}

// Returns the value of a word NAME=VALUE, or NULL.
static const char *value_of(const struct line *line, const char *name)
{
    size_t length = strlen(name);
    for (int i = 3; i < line->count; i++) {
        if (strncmp(line->words[i], name, length) == 0 && line->words[i][length] == '=') {
            return line->words[i] + length + 1;
        }
    }
    return NULL;
}

static void expect_value(struct reading *reading, const struct line *line, const char *name, double expected)
{
    const char *value = value_of(line, name);
    if (value == NULL || strtod(value, NULL) != expected) {
        find(reading, "%s has %s %s, not %.17g", line->words[2], name, value != NULL ? value : "nowhere", expected);
    }
}

static const char *below(const struct thread *thread, int down)
{
    return thread->depth >= down ? thread->stack[thread->depth - down] : "nothing";
}

static void expect_below(struct reading *reading, const struct thread *thread, int down, const char *expected)
{
    if (strcmp(below(thread, down), expected) != 0) {
        find(reading, "%s is in %s, not in %s", below(thread, 0), below(thread, down), expected);
    }
}

// Expects a step or capture range, at the top level or within a profile range.
static void expect_outer(struct reading *reading, const struct thread *thread, int down)
{
    const char *outer = below(thread, down), *outmost = below(thread, down + 1);
    if ((strcmp(outer, "step") != 0 && strcmp(outer, "capture") != 0) ||
        (strcmp(outmost, "nothing") != 0 && strcmp(outmost, "profile") != 0)) {
        find(reading, "%s is in %s in %s", below(thread, down - 1), outer, outmost);
    }
}

static void push_op(struct reading *reading, struct thread *thread, const struct line *line)
{
    const struct plan *plan  = &reading->expected->plans[thread->rank];
    int64_t            index = strtoll(value_of(line, "op"), NULL, 10);
    if (index < 0 || index >= plan->op_count) {
        find(reading, "%s is op %" PRId64, line->words[2], index);
        return;
    }
    const struct op *op               = &plan->ops[index];
    bool             is_communication = op_is_communication((enum op_kind)op->kind);
    char             name[NAME_BYTES], layer[NAME_BYTES];
    snprintf(name, sizeof(name), "%s %s", op_name((enum op_kind)op->kind), op->tag.role);
    snprintf(layer, sizeof(layer), "layer %d", op->tag.layer);
    if (strcmp(name, line->words[2]) != 0) {
        find(reading, "op %" PRId64 " is %s, not %s", index, line->words[2], name);
    }
    int layers = op->tag.layer >= 0 ? 1 : 0;
    if (layers > 0) {
        expect_below(reading, thread, 2, layer);
    }
    expect_below(reading, thread, 2 + layers, op_phase_name((enum phase)op->tag.phase));
    expect_outer(reading, thread, 3 + layers);
    expect_value(reading, line, "category", op->stream + 1);
    expect_value(reading, line, "microbatch", op->tag.microbatch);
    expect_value(reading, line, "bytes", plan_op_bytes(plan, op));
    if (is_communication) {
        expect_value(reading, line, "group_size", (double)plan->groups[op->shape.communication.group].size);
    } else {
        expect_value(reading, line, "flops", op_flops(op));
        reading->seen->flops += op_flops(op);
    }
    if (value_of(line, is_communication ? "flops" : "group_size") != NULL) {
        find(reading, "%s has FLOPs and a group", name);
    }
    if (!thread->runs_steps && thread->stream >= 0 && thread->stream != op->stream) {
        find(reading, "%s is on a thread of stream %d", name, thread->stream);
    }
    thread->stream = op->stream;
    reading->issues[thread->rank][index]++;
    reading->seen->ops++;
}

static bool is_phase(const char *name)
{
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        if (strcmp(name, op_phase_name((enum phase)phase)) == 0) {
            return true;
        }
    }
    return false;
}

// Pushes a step, capture or profile range. Its payload has the step and the rank.
static void push_outer(struct reading *reading, struct thread *thread, const struct line *line)
{
    const char *step = value_of(line, "step"), *rank = value_of(line, "rank");
    double      flops = 0.0;
    thread->rank      = rank != NULL ? atoi(rank) : -1;
    if (thread->rank < 0 || thread->rank >= reading->expected->ranks) {
        find(reading, "%s is of rank %d", line->words[2], thread->rank);
        thread->rank = 0;
    }
    const struct plan *plan = &reading->expected->plans[thread->rank];
    for (int32_t i = 0; i < plan->op_count; i++) {
        flops += op_flops(&plan->ops[i]);
    }
    expect_value(reading, line, "flops", flops);
    reading->seen->profiles += strcmp(line->words[2], "profile") == 0;
    if (thread->runs_steps && thread->rank == 0) {
        if (strcmp(line->words[2], "step") == 0) {
            tell(reading, "step%s", step);
        } else {
            tell(reading, strcmp(line->words[2], "profile") == 0 ? "%s(" : "%s", line->words[2]);
        }
    }
}

static void push(struct reading *reading, struct thread *thread, const struct line *line)
{
    if (thread->depth == DEPTH_MAX) {
        find(reading, "%s is too deep", line->words[2]);
        return;
    }
    snprintf(thread->stack[thread->depth++], NAME_BYTES, "%s", line->words[2]);
    int layer;
    if (value_of(line, "op") != NULL) {
        push_op(reading, thread, line);
    } else if (value_of(line, "step") != NULL) {
        push_outer(reading, thread, line);
    } else if (is_phase(line->words[2])) {
        expect_outer(reading, thread, 2);
        reading->seen->phases++;
    } else if (sscanf(line->words[2], "layer %d", &layer) == 1) {
        if (!is_phase(below(thread, 2))) {
            find(reading, "%s is in %s", line->words[2], below(thread, 2));
        }
    } else {
        find(reading, "%s is no range of a step", line->words[2]);
    }
}

static void pop(struct reading *reading, struct thread *thread)
{
    if (thread->depth == 0) {
        find(reading, "a range ends that has not begun");
        return;
    }
    thread->depth--;
    if (strcmp(thread->stack[thread->depth], "profile") == 0 && thread->rank == 0) {
        tell(reading, ")");
    }
}

static void take_string(struct reading *reading, int thread, const char *name)
{
    for (int i = 0; i < reading->string_count; i++) {
        if (reading->strings[i].thread == thread && strcmp(reading->strings[i].name, name) == 0) {
            find(reading, "%s is registered again", name);
        }
    }
    if (reading->string_count < STRINGS_MAX) {
        reading->strings[reading->string_count].thread = thread;
        snprintf(reading->strings[reading->string_count++].name, NAME_BYTES, "%s", name);
    }
}

static void take_line(struct reading *reading, const struct line *line)
{
    int            number = atoi(line->words[0]);
    struct thread *thread = &reading->threads[number];
    const char    *what   = line->words[1];
    if (number < 0 || number >= THREADS_MAX || line->count < 2 || strcmp(what, "wrong") == 0) {
        find(reading, "wrong: %s", line->count > 2 ? line->words[2] : what);
    } else if (strcmp(what, "push") == 0) {
        push(reading, thread, line);
    } else if (strcmp(what, "pop") == 0) {
        pop(reading, thread);
    } else if (strcmp(what, "string") == 0) {
        thread->runs_steps = true;
        take_string(reading, number, line->words[2]);
    } else if (strncmp(what, "device-", 7) == 0) {
        tell(reading, "%s", what + 7);
    } else if (strcmp(what, "domain") == 0 && strcmp(line->words[2], "gswbench") != 0) {
        find(reading, "the domain is %s", line->words[2]);
    }
}

static void finish(struct reading *reading)
{
    const struct profile_expected *expected = reading->expected;
    for (int i = 0; i < THREADS_MAX; i++) {
        const struct thread *thread = &reading->threads[i];
        reading->seen->streams += !thread->runs_steps && thread->stream >= 0;
        if (thread->depth > 0) {
            find(reading, "%s does not end", below(thread, 1));
        }
    }
    for (int rank = 0; rank < expected->ranks; rank++) {
        for (int32_t i = 0; i < expected->plans[rank].op_count; i++) {
            if (reading->issues[rank][i] != expected->issues) {
                char name[160];
                find(reading, "%s was issued %" PRId64 " times",
                     plan_op_name(&expected->plans[rank], i, name, sizeof(name)), reading->issues[rank][i]);
            }
        }
        free(reading->issues[rank]);
    }
}

const char *profile_log_check(const char *path, const struct profile_expected *expected, struct profile_seen *seen)
{
    static struct reading reading;
    FILE                 *file = fopen(path, "r");
    char                  text[2048];
    reading = (struct reading){.expected = expected, .seen = seen};
    *seen   = (struct profile_seen){.ops = 0};
    if (file == NULL || expected->ranks > RANKS_MAX) {
        return "nothing was taken down, or of too many ranks";
    }
    for (int rank = 0; rank < expected->ranks; rank++) {
        reading.issues[rank] = memory_allocate((size_t)expected->plans[rank].op_count * sizeof(int64_t));
    }
    for (int i = 0; i < THREADS_MAX; i++) {
        reading.threads[i].stream = -1;
    }
    while (fgets(text, sizeof(text), file) != NULL) {
        struct line line = {.count = 0};
        char       *rest = text;
        for (char *word; line.count < WORDS_MAX && (word = strtok_r(rest, "\t\n", &rest)) != NULL;) {
            line.words[line.count++] = word;
        }
        take_line(&reading, &line);
    }
    fclose(file);
    finish(&reading);
    return reading.finding;
}
