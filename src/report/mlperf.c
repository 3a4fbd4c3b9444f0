// SPDX-License-Identifier: MIT
// Reads MLPerf logs line by line, and divides the training time into intervals of one or more steps. Programs log every
// step, every tenth step, or only blocks of steps between evaluations. Entries count the samples or tokens so far. This
// count, divided by the batch (in samples or tokens), gives the number of steps.
#include "gswbench/mlperf.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/input.h"
#include "gswbench/json.h"
#include "gswbench/number.h"
#include "gswbench/statistics.h"
#include "gswbench/text.h"

enum { LINE_BYTES = 1 << 16, INTERVALS_MAX = 1 << 20 };

static const double slow = 1.05;    // an interval is slow if its time per step is above this factor times the median

// clang-format off
const struct mlperf_benchmark mlperf_benchmarks[] = {
    {"gpt3", 2048, {"--mlperf model.preset=gpt3-175b"}},
    {"llama2_70b_lora", 8192, {"--mlperf model.preset=llama2-70b", "--mlperf adapters.rank=16", "--mlperf adapters.targets=qkv,projection"}},
    {"llama31_405b", 8192, {"--mlperf model.preset=llama3.1-405b"}},
    {"llama31_8b", 8192, {"--mlperf model.preset=llama3.1-8b"}},
    {NULL, 0, {NULL}},
};
// clang-format on

struct interval {
    double seconds, steps;
    bool   follows_start;    // whether it is the first interval after the start of the run or after an evaluation
};

struct reader {
    struct mlperf_log *log;
    int64_t            line;
    double             run_begin;        // time of the entry run_start in milliseconds; NaN: not read yet
    double             begin;            // start of the open interval in milliseconds; NaN: none
    double             block_seconds;    // seconds of an ended block whose number of steps is not known yet; NaN: none
    double             position;         // number of steps so far
    double             unit;             // tokens or samples per step, for counts without a unit; 0: not known yet
    bool               follows_start, has_run_stop, has_evaluations;
    struct interval   *intervals;
    int64_t            count;
};

static status wrong(const struct reader *reader, const char *what)
{
    return fail("%s:%" PRId64 ": %s", reader->log->path, reader->line, what);
}

// An MLPerf entry (one line of the log), with its time in milliseconds.
struct entry {
    const char *key;
    json_t     *value, *metadata;
    double      time;
};

// Returns the number of samples or tokens that the entry reports; NaN: none. The key samples_count always counts
// samples. All other keys count samples or tokens, depending on the program that wrote the log.
static double count_of(const struct entry *entry, bool *is_samples)
{
    static const char *const keys[][2] = {
        {"samples_count", NULL}, {"step", NULL}, {"epoch_num", NULL}, {"first_epoch_num", "epoch_count"}};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_t *first  = json_object_get(entry->metadata, keys[i][0]);
        json_t *second = keys[i][1] != NULL ? json_object_get(entry->metadata, keys[i][1]) : NULL;
        if (json_is_number(first) && (keys[i][1] == NULL || json_is_number(second))) {
            *is_samples = i == 0;
            return json_number_value(first) + json_number_value(second);
        }
    }
    return NAN;
}

// Sets *steps to the entry's count of samples or tokens, converted to steps; NaN: it has no count. A count without a
// unit is in tokens if the log's first such count is a multiple of the tokens per step, else in samples.
static status find_steps(struct reader *reader, const struct entry *entry, double *steps)
{
    const struct mlperf_log *log        = reader->log;
    bool                     is_samples = false;
    double                   count      = count_of(entry, &is_samples);
    double                   samples = (double)log->batch, tokens = samples * (double)log->sequence;
    *steps = NAN;
    if (isnan(count) || count <= 0.0) {
        return OK;
    }
    if (log->batch <= 0) {
        return wrong(reader, "steps without a global_batch_size before them");
    }
    if (!is_samples && reader->unit <= 0.0) {
        reader->unit = log->sequence > 0 && fmod(count, tokens) == 0.0 ? tokens : samples;
    }
    *steps = count / (is_samples ? samples : reader->unit);
    return OK;
}

static status add_interval(struct reader *reader, double seconds, double steps, bool follows_start)
{
    if (seconds <= 0.0) {
        return wrong(reader, "its steps took no time: the times of the log do not increase");
    }
    if (reader->count == INTERVALS_MAX) {
        return wrong(reader, "more than a million intervals");
    }
    LIST_APPEND(reader->intervals, reader->count, (struct interval){seconds, steps, follows_start});
    return OK;
}

static status take_start(struct reader *reader, const struct entry *entry)
{
    reader->begin         = entry->time;
    reader->block_seconds = NAN;
    reader->follows_start = true;
    return OK;
}

static status take_run_start(struct reader *reader, const struct entry *entry)
{
    reader->run_begin = entry->time;
    return take_start(reader, entry);
}

static status take_step(struct reader *reader, const struct entry *entry)
{
    double steps;
    TRY(find_steps(reader, entry, &steps));
    if (isnan(reader->begin) || isnan(steps) || steps <= reader->position) {
        return OK;
    }
    TRY(add_interval(reader, (entry->time - reader->begin) / 1e3, steps - reader->position, reader->follows_start));
    reader->position      = steps;
    reader->begin         = entry->time;
    reader->follows_start = false;
    return OK;
}

// Sets reader->position, the number of steps so far. Some programs log the samples or tokens of a block of steps only
// after the end of the block, for example in eval_accuracy. Only then is the number of its steps known.
static status take_position(struct reader *reader, const struct entry *entry)
{
    double steps;
    TRY(find_steps(reader, entry, &steps));
    if (isnan(steps) || steps <= reader->position) {
        return OK;
    }
    if (!isnan(reader->block_seconds)) {
        TRY(add_interval(reader, reader->block_seconds, steps - reader->position, true));
        reader->log->has_evaluations = !reader->has_evaluations;
        reader->block_seconds        = NAN;
    }
    reader->position = steps;
    return OK;
}

// Ends the open interval. If the log has no step since the start of the block, the interval is the whole block of
// steps. Its time is kept until take_position finds the number of these steps.
static void end_block(struct reader *reader, const struct entry *entry)
{
    if (!isnan(reader->begin) && reader->follows_start) {
        reader->block_seconds = (entry->time - reader->begin) / 1e3;
    }
    reader->begin = NAN;
}

static status take_stop(struct reader *reader, const struct entry *entry)
{
    end_block(reader, entry);
    return take_position(reader, entry);
}

static status take_evaluation(struct reader *reader, const struct entry *entry)
{
    reader->has_evaluations = true;
    return take_stop(reader, entry);
}

// Reads an entry tracked_stats. If its first key begins with "validation", it comes from an evaluation: it counts no
// training steps, and ends the block of training steps.
static status take_statistics(struct reader *reader, const struct entry *entry)
{
    static const char validation[] = "validation";
    void             *first        = json_object_iter(entry->value);
    if (first == NULL || strncmp(json_object_iter_key(first), validation, strlen(validation)) != 0) {
        return take_step(reader, entry);
    }
    reader->has_evaluations = true;
    end_block(reader, entry);
    return OK;
}

static status take_run_stop(struct reader *reader, const struct entry *entry)
{
    const char *state        = json_string_value(json_object_get(entry->metadata, "status"));
    reader->has_run_stop     = true;
    reader->log->run_seconds = (entry->time - reader->run_begin) / 1e3;
    text_printable(reader->log->status, sizeof(reader->log->status), state != NULL ? state : "unknown");
    return OK;
}

static const struct {
    const char *key;
    status (*take)(struct reader *reader, const struct entry *entry);
} events[] = {
    {"run_start", take_run_start},   {"block_start", take_start},        {"eval_stop", take_start},
    {"train_loss", take_step},       {"tracked_stats", take_statistics}, {"block_stop", take_stop},
    {"eval_start", take_evaluation}, {"eval_accuracy", take_position},   {"run_stop", take_run_stop},
};

// Entries whose value is stored in struct mlperf_log. bytes: size of a text field; 0: the field is a number.
static const struct {
    const char *key;
    size_t      offset, bytes;
} facts[] = {
#define LOG_TEXT(key, field)                                                                                           \
    {                                                                                                                  \
        key, offsetof(struct mlperf_log, field), sizeof(((struct mlperf_log *)0)->field)                               \
    }
#define LOG_NUMBER(key, field)                                                                                         \
    {                                                                                                                  \
        key, offsetof(struct mlperf_log, field), 0                                                                     \
    }
    LOG_TEXT("submission_benchmark", benchmark), LOG_TEXT("submission_org", submitter),
    LOG_TEXT("submission_platform", platform),   LOG_NUMBER("global_batch_size", batch),
    LOG_NUMBER("max_sequence_length", sequence), LOG_NUMBER("gradient_accumulation_steps", accumulation),
};

static status take_fact(struct reader *reader, const struct entry *entry, size_t index)
{
    void  *field = (char *)reader->log + facts[index].offset;
    double value = json_number_value(entry->value);
    if (facts[index].bytes > 0) {
        const char *text = json_string_value(entry->value);
        text_printable(field, facts[index].bytes, text != NULL ? text : "");
        return OK;
    }
    if (!json_is_number(entry->value) || value < 1.0 || value > 1e12 || value != floor(value)) {
        return wrong(reader, "a size must be a whole number above 0");
    }
    *(int64_t *)field = (int64_t)value;
    return OK;
}

static status take_entry(struct reader *reader, const struct entry *entry)
{
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        if (strcmp(entry->key, facts[i].key) == 0) {
            return take_fact(reader, entry, i);
        }
    }
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        if (strcmp(entry->key, events[i].key) == 0) {
            return events[i].take(reader, entry);
        }
    }
    return OK;
}

static int64_t system_number(const json_t *system, const char *key)
{
    const char *text  = json_string_value(json_object_get(system, key));
    int64_t     value = 0;
    return text != NULL && number_parse_integer(text, &value) && value > 0 && value < 1 << 20 ? value : 0;
}

// Reads the number of accelerators from the description of the system, which only some logs have; 0 if it is not JSON.
static void take_system(struct reader *reader, const char *text)
{
    json_error_t error;
    json_t      *system = json_parse(text, strlen(text), &error);
    reader->log->accelerators =
        system_number(system, "number_of_nodes") * system_number(system, "accelerators_per_node");
    json_decref(system);
}

static status take_line(struct reader *reader, const char *text)
{
    json_error_t error;
    json_t      *line = json_parse(text, strlen(text), &error);
    json_t      *key = json_object_get(line, "key"), *time = json_object_get(line, "time_ms");
    status       taken = OK;
    if (line == NULL) {
        char cause[300];
        snprintf(cause, sizeof(cause), "not JSON: %.250s", error.text);
        taken = wrong(reader, cause);
    } else if (!json_is_string(key) || !json_is_number(time)) {
        taken = wrong(reader, "key or time_ms is missing");
    } else {
        taken = take_entry(reader, &(struct entry){.key      = json_string_value(key),
                                                   .value    = json_object_get(line, "value"),
                                                   .metadata = json_object_get(line, "metadata"),
                                                   .time     = json_number_value(time)});
    }
    json_decref(line);
    return taken;
}

// Reads all lines of a log. Lines without an MLPerf entry come from arbitrary programs and may have any length and
// bytes.
static status take_file(struct reader *reader, FILE *file, char *line)
{
    static const char entry[] = ":::MLLOG", about[] = ":::SYSJSON";
    bool              is_rest = false, found = false;
    while (fgets(line, LINE_BYTES, file) != NULL) {
        bool  ends  = strchr(line, '\n') != NULL;
        char *start = is_rest ? NULL : strstr(line, entry), *system = is_rest ? NULL : strstr(line, about);
        reader->line += !is_rest;
        found   = found || start != NULL;
        is_rest = !ends && strlen(line) == LINE_BYTES - 1;
        if (is_rest && start != NULL) {
            return wrong(reader, "longer than 64 KiB");
        }
        if (start != NULL) {
            TRY(take_line(reader, start + strlen(entry)));
        } else if (system != NULL && !is_rest) {
            take_system(reader, system + strlen(about));
        }
    }
    if (ferror(file)) {
        return fail("%s: cannot be read: %s", reader->log->path, strerror(errno));
    }
    return found ? OK : fail("%s: has no line with :::MLLOG: not a log of MLPerf Training", reader->log->path);
}

static void find_slow_phases(const struct reader *reader)
{
    struct mlperf_log *log      = reader->log;
    bool               was_slow = false;
    for (int64_t i = 0; i < reader->count; i++) {
        const struct interval *interval = &reader->intervals[i];
        double                 above    = interval->seconds - interval->steps * log->step_seconds;
        bool                   is_slow  = interval->seconds > slow * interval->steps * log->step_seconds;
        if (is_slow && (!was_slow || interval->follows_start)) {
            log->slow_phases++;
            log->slow_after_starts += interval->follows_start;
        }
        log->slow_steps += is_slow ? llround(interval->steps) : 0;
        log->slow_seconds += is_slow ? above : 0.0;
        was_slow = is_slow;
    }
}

static void summarise(const struct reader *reader)
{
    struct mlperf_log *log    = reader->log;
    double            *values = memory_allocate((size_t)reader->count * sizeof(*values));
    struct statistics  step;
    for (int64_t i = 0; i < reader->count; i++) {
        values[i] = reader->intervals[i].steps;
    }
    log->steps_each = llround(statistics_median(values, reader->count));
    for (int64_t i = 0; i < reader->count; i++) {
        values[i] = reader->intervals[i].seconds / reader->intervals[i].steps;
    }
    statistics_compute(&step, values, reader->count);
    log->intervals    = reader->count;
    log->steps        = llround(reader->position);
    log->step_seconds = step.median;
    log->spread       = step.p95 / step.median;
    find_slow_phases(reader);
    free(values);
}

static status check(const struct reader *reader)
{
    const char *path = reader->log->path;
    if (!reader->has_run_stop) {
        return fail("%s: ends at line %" PRId64 " without run_stop: the log is cut off", path, reader->line);
    }
    if (isnan(reader->run_begin)) {
        return fail("%s: has no run_start: its beginning is missing", path);
    }
    return reader->count > 0 ? OK : fail("%s: has no steps: no train_loss, tracked_stats or block with a count", path);
}

const struct mlperf_benchmark *mlperf_find_benchmark(const char *name)
{
    for (const struct mlperf_benchmark *known = mlperf_benchmarks; known->name != NULL; known++) {
        if (strcmp(known->name, name) == 0) {
            return known;
        }
    }
    return NULL;
}

status mlperf_read(struct mlperf_log *log, const char *path)
{
    struct stat   about;
    FILE         *file;
    struct reader reader = {.log = log, .run_begin = NAN, .begin = NAN, .block_seconds = NAN};
    *log                 = (struct mlperf_log){.batch = 0};
    text_copy(log->path, sizeof(log->path), path);
    status result = input_open_stream(path, &file, &about);
    if (failed(&result)) {
        return fail("%s: %s", path, result.text);
    }
    char *line = memory_allocate(LINE_BYTES);
    result     = take_file(&reader, file, line);
    fclose(file);
    result = failed(&result) ? result : check(&reader);
    if (!failed(&result)) {
        const struct mlperf_benchmark *known = mlperf_find_benchmark(log->benchmark);
        log->sequence                        = log->sequence > 0 || known == NULL ? log->sequence : known->sequence;
        summarise(&reader);
    }
    free(line);
    free(reader.intervals);
    return result;
}
