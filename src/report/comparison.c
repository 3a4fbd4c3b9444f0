// SPDX-License-Identifier: MIT
// Compares two results, each of one run or of repeated runs: settings that differ, step times, losses, figures,
// waterfalls and op times.
#include "gswbench/comparison.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "internal.h"

// Settings that determine the work per token: results that differ in one of them are not comparable. All other settings
// may differ, because a comparison shows their effect. A name that ends in a dot means a whole section.
static const char *const obstacles[] = {"model.", "train.sequence", NULL};

// Settings that have no influence on the step and are not compared. A preset is only a name for other settings.
static const char *const ignored[] = {"model.preset", "published.", "run.output", NULL};

// Sections with the inputs of a prediction. They are compared only between two predictions. If these use different
// profiles, only the names of the profiles are compared, not every value.
static const char *const costs[]    = {"hardware.", "software.", NULL};
static const char *const profiles[] = {"hardware.profile", "software.profile", NULL};

static bool is_one_of(const char *setting, const char *const *names)
{
    for (; *names != NULL; names++) {
        size_t length = strlen(*names);
        if ((*names)[length - 1] == '.' ? strncmp(setting, *names, length) == 0 : strcmp(setting, *names) == 0) {
            return true;
        }
    }
    return false;
}

static void add_setting(struct comparison *comparison, const char *name, const char *first, const char *second,
                        bool is_obstacle)
{
    if (strcmp(first, second) == 0 && !is_obstacle) {
        return;
    }
    struct comparison_setting *setting = LIST_ADD(comparison->settings, comparison->setting_count);
    text_copy(setting->name, sizeof(setting->name), name);
    text_copy(setting->first, sizeof(setting->first), first);
    text_copy(setting->second, sizeof(setting->second), second);
    setting->is_obstacle = is_obstacle;
}

static int by_name(const void *a, const void *b)
{
    const struct result_entry *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

// Returns pointers to the settings, sorted by name; the caller frees the array.
static const struct result_entry **sort(const struct result_entry *entries, int64_t count)
{
    const struct result_entry **sorted = memory_allocate((size_t)count * sizeof(*sorted));
    for (int64_t i = 0; i < count; i++) {
        sorted[i] = &entries[i];
    }
    qsort(sorted, (size_t)count, sizeof(*sorted), by_name);
    return sorted;
}

const char *report_find_setting(const struct result *result, const char *name)
{
    for (int64_t i = 0; i < result->config_count; i++) {
        if (strcmp(result->config[i].name, name) == 0) {
            return result->config[i].value;
        }
    }
    return "";
}

static bool has_same_profiles(const struct result *first, const struct result *second)
{
    bool is_same = true;
    for (const char *const *name = profiles; *name != NULL; name++) {
        is_same = is_same && strcmp(report_find_setting(first, *name), report_find_setting(second, *name)) == 0;
    }
    return is_same;
}

static bool are_predicted(const struct result *first, const struct result *second)
{
    return result_is_predicted(first) && result_is_predicted(second);
}

static bool is_ignored(const struct comparison *comparison, const char *name)
{
    if (!is_one_of(name, costs)) {
        return is_one_of(name, ignored);
    }
    const struct result *first = comparison->first, *second = comparison->second;
    return !are_predicted(first, second) || !(is_one_of(name, profiles) || has_same_profiles(first, second));
}

static void add_entries(struct comparison *comparison, const struct result_entry *first, int64_t first_count,
                        const struct result_entry *second, int64_t second_count)
{
    const struct result_entry **left = sort(first, first_count), **right = sort(second, second_count);
    for (int64_t i = 0, j = 0; i < first_count || j < second_count;) {
        int         order   = i == first_count ? 1 : j == second_count ? -1 : strcmp(left[i]->name, right[j]->name);
        const char *name    = order <= 0 ? left[i]->name : right[j]->name;
        const char *earlier = order <= 0 ? left[i++]->value : "";
        const char *later   = order >= 0 ? right[j++]->value : "";
        if (strcmp(earlier, later) != 0 && !is_ignored(comparison, name)) {
            add_setting(comparison, name, earlier, later, is_one_of(name, obstacles));
        }
    }
    free(left);
    free(right);
}

// Returns whether both runs used the same model of device. The device text begins with the model; software and settings
// follow after a comma.
static bool is_same_device(const struct result *first, const struct result *second)
{
    size_t length = strcspn(first->device, ",");
    return length == strcspn(second->device, ",") && strncmp(first->device, second->device, length) == 0;
}

static void add_settings(struct comparison *comparison, const struct result *first, const struct result *second)
{
    char ranks[2][32];
    snprintf(ranks[0], sizeof(ranks[0]), "%" PRId64, first->mesh.world);
    snprintf(ranks[1], sizeof(ranks[1]), "%" PRId64, second->mesh.world);
    add_setting(comparison, "verdict", result_verdict_names[first->verdict], result_verdict_names[second->verdict],
                !result_is_clean(first) || !result_is_clean(second));
    const char *slowed[2] = {result_slowed_by(first), result_slowed_by(second)};
    add_setting(comparison, "slowed down", slowed[0] != NULL ? slowed[0] : "no", slowed[1] != NULL ? slowed[1] : "no",
                slowed[0] != NULL || slowed[1] != NULL);
    bool are_run = !result_is_predicted(first) && !result_is_predicted(second);
    if (are_run) {
        add_setting(comparison, "backend", first->backend, second->backend,
                    strcmp(first->backend, second->backend) != 0);
        add_setting(comparison, "communicator", first->communicator, second->communicator,
                    strcmp(first->communicator, second->communicator) != 0);
    }
    add_setting(comparison, "device", first->device, second->device, are_run && !is_same_device(first, second));
    add_setting(comparison, "attention", first->attention.provider, second->attention.provider, false);
    add_setting(comparison, "ranks", ranks[0], ranks[1], false);
    add_setting(comparison, "version", first->version, second->version, false);
    add_setting(comparison, "compiler", first->compiler, second->compiler, false);
    add_entries(comparison, first->config, first->config_count, second->config, second->config_count);
    add_entries(comparison, first->environment, first->environment_count, second->environment,
                second->environment_count);
}

// Compares a value of the steps, such as the loss, step by step. offset: offset of the value in struct result_step. The
// value is not compared if the global batches differ, because the runs then train differently.
static struct comparison_curve compare_curves(const struct result *first, const struct result *second, size_t offset)
{
    struct comparison_curve curve         = {.largest = NAN, .last = NAN, .largest_step = -1, .last_step = -1};
    bool                    is_comparable = first->global_batch == second->global_batch;
    for (int64_t i = 0; is_comparable && i < first->step_count && i < second->step_count; i++) {
        double earlier    = *(const double *)((const char *)&first->steps[i] + offset);
        double later      = *(const double *)((const char *)&second->steps[i] + offset);
        double difference = fabs(later - earlier) / fabs(earlier);
        if (!isfinite(difference)) {
            continue;    // a prediction has no loss, and the loss of an INVALID run may be NaN
        }
        curve.last      = difference;
        curve.last_step = i;
        if (isnan(curve.largest) || curve.last > curve.largest) {
            curve.largest      = curve.last;
            curve.largest_step = i;
        }
    }
    return curve;
}

bool comparison_shares_errors(const struct comparison *comparison)
{
    return are_predicted(comparison->first, comparison->second) &&
           has_same_profiles(comparison->first, comparison->second);
}

// Returns the statistics of the step time. The interval of a prediction reaches two standard deviations of its error in
// both directions. Two predictions with the same profiles share most of their error, which cancels in the ratio of
// their step times. Then each interval reaches only PREDICTED_CHANGE_ERROR / 2 percent, or 0 if the step times are
// equal.
static struct statistics find_step(const struct result *result, const struct result *other)
{
    struct statistics step = result->figures.step;
    if (result_is_predicted(result)) {
        bool   is_exact = result_is_predicted(other) && has_same_profiles(result, other);
        bool   is_equal = is_exact && step.median == other->figures.step.median;
        double own      = is_exact ? PREDICTED_CHANGE_ERROR / 2.0 : 2.0 * result->expectation.percent;
        double share    = is_equal ? 0.0 : own / 100.0;
        step.low        = step.median / (1.0 + share);
        step.high       = step.median * (1.0 + share);
        step.error      = 0.0;
        step.swing      = 0.0;
        step.count      = CHANGE_COUNT_MIN;
    }
    return step;
}

static void compare_steps(struct comparison *comparison, double threshold)
{
    const struct result *first = comparison->first, *second = comparison->second;
    struct statistics    one = find_step(first, second), other = find_step(second, first);
    other.median /= comparison->work;
    other.low /= comparison->work;
    other.high /= comparison->work;
    statistics_compare(&comparison->step, &one, &other, threshold);
}

static double tokens_per_device(const struct result *result)
{
    return result->figures.tokens_per_step / (double)result->mesh.world;
}

// Fills the rows of the waterfall parts. The traced step has tracing overhead, so it differs from the median step. The
// difference counts as unexplained, so that the parts add up to the median.
static void set_parts(struct comparison *comparison)
{
    const struct result *first = comparison->first, *second = comparison->second;
    comparison->parts = memory_allocate(WATERFALL_PARTS * sizeof(*comparison->parts));
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        struct comparison_row *row = &comparison->parts[comparison->part_count++];
        text_copy(row->name, sizeof(row->name), waterfall_part_names[part]);
        row->first  = first->trace.waterfall.seconds[part];
        row->second = second->trace.waterfall.seconds[part] / comparison->work;
    }
    struct comparison_row *rest = &comparison->parts[WATERFALL_UNEXPLAINED];
    rest->first += first->figures.step.median - first->trace.step_seconds;
    rest->second += (second->figures.step.median - second->trace.step_seconds) / comparison->work;
}

void report_name_family(const char *kind, char *name, size_t bytes)
{
    text_copy(name, bytes, kind);
    char *direction = strstr(name, "_forward");
    direction       = direction != NULL ? direction : strstr(name, "_backward");
    if (direction != NULL) {
        *direction = '\0';
    }
}

static struct comparison_row *find_family(struct comparison *comparison, const char *name)
{
    for (int64_t i = 0; i < comparison->family_count; i++) {
        if (strcmp(comparison->families[i].name, name) == 0) {
            return &comparison->families[i];
        }
    }
    struct comparison_row *row = &comparison->families[comparison->family_count++];
    *row                       = (struct comparison_row){.first = 0};
    text_copy(row->name, sizeof(row->name), name);
    return row;
}

bool report_computes(const char *kind)
{
    for (int known = 0; known < OP_COUNT; known++) {
        if (strcmp(op_name((enum op_kind)known), kind) == 0) {
            return !op_is_communication((enum op_kind)known);
        }
    }
    return false;
}

// Adds the times of compute ops to the rows of their families, such as "norm" for norm_forward. Communication is
// skipped: its time is mostly waiting, which the waterfall shows.
static void add_ops(struct comparison *comparison, const struct result *result)
{
    for (int64_t i = 0; i < result->op_time_count; i++) {
        const struct result_op_time *ops = &result->op_times[i];
        if (report_computes(ops->kind)) {
            char name[sizeof(ops->kind)];
            report_name_family(ops->kind, name, sizeof(name));
            struct comparison_row *row = find_family(comparison, name);
            if (result == comparison->first) {
                row->first += ops->seconds;
            } else {
                row->second += ops->seconds / comparison->work;
            }
        }
    }
}

// Returns the expected speed-up of GEMMs on the same GPU from the first precision to the second: the ratio of their
// peak FLOP/s if known. Otherwise every precision from BF16 on is assumed twice as fast as the one before it in
// rate_names.
static double pace_of(const struct result *first, const struct result *second)
{
    if (strcmp(first->precision, second->precision) == 0 || !is_same_device(first, second)) {
        return 1.0;
    }
    if (!isnan(first->peak) && !isnan(second->peak)) {
        return second->peak / first->peak;
    }
    int64_t slow = text_index(first->precision, rate_names), fast = text_index(second->precision, rate_names);
    return slow >= RATE_BF16 && fast > slow ? ldexp(1.0, (int)(fast - slow)) : 1.0;
}

static bool has_traced_step(const struct result *result)
{
    return result->trace.source != RESULT_UNTRACED && !isnan(result->figures.step.median);
}

void comparison_init(struct comparison *comparison, const struct result *first, const struct result *second,
                     double threshold)
{
    *comparison = (struct comparison){
        .first         = first,
        .second        = second,
        .repeats       = {{1, NAN}, {1, NAN}},
        .work          = tokens_per_device(second) / tokens_per_device(first),
        .loss          = compare_curves(first, second, offsetof(struct result_step, loss)),
        .gradient_norm = compare_curves(first, second, offsetof(struct result_step, gradient_norm)),
        .pace          = pace_of(first, second),
    };
    if (has_traced_step(first) && has_traced_step(second)) {
        set_parts(comparison);
        comparison->families = memory_allocate(OP_COUNT * sizeof(*comparison->families));
        add_ops(comparison, first);
        add_ops(comparison, second);
    }
    compare_steps(comparison, threshold);
    add_settings(comparison, first, second);
}

void comparison_free(struct comparison *comparison)
{
    free(comparison->settings);
    free(comparison->parts);
    free(comparison->families);
    *comparison = (struct comparison){0};
}

// Settings of the job are "ranks" and all names with a dot. Other names, except "verdict", are facts of the machine.
void comparison_list_settings(const struct comparison *comparison, bool has_machine, char *text, size_t bytes)
{
    static const char cut[] = "...";
    size_t            used  = 0;
    text[0]                 = '\0';
    for (int64_t i = 0; i < comparison->setting_count && used < bytes; i++) {
        const struct comparison_setting *setting = &comparison->settings[i];
        bool is_of_job = strchr(setting->name, '.') != NULL || strcmp(setting->name, "ranks") == 0;
        if (is_of_job || (has_machine && strcmp(setting->name, "verdict") != 0)) {
            used += (size_t)snprintf(text + used, bytes - used, "%s%s %s", used > 0 ? ", " : "", setting->name,
                                     setting->second[0] != '\0' ? setting->second : "unset");
        }
    }
    if (used >= bytes) {
        text_copy(text + bytes - sizeof(cut), sizeof(cut), cut);
    }
}

const char *comparison_name(const struct comparison *comparison, char *text, size_t bytes)
{
    comparison_list_settings(comparison, false, text, bytes);
    return text[0] != '\0' ? text : "no other setting";
}

static int by_median(const void *a, const void *b)
{
    double one   = ((const struct result *)a)->figures.step.median,
           other = ((const struct result *)b)->figures.step.median;
    return (one > other) - (one < other);
}

struct result *comparison_join(struct result *runs, int64_t count, struct comparison_repeats *repeats)
{
    qsort(runs, (size_t)count, sizeof(*runs), by_median);
    struct result     *middle  = &runs[(count - 1) / 2];
    struct statistics *step    = &middle->figures.step;
    double             minimum = runs->figures.step.median, maximum = runs[count - 1].figures.step.median;
    repeats->runs   = count;
    repeats->spread = count > 1 ? (maximum - minimum) / step->median : NAN;
    for (int64_t i = 0; i < count; i++) {
        const struct statistics *other = &runs[i].figures.step;
        step->low                      = fmin(step->low, other->low);
        step->high                     = fmax(step->high, other->high);
        step->wander                   = fmax(step->wander, other->wander);
        step->error                    = fmax(step->error, other->error);
        step->swing                    = fmax(step->swing, other->swing);
        step->count                    = step->count < other->count ? step->count : other->count;
        middle->verdict                = middle->verdict > runs[i].verdict ? middle->verdict : runs[i].verdict;
    }
    return middle;
}

status comparison_check(const struct comparison *comparison)
{
    enum { NAMED_MAX = 4 };
    struct text_buffer text  = {0};
    int                count = 0;
    for (int64_t i = 0; i < comparison->setting_count; i++) {
        const struct comparison_setting *setting = &comparison->settings[i];
        if (setting->is_obstacle && count++ < NAMED_MAX) {
            text_append(&text, "%s%s %.48s and %.48s", count > 1 ? ", " : "", setting->name, setting->first,
                        setting->second);
        }
    }
    if (count > NAMED_MAX) {
        text_append(&text, ", and %d more", count - NAMED_MAX);
    }
    status result =
        count == 0
            ? OK
            : fail_as(EXIT_COMPARE, "these results cannot be compared: %s; --force compares them anyway", text.text);
    text_free(&text);
    return result;
}

status comparison_gate(const struct comparison *comparison, double threshold)
{
    const struct statistics_change *step = &comparison->step;
    if (step->verdict == CHANGE_SLOWER) {
        return fail_as(EXIT_GATE, "the second is slower by %.2f%%, more than --fail-on slower:%g%% allows",
                       100 * step->relative, 100 * threshold);
    }
    if (step->verdict == CHANGE_AMBIGUOUS && !(1 / step->low - 1 <= threshold)) {
        return fail_as(EXIT_UNDECIDED,
                       "undecided whether the second is slower by more than --fail-on slower:%g%% allows (%+.2f%% in "
                       "these runs): use more steps or a quieter machine",
                       100 * threshold, 100 * step->relative);
    }
    return OK;
}

enum { REPEATS_MAX = 256 };

static status add_run(void *state, const char *path)
{
    struct comparison_side *side = state;
    if (side->count == REPEATS_MAX) {
        return fail_as(EXIT_USAGE, "more than %d runs with %.900s: use gswbench table for that many", REPEATS_MAX,
                       path);
    }
    LIST_APPEND(side->runs, side->count, (struct result){0});
    return report_read_result(&side->runs[side->count - 1], path);
}

status comparison_read_side(struct comparison_side *side, const char *path)
{
    TRY(report_has_journal(path) ? add_run(side, path) : report_visit_results(path, add_run, side));
    for (int64_t i = 1; i < side->count; i++) {
        const struct result *first = side->runs, *other = &side->runs[i];
        if (strcmp(first->config_hash, other->config_hash) != 0 || first->mesh.world != other->mesh.world ||
            !result_is_shown(first) || !result_is_shown(other) || first->trace.source != other->trace.source) {
            return fail_as(EXIT_COMPARE,
                           "%.900s: %s and %s are not repeats of the same job, or not VALID: name the folder of one "
                           "run, or use gswbench table",
                           path, first->run_id, other->run_id);
        }
    }
    side->result = comparison_join(side->runs, side->count, &side->repeats);
    return OK;
}

void comparison_free_side(struct comparison_side *side)
{
    for (int64_t i = 0; i < side->count; i++) {
        result_free(&side->runs[i]);
    }
    free(side->runs);
}
