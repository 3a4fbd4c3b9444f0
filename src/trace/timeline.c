// SPDX-License-Identifier: MIT
// The trace event format: objects of a list, times in microseconds. All texts are the program's own.
#include "gswbench/timeline.h"

#include <inttypes.h>
#include <math.h>

void timeline_begin(FILE *file)
{
    fprintf(file, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
}

static void write_name(const char *what, int64_t rank, int lane, const char *name, FILE *file)
{
    fprintf(file,
            "\n{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %" PRId64 ", \"tid\": %d, \"args\": {\"name\": \"%s\"}}",
            what, rank, lane, name);
}

static void write_index(const char *name, int64_t value, FILE *file)
{
    if (value >= 0) {
        fprintf(file, ", \"%s\": %" PRId64, name, value);
    }
}

// Viewers read whole nanoseconds. Both ends are rounded to them, and the duration is what lies between: rounded by
// itself it could reach into the next slice.
static void write_op(const struct plan *plan, int32_t index, const struct op_time *time, FILE *file)
{
    const struct op *op    = &plan->ops[index];
    double           begin = round(1e9 * time->begin), end = round(1e9 * time->end);
    fprintf(file, "\n{\"ph\": \"X\", \"name\": \"%s\", \"cat\": \"%s\", \"pid\": %" PRId64 ", \"tid\": %d, ",
            op->tag.role, op_phase_name((enum phase)op->tag.phase), plan->rank, op->lane);
    fprintf(file, "\"ts\": %.3f, \"dur\": %.3f, \"args\": {\"op\": %" PRId32 ", \"kind\": \"%s\"", 1e-3 * begin,
            1e-3 * (end - begin), index, op_name((enum op_kind)op->kind));
    write_index("layer", op->tag.layer, file);
    write_index("chunk", op->tag.chunk, file);
    write_index("microbatch", op->tag.microbatch, file);
    fputs("}}", file);
}

void timeline_write_rank(const struct plan *plan, const struct op_time *times, bool is_first, FILE *file)
{
    char name[32];
    snprintf(name, sizeof(name), "rank %" PRId64, plan->rank);
    fputs(is_first ? "" : ",", file);
    write_name("process_name", plan->rank, 0, name, file);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        fputc(',', file);
        write_name("thread_name", plan->rank, lane, op_lane_name((enum lane)lane), file);
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        fputc(',', file);
        write_op(plan, i, &times[i], file);
    }
}

void timeline_end(FILE *file)
{
    fputs("\n]}\n", file);
}
