// SPDX-License-Identifier: MIT
// Runs the acceptance test of a machine: a preflight, then the job if there are no outliers. src/result/result_check.c
// decides the verdict. The verdict is written as text, as an HTML page, and with all its inputs as accept.json.
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/json.h"
#include "gswbench/output.h"
#include "gswbench/predict.h"
#include "gswbench/signature.h"
#include "gswbench/terminal.h"
#include "gswbench/text.h"
#include "internal.h"

static const double machines_percent = 3.5;    // percent by which equal machines differ: docs/logs.md

static void set_expectation(struct result_acceptance *acceptance, const char *basis, double seconds, double percent)
{
    text_copy(acceptance->basis, sizeof(acceptance->basis), basis);
    acceptance->expected_seconds = seconds;
    acceptance->percent          = percent;
}

bool accept_expect(struct result_acceptance *acceptance, const struct job *job, const char *device)
{
    set_expectation(acceptance, "nothing", NAN, NAN);
    if (strcmp(device, job->config.hardware.device) != 0) {
        return true;
    }
    // Predicts the step of gswbench, which is measured, and not of the framework that the job models.
    struct predict_row *row = memory_allocate(sizeof(*row));
    row->job                = *job;
    option_set_defaults(software_options, &row->job.config.software);
    predict_row_compute(row, true);
    if (!isnan(row->published_seconds)) {
        set_expectation(acceptance, "published", row->published_seconds, machines_percent);
    } else if (!failed(&row->support)) {
        set_expectation(acceptance, "predicted", row->prediction.step_seconds,
                        hypot(machines_percent, row->range.percent));
    }
    bool may_fit = failed(&row->support) || row->is_fit;
    text_free(&row->warnings);
    free(row);
    return may_fit;
}

// clang-format off

#define ACCEPT_SCHEMA "gswbench.accept/1"

static const struct json_field expected[] = {
    ROW_TEXT(accept, "basis", acceptance.basis),
    ROW_REAL(accept, "step_s", acceptance.expected_seconds),
    ROW_REAL(accept, "percent", acceptance.percent),
    JSON_END
};
static const struct json_field measured[] = {
    ROW_TEXT(accept, "run_id", run_id),
    ROW_TEXT(accept, "run_verdict", run_verdict),
    ROW_INTEGER(accept, "steps", step.count),
    ROW_REAL(accept, "step_s", step.median),
    ROW_INTERVAL(accept, "ci95", step.low),
    ROW_REAL(accept, "cv", step.variation),
    JSON_END
};
#define HEAD \
    JSON_SCHEMA(ACCEPT_SCHEMA), \
    JSON_CHOICE(accept, "verdict", acceptance.verdict, result_acceptance_names), \
    ROW_TEXT(accept, "reason", acceptance.reason), \
    ROW_TEXT(accept, "drain", acceptance.drain), \
    JSON_OBJECT("expected", expected), \
    JSON_OBJECT("measured", measured)
const struct json_field accept_fields[] = { HEAD, JSON_MEMBER(accept, "preflight", report, preflight_fields), JSON_END };
static const struct json_field head[]   = { HEAD, JSON_END };    // read by accept_read_json
// clang-format on

bool accept_read_json(struct accept *accept, const json_t *document)
{
    const char *schema = json_string_value(json_object_get(document, "schema"));
    *accept            = (struct accept){.run_id = ""};
    if (schema == NULL || strcmp(schema, ACCEPT_SCHEMA) != 0) {
        return false;
    }
    status read = json_to_struct(head, accept, document);
    return !failed(&read);
}

static const struct {
    const char *text;
    enum colour colour;
} shown[]                         = {[ACCEPTANCE_NONE]        = {"CANNOT TELL", COLOUR_DOUBTFUL},
                                     [ACCEPTANCE_CANNOT_TELL] = {"CANNOT TELL", COLOUR_DOUBTFUL},
                                     [ACCEPTANCE_ACCEPT]      = {"ACCEPT", COLOUR_GOOD},
                                     [ACCEPTANCE_REFUSE]      = {"REFUSE", COLOUR_BAD}};
const char *const accept_styles[] = {[ACCEPTANCE_NONE]        = "degraded",
                                     [ACCEPTANCE_CANNOT_TELL] = "degraded",
                                     [ACCEPTANCE_ACCEPT]      = "valid",
                                     [ACCEPTANCE_REFUSE]      = "invalid"};

void accept_write_verdict(int64_t verdict, const char *text, const char *drain, FILE *file)
{
    fprintf(file, "%s%s%s  %s\n", terminal_colour(file, shown[verdict].colour), shown[verdict].text,
            terminal_colour(file, COLOUR_END), text);
    fprintf(file, "drain: %s\n", drain[0] != '\0' ? drain : "none");
}

void accept_write_text(const struct accept *accept, FILE *file)
{
    accept_write_verdict(accept->acceptance.verdict, accept->acceptance.reason, accept->acceptance.drain, file);
}

static void add_host(char *hosts, size_t bytes, const char *host)
{
    size_t used = strlen(hosts);
    snprintf(hosts + used, bytes - used, "%s%s", used > 0 ? "," : "", host);
}

void accept_add_drain(const struct preflight_report *report, char *hosts, size_t bytes)
{
    for (int64_t i = 0; i < report->drain_count; i++) {
        add_host(hosts, bytes, report->drain[i].host);
    }
}

// Adds the host of the rank that made the run INVALID to the drain list, unless the list already has hosts.
static void drain_invalid(struct accept *accept, const struct result *result)
{
    for (int64_t i = 0; i < result->reason_count; i++) {
        const struct result_reason *reason = &result->reasons[i];
        if (reason->verdict == VERDICT_INVALID && reason->rank >= 0 && reason->rank < accept->report.rank_count &&
            accept->acceptance.drain[0] == '\0') {
            add_host(accept->acceptance.drain, sizeof(accept->acceptance.drain),
                     accept->report.ranks[reason->rank].host);
        }
    }
}

// Sets the verdict. The run calls this before it writes its files, so they contain the verdict.
static void conclude(void *context, struct result *result)
{
    struct accept *accept = context;
    drain_invalid(accept, result);
    result->acceptance = accept->acceptance;
    result_accept(result);
    accept->acceptance = result->acceptance;
    accept->step       = result->figures.step;
    text_copy(accept->run_id, sizeof(accept->run_id), result->run_id);
    text_copy(accept->run_verdict, sizeof(accept->run_verdict), result_verdict_names[result->verdict]);
}

// Sets the verdict from the preflight alone, because the job did not run.
static void refuse(struct accept *accept)
{
    struct result none = {.acceptance = accept->acceptance};
    result_accept(&none);
    accept->acceptance = none.acceptance;
    accept->step       = (struct statistics){.median = NAN, .low = NAN, .high = NAN, .variation = NAN};
}

status accept_write_document(const struct json_field *fields, const void *from, const char *path, const char *sign_key,
                             bool prints)
{
    struct text_stream stream;
    text_stream_open(&stream);
    json_write(fields, from, stream.file);
    text_stream_close(&stream);
    status written = output_replace(path, stream.data, stream.bytes);
    if (!failed(&written) && sign_key != NULL) {
        written = signature_make(path, sign_key);
    }
    if (prints) {
        fwrite(stream.data, 1, stream.bytes, stdout);
    }
    free(stream.data);
    return written;
}

static status write_files(const struct accept *accept)
{
    char                    path[OUTPUT_PATH_BYTES];
    const struct preflight *preflight = &accept->preflight;
    struct text_stream      page;
    snprintf(path, sizeof(path), "%s/accept.json", preflight->output);
    status written = accept_write_document(accept_fields, accept, path, preflight->benchmark.sign_key,
                                           preflight->json && !preflight->is_part);
    if (!preflight->json) {
        accept_write_text(accept, stdout);
        fputs("details: ", stdout);
        text_print(path, stdout);
        putchar('\n');
    }
    TRY(written);
    text_stream_open(&page);
    accept_write_html(accept, page.file);
    return output_save(&page, "%s/accept.html", preflight->output);
}

status accept_leave(struct comm *comm, status written, int exit_code)
{
    TRY(comm_agree(comm, written));
    comm->ops->share(comm, &exit_code, sizeof(exit_code), 0);
    return (status){.exit_code = exit_code};
}

status accept_job(struct accept *accept, struct comm *comm)
{
    const struct preflight_report *report    = &accept->report;
    const struct benchmark        *shared    = &accept->preflight.benchmark;
    struct benchmark               benchmark = *shared;
    bool                           is_first  = comm->topology.rank == 0;
    if (is_first) {
        accept_expect(&accept->acceptance, &shared->job, report->device);
        accept->acceptance.outliers = report->outlier_count;
        accept_add_drain(report, accept->acceptance.drain, sizeof(accept->acceptance.drain));
    }
    if (report->outlier_count == 0) {
        benchmark.json = benchmark.is_mute = accept->preflight.json;
        benchmark.conclude                 = conclude;
        benchmark.context                  = accept;
        TRY(benchmark_run_rank(&benchmark, comm));
    } else if (is_first) {
        refuse(accept);
    }
    // Only rank 0 knows the verdict, so accept_leave sends rank 0's exit code to all ranks.
    return accept_leave(comm, is_first ? write_files(accept) : OK,
                        result_acceptance_code((enum acceptance)accept->acceptance.verdict));
}

status accept_rank(const void *shared, struct comm *comm)
{
    struct accept *accept = memory_allocate(sizeof(*accept));
    accept->preflight     = ((const struct accept *)shared)->preflight;
    status result         = preflight_measure(&accept->report, &accept->preflight, comm);
    if (!failed(&result)) {
        if (comm->topology.rank == 0 && !accept->preflight.json) {
            preflight_write_text(&accept->report, stdout);
        }
        result = accept_job(accept, comm);
    }
    preflight_free(&accept->report);
    free(accept);
    return result;
}
