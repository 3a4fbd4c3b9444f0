// SPDX-License-Identifier: MIT
// Writes the ops of a step as a timeline in the Chrome trace event format: a JSON object with a list of events. Times
// are in microseconds. Texts need no escaping, because all of them come from the program.

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "gswbench/waterfall.h"

void timeline_begin(FILE *file)
{
    fprintf(file, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
}

static void write_name(const char *what, int64_t rank, int stream, const char *name, FILE *file)
{
    fprintf(file,
            "\n{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %" PRId64 ", \"tid\": %d, \"args\": {\"name\": \"%s\"}}",
            what, rank, stream, name);
}

static void write_index(const char *name, int64_t value, FILE *file)
{
    if (value >= 0) {
        fprintf(file, ", \"%s\": %" PRId64, name, value);
    }
}

// Writes an op. Viewers read whole nanoseconds, so start and end are rounded, and the duration is their difference.
// With a separately rounded duration an op could overlap the next one.
static void write_op(const struct plan *plan, int32_t index, const struct op_time *time, FILE *file)
{
    const struct op *op    = &plan->ops[index];
    double           begin = round(1e9 * time->begin), end = round(1e9 * time->end);
    fprintf(file, "\n{\"ph\": \"X\", \"name\": \"%s\", \"cat\": \"%s\", \"pid\": %" PRId64 ", \"tid\": %d, ",
            op->tag.role, op_phase_name((enum phase)op->tag.phase), plan->rank, op->stream);
    fprintf(file, "\"ts\": %.3f, \"dur\": %.3f, \"args\": {\"op\": %" PRId32 ", \"kind\": \"%s\", \"part\": \"%s\"",
            1e-3 * begin, 1e-3 * (end - begin), index, op_name((enum op_kind)op->kind),
            waterfall_part_names[waterfall_part_of(plan, op)]);
    write_index("layer", op->tag.layer, file);
    write_index("chunk", op->tag.chunk, file);
    write_index("microbatch", op->tag.microbatch, file);
    fputs("}}", file);
}

// Number of sends (on the receiving rank: receives) from one rank to another in a group, on one channel. The n-th send
// belongs to the n-th receive.
struct pairing {
    int64_t from, to, count;
    int32_t group, channel;
};
struct pairings {
    struct pairing *list;
    int32_t         count;
};

static int64_t next_number(struct pairings *pairings, const struct pairing *wanted)
{
    for (int32_t i = 0; i < pairings->count; i++) {
        struct pairing *one = &pairings->list[i];
        if (one->from == wanted->from && one->to == wanted->to && one->group == wanted->group &&
            one->channel == wanted->channel) {
            return ++one->count;
        }
    }
    LIST_APPEND(pairings->list, pairings->count, *wanted);
    return 0;
}

// Writes one end of the arrow from a send to its receive. The arrow starts with the send and ends in the last
// nanosecond of the receive. Viewers match both ends by category, name and id.
static void write_arrow(const struct plan *plan, struct pairings *pairings, const struct op *op,
                        const struct op_time *time, const struct timeline_ranks *ranks, FILE *file)
{
    const struct communication_shape *shape   = &op->shape.communication;
    bool                              is_sent = op->kind == OP_SEND;
    int64_t                           peer    = plan->groups[shape->group].ranks[shape->peer];
    const struct pairing              pairing = {.from    = is_sent ? plan->rank : peer,
                                                 .to      = is_sent ? peer : plan->rank,
                                                 .group   = shape->group,
                                                 .channel = shape->channel};
    int64_t                           number  = next_number(pairings, &pairing);
    double                            begin = round(1e9 * time->begin), end = round(1e9 * time->end);
    if (ranks->shows(ranks->state, peer)) {
        fprintf(file,
                ",\n{\"ph\": \"%s\", \"name\": \"rank %" PRId64 " to %" PRId64 ", channel %" PRId32
                "\", \"cat\": \"link\", \"id\": %" PRId64 ", \"pid\": %" PRId64 ", \"tid\": %d, \"ts\": %.3f%s}",
                is_sent ? "s" : "f", pairing.from, pairing.to, pairing.channel, number, plan->rank, op->stream,
                1e-3 * (is_sent ? begin : fmax(begin, end - 1)), is_sent ? "" : ", \"bp\": \"e\"");
    }
}

void timeline_write_rank(const struct plan *plan, const struct op_time *times, const struct timeline_ranks *ranks,
                         bool is_first, FILE *file)
{
    struct pairings pairings = {.list = NULL};
    char            name[32];
    snprintf(name, sizeof(name), "rank %" PRId64, plan->rank);
    fputs(is_first ? "" : ",", file);
    write_name("process_name", plan->rank, 0, name, file);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        fputc(',', file);
        write_name("thread_name", plan->rank, stream, op_stream_name((enum stream)stream), file);
    }
    for (int32_t i = 0; i < plan->op_count; i++) {
        fputc(',', file);
        write_op(plan, i, &times[i], file);
        if (op_is_link((enum op_kind)plan->ops[i].kind)) {
            write_arrow(plan, &pairings, &plan->ops[i], &times[i], ranks, file);
        }
    }
    free(pairings.list);
}

void timeline_end(const struct timeline_source *source, FILE *file)
{
    fprintf(file, "\n], \"otherData\": {\"timed_by\": \"%s\", \"lost_records\": %" PRId64 "}}\n", source->timed_by,
            source->lost_records);
}
