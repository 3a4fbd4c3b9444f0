// SPDX-License-Identifier: MIT
// Interpolates the measured times of collectives within a node (configs/hardware/collectives.csv) by size. Without a
// measurement cost_communication.c uses the model in cost_nccl.c.
#include <math.h>

#include "gswbench/predict.h"
#include "internal.h"

static enum node_collective find_collective(const struct op *op)
{
    return op->kind == OP_ALL_GATHER                                        ? COLLECTIVE_ALL_GATHER
           : op->kind == OP_REDUCE_SCATTER                                  ? COLLECTIVE_REDUCE_SCATTER
           : op->kind == OP_ALL_REDUCE || op->kind == OP_ALL_REDUCE_MAXIMUM ? COLLECTIVE_ALL_REDUCE
           : op->kind == OP_ALL_TO_ALL                                      ? COLLECTIVE_ALL_TO_ALL
                                                                            : COLLECTIVES;
}

// Whether the table does not describe the links: the user set their values, they were measured on this machine, or the
// ranks are CPU ranks.
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

// Whether the framework disables NVLS. The table was measured with NVLS, which NCCL uses for all-reduces of more than
// two ranks.
static bool lacks_nvls(const struct machine *machine, enum node_collective collective, double members)
{
    return collective == COLLECTIVE_ALL_REDUCE && members > 2.0 && machine->hardware->nvls_efficiency.value > 0.0 &&
           machine->software != NULL && !machine->software->nvls;
}

// Time is constant up to the smallest measured size, and linear in the bytes between two sizes. Above the largest, the
// rate between the last two sizes continues. Without any bytes it returns 0, so the model gives the latency.
static double interpolate(const double seconds[COLLECTIVE_SIZES], double bytes)
{
    double low = 0.0, high = 0.0, low_bytes = 0.0, high_bytes = 0.0, size = COLLECTIVE_SMALLEST;
    for (int i = 0; i < COLLECTIVE_SIZES && high_bytes < bytes; i++, size *= 2.0) {
        if (seconds[i] > 0.0) {
            low        = high;
            low_bytes  = high_bytes;
            high       = seconds[i];
            high_bytes = size;
        }
    }
    return low > 0.0 ? high + (bytes - high_bytes) * (high - low) / (high_bytes - low_bytes) : high;
}

double predict_collective_seconds(const struct machine *machine, const struct span *span, const struct op *op,
                                  double bytes)
{
    const struct hardware_config *hardware   = machine->hardware;
    enum node_collective          collective = find_collective(op);
    double                        group      = log2(span->members) - 1.0;
    if (collective == COLLECTIVES || span->nodes > 1.0 || span->processors == 0 || group < 0.0 ||
        group >= COLLECTIVE_GROUPS || group != floor(group) || has_own_links(hardware) ||
        lacks_nvls(machine, collective, span->members)) {
        return 0.0;
    }
    return interpolate(hardware->collective_times.seconds[collective][(int)group], bytes);
}
