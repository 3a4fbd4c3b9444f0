// SPDX-License-Identifier: MIT
// Fields of ranks, transfer times, compute times and NCCL connections in result.json.
#include "internal.h"

// clang-format off

const struct json_field rank_fields[] = {
    INTEGER(result_rank, "rank", rank),
    TEXT(result_rank, "host", host),
    INTEGER(result_rank, "node", node),
    INTEGER(result_rank, "local_rank", local_rank),
    INTEGER(result_rank, "threads", threads),
    REAL(result_rank, "step_time_s_median", median_seconds),
    REAL(result_rank, "clock_drift_s", clock_drift_seconds),
    INTEGER(result_rank, "allocated_bytes", allocated_bytes),
    INTEGER(result_rank, "processors", processors),
    REAL(result_rank, "foreign_processors", foreign),
    INTEGER(result_rank, "class", class),
    REAL(result_rank, "compute_s_median", compute_seconds),
    REAL(result_rank, "compute_excess", excess),
    REAL(result_rank, "compute_excess_low", excess_low),
    REAL(result_rank, "checkpoint_load_s", load_seconds),
    REAL(result_rank, "checkpoint_load_bytes", load_bytes),
    REAL(result_rank, "checkpoint_save_s", save_seconds),
    REAL(result_rank, "checkpoint_save_bytes", save_bytes),
    JSON_END
};
const struct json_field transfer_time_fields[] = {
    TEXT(result_transfer_time, "kind", kind),
    TEXT(result_transfer_time, "axes", axes),
    TEXT(result_transfer_time, "dtype", format),
    INTEGER(result_transfer_time, "elements", elements),
    INTEGER(result_transfer_time, "group_size", group_size),
    INTEGER(result_transfer_time, "count", count),
    REAL(result_transfer_time, "bytes", bytes),
    REAL(result_transfer_time, "time_s", seconds),
    REAL(result_transfer_time, "moving_s", moving_seconds),
    REAL(result_transfer_time, "bus_bytes_per_s", bandwidth),
    REAL(result_transfer_time, "alone_s", alone_seconds),
    REAL(result_transfer_time, "alone_bus_bytes_per_s", alone_bandwidth),
    REAL(result_transfer_time, "predicted_s", predicted_seconds),
    INTEGER(result_transfer_time, "late_rank", late_rank),
    REAL(result_transfer_time, "late_share", late_share),
    REAL(result_transfer_time, "wait_s", wait_seconds),
    TEXT(result_transfer_time, "algorithm", algorithm),
    TEXT(result_transfer_time, "protocol", protocol),
    INTEGER(result_transfer_time, "channels", channels),
    JSON_END
};
const struct json_field compute_time_fields[] = {
    INTEGER(result_compute_time, "rank", rank),
    INTEGER(result_compute_time, "ranks", ranks),
    INTEGER(result_compute_time, "step", step),
    INTEGER(result_compute_time, "steps", steps),
    REAL(result_compute_time, "compute_s", seconds),
    REAL(result_compute_time, "excess", excess),
    JSON_END
};
const struct json_field connection_fields[] = {
    BOOLEAN(result, "library_memory", connections.allocates),
    INTEGER(result, "windows", connections.windows),
    INTEGER(result, "registered", connections.registered),
    INTEGER(result, "refused", connections.refused),
    INTEGER(result, "zero_cta", connections.copying),
    INTEGER(result, "one_sided_rings", connections.putting),
    BOOLEAN(result, "all_to_all", connections.exchanges),
    INTEGER(result, "by_several_ids", connections.scalable),
    REAL(result, "library_bytes", connections.library_bytes),
    JSON_END
};
// clang-format on
