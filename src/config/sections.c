// SPDX-License-Identifier: MIT
// Has the table of a config's sections: their options and their place in struct config.
#include <string.h>

#include "internal.h"

// clang-format off
#define SECTION(name, help) \
    { #name, name##_options, offsetof(struct config, name), sizeof(((struct config *)0)->name), help }
const struct config_section config_sections[] = {
    {"model", model_options, offsetof(struct config, model), offsetof(struct model_config, adapters),
     "The shape of the transformer"},
    {"adapters", adapters_options, offsetof(struct config, model.adapters), sizeof(struct adapters_config),
     "Low-rank adapters (LoRA) of a frozen model"},
    SECTION(parallel, "The parallel layout; dp x fsdp x tp x cp x pp is the number of ranks"),
    SECTION(train, "Batch, recompute, routing and optimizer"),
    SECTION(precision, "Data types"),
    SECTION(run, "How a job runs"),
    SECTION(checkpoint, "Checkpoints that a run loads and saves"),
    SECTION(trace, "Traced steps after the measured ones, and their timeline"),
    SECTION(profile, "Steps and ranks that a profiler such as Nsight Systems collects"),
    SECTION(fault, "One injected fault, to test alarms; the result is marked, not compared"),
    // only the options: collective_times, the last field, comes from a file
    {"hardware", hardware_options, offsetof(struct config, hardware), offsetof(struct hardware_config, collective_times),
     "The hardware of predictions and of MFU"},
    SECTION(software, "The program to predict; default: gswbench"),
    SECTION(published, "The published figures that results are compared with"),
    {NULL, NULL, 0, 0, NULL},
};
// clang-format on

const struct config_section *section_find(const char *name)
{
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        if (strcmp(section->name, name) == 0) {
            return section;
        }
    }
    return NULL;
}

const char *section_suggest(const char *name)
{
    const char *names[sizeof(config_sections) / sizeof(config_sections[0])];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        names[i] = config_sections[i].name;
    }
    return text_closest(name, names);
}
