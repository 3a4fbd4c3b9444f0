// SPDX-License-Identifier: MIT
// gswbench doctor: says what this host has, what is wrong, and how to mend it.
#include "gswbench/doctor.h"

#include "gswbench/show.h"
#include "internal.h"

struct doctor_arguments {
    const char *out;
    bool        json;
};

static const struct flag flags[] = {
    TEXT_FLAG(doctor_arguments, out, "--out", "DIR", "folder of results, whose space is checked; default: here"),
    SWITCH_FLAG(doctor_arguments, json, "--json", "print JSON"),
    END_FLAGS,
};

static status examine_host(const void *arguments, struct text_buffer *errors)
{
    (void)errors;
    const struct doctor_arguments *chosen = arguments;
    struct doctor                  doctor = {.root = "", .folder = chosen->out != NULL ? chosen->out : "."};
    doctor_examine(&doctor);
    int64_t wrong = doctor.states[DOCTOR_WRONG];
    if (chosen->json) {
        show_json(json_from_struct(doctor_fields, &doctor));
    } else {
        doctor_print(&doctor, stdout);
    }
    doctor_free(&doctor);
    return wrong > 0 ? fail_as(EXIT_LAUNCH, "this host needs attention: see the lines marked wrong") : OK;
}

const struct command command_doctor = {
    .name    = "doctor",
    .help    = "check this host: GPUs, driver, libraries, MPI, network, limits",
    .example = "srun --ntasks-per-node=1 gswbench doctor",
    .flags   = flags,
    .bytes   = sizeof(struct doctor_arguments),
    .run     = examine_host,
};
