// SPDX-License-Identifier: MIT
// Before a run: measures each device, each link between nodes and each group of a job for a few seconds, compares it
// with its like, and names what stands out.
#ifndef GSWBENCH_PREFLIGHT_H
#define GSWBENCH_PREFLIGHT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/benchmark.h"
#include "gswbench/comm.h"
#include "gswbench/json.h"
#include "gswbench/status.h"

// What a value is of: a rank's device; a way from one rank to another; the ranks of a group.
enum preflight_subject { PREFLIGHT_DEVICE, PREFLIGHT_LINK, PREFLIGHT_GROUP };
extern const char *const preflight_subject_names[];    // ends with NULL

struct preflight_value {
    int64_t first, second;    // a rank twice; sender and receiver; the first and the last rank of a group
    double  value;            // the best of all measurements, of a link their upper quartile
};

// Values that are to be alike.
struct preflight_class {
    char    name[224], unit[16];    // unit: "FLOP/s", "bytes/s", "s"
    int64_t subject;                // enum preflight_subject
    double  limit_percent;          // that one may take longer than its like; 0: it is shown, and not judged
    char    note[120];              // why not, or what is missing; "": nothing
    double  profile;                // what the hardware profile says; NaN: nothing
    bool    is_time;                // less is better

    struct preflight_value *values;
    int64_t                 value_count;
    int64_t                *slots;    // where a value is, by a hash of its ranks: its number, from 1; 0: free
    int64_t                 slot_count;
    double                  minimum, median, maximum;
};

// What is named: a host; one of its devices; a link; a group; all of a class, against the profile; wrong numbers.
enum preflight_blame { BLAME_HOST, BLAME_DEVICE, BLAME_LINK, BLAME_GROUP, BLAME_ALL, BLAME_NUMBERS };
extern const char *const preflight_blame_names[];    // ends with NULL

struct preflight_outlier {
    int64_t blame;                       // enum preflight_blame
    char    host[64], other_host[64];    // other: the receiver's, of a link; "": none
    int64_t rank, other_rank;            // -1: none
    char    class_name[224];
    double  percent;    // that it takes longer; NaN: wrong numbers
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
    char    version[32], config[128], device[64], backend[16], communicator[16], started[24], verify[8];
    int64_t exit_code;
    double  seconds;                             // that it took
    int64_t examined_ops, examined_transfers;    // of all ranks, for their numbers
    double  op_bound, op_difference;    // of ops that do not repeat: within which share of the norm ranks agree; found

    struct preflight_rank    *ranks;
    struct preflight_class   *classes;
    struct preflight_outlier *outliers;
    struct preflight_host    *drain;    // hosts that a scheduler should take no more
    int64_t                   rank_count, class_count, outlier_count, drain_count;
};
void preflight_free(struct preflight_report *report);

// judge.c: sets minimum, median and maximum of a class, and returns what its values are compared with; adds the
// outliers of a class, too.
double preflight_measure_class(struct preflight_class *value_class);
void   preflight_judge(struct preflight_report *report, struct preflight_class *value_class);
// judge_links.c: likewise of links. An end is as good as its links in the middle, a link as the worse of its ends.
void preflight_judge_links(struct preflight_report *report, const struct preflight_class *value_class);
// drain.c: the hosts of all outliers, and of each slow link between other hosts one end; and the exit code.
void preflight_conclude(struct preflight_report *report);

// tournament.c: in each round a player meets one other at most (-1: none), and in all rounds each other once.
int64_t preflight_rounds(int64_t players);
int64_t preflight_partner(int64_t players, int64_t player, int64_t round);

extern const struct json_field preflight_fields[];
void                           preflight_write_text(const struct preflight_report *report, FILE *file);
void                           preflight_write_json(const struct preflight_report *report, FILE *file);

// One rank of a preflight, of a struct preflight.
struct preflight {
    struct benchmark benchmark;
    double           seconds;    // that it may take
    const char      *output;     // a folder for preflight.txt and preflight.json; NULL: none
    bool             json;       // stdout is the JSON
};
launch_rank preflight_rank;

// Measures and judges; the caller frees the report, which every rank has. Collective.
status preflight_measure(struct preflight_report *report, const struct preflight *preflight, struct comm *comm);

#endif
