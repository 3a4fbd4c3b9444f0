// SPDX-License-Identifier: MIT
// Interpolates measured times of collectives within a node by message size. The times are those of the configured GPU
// model in configs/hardware/collectives.csv. The message size is the whole result of an all-gather, the whole operand
// of a reduce-scatter, or one rank's buffer of an all-reduce or all-to-all. A series has the times of one collective on
// one number of GPUs: 2, 4 or 8. A size that it lacks is estimated from another series, or from sizes with the same
// NCCL protocol. Where the table does not apply, cost_communication.c uses formulas; cost_nccl.c has those for rings
// and trees.
#include <math.h>

#include "internal.h"

static enum node_collective find_collective(const struct op *op)
{
    return op->kind == OP_ALL_GATHER                                        ? COLLECTIVE_ALL_GATHER
           : op->kind == OP_REDUCE_SCATTER                                  ? COLLECTIVE_REDUCE_SCATTER
           : op->kind == OP_ALL_REDUCE || op->kind == OP_ALL_REDUCE_MAXIMUM ? COLLECTIVE_ALL_REDUCE
           : op->kind == OP_ALL_TO_ALL                                      ? COLLECTIVE_ALL_TO_ALL
                                                                            : COLLECTIVES;
}

// Whether the table of measured times does not apply to the links of this machine: the user set their values, they were
// measured on this machine, or the ranks run on CPUs.
static bool has_own_links(const struct hardware_config *hardware)
{
    const struct quantity *values[] = {&hardware->node_bandwidth, &hardware->node_efficiency, &hardware->node_latency};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (values[i]->origin == QUANTITY_GIVEN || values[i]->origin == QUANTITY_MEASURED) {
            return true;
        }
    }
    return hardware->cores > 0;
}

struct series {
    const struct collective_times *times;
    int                            collective, group;
};

static double seconds_at(const struct series *series, int size)
{
    return series->times->seconds[series->collective][series->group][size];
}

// Whether NCCL changes its protocol at about the same message size in both series. This holds for all-gathers and
// reduce-scatters on the same GPUs, because both use the same ring. An all-reduce is a reduce-scatter and an
// all-gather, so a missing all-reduce is estimated from either of them; they are not estimated from an all-reduce.
// All-to-alls are related to all-to-alls on other numbers of GPUs.
static bool is_related(const struct series *series, const struct series *other)
{
    return series->collective == COLLECTIVE_ALL_TO_ALL
               ? other->collective == COLLECTIVE_ALL_TO_ALL && other->group != series->group
               : other->group == series->group && other->collective != series->collective &&
                     other->collective < COLLECTIVE_ALL_REDUCE;
}

// Starts at `size` and searches in steps of `step` for a message size at which both series have a time. Sets `size` to
// this message size, or to -1 if there is none. Returns the logarithm of the ratio of the two times.
static double find_ratio(const struct series *series, const struct series *other, int *size, int step)
{
    while (*size >= 0 && *size < COLLECTIVE_SIZES) {
        if (seconds_at(series, *size) > 0.0 && seconds_at(other, *size) > 0.0) {
            return log(seconds_at(series, *size) / seconds_at(other, *size));
        }
        *size += step;
    }
    *size = -1;
    return 0.0;
}

// Estimates the time of a message size that the series lacks: the time of a related series (is_related), multiplied by
// the ratio of the two series, interpolated from neighbouring sizes. Uses the related series whose ratio changes least
// between these sizes. Returns 0 if every ratio changes by a factor of 1.2 or more, or no related series has this size.
static double borrow(const struct series *series, int size)
{
    double seconds = 0.0, change = log(1.2);
    for (int i = 0; i < COLLECTIVES * COLLECTIVE_GROUPS; i++) {
        struct series other = {series->times, i / COLLECTIVE_GROUPS, i % COLLECTIVE_GROUPS};
        if (!is_related(series, &other) || seconds_at(&other, size) <= 0.0) {
            continue;
        }
        int    below = size, above = size;
        double low = find_ratio(series, &other, &below, -1), high = find_ratio(series, &other, &above, 1);
        if (below >= 0 && above >= 0 && fabs(high - low) < change) {
            change  = fabs(high - low);
            seconds = seconds_at(&other, size) * exp(low + (high - low) * (size - below) / (above - below));
        }
    }
    return seconds;
}

struct point {
    double bytes, seconds;
};

static struct point point_at(const struct series *series, int size)
{
    return (struct point){ldexp(COLLECTIVE_SMALLEST, size), seconds_at(series, size)};
}

static double draw_line(struct point low, struct point high, double bytes)
{
    return high.seconds + (bytes - high.bytes) * (high.seconds - low.seconds) / (high.bytes - low.bytes);
}

static int protocol_at(const struct hardware_config *hardware, const struct series *series, int size)
{
    double passes = series->collective == COLLECTIVE_ALL_REDUCE ? 2.0 : 1.0;
    return predict_ring_protocol(hardware, 2 << series->group, passes, ldexp(COLLECTIVE_SMALLEST, size));
}

// Extrapolates linearly from two measured sizes to `size`: from `near`, and from the next measured size after `near` in
// the direction `step` (1 or -1). Returns 0 unless NCCL chooses the same protocol for all three sizes.
static double extend(const struct hardware_config *hardware, const struct series *series, int near, int step, int size)
{
    int protocol = protocol_at(hardware, series, size), far = near + step;
    while (far >= 0 && far < COLLECTIVE_SIZES && seconds_at(series, far) <= 0.0) {
        far += step;
    }
    bool is_same = far >= 0 && far < COLLECTIVE_SIZES && protocol_at(hardware, series, near) == protocol &&
                   protocol_at(hardware, series, far) == protocol;
    return is_same ? draw_line(point_at(series, near), point_at(series, far), ldexp(COLLECTIVE_SMALLEST, size)) : 0.0;
}

// Estimates the time of a size between the measured sizes `first` and `last`. Returns 0 if no estimate exists; the
// caller then interpolates linearly between the two sizes. The estimate is the result of borrow. For all-reduces and
// all-to-alls, it is the geometric mean of this result and of the linear interpolation. If borrow finds no time, and
// NCCL uses different protocols for `first` and `last`, the estimate is the result of extend. All-to-alls never use
// extend, because protocols are modelled for rings only. The estimate is limited to the range between the times at
// `first` and `last`.
static double estimate(const struct hardware_config *hardware, const struct series *series, int first, int last,
                       int size)
{
    struct point low = point_at(series, first), high = point_at(series, last);
    double       seconds = borrow(series, size);
    if (seconds > 0.0 && series->collective >= COLLECTIVE_ALL_REDUCE) {
        seconds = sqrt(seconds * draw_line(low, high, ldexp(COLLECTIVE_SMALLEST, size)));
    }
    if (seconds <= 0.0 && series->collective != COLLECTIVE_ALL_TO_ALL &&
        protocol_at(hardware, series, first) != protocol_at(hardware, series, last)) {
        seconds = extend(hardware, series, first, -1, size);
        seconds = seconds > 0.0 ? seconds : extend(hardware, series, last, 1, size);
    }
    return seconds <= 0.0 ? 0.0 : fmin(fmax(seconds, fmin(low.seconds, high.seconds)), fmax(low.seconds, high.seconds));
}

// Returns the time for a message of this size. It is constant up to the smallest measured size, and linear between
// neighbouring measured or estimated sizes. Beyond the largest size, it follows the line through the last two. For 0
// bytes it is 0, so that the caller uses the latency of its model.
static double interpolate(const struct hardware_config *hardware, const struct series *series, double bytes)
{
    int          first = -1, last = -1;
    struct point low = {0.0, 0.0}, high = {0.0, 0.0};
    for (int i = 0; i < COLLECTIVE_SIZES && high.bytes < bytes; i++) {
        if (seconds_at(series, i) > 0.0) {
            first = last;
            last  = i;
            low   = high;
            high  = point_at(series, i);
        }
    }
    for (int i = first + 1; first >= 0 && i < last && high.bytes > bytes; i++) {
        struct point between = {ldexp(COLLECTIVE_SMALLEST, i), estimate(hardware, series, first, last, i)};
        if (between.seconds > 0.0 && between.bytes < bytes) {
            low = between;
        } else if (between.seconds > 0.0) {
            high = between;
            break;
        }
    }
    return low.seconds > 0.0 ? draw_line(low, high, bytes) : high.seconds;
}

double predict_collective_seconds(const struct machine *machine, const struct span *span, const struct op *op,
                                  double bytes)
{
    // The table has collectives within one node on 2, 4, 8, ... GPUs, which NCCL executed by kernels on SMs. So it does
    // not apply to an op without SMs (processors == 0), which copy engines or CPUs execute.
    const struct hardware_config *hardware   = machine->hardware;
    enum node_collective          collective = find_collective(op);
    double                        group      = log2(span->members) - 1.0;
    // The times of all-reduces of more than two ranks were measured with NVLS, which the framework may disable.
    bool lacks_nvls = collective == COLLECTIVE_ALL_REDUCE && span->members > 2.0 &&
                      hardware->nvls_efficiency.value > 0.0 && !machine->software->nvls;
    if (collective == COLLECTIVES || span->nodes > 1.0 || span->processors == 0 || group < 0.0 ||
        group >= COLLECTIVE_GROUPS || group != floor(group) || has_own_links(hardware) || lacks_nvls) {
        return 0.0;
    }
    const struct series series = {&hardware->collective_times, (int)collective, (int)group};
    return interpolate(hardware, &series, bytes);
}
