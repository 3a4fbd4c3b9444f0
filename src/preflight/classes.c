// SPDX-License-Identifier: MIT
// The classes of a report and their values.
#include <math.h>
#include <stdlib.h>

#include <xxhash.h>

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

// Slot of these ranks' value, or the empty slot for it (open addressing).
static int64_t *find_slot(const struct preflight_class *value_class, int64_t first, int64_t second)
{
    const int64_t ranks[] = {first, second}, mask = value_class->slot_count - 1;
    for (int64_t i = (int64_t)(XXH3_64bits(ranks, sizeof(ranks)) >> 1);; i++) {
        int64_t                      *slot  = &value_class->slots[i & mask];
        const struct preflight_value *value = &value_class->values[*slot - 1];
        if (*slot == 0 || (value->first == first && value->second == second)) {
            return slot;
        }
    }
}

// Keeps the table at most half full.
static void grow(struct preflight_class *value_class)
{
    enum { LEAST = 64 };
    int64_t count = value_class->slot_count > 0 ? 2 * value_class->slot_count : LEAST;
    free(value_class->slots);
    value_class->slots      = memory_allocate((size_t)count * sizeof(*value_class->slots));
    value_class->slot_count = count;
    value_class->values     = memory_resize(value_class->values, (size_t)(count / 2) * sizeof(*value_class->values));
    for (int64_t i = 0; i < value_class->value_count; i++) {
        *find_slot(value_class, value_class->values[i].first, value_class->values[i].second) = i + 1;
    }
}

void flight_set_value(struct preflight_class *value_class, int64_t first, int64_t second, double value)
{
    if (2 * value_class->value_count == value_class->slot_count) {
        grow(value_class);
    }
    int64_t *slot = find_slot(value_class, first, second);
    if (*slot == 0) {
        *slot = ++value_class->value_count;
    }
    value_class->values[*slot - 1] = (struct preflight_value){.first = first, .second = second, .value = value};
}

void preflight_free(struct preflight_report *report)
{
    for (int64_t i = 0; i < report->class_count; i++) {
        free(report->classes[i].values);
        free(report->classes[i].slots);
    }
    free(report->classes);
    free(report->ranks);
    free(report->outliers);
    free(report->drain);
}
