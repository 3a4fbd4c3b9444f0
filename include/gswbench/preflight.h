// SPDX-License-Identifier: MIT
// Preflight: measures the devices, links and groups of a job for a few seconds. Equal devices and links should be
// equally fast; the report names the outliers.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/benchmark.h"
#include "gswbench/comm.h"
#include "gswbench/json.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// The subject of a measurement: a rank's device, a link from one rank to another, or a group of ranks.
enum preflight_subject { PREFLIGHT_DEVICE, PREFLIGHT_LINK, PREFLIGHT_GROUP };

struct preflight_value {
    int64_t first, second;    // device: its rank, twice; link: sender and receiver; group: first and last rank
    double  value;            // best measurement; of a link: upper quartile (bandwidth) or median (latency)
};

// Values of one quantity that should be equal, such as the bandwidth of every link.
struct preflight_class {
    char    name[224], unit[16];    // unit: "FLOP/s", "bytes/s", "s"
    int64_t subject;                // enum preflight_subject
    double  limit_percent;          // tolerated slowdown in percent of the reference (median); 0: not judged
    char    note[120];              // why the values are not judged, or how many are missing; "": none
    double  profile;                // the value that the hardware profile expects; NaN: none
    bool    is_time;                // the values are times, so lower is better

    struct preflight_value *values;
    int64_t                 value_count;
    int64_t                *slots;    // hash table from (first, second) to an index of values, plus 1; 0: empty
    int64_t                 slot_count;
    double                  minimum, median, maximum;
};

// The cause of an outlier: a host, one device of a host, a link, or a group. ALL: all values are slower than the
// profile. NUMBERS: a device computes wrong results.
enum preflight_blame { BLAME_HOST, BLAME_DEVICE, BLAME_LINK, BLAME_GROUP, BLAME_ALL, BLAME_NUMBERS };

struct preflight_outlier {
    int64_t blame;                       // enum preflight_blame: the cause
    char    host[64], other_host[64];    // other_host: receiver of a link, or last rank of a group; "": none
    int64_t rank, other_rank;            // -1: none
    char    class_name[224];
    double  percent;    // slowdown in percent; NaN: wrong numbers
    char    text[400];
};

struct preflight_rank {
    char    host[64];
    int64_t node, local_rank;
};
struct preflight_host {
    char host[64];
};

struct preflight_report {
    char    version[32], config[128], device[64], backend[16], communicator[16], started[24];
    int64_t exit_code;
    double  seconds;                                  // duration of the preflight in seconds
    int64_t examined_ops, examined_communications;    // number of verified ops and collectives, summed over ranks
    // For ops that are not deterministic: allowed (op_bound) and largest found difference between the results of two
    // ranks, relative to the norm of the result.
    double op_bound, op_difference;

    struct preflight_rank    *ranks;
    struct preflight_class   *classes;
    struct preflight_outlier *outliers;
    struct preflight_host    *drain;    // hosts that the scheduler should take out of service
    int64_t                   rank_count, class_count, outlier_count, drain_count;
};
extern const struct json_field preflight_fields[];

// A preflight and its options. preflight_rank runs one rank of it.
struct preflight {
    struct benchmark benchmark;
    double           seconds;    // time budget
    const char      *output;     // folder for preflight.txt, .json and .html; NULL: none
    bool             json;       // print the JSON to stdout
    bool             is_part;    // the caller is a suite, which prints the JSON itself
};
launch_rank preflight_rank;

// Acceptance test of a machine: a preflight, then a run of the job whose step time is compared with a published or
// predicted one.
struct accept {
    struct preflight         preflight;     // preflight.benchmark is the job, preflight.output the folder of its files
    struct preflight_report  report;        // on rank 0
    struct result_acceptance acceptance;    // on rank 0: the expected step time, and at the end the verdict
    struct statistics        step;          // step times of the run; count is 0 if the job did not run
    char                     run_id[32], run_verdict[16];
};

// Runs one rank of an acceptance test; shared is a struct accept. The exit code follows from the verdict.
launch_rank accept_rank;

// Prints the verdict as text; accept_fields describes accept.json. accept_read_json reads the verdict, its reason and
// the drain list. It returns false if the document is not an accept.json.
void                           accept_write_text(const struct accept *accept, FILE *file);
bool                           accept_read_json(struct accept *accept, const json_t *document);
extern const struct json_field accept_fields[];
