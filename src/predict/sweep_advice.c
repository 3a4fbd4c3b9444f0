// SPDX-License-Identifier: MIT
// Advises if no layout of a job fits the device. Names the layout that needs the least memory, the smallest number of
// ranks with a layout that fits, and the hardware profile with the least sufficient memory.
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/number.h"
#include "gswbench/sweep.h"

enum { GROWTH_MAX = 1024 };    // maximum factor by which the number of ranks is raised

// The layout with the least memory. bytes is INT64_MAX if there is none.
struct minimum {
    struct job job;
    int64_t    bytes;
};

// Replaces the minimum if the layout needs less memory. sweep_find_bound stops at the first pipeline stage that exceeds
// the memory of the machine, so `bounded` has only as much as the minimum so far.
static void look_at(struct minimum *minimum, const struct job *job, const struct plan_request *layout,
                    const struct machine *machine)
{
    struct hardware_config hardware = *machine->hardware;
    struct machine         bounded  = *machine;
    struct sweep_bound     bound;
    bounded.hardware         = &hardware;
    hardware.memory_gb.value = minimum->bytes == INT64_MAX ? 0.0 : (double)minimum->bytes / 1e9;
    status result            = predict_supports(layout, &hardware);
    result                   = failed(&result) ? result : sweep_find_bound(&bound, layout, &bounded);
    if (!failed(&result) && bound.bytes < minimum->bytes) {
        minimum->job                 = *job;
        minimum->job.request         = *layout;
        minimum->job.config.parallel = layout->parallel;
        minimum->job.config.train    = layout->train;
        minimum->bytes               = bound.bytes;
    }
}

// Finds the layout that needs the least memory. Tries only layouts with full recompute and micro_batch 1, because
// others need more. Stops early at a layout that needs at most `enough` bytes.
static void find_minimum(struct minimum *minimum, const struct job *job, const struct machine *machine, double enough)
{
    struct sweep_list list;
    minimum->bytes = INT64_MAX;
    sweep_list(&list, job);
    for (int64_t i = 0; i < list.count && (double)minimum->bytes > enough; i++) {
        if (list.layouts[i].train.recompute == RECOMPUTE_FULL && list.layouts[i].train.micro_batch == 1) {
            look_at(minimum, job, &list.layouts[i], machine);
        }
    }
    free(list.layouts);
}

// Doubles the number of ranks until a layout fits. Returns this number of ranks; 0: no layout fits.
static int64_t enough_ranks(const struct job *job, const struct machine *machine)
{
    struct job     *larger  = memory_allocate(sizeof(*larger));
    struct minimum *minimum = memory_allocate(sizeof(*minimum));
    double          room    = machine->hardware->memory_gb.value * 1e9;
    int64_t         enough  = 0;
    *larger                 = *job;
    for (int64_t growth = 2; enough == 0 && growth <= GROWTH_MAX; growth *= 2) {
        larger->request.mesh.world = job->request.mesh.world * growth;
        larger->config.ranks       = larger->request.mesh.world;
        find_minimum(minimum, larger, machine, room);
        enough = (double)minimum->bytes <= room ? larger->request.mesh.world : 0;
    }
    free(larger);
    free(minimum);
    return enough;
}

// Returns the GPU memory of a hardware profile in GB; 0: unknown, or the profile is a variant that names no GPU.
static double memory_of(const char *name)
{
    char                  text[512];
    struct config         config;
    struct text_buffer    errors  = {0};
    struct config_request request = {.name = name};
    snprintf(text, sizeof(text), "[hardware]\nprofile = %s\n", name);
    status result = config_read_text(&config, &request, text, strlen(text), &errors);
    text_free(&errors);
    return failed(&result) || config.hardware.device[0] == '\0' ? 0.0 : config.hardware.memory_gb.value;
}

// Finds the name of the installed hardware profile with the least memory that holds these bytes; empty: none.
static void enough_memory(double bytes, char *name, size_t size)
{
    char            folder[1100];
    struct dirent **entries;
    double          smallest = 0.0;
    snprintf(folder, sizeof(folder), "%s/hardware", config_folder());
    int count = scandir(folder, &entries, config_is_file, alphasort);
    name[0]   = '\0';
    for (int i = 0; i < count; i++) {
        double memory                                                   = 0.0;
        entries[i]->d_name[strlen(entries[i]->d_name) - strlen(".ini")] = '\0';
        memory                                                          = memory_of(entries[i]->d_name);
        if (memory * 1e9 >= bytes && (smallest == 0.0 || memory < smallest)) {
            smallest = memory;
            text_copy(name, size, entries[i]->d_name);
        }
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
}

void sweep_advise(char *text, size_t bytes, const struct job *job, const struct machine *machine)
{
    struct minimum *minimum = memory_allocate(sizeof(*minimum));
    char            layout[256], memory[32], profile[256], ranks[64] = "", other[320] = "";
    find_minimum(minimum, job, machine, 0.0);
    if (minimum->bytes == INT64_MAX) {
        snprintf(text, bytes, "nothing can be predicted");
        free(minimum);
        return;
    }
    job_layout(&minimum->job, layout, sizeof(layout));
    double least = (double)minimum->bytes;
    free(minimum);
    int64_t enough = enough_ranks(job, machine);
    enough_memory(least, profile, sizeof(profile));
    if (enough > 0) {
        snprintf(ranks, sizeof(ranks), "--ranks %" PRId64, enough);
    }
    if (profile[0] != '\0') {
        snprintf(other, sizeof(other), "%s--set hardware.profile=%s", enough > 0 ? ", or " : "", profile);
    }
    snprintf(text, bytes, "%s with full recompute and micro_batch = 1 needs least memory, %s per rank; %s%s%s", layout,
             number_bytes(memory, sizeof(memory), least), ranks, other,
             enough > 0 || profile[0] != '\0' ? " would do" : "neither more ranks nor another machine helps");
}
