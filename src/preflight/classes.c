// SPDX-License-Identifier: MIT
// The classes of a report and their values.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "internal.h"

const char *const preflight_subject_names[] = {
    [PREFLIGHT_DEVICE] = "device", [PREFLIGHT_LINK] = "link", [PREFLIGHT_GROUP] = "group", NULL};
const char *const preflight_blame_names[] = {[BLAME_HOST]    = "host",
                                             [BLAME_DEVICE]  = "device",
                                             [BLAME_LINK]    = "link",
                                             [BLAME_GROUP]   = "group",
                                             [BLAME_ALL]     = "all",
                                             [BLAME_NUMBERS] = "numbers",
                                             NULL};

struct preflight_class *flight_add_class(struct flight *flight, enum preflight_subject subject, const char *unit,
                                         double limit_percent, const char *name)
{
    struct preflight_report *report = &flight->report;
    report->classes = memory_resize(report->classes, (size_t)(report->class_count + 1) * sizeof(*report->classes));
    struct preflight_class *added = &report->classes[report->class_count++];
    *added = (struct preflight_class){.subject = subject, .limit_percent = limit_percent, .profile = NAN};
    text_copy(added->name, sizeof(added->name), name);
    text_copy(added->unit, sizeof(added->unit), unit);
    added->is_time = unit[0] == 's';
    return added;
}

void flight_set_value(struct preflight_class *value_class, int64_t first, int64_t second, double value)
{
    struct preflight_value *values = value_class->values;
    for (int64_t i = 0; i < value_class->value_count; i++) {
        if (values[i].first == first && values[i].second == second) {
            values[i].value = value;
            return;
        }
    }
    value_class->values = memory_resize(values, (size_t)(value_class->value_count + 1) * sizeof(*values));
    value_class->values[value_class->value_count++] =
        (struct preflight_value){.first = first, .second = second, .value = value};
}

void preflight_free(struct preflight_report *report)
{
    for (int64_t i = 0; i < report->class_count; i++) {
        free(report->classes[i].values);
    }
    free(report->classes);
    free(report->ranks);
    free(report->outliers);
    free(report->drain);
}
