// SPDX-License-Identifier: MIT
// Tests the trace files that viewers read.
#include "gswbench/waterfall.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

Test(timeline, has_a_process_a_rank_a_thread_a_stream_and_an_event_an_op)
{
    struct op ops[] = {
        {.kind   = OP_GEMM,
         .stream = STREAM_COMPUTE,
         .tag    = {.role = "qkv", .phase = PHASE_BACKWARD, .layer = 3, .chunk = 0, .microbatch = 7}},
        {.kind   = OP_ALL_REDUCE,
         .stream = STREAM_GRADIENT_REDUCE,
         .tag    = {.role = "gradient norm", .phase = PHASE_REDUCE, .layer = -1, .chunk = -1, .microbatch = -1}}};
    struct op_time    times[] = {{0.001, 0.0035}, {1.25, 1.5}};
    struct plan_group group   = {.size = 1};
    struct plan       first = {.rank = 4, .ops = ops, .op_count = 2, .groups = &group}, second = first;
    char             *text  = NULL;
    size_t            bytes = 0;
    FILE             *file  = open_memstream(&text, &bytes);

    second.rank = 16;
    timeline_begin(file);
    timeline_write_rank(&first, times, NULL, true, file);
    timeline_write_rank(&second, times, NULL, false, file);
    timeline_end(&(struct timeline_source){"cupti", 3}, file);
    fclose(file);

    json_error_t error;
    json_t      *trace = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    cr_assert(trace != NULL, "%s at %d of %s", error.text, error.position, text);
    json_t *events = json_object_get(trace, "traceEvents");
    size_t  names  = 1 + STREAM_COUNT;
    cr_assert_eq(json_array_size(events), 2 * (names + 2));
    const struct {
        size_t      index;
        const char *expected;
    } cases[] = {
        {0, "{'ph': 'M', 'name': 'process_name', 'pid': 4, 'tid': 0, 'args': {'name': 'rank 4'}}"},
        {1, "{'ph': 'M', 'name': 'thread_name', 'pid': 4, 'tid': 0, 'args': {'name': 'compute'}}"},
        {names, "{'ph': 'X', 'name': 'qkv', 'cat': 'backward', 'pid': 4, 'tid': 0, 'ts': 1000.0, 'dur': 2500.0, "
                "'args': {'op': 0, 'kind': 'gemm', 'part': 'gemm', 'layer': 3, 'chunk': 0, 'microbatch': 7}}"},
        {2 * names + 3, "{'ph': 'X', 'name': 'gradient norm', 'cat': 'reduce', 'pid': 16, 'tid': 2, 'ts': 1250000.0, "
                        "'dur': 250000.0, 'args': {'op': 1, 'kind': 'all_reduce', 'part': 'unexplained'}}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char expected[512];
        snprintf(expected, sizeof(expected), "%s", cases[i].expected);
        for (char *quote = strchr(expected, '\''); quote != NULL; quote = strchr(quote, '\'')) {
            *quote = '"';
        }
        json_t *parsed = json_loads(expected, 0, &error);
        cr_expect(json_equal(parsed, json_array_get(events, cases[i].index)), "event %zu of %s", cases[i].index, text);
        json_decref(parsed);
    }
    json_t *source = json_object_get(trace, "otherData");
    cr_expect_str_eq(json_string_value(json_object_get(source, "timed_by")), "cupti");
    cr_expect_eq(json_integer_value(json_object_get(source, "lost_records")), 3);
    json_decref(trace);
    free(text);
}
