// SPDX-License-Identifier: MIT
// What the measurements of a preflight share.
#ifndef GSWBENCH_PREFLIGHT_INTERNAL_H
#define GSWBENCH_PREFLIGHT_INTERNAL_H

#include "gswbench/assembly.h"
#include "gswbench/calibrate.h"
#include "gswbench/measured.h"
#include "gswbench/place.h"
#include "gswbench/preflight.h"
#include "gswbench/step.h"
#include "gswbench/watch.h"

// One rank's.
struct flight {
    const struct preflight *preflight;
    struct place            place;
    struct comm            *comm;     // the place's
    struct watch           *watch;    // NULL: there is none
    struct plan             plan;
    struct step_fault       fault;
    struct calibrate_setup  setup;
    struct distinct_ops     list;           // ops of the job
    struct measured_ops     measured;       // what the profile has
    bool                    takes_turns;    // ranks share cores: one measures while the others sleep
    double                  began;
    struct preflight_report report;    // the same on every rank
};

// parts.c: what this rank is about to do, in words, for the watch: something of its own, or the step of a plan, which
// both stay until flight_meet; NULL: none. Then it meets all others, with the same words on every rank. Nothing waits
// for all others but after that.
status flight_open_watch(struct flight *flight);    // collective
void   flight_run(struct flight *flight, const struct plan *plan, struct step *step, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void flight_meet(struct flight *flight, const char *after);

// pace.c: whether less than this share of the time is over, by the clock of rank 0. Collective.
bool flight_has_time(struct flight *flight, double share);

// Repeats a measurement, each round of which improves the values of these classes: until they have settled and nothing
// stands out, or the same does round after round, or that share of the time is over. Adds the outliers. Collective.
typedef status flight_round(struct flight *flight, void *state);
struct flight_series {
    flight_round *run;
    bool (*has_settled)(const void *state);    // NULL: it always has
    void   *state;
    int     batch;          // rounds between two looks
    int64_t first_class;    // of the report; the classes from that on
    double  share;          // of the time, by which it ends
};
// Whether a rank's device stands out in one of the classes from that on, alone or with its host.
bool   flight_is_doubted(const struct flight *flight, int64_t first_class, int64_t rank);
status flight_repeat(struct flight *flight, const struct flight_series *series);

// The turn of a rank among those that take part of those with which it shares cores, each of which counts with so many
// seconds: sleeps until it begins; and until all have had theirs. Without turns they begin together. Collective.
struct flight_turn {
    bool   takes_part;
    double begin, end, all;    // on the host's clock
};
struct flight_turn flight_take_turn(struct flight *flight, const bool *takes_part, double seconds);
void               flight_end_turn(const struct flight_turn *turn);

// classes.c: adds a class without values; sets one of its values.
struct preflight_class *flight_add_class(struct flight *flight, enum preflight_subject subject, const char *unit,
                                         double limit_percent, const char *name);
double                  flight_better(const struct preflight_class *value_class, double one, double other);
void flight_set_value(struct preflight_class *value_class, int64_t first, int64_t second, double value);

// The measurements, each with its share of the time.
status flight_examine(struct flight *flight);    // numbers
status flight_measure_devices(struct flight *flight);
status flight_measure_links(struct flight *flight, bool between);
status flight_measure_groups(struct flight *flight);

// traffic.c: a step that does nothing but transfers among any ranks, in order, with the times of each.
struct traffic {
    struct plan     plan;
    struct assembly assembly;
    struct step    *step;     // NULL until it is open
    struct op_time *times;    // [plan.op_count], of the latest run
};
void   traffic_begin(struct traffic *traffic, const struct flight *flight, const int64_t *members, int64_t size);
void   traffic_add(struct traffic *traffic, enum op_kind kind, int32_t in, int32_t out, int32_t peer);
status traffic_open(struct traffic *traffic, struct flight *flight);    // collective, of all ranks of the job
void   traffic_close(struct traffic *traffic);

#endif
