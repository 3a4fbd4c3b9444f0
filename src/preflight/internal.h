// SPDX-License-Identifier: MIT
// Shared by the files of a preflight: the state of a rank, the measurements, and the search for outliers. A report
// consists of classes. A class holds the values of one quantity that should be equal everywhere, such as the rate of a
// GEMM on every rank, or the bandwidth of every link.
#pragma once

#include "gswbench/calibrate.h"
#include "gswbench/measured.h"
#include "gswbench/environment.h"
#include "gswbench/grid.h"
#include "gswbench/preflight.h"
#include "gswbench/step.h"
#include "gswbench/suite.h"
#include "gswbench/watch.h"

// The state of one rank during a preflight.
struct flight {
    const struct preflight *preflight;
    struct rank_environment environment;
    struct comm            *comm;     // owned by environment
    struct watch           *watch;    // the watchdog; NULL: off
    struct plan             plan;
    struct step_fault       fault;
    struct calibrate_setup  setup;
    struct distinct_ops     list;           // distinct ops of the job
    struct measured_ops     measured;       // op times in the hardware profile
    bool                    takes_turns;    // cores are shared, so ranks on the same cores measure one by one
    const char             *sharing;        // the cause of takes_turns, as text for a note; NULL if it is false
    double                  began;          // start time, by clock_seconds
    struct preflight_report report;         // equal on every rank
};

// rank.c: measures the job's devices, links and groups, and finds outliers. Every rank gets the same report, which the
// caller frees. Collective.
status preflight_measure(struct preflight_report *report, const struct preflight *preflight, struct comm *comm);
void   preflight_free(struct preflight_report *report);

// pace.c: flight_open_watch starts the watchdog. flight_run tells it that this rank now works alone (plan and step are
// NULL) or runs ops of `plan`; the format describes the work. flight_meet tells it that this rank now waits for all
// other ranks; `after`, the same on all ranks, names the finished work. Plan and step must stay valid until
// flight_meet.
status flight_open_watch(struct flight *flight);    // collective
void   flight_run(struct flight *flight, const struct plan *plan, struct step *step, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void flight_meet(struct flight *flight, const char *after);

// Returns whether less than `share` of the time budget has passed. Rank 0 decides, so that all ranks return the same.
// Collective.
bool flight_has_time(struct flight *flight, double share);

// A measurement that flight_repeat runs in batches. After each batch, flight_repeat searches for outliers. The
// measurement ends if there are no outliers and the values are precise enough, if several batches have found the same
// outliers, or if time runs out. Outliers that only the last batch has found are removed.
typedef status flight_round(struct flight *flight, void *state);
struct flight_series {
    flight_round *run;
    bool (*has_settled)(const void *state);    // whether the values are precise enough; NULL: always
    void   *state;
    int     batch;          // number of times that `run` is called in a batch
    int64_t first_class;    // the measurement fills the classes of the report from this index
    double  share;          // part of the time budget after which the measurement ends
};
// Returns whether the report has an outlier that is this rank or its host, in a class from index first_class on.
bool flight_is_outlier(const struct flight *flight, int64_t first_class, int64_t rank);
// Repeats series.run until it has no more to measure or its time ends. The report keeps outliers that both of the last
// two batches have found. Collective.
status flight_repeat(struct flight *flight, const struct flight_series *series);

// If ranks share cores, they measure one after the other, each in a time slot. flight_take_turn sleeps until the slot
// of this rank begins; the caller sleeps until the last slot has ended. `seconds` is the length of a slot if all ranks
// take part; if fewer do, each slot is longer. If no ranks share cores, all ranks measure at once. Collective.
struct flight_turn {
    bool   takes_part;
    double begin, end;    // of this rank's slot, by clock_seconds
    double all;           // end of the last slot
};
struct flight_turn flight_take_turn(struct flight *flight, const bool *takes_part, double seconds);

// report.c: flight_add_class adds an empty class to the report. flight_set_value sets its value for a device (its rank
// is both first and second), a link from rank first to rank second, or a group of ranks from first to second.
struct preflight_class *flight_add_class(struct flight *flight, enum preflight_subject subject, const char *unit,
                                         double limit_percent, const char *name);
void flight_set_value(struct preflight_class *value_class, int64_t first, int64_t second, double value);

// How the values of a class are printed: multiplied by `factor`, in the unit `shown`. Applies to classes whose unit
// begins with the letter `unit`.
struct flight_scale {
    const char *unit, *shown;
    double      factor;
};
const struct flight_scale *flight_find_scale(const struct preflight_class *value_class);

// Tolerated slowdown of devices, links and groups in percent. flight_fit_limit sets the limit of a device class to six
// standard deviations of its values. The limit stays between 3.5 %, by which equal devices differ, and
// flight_device_limit. A class with fewer than JUDGE_VALUES values keeps its limit.
extern const double flight_device_limit, flight_link_limit, flight_group_limit;
void                flight_fit_limit(struct preflight_class *value_class);

// The measurements. Each ends when its part of the time budget has passed. between: measure links between nodes; false:
// links within each node.
status flight_measure_devices(struct flight *flight);
status flight_measure_links(struct flight *flight, bool between);
status flight_measure_groups(struct flight *flight);

// judge.c: estimates the standard deviation of a class, in percent of its median. The estimate uses the median absolute
// deviation, because outliers hardly change it, and needs at least JUDGE_VALUES values. A value more than
// JUDGE_DEVIATIONS standard deviations from the median is an outlier and not noise.
enum { JUDGE_DEVIATIONS = 6, JUDGE_VALUES = 16 };
double judge_spread(const struct preflight_class *value_class);

// judge.c: preflight_judge finds the outliers of a class. preflight_conclude selects the hosts to drain, and the exit
// code. It drains hosts that are slow, have a slow device, or compute wrong numbers. Of each slow link between two
// other hosts, it drains one host.
void preflight_judge(struct preflight_report *report, struct preflight_class *value_class);
void preflight_conclude(struct preflight_report *report);

// links.c: the round-robin schedule in which links are measured. The players are nodes, or the ranks of a node. In a
// round, each player meets its partner (-1: it has none); over all rounds, each pair meets once.
int64_t preflight_rounds(int64_t players);
int64_t preflight_partner(int64_t players, int64_t player, int64_t round);

// judge.c: adds a copy of the outlier to the report, and sets its class, the hosts of its ranks, and its text.
void judge_add(struct preflight_report *report, const struct preflight_class *value_class,
               const struct preflight_outlier *outlier, const char *format, ...) __attribute__((format(printf, 4, 5)));

// devices.c: compute speed of ranks that share cores. They measure one after the other, and the clock rate of the cores
// changes from round to round. In each round, a rank's share is its rate divided by the median rate over all ranks. A
// rank runs several probes (repeated GEMMs) and takes the median share, because one probe may have slow memory pages.
// The result of a rank is the median of its shares over the rounds.
struct turns {
    int64_t ranks, probes, rounds;
    double *shares;    // [rounds][ranks]: rate divided by the median rate of the round
    double *level;     // [probes]: median rate of the ranks in the fastest round
};

void turns_open(struct turns *turns, int64_t ranks, int64_t probes);
void turns_close(struct turns *turns);

// Adds a round. rates: [ranks][stride]; the first values of a row are the rank's rates of the probes.
void turns_add(struct turns *turns, const double *rates, int64_t stride);

// turns_rate returns the rate of a rank in a probe: level[probe] times the median of the rank's shares. turns_error
// returns the largest standard error of a rank's median share, in percent, over the ranks that take more than `slower`
// percent longer than the median rank (-INFINITY: all ranks); 0 if there are none. The error of a rank is infinite
// before the sixth round.
double turns_rate(const struct turns *turns, int64_t rank, int64_t probe);
double turns_error(const struct turns *turns, double slower);

// accept.c: sets the job's expected step time, which is the published one, else the predicted one, and its tolerance in
// percent, which covers differences between equal machines. Expects no time if `device` is not the device of the
// hardware profile. Returns false if the job is predicted not to fit into the memory of this device.
bool accept_expect(struct result_acceptance *acceptance, const struct job *job, const char *device);

// Runs the job and writes the files of the acceptance test. If the preflight (accept->report) found outliers, it writes
// the files without a run. Collective; the exit code follows from the verdict.
status accept_job(struct accept *accept, struct comm *comm);

// Ends a rank. `written` is rank 0's result of writing its files: if it failed, all ranks fail. Otherwise all ranks
// return rank 0's exit code. Collective.
status accept_leave(struct comm *comm, status written, int exit_code);

// Appends the names of the hosts to drain to `hosts`, separated by commas.
void accept_add_drain(const struct preflight_report *report, char *hosts, size_t bytes);

// Prints the verdict and the hosts to drain. accept_styles: CSS class of each verdict on a page.
void                     accept_write_verdict(int64_t verdict, const char *text, const char *drain, FILE *file);
extern const char *const accept_styles[];

// Writes a struct as a JSON file, and signs the file if sign_key is not NULL. prints: print the JSON to stdout, too.
status accept_write_document(const struct json_field *fields, const void *from, const char *path, const char *sign_key,
                             bool prints);

// suite_read.c: sets a row's cost in dollars per million tokens at this step time.
void suite_row_set_dollars(struct suite_row *row, double step_seconds);

// Print the report of a preflight, and the pages of an acceptance test and of a suite (report: its preflight).
void preflight_write_text(const struct preflight_report *report, FILE *file);
void preflight_write_json(const struct preflight_report *report, FILE *file);
void preflight_write_html(const struct preflight_report *report, FILE *file);
void accept_write_html(const struct accept *accept, FILE *file);
void suite_write_html(const struct suite *suite, const struct preflight_report *report, FILE *file);

// report.c: writes an HTML page. Its first card is `own` (NULL: none). The tables of the preflight follow.
void flight_write_page(struct page *page, const struct preflight_report *report, const struct page_card *own,
                       FILE *file);
void flight_describe_drain(const char *hosts, char *text, size_t bytes);
