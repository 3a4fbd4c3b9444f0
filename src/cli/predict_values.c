// SPDX-License-Identifier: MIT
// Prints the values that a prediction uses, and the effect of each spread on the step.
#include <stdio.h>
#include <string.h>

#include "predict.h"

static void print_values_of(const char *name, const struct option *options, const void *section,
                            const struct predict_range *range)
{
    for (const struct option *option = options; option->key != NULL; option++) {
        char value[64], effect[32] = "";
        if (option->type == OPTION_TEXT) {
            continue;
        }
        for (int i = 0; i < range->effect_count; i++) {
            if (strcmp(range->effects[i].section, name) == 0 && strcmp(range->effects[i].key, option->key) == 0) {
                snprintf(effect, sizeof(effect), "%+.2f %%", range->effects[i].percent);
            }
        }
        option_print(option, section, value, sizeof(value));
        printf("  %-33s %-30s %9s\n", option->key, value, effect);
    }
}

void predict_print_values(const struct config *config, const struct predict_range *range)
{
    printf("values of [hardware], and change of the step with one standard deviation more\n");
    print_values_of("hardware", hardware_options, &config->hardware, range);
    printf("values of [software]\n");
    print_values_of("software", software_options, &config->software, range);
}
