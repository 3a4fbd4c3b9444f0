// SPDX-License-Identifier: MIT
// Shared by the files of a preflight: the state of a rank, the measurements, and their judgement. The report holds
// classes: a class has the values of one quantity that should be equal, such as the rate of a GEMM on each rank or the
// bandwidth of each link.
#pragma once

#include "gswbench/calibrate.h"
#include "gswbench/measured.h"
#include "gswbench/environment.h"
#include "gswbench/grid.h"
#include "gswbench/preflight.h"
#include "gswbench/step.h"
#include "gswbench/suite.h"
#include "gswbench/watch.h"

// A rank's state of a preflight.
struct flight {
    const struct preflight *preflight;
    struct rank_environment environment;
    struct comm            *comm;     // the environment's
    struct watch           *watch;    // NULL: off
    struct plan             plan;
    struct step_fault       fault;
    struct calibrate_setup  setup;
    struct distinct_ops     list;           // distinct ops of the job
    struct measured_ops     measured;       // from the hardware profile
    bool                    takes_turns;    // cores are shared: one rank measures while the others sleep
    const char             *sharing;        // why they are shared; NULL: they are not
    double                  began;
    struct preflight_report report;    // the same on every rank
};

// pace.c: tells the watchdog what this rank does. flight_run: it works alone, or runs a plan's step; plan and step
// (NULL: none) must stay valid until flight_meet. A rank calls flight_meet before it waits for all other ranks, with
// the same text on every rank.
status flight_open_watch(struct flight *flight);    // collective
void   flight_run(struct flight *flight, const struct plan *plan, struct step *step, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void flight_meet(struct flight *flight, const char *after);

// Whether less than this share of the time budget has passed on rank 0. Collective.
bool flight_has_time(struct flight *flight, double share);

// Repeats a measurement until its classes have settled without outliers, or the same outliers are confirmed, or that
// share of the time budget has passed. Then adds the outliers to the report. Collective.
typedef status flight_round(struct flight *flight, void *state);
struct flight_series {
    flight_round *run;
    bool (*has_settled)(const void *state);    // NULL: always settled
    void   *state;
    int     batch;          // rounds between two judgements
    int64_t first_class;    // classes of the report from this one on
    double  share;          // of the time budget
};
// Whether a rank's device or host is an outlier in one of the classes from first_class on.
bool   flight_is_doubted(const struct flight *flight, int64_t first_class, int64_t rank);
status flight_repeat(struct flight *flight, const struct flight_series *series);

// Gives ranks that share cores time slots, of `seconds` each if all take part and longer if fewer do, and sleeps until
// this rank's slot begins; flight_end_turn sleeps until the last slot is over. Without shared cores, all ranks start
// together. Collective.
struct flight_turn {
    bool   takes_part;
    double begin, end, all;    // on the host's clock
};
struct flight_turn flight_take_turn(struct flight *flight, const bool *takes_part, double seconds);
void               flight_end_turn(const struct flight_turn *turn);

// report.c: add an empty class, and set one of its values.
struct preflight_class *flight_add_class(struct flight *flight, enum preflight_subject subject, const char *unit,
                                         double limit_percent, const char *name);
void flight_set_value(struct preflight_class *value_class, int64_t first, int64_t second, double value);

// Printed unit and factor of a class, chosen by the first letter of its unit.
struct flight_scale {
    const char *unit, *shown;
    double      factor;
};
const struct flight_scale *flight_find_scale(const struct preflight_class *value_class);

// Tolerated slowdown in percent. flight_fit_limit lowers a device class's limit to six standard deviations of its
// values, but not below 3.5 %, by which equal devices differ, nor above flight_device_limit. With fewer than
// JUDGE_VALUES values it changes nothing.
extern const double flight_device_limit, flight_link_limit, flight_group_limit;
void                flight_fit_limit(struct preflight_class *value_class);

// The measurements, each with its share of the time budget.
status flight_measure_devices(struct flight *flight);
status flight_measure_links(struct flight *flight, bool between);
status flight_measure_groups(struct flight *flight);

// judge.c: standard deviation of a class in percent, from the median absolute deviation, which outliers hardly change.
// A value JUDGE_DEVIATIONS deviations away is not chance. Fewer than JUDGE_VALUES values are too few to estimate it.
enum { JUDGE_DEVIATIONS = 6, JUDGE_VALUES = 16 };
double judge_spread(const struct preflight_class *value_class);

// judge.c: adds an outlier of a class, with the hosts of its ranks and a text.
void judge_add(struct preflight_report *report, const struct preflight_class *value_class,
               const struct preflight_outlier *outlier, const char *format, ...) __attribute__((format(printf, 4, 5)));

// devices.c: compute speed of ranks that take turns on shared cores, whose clock differs from turn to turn. A probe is
// a repeated GEMM or copy. In a round, a rank's share is its rate divided by the median rank's rate: the median over
// probes, since one may have slow memory pages. The rank's result is its median share over the rounds.
struct turns {
    int64_t ranks, probes, rounds;
    double *shares;    // [rounds][ranks], relative to the round's median
    double *level;     // [probes]: the highest median of a round
};

void turns_open(struct turns *turns, int64_t ranks, int64_t probes);
void turns_close(struct turns *turns);

// Adds a round. rates: [ranks][stride], starting with the probes.
void turns_add(struct turns *turns, const double *rates, int64_t stride);

// turns_rate: the level of a probe times the rank's median ratio. turns_error: standard error of this ratio in percent;
// infinite before the second round.
double turns_rate(const struct turns *turns, int64_t rank, int64_t probe);
double turns_error(const struct turns *turns, int64_t rank);

// accept.c: sets the expected step time on the named device ("": none) and its tolerance, which includes the spread
// between equal machines. The time is the published one, else the predicted one, else none. Returns whether the plan
// fits the device of the hardware profile.
bool accept_expect(struct result_acceptance *acceptance, const struct job *job, const char *device);

// Runs the job after its preflight, unless that has outliers, and writes its files. Collective; the exit code follows
// from the verdict.
status accept_job(struct accept *accept, const struct preflight_report *report, struct comm *comm);

// Ends a rank. Fails on every rank if rank 0 could not write its files; else every rank returns rank 0's exit code.
// Collective.
status accept_leave(struct comm *comm, status written, int exit_code);

// Appends the hosts to drain, with commas.
void accept_add_drain(const struct preflight_report *report, char *hosts, size_t bytes);

// A verdict as text, and the class of its badge on a page.
void                     accept_write_verdict(int64_t verdict, const char *text, const char *drain, FILE *file);
extern const char *const accept_styles[];

// Writes a struct as JSON, signed if there is a key, and prints it too.
status accept_write_document(const struct json_field *fields, const void *from, const char *path, const char *sign_key,
                             bool prints);

// suite_read.c: sets a row's dollars for a million tokens at this step time.
void suite_row_set_dollars(struct suite_row *row, double step_seconds);

// report.c: a page with the cards of a preflight (NULL: none) after another card (NULL: none).
void flight_write_page(struct page *page, const struct preflight_report *report, const struct page_card *own,
                       FILE *file);
void flight_describe_drain(const char *hosts, char *text, size_t bytes);
