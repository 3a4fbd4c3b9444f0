// SPDX-License-Identifier: MIT
// gswbench report: prints a result.json in any result format.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/output.h"
#include "gswbench/preflight.h"
#include "gswbench/report.h"
#include "gswbench/result.h"
#include "gswbench/signature.h"
#include "internal.h"

const struct flag report_flags[] = {
    OPERANDS(words, "DIR|FILE", "folder of a run, its result.json, an accept.json, or files of others"),
    TEXT_FLAG(format, "--format", REPORT_FORMAT_NAMES, "output format; default: text"),
    TEXT_FLAG(signers, "--signers", "FILE",
              "require a signature by one of these keys (ssh-keygen's ALLOWED SIGNERS format)"),
    SWITCH_FLAG(recovers, "--recover", "write a partial result from the completed steps of a run that died"),
    HEADING("Files of other programs"),
    SWITCH_FLAG(mlperf, "--mlperf", "logs of MLPerf Training, runs of one submission: steps, spread, throughput"),
    SWITCH_FLAG(is_trace, "--trace", "a trace of the PyTorch profiler or of Chakra, in JSON: kernel times by part"),
    TEXT_FLAG(config.name, "--config", "NAME|FILE", "compare with the predicted step of this config"),
    LIST_FLAG(config.overrides, "--set", "SECTION.KEY=VALUE", "override an option of the config; repeatable"),
    INTEGER_FLAG(config.ranks, "--ranks", "N", 1, 1048576, "number of accelerators; default: as the log states"),
    SWITCH_FLAG(json, "--json", "print JSON"),
    END_FLAGS,
};

// Says who signed the file. An invalid signature is an error, and so is a missing one if a signer is required.
static status find_signer(const struct arguments *chosen, char *signer, size_t bytes)
{
    char path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    report_result_file(chosen->words.items[0], path, sizeof(path));
    snprintf(signer, bytes, "not signed");
    if (!signature_exists(path)) {
        return chosen->signers == NULL ? OK : fail_as(EXIT_COMPARE, "%.900s is not signed", path);
    }
    int length = snprintf(signer, bytes, "signed by ");
    return signature_verify(path, chosen->signers, signer + length, bytes - (size_t)length);
}

// Prints an acceptance file, if the path is one.
static status show_acceptance(const struct arguments *chosen, bool *is_shown)
{
    struct accept *accept   = memory_allocate(sizeof(*accept));
    json_t        *document = NULL;
    char           path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES], signer[300];
    status         shown  = OK;
    bool           is_dir = report_result_file(chosen->words.items[0], path, sizeof(path));
    status         loaded =
        is_dir ? OK : result_load_document(path, &document);    // for a folder, the result reader reports errors
    *is_shown = !failed(&loaded) && document != NULL && accept_read_json(accept, document);
    if (*is_shown) {
        shown = find_signer(chosen, signer, sizeof(signer));
    }
    if (*is_shown && !failed(&shown)) {
        accept_write_text(accept, stdout);
        printf("source: %s\n", signer);
    }
    json_decref(document);
    free(accept);
    return shown;
}

static status show_result(const struct arguments *chosen, const struct report_format *format)
{
    bool   is_acceptance;
    status accepted = show_acceptance(chosen, &is_acceptance);
    if (is_acceptance) {
        return accepted;
    }
    struct result result = {0};
    char          signer[300];
    status        shown = report_read_result(&result, chosen->words.items[0]);
    shown               = failed(&shown) ? shown : find_signer(chosen, signer, sizeof(signer));
    shown               = failed(&shown) ? shown : report_print(format->write, &result);
    if (!failed(&shown) && strcmp(format->name, "text") == 0) {
        printf("source: %s; %s\n", result.source, signer);
    }
    result_free(&result);
    return shown;
}

static status recover_result(const struct arguments *chosen, const struct report_format *format)
{
    struct result result    = {0};
    status        recovered = report_recover(&result, chosen->words.items[0], "the run died", NULL);
    recovered               = failed(&recovered) ? recovered : report_print(format->write, &result);
    result_free(&result);
    return recovered;
}

// Files of other programs have separate flags.
static status check_flags_of(const struct arguments *chosen)
{
    if (!chosen->mlperf && !chosen->is_trace) {
        bool has_any = chosen->config.name != NULL || chosen->config.ranks > 0 || chosen->config.overrides.count > 0;
        return has_any || chosen->json
                   ? fail_as(EXIT_USAGE, "--config, --set, --ranks and --json belong to --mlperf and --trace")
                   : OK;
    }
    const char *name = chosen->mlperf ? "--mlperf" : "--trace";
    if (chosen->mlperf && chosen->is_trace) {
        return fail_as(EXIT_USAGE, "--mlperf and --trace exclude each other");
    }
    if (chosen->format != NULL || chosen->signers != NULL || chosen->recovers) {
        return fail_as(EXIT_USAGE, "%s prints text or --json: leave --format, --signers and --recover out", name);
    }
    if (chosen->words.count == 0) {
        return fail_as(EXIT_USAGE, "%s needs a file", name);
    }
    return chosen->config.name == NULL && chosen->config.overrides.count > 0
               ? fail_as(EXIT_USAGE, "--set overrides an option of a config: give --config")
               : OK;
}

status command_report(const struct arguments *chosen, struct text_buffer *errors)
{
    TRY(check_flags_of(chosen));
    if (chosen->mlperf || chosen->is_trace) {
        return chosen->mlperf ? mlperf_print(chosen, errors) : trace_print(chosen, errors);
    }
    const struct report_format *format = report_find_format(chosen->format != NULL ? chosen->format : "text");
    if (chosen->words.count != 1) {
        return fail_as(EXIT_USAGE, "report shows one folder, result.json or accept.json, but %d are given",
                       chosen->words.count);
    }
    if (format == NULL) {
        return fail_as(EXIT_USAGE, "--format %s: %s", chosen->format, REPORT_FORMAT_NAMES);
    }
    return chosen->recovers ? recover_result(chosen, format) : show_result(chosen, format);
}
