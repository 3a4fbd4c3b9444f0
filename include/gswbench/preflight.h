// SPDX-License-Identifier: MIT
// Preflight: measures a job's devices, links and groups for a few seconds, compares equal ones, and reports outliers.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/benchmark.h"
#include "gswbench/comm.h"
#include "gswbench/json.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

// A rank's device, a link from one rank to another, or the ranks of a group.
enum preflight_subject { PREFLIGHT_DEVICE, PREFLIGHT_LINK, PREFLIGHT_GROUP };
extern const char *const preflight_subject_names[];    // ends with NULL

struct preflight_value {
    int64_t first, second;    // device: the rank twice; link: sender and receiver; group: first and last rank
    double  value;            // best measurement; of a link, the upper quartile
};

// Values that should be equal.
struct preflight_class {
    char    name[224], unit[16];    // unit: "FLOP/s", "bytes/s", "s"
    int64_t subject;                // enum preflight_subject
    double  limit_percent;          // slowdown against the reference that is tolerated; 0: shown, not judged
    char    note[120];              // why it is not judged, or how much is missing; "": none
    double  profile;                // value of the hardware profile; NaN: none
    bool    is_time;                // lower is better

    struct preflight_value *values;
    int64_t                 value_count;
    int64_t                *slots;    // hash table from ranks to value: index + 1; 0: empty
    int64_t                 slot_count;
    double                  minimum, median, maximum;
};

// A host; one of its devices; a link; a group; a whole class, against the profile; wrong numbers.
enum preflight_blame { BLAME_HOST, BLAME_DEVICE, BLAME_LINK, BLAME_GROUP, BLAME_ALL, BLAME_NUMBERS };
extern const char *const preflight_blame_names[];    // ends with NULL

struct preflight_outlier {
    int64_t blame;                       // enum preflight_blame
    char    host[64], other_host[64];    // other_host: receiver of a link; "": none
    int64_t rank, other_rank;            // -1: none
    char    class_name[224];
    double  percent;    // slowdown; NaN: wrong numbers
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
    double  seconds;                                  // duration of the preflight
    int64_t examined_ops, examined_communications;    // verified ops and collectives, over all ranks
    // For nondeterministic ops: allowed and observed difference between ranks, relative to the norm.
    double op_bound, op_difference;

    struct preflight_rank    *ranks;
    struct preflight_class   *classes;
    struct preflight_outlier *outliers;
    struct preflight_host    *drain;    // hosts that the scheduler should drain
    int64_t                   rank_count, class_count, outlier_count, drain_count;
};
void preflight_free(struct preflight_report *report);

void preflight_judge(struct preflight_report *report, struct preflight_class *value_class);
// Selects the hosts to drain (outliers, and one end of each other slow link), and the exit code.
void preflight_conclude(struct preflight_report *report);

// links.c: round-robin schedule. A player meets at most one other per round (-1: none), and each other once.
int64_t preflight_rounds(int64_t players);
int64_t preflight_partner(int64_t players, int64_t player, int64_t round);

extern const struct json_field preflight_fields[];
void                           preflight_write_text(const struct preflight_report *report, FILE *file);
void                           preflight_write_json(const struct preflight_report *report, FILE *file);
void                           preflight_write_html(const struct preflight_report *report, FILE *file);

// A preflight; preflight_rank runs one rank of it.
struct preflight {
    struct benchmark benchmark;
    double           seconds;    // time budget
    const char      *output;     // folder for preflight.txt, .json and .html; NULL: none
    bool             json;       // print the JSON to stdout
    bool             is_part;    // of a suite, which prints JSON itself
};
launch_rank preflight_rank;

// Measures and judges; every rank gets the report, which the caller frees. Collective.
status preflight_measure(struct preflight_report *report, const struct preflight *preflight, struct comm *comm);

// Acceptance test of a machine against a published or predicted step time: devices and links first, then the job.
struct accept {
    struct preflight         preflight;     // with the job; output is the folder of its files
    struct preflight_report  report;        // on rank 0
    struct result_acceptance acceptance;    // on rank 0: expectation, then verdict
    struct statistics        step;          // of the run; count is 0 if no run took place
    char                     run_id[32], run_verdict[16];
};

// One rank; shared is a struct accept. The exit code follows from the verdict.
launch_rank accept_rank;

// The verdict as text and as a page, and the fields of accept.json. accept_read_json reads verdict, reason and drain
// list; false if the document is no accept.json.
void                           accept_write_text(const struct accept *accept, FILE *file);
void                           accept_write_html(const struct accept *accept, FILE *file);
bool                           accept_read_json(struct accept *accept, const json_t *document);
extern const struct json_field accept_fields[];
