// SPDX-License-Identifier: MIT
// gswbench schema: prints the JSON Schema of each document, generated from the tables that write it.
#include <string.h>

#include "gswbench/calibrate.h"
#include "gswbench/comparison.h"
#include "gswbench/doctor.h"
#include "gswbench/preflight.h"
#include "gswbench/result.h"
#include "gswbench/show.h"
#include "gswbench/suite.h"
#include "internal.h"

const struct flag schema_flags[] = {
    OPERANDS(words, "NAME", "print the schema of this document; default: list the names"),
    END_FLAGS,
};

static const struct document {
    const char              *name, *help;
    const struct json_field *fields;    // NULL: the schema of a result
} documents[] = {
    {"run", "result.json, run --json, report --format json", NULL},
    {"check", "check --json", show_check_fields},
    {"plan", "plan --json", show_plan_fields},
    {"predict", "predict --json", show_predict_fields},
    {"sweep", "predict --sweep --json", show_sweep_fields},
    {"configs", "configs --json", show_configs_fields},
    {"atlas", "atlas --json", show_atlas_fields},
    {"compare", "compare --json", comparison_fields},
    {"compare-several", "compare --json of more than two", comparisons_fields},
    {"table", "table --format json", table_fields},
    {"history", "table --history --format json", history_fields},
    {"calibrate", "calibrate --json", calibrate_fields},
    {"preflight", "preflight.json, preflight --json", preflight_fields},
    {"accept", "accept.json", accept_fields},
    {"suite", "suite.json, suite --json", suite_fields},
    {"doctor", "doctor --json", doctor_fields},
    {"mlperf", "report --mlperf --json", show_mlperf_fields},
    {"trace", "report --trace --json", show_trace_fields},
};
enum { DOCUMENTS = sizeof(documents) / sizeof(documents[0]) };

static void print_schema(const struct document *document)
{
    json_t *schema = document->fields == NULL ? result_schema() : json_schema(document->fields), *whole = json_object();
    json_object_set_new(whole, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set_new(whole, "title", json_string(document->help));
    json_object_update(whole, schema);
    json_decref(schema);
    show_json(whole);
}

static status find_document(const char *name, const struct document **found)
{
    const char *names[DOCUMENTS + 1] = {NULL};
    for (int i = 0; i < DOCUMENTS; i++) {
        names[i] = documents[i].name;
        if (strcmp(name, names[i]) == 0) {
            *found = &documents[i];
            return OK;
        }
    }
    const char *closest = text_closest(name, names);
    return closest != NULL ? fail_as(EXIT_USAGE, "%s: no such document: did you mean %s?", name, closest)
                           : fail_as(EXIT_USAGE, "%s: no such document: gswbench schema lists them", name);
}

status command_schema(const struct arguments *chosen, struct text_buffer *errors)
{
    const struct document *document = NULL;
    (void)errors;
    if (chosen->words.count > 1) {
        return fail_as(EXIT_USAGE, "schema takes one name, not %d", chosen->words.count);
    }
    if (chosen->words.count == 1) {
        TRY(find_document(chosen->words.items[0], &document));
        print_schema(document);
        return OK;
    }
    for (int i = 0; i < DOCUMENTS; i++) {
        printf("%-15s  %s\n", documents[i].name, documents[i].help);
    }
    return OK;
}
