// SPDX-License-Identifier: MIT
// Runs a suite: one preflight, then each row, which is a job with its own output folder. A row is not run again if its
// folder has the accept.json of an earlier run with the same configuration. So a stopped suite continues where it
// stopped.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/input.h"
#include "gswbench/output.h"
#include "internal.h"

// The state of one rank while a suite runs. Only rank 0 stores the outcomes of rows.
struct session {
    struct suite           *suite;
    struct preflight_report report;
    struct comm            *comm;
    bool                    is_first;
};

static void keep_outcome(struct suite_row *row, const struct accept *accept)
{
    const struct result_acceptance *acceptance = &accept->acceptance;
    row->verdict                               = acceptance->verdict;
    row->step_seconds                          = accept->step.median;
    row->low                                   = accept->step.low;
    row->high                                  = accept->step.high;
    row->expected_seconds                      = acceptance->expected_seconds;
    row->percent                               = acceptance->percent;
    if (strcmp(acceptance->basis, "published") == 0) {
        row->published_percent = 100.0 * row->published_seconds / row->step_seconds;
    }
    suite_row_set_dollars(row, row->step_seconds);
    text_copy(row->basis, sizeof(row->basis), acceptance->basis);
    text_copy(row->reason, sizeof(row->reason), acceptance->reason);
    text_copy(row->drain, sizeof(row->drain), acceptance->drain);
    text_copy(row->run_id, sizeof(row->run_id), accept->run_id);
    text_copy(row->run_verdict, sizeof(row->run_verdict), accept->run_verdict);
}

static bool was_stopped(const char *run_verdict)
{
    return strcmp(run_verdict, result_verdict_names[VERDICT_PARTIAL]) == 0;
}

// Returns whether the content of the file is equal to the text.
static bool has_text(const char *path, const char *text, size_t bytes)
{
    char  *read;
    size_t read_bytes;
    input_load(path, bytes, &read, &read_bytes);
    bool is_same = read != NULL && read_bytes == bytes && memcmp(read, text, bytes) == 0;
    free(read);
    return is_same;
}

// Loads the outcome of an earlier run from the row's folder, unless that run was stopped. Fails if the folder has a run
// of another configuration.
static status find_earlier(struct session *session, struct suite_row *row)
{
    char          path[OUTPUT_PATH_BYTES];
    struct accept earlier;
    json_t       *document = NULL;
    snprintf(path, sizeof(path), "%s/%s/accept.json", session->suite->output, row->name);
    if (access(path, F_OK) != 0) {
        return OK;
    }
    TRY(result_load_document(path, &document));
    bool is_read = accept_read_json(&earlier, document);
    json_decref(document);
    FAIL_IF(!is_read, "%s is no result of accept: choose another folder with -o", path);
    snprintf(path, sizeof(path), "%s/%s/config.ini", session->suite->output, row->name);
    FAIL_IF(!has_text(path, row->benchmark->config_text, row->benchmark->config_bytes),
            "%s/%s has a run of another configuration: choose another folder with -o, or remove it",
            session->suite->output, row->name);
    row->is_earlier = !was_stopped(earlier.run_verdict);
    if (row->is_earlier) {
        keep_outcome(row, &earlier);
    }
    return OK;
}

static status find_all_earlier(struct session *session)
{
    status result = OK;
    for (int64_t i = 0; session->is_first && i < session->suite->row_count; i++) {
        if (session->suite->rows[i].benchmark != NULL) {
            status_add(&result, find_earlier(session, &session->suite->rows[i]));
        }
    }
    return comm_agree(session->comm, result);
}

// Writes config.ini before the run. A restarted suite uses it to check that accept.json is of the same configuration.
static status begin_row(const struct session *session, const struct suite_row *row, const char *folder)
{
    char path[OUTPUT_PATH_BYTES + sizeof("/config.ini")];
    if (!session->is_first) {
        return OK;
    }
    if (!session->suite->json) {
        printf("\n== %s\n", row->name);
    }
    TRY(output_create_folders(folder));
    snprintf(path, sizeof(path), "%s/config.ini", folder);
    return output_replace(path, row->benchmark->config_text, row->benchmark->config_bytes);
}

// Returns whether the error only ends this row, so that the suite continues with the next row: the job is invalid or
// does not fit into memory. Every rank returns such an error.
static bool ends_only_row(const status *error)
{
    return error->exit_code == EXIT_CONFIG || error->exit_code == EXIT_MEMORY;
}

// Stores the error as the row's reason, on one line.
static void keep_error(struct suite_row *row, status error)
{
    row->verdict   = ACCEPTANCE_CANNOT_TELL;
    row->reason[0] = '\0';
    for (char *rest, *line = strtok_r(error.text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        size_t used = strlen(row->reason);
        snprintf(row->reason + used, sizeof(row->reason) - used, "%s%s", used > 0 ? "; " : "", line);
    }
}

static status run_row(struct session *session, struct suite_row *row)
{
    char           folder[OUTPUT_PATH_BYTES];
    const char    *suite  = session->suite->output;
    struct accept *accept = memory_allocate(sizeof(*accept));
    snprintf(folder, sizeof(folder), "%s/%s", suite, row->name);
    accept->preflight =
        (struct preflight){.benchmark = *row->benchmark, .output = folder, .json = session->suite->json};
    accept->preflight.benchmark.sign_key = session->suite->sign_key;
    accept->preflight.is_part            = true;
    accept->report                       = session->report;
    status result                        = comm_agree(session->comm, begin_row(session, row, folder));
    result                               = failed(&result) ? result : accept_job(accept, session->comm);
    if (session->is_first && !failed(&result)) {
        keep_outcome(row, accept);
        session->suite->is_stopped = was_stopped(row->run_verdict);
    } else if (session->is_first && ends_only_row(&result)) {
        keep_error(row, result);
    }
    free(accept);
    return ends_only_row(&result) ? OK : result;
}

// Returns whether the row must still run. Rank 0 decides, because only it knows the outcomes. Collective.
static bool must_run(const struct session *session, const struct suite_row *row)
{
    int open = session->is_first && row->benchmark != NULL && !row->is_earlier && !session->suite->is_stopped;
    session->comm->ops->share(session->comm, &open, sizeof(open), 0);
    return open != 0;
}

// Sets the verdict of the suite: refused if the preflight found outliers or a row was refused, accepted if all rows
// were accepted. Otherwise it cannot tell.
static void conclude(struct suite *suite, const struct preflight_report *report)
{
    int64_t accepted = 0, refused = report->outlier_count;
    accept_add_drain(report, suite->drain, sizeof(suite->drain));
    for (int64_t i = 0; i < suite->row_count; i++) {
        const struct suite_row *row = &suite->rows[i];
        accepted += row->verdict == ACCEPTANCE_ACCEPT;
        refused += row->verdict == ACCEPTANCE_REFUSE;
        if (suite->drain[0] == '\0') {
            text_copy(suite->drain, sizeof(suite->drain), row->drain);
        }
    }
    suite->verdict = refused > 0                    ? ACCEPTANCE_REFUSE
                     : accepted == suite->row_count ? ACCEPTANCE_ACCEPT
                                                    : ACCEPTANCE_CANNOT_TELL;
}

static status write_files(const struct suite *suite, const struct preflight_report *report)
{
    char path[OUTPUT_PATH_BYTES];
    TRY(output_create_folders(suite->output));
    struct text_stream stream;
    snprintf(path, sizeof(path), "%s/suite.json", suite->output);
    status written = accept_write_document(suite_fields, suite, path, suite->sign_key, suite->json);
    if (!suite->json) {
        putchar('\n');
        suite_write_text(suite, stdout);
        fputs("details: ", stdout);
        text_print(suite->output, stdout);
        puts("/suite.html");
    }
    TRY(written);
    text_stream_open(&stream);
    suite_write_html(suite, report, stream.file);
    return output_save(&stream, "%s/suite.html", suite->output);
}

static status leave(struct session *session)
{
    int    code   = 0;
    status result = OK;
    if (session->is_first) {
        conclude(session->suite, &session->report);
        result = write_files(session->suite, &session->report);
        code   = session->suite->is_stopped ? EXIT_STOPPED
                                            : result_acceptance_code((enum acceptance)session->suite->verdict);
    }
    return accept_leave(session->comm, result, code);
}

// Runs the preflight of the suite with the ops of the first row that can run and fits the machine.
static status measure(struct session *session)
{
    const struct suite *suite     = session->suite;
    struct preflight    preflight = {.seconds = suite->seconds, .json = suite->json};
    status              result    = OK;
    bool                is_done   = false;
    for (int64_t i = 0; !is_done && i < suite->row_count; i++) {
        if (suite->rows[i].benchmark != NULL) {
            preflight_free(&session->report);
            preflight.benchmark = *suite->rows[i].benchmark;
            result              = preflight_measure(&session->report, &preflight, session->comm);
            is_done             = !failed(&result) || !ends_only_row(&result);
        }
    }
    if (!failed(&result) && session->is_first && !suite->json) {
        preflight_write_text(&session->report, stdout);
    }
    return result;
}

// If ranks are threads of one process, they share *suite. So only rank 0 changes it, and only between collectives.
status suite_rank(const void *shared, struct comm *comm)
{
    struct suite  *suite   = *(struct suite *const *)shared;
    struct session session = {.suite = suite, .comm = comm, .is_first = comm->topology.rank == 0};
    TRY(find_all_earlier(&session));
    status result = measure(&session);
    for (int64_t i = 0; !failed(&result) && session.report.outlier_count == 0 && i < suite->row_count; i++) {
        if (must_run(&session, &suite->rows[i])) {
            result = run_row(&session, &suite->rows[i]);
        }
    }
    result = failed(&result) ? result : leave(&session);
    preflight_free(&session.report);
    return result;
}
