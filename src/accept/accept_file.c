// SPDX-License-Identifier: MIT
// Writes the acceptance verdict as text, and as JSON with all its inputs.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gswbench/accept.h"
#include "gswbench/json.h"
#include "gswbench/terminal.h"

// clang-format off
#define TEXT(key, field)    JSON_FIELD(accept, JSON_FIELD_TEXT, key, field)
#define INTEGER(key, field) JSON_FIELD(accept, JSON_FIELD_INTEGER, key, field)
#define REAL(key, field)    JSON_FIELD(accept, JSON_FIELD_REAL, key, field)

#define ACCEPT_SCHEMA "gswbench.accept/1"

static const struct json_field expected[] = {
    TEXT("basis", acceptance.basis),
    REAL("step_s", acceptance.expected_seconds),
    REAL("percent", acceptance.percent),
    JSON_END
};
static const struct json_field measured[] = {
    TEXT("run_id", run_id),
    TEXT("run_verdict", run_verdict),
    INTEGER("steps", step.count),
    REAL("step_s", step.median),
    JSON_FIELD(accept, JSON_FIELD_INTERVAL, "ci95", step.low),
    REAL("cv", step.variation),
    JSON_END
};
const struct json_field accept_fields[] = {
    JSON_SCHEMA(ACCEPT_SCHEMA),
    JSON_CHOICE(accept, "verdict", acceptance.verdict, result_acceptance_names),
    TEXT("reason", acceptance.reason),
    TEXT("drain", acceptance.drain),
    JSON_OBJECT("expected", expected),
    JSON_OBJECT("measured", measured),
    JSON_MEMBER(accept, "preflight", report, preflight_fields),
    JSON_END
};
static const struct json_field head[] = {
    JSON_SCHEMA(ACCEPT_SCHEMA),
    JSON_CHOICE(accept, "verdict", acceptance.verdict, result_acceptance_names),
    TEXT("reason", acceptance.reason),
    TEXT("drain", acceptance.drain),
    JSON_END
};
// clang-format on

bool accept_read_json(struct accept *accept, const json_t *document)
{
    const char *schema = json_string_value(json_object_get(document, "schema"));
    status      read   = OK;
    bool        is_one = schema != NULL && strcmp(schema, ACCEPT_SCHEMA) == 0;
    *accept            = (struct accept){.run_id = ""};
    if (is_one) {
        read = json_to_struct(head, accept, document);
    }
    return is_one && !failed(&read);
}

void accept_write_json(const struct accept *accept, FILE *file)
{
    json_t *document = json_from_struct(accept_fields, accept);
    json_print(document, file);
    json_decref(document);
}

static const char *shout(enum acceptance verdict)
{
    switch (verdict) {
    case ACCEPTANCE_ACCEPT:
        return "ACCEPT";
    case ACCEPTANCE_REFUSE:
        return "REFUSE";
    case ACCEPTANCE_NONE:
    case ACCEPTANCE_CANNOT_TELL:
        return "CANNOT TELL";
    }
    return "CANNOT TELL";
}

static enum colour colour_of(enum acceptance verdict)
{
    return verdict == ACCEPTANCE_ACCEPT ? COLOUR_GOOD : verdict == ACCEPTANCE_REFUSE ? COLOUR_BAD : COLOUR_DOUBTFUL;
}

void accept_write_text(const struct accept *accept, FILE *file)
{
    const struct result_acceptance *acceptance = &accept->acceptance;
    enum acceptance                 verdict    = (enum acceptance)acceptance->verdict;
    fprintf(file, "%s%s%s  %s\n", terminal_colour(file, colour_of(verdict)), shout(verdict),
            terminal_colour(file, COLOUR_END), acceptance->reason);
    fprintf(file, "drain: %s\n", acceptance->drain[0] != '\0' ? acceptance->drain : "none");
}
