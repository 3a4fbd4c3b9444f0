// SPDX-License-Identifier: MIT
// Tests that every job of every shipped configuration passes `check` and states the published numbers. A configuration
// has a row for each number of ranks and precision with a published step time.
#include "gswbench/cli.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <dirent.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "draw.h"
#include "line.h"
#include "published_rows.h"

// Runs gswbench and returns the JSON document that it prints.
static json_t *run(const char *const words[], int count)
{
    char path[] = "/tmp/gswbench-configs-XXXXXX";
    cr_assert(mkstemp(path) >= 0);
    cr_assert_not_null(freopen(path, "w", stdout));

    setenv("GSWBENCH_CONFIGS", GSWBENCH_SOURCE_DIR "/configs", 1);
    char              *arguments[16];
    struct text_buffer errors = {0};
    for (int i = 0; i < count; i++) {
        arguments[i] = strdup(words[i]);
    }
    status result = cli_run(count, arguments, &errors);
    cr_assert(!failed(&result) || result.exit_code == EXIT_MEMORY, "%s: %s%s", words[count - 1],
              errors.text == NULL ? "" : errors.text, result.text);    // with few ranks, the plan may not fit
    fflush(stdout);
    for (int i = 0; i < count; i++) {
        free(arguments[i]);
    }

    json_t *document = json_load_file(path, 0, NULL);
    cr_assert_not_null(document, "%s: output is no JSON", words[count - 1]);
    unlink(path);
    return document;
}

// Returns the rows of `gswbench check --json` for this configuration, precision and number of ranks.
static json_t *check(const char *config, const char *precision, int64_t ranks)
{
    const char *setting  = line_of("precision.compute=%s", precision);
    const char *words[]  = {"gswbench", "check", "--config", config, "--json", "--ranks", line_of("%d", (int)ranks),
                            "--set",    setting};
    json_t     *document = run(words, 9);
    json_t     *found    = json_incref(json_object_get(document, "rows"));
    json_decref(document);
    return found;
}

// Compares a number with a published text. The number is printed with as many decimals as the text has, or as many
// digits for a text like "1.82e+15".
static void expect_figure(const struct published_row *row, const char *what, double number, const char *pattern)
{
    const char *point    = strchr(pattern, '.');
    const char *exponent = strchr(pattern, 'e');
    char        text[64];
    if (exponent != NULL) {
        snprintf(text, sizeof(text), "%.*e", (int)(exponent - point) - 1, number);
    } else {
        snprintf(text, sizeof(text), "%.*f", (int)strlen(point) - 1, number);
    }
    cr_expect_str_eq(text, pattern, "%s at %d ranks, %s: %s is %s, not %s", row->config, (int)row->ranks,
                     row->precision, what, text, pattern);
}

// Compares a value, which is divided by `unit`, with a published text. The text is NULL or empty if nothing was
// published.
static void expect_optional(const struct published_row *row, const char *what, const json_t *found, double unit,
                            const char *pattern)
{
    if (pattern == NULL || pattern[0] == '\0') {
        cr_expect(json_is_null(found), "%s: %s was not published", row->config, what);
    } else {
        expect_figure(row, what, json_number_value(found) / unit, pattern);
    }
}

// Checks that the memory of the storages sums to the total. A job with published numbers must fit into the 80 GB of its
// GPU.
static void expect_fit(const struct published_row *row, const json_t *plan, bool is_published)
{
    json_int_t  sum = 0, total = json_integer_value(json_object_get(plan, "total_bytes"));
    const char *storage;
    json_t     *bytes;
    json_object_foreach(json_object_get(plan, "storage_bytes"), storage, bytes)
    {
        sum += json_integer_value(bytes);
    }
    cr_expect_eq(sum, total);
    cr_expect_eq(json_integer_value(json_object_get(plan, "quantized_bytes")) > 0, strcmp(row->precision, "fp8") == 0);
    cr_expect(!is_published || (double)total < 80e9, "%s at %d ranks, %s takes %.2f GB", row->config, (int)row->ranks,
              row->precision, (double)total / 1e9);
}

// The step time must equal the published one exactly, and the MFU derived from it must equal the published MFU.
static void expect_published(const struct published_row *row, const json_t *found)
{
    const json_t *seconds = json_object_get(found, "step_s");
    if (row->step_seconds == NULL) {
        cr_expect(json_is_null(seconds), "%s at %d ranks was not published", row->config, (int)row->ranks);
    } else {
        cr_expect(json_number_value(seconds) == strtod(row->step_seconds, NULL), "%s at %d ranks, %s: not %s s",
                  row->config, (int)row->ranks, row->precision, row->step_seconds);
    }
    expect_optional(row, "printed MFU", json_object_get(found, "mfu"), 0.01, row->mfu_percent);
    expect_optional(row, "derived MFU", json_object_get(found, "derived_mfu"), 0.01,
                    row->derived_percent != NULL ? row->derived_percent : row->mfu_percent);
}

static void expect_row(const struct published_row *row, const json_t *found)
{
    cr_expect_eq(json_integer_value(json_object_get(found, "ranks")), row->ranks);
    cr_expect_str_eq(json_string_value(json_object_get(found, "precision")), row->precision);
    cr_expect_eq(json_integer_value(json_object_get(found, "layers")), row->layers);
    cr_expect_str_eq(json_string_value(json_object_get(found, "layout")), row->layout);
    cr_expect_eq(json_integer_value(json_object_get(json_object_get(found, "batch"), "global_batch")),
                 row->global_batch, "%s at %d ranks", row->config, (int)row->ranks);
    expect_figure(row, "parameters", json_number_value(json_object_get(found, "parameters")) / 1e9, row->billions);
    expect_optional(row, "FLOPs", json_object_get(json_object_get(found, "flops_per_sequence"), "published"), 1,
                    row->flops);
    expect_published(row, json_object_get(found, "published"));
    expect_fit(row, json_object_get(found, "plan"), row->flops[0] != '\0');
}

static const struct published_row *find(const char *config, int64_t ranks, const char *precision)
{
    for (const struct published_row *row = published_rows; row < published_rows + PUBLISHED_ROWS; row++) {
        if (strcmp(row->config, config) == 0 && row->ranks == ranks && strcmp(row->precision, precision) == 0) {
            return row;
        }
    }
    return NULL;
}

// Selects the last row of each configuration and an eighth of the other rows. GSWBENCH_ROWS=all selects every row.
static bool is_chosen(const struct published_row *row)
{
    int64_t index   = row - published_rows;
    bool    is_last = index + 1 == PUBLISHED_ROWS || strcmp(row[1].config, row->config) != 0;
    return is_last || is_drawn((int)index, 8);
}

static void check_config(const char *config)
{
    for (const struct published_row *row = published_rows; row < published_rows + PUBLISHED_ROWS; row++) {
        if (strcmp(row->config, config) == 0 && is_chosen(row)) {
            json_t *found = check(config, row->precision, row->ranks);
            cr_expect_eq((int)json_array_size(found), 1, "%s", config);
            expect_row(row, json_array_get(found, 0));
            json_decref(found);
        }
    }
}

// Checks a row of a configuration that is missing in published_rows: its step time must imply its MFU, in all digits
// that the configuration has.
static void expect_consistent(const struct published_row *row)
{
    json_t       *rows_of   = check(row->config, row->precision, row->ranks);
    const json_t *found     = json_array_get(rows_of, 0);
    const json_t *published = json_object_get(found, "published");
    const json_t *mfu       = json_object_get(published, "mfu");
    bool          is_there  = json_is_number(json_object_get(published, "step_s"));
    char          pattern[32];
    snprintf(pattern, sizeof(pattern), "%.6g", 100 * json_number_value(mfu));
    if (strchr(pattern, '.') == NULL) {
        strcat(pattern, ".0");
    }
    cr_expect_eq(json_is_number(mfu), is_there, "%s at %d ranks, %s: a step time and its MFU, or a row of the tables",
                 row->config, (int)row->ranks, row->precision);
    if (is_there && json_is_number(mfu)) {
        expect_figure(row, "derived MFU", 100 * json_number_value(json_object_get(published, "derived_mfu")), pattern);
    }
    expect_fit(row, json_object_get(found, "plan"), is_there);
    json_decref(rows_of);
}

// Checks that every row of published_rows is in a shipped configuration. Other rows of configurations must be
// consistent in themselves.
Test(configs, are_in_the_table_row_by_row)
{
    int         count   = 0;
    const char *words[] = {"gswbench", "configs", "--json"};
    json_t     *list = run(words, 3), *configs = json_object_get(list, "configs");
    size_t      i, j;
    json_t     *config, *row;
    json_array_foreach(configs, i, config)
    {
        if (json_is_true(json_object_get(config, "atlas"))) {
            continue;    // atlas_rows.sh tests these
        }
        json_array_foreach(json_object_get(config, "rows"), j, row)
        {
            const char *name     = json_string_value(json_object_get(config, "name"));
            int64_t     any      = json_integer_value(json_object_get(row, "ranks"));
            int64_t     ranks    = any == 0 ? 1 : any;
            const char *type     = json_string_value(json_object_get(row, "precision"));
            bool        is_known = find(name, ranks, type) != NULL;
            count += is_known;
            if (!is_known) {
                expect_consistent(&(struct published_row){.config = name, .ranks = ranks, .precision = type});
            }
        }
    }
    cr_expect_eq(count, PUBLISHED_ROWS);
    json_decref(list);
}

// The parameter of a test is the name of a configuration.
struct name {
    char text[64];
};
enum { CONFIGS = 17 };

// Makes one test per configuration, so that the tests run in parallel.
ParameterizedTestParameters(configs, are_what_was_published)
{
    static struct name names[CONFIGS + 1];
    DIR               *folder = opendir(GSWBENCH_SOURCE_DIR "/configs");
    size_t             count  = 0;
    for (struct dirent *entry; folder != NULL && count <= CONFIGS && (entry = readdir(folder)) != NULL;) {
        const char *ending = strstr(entry->d_name, ".ini");
        if (ending != NULL) {
            snprintf(names[count++].text, sizeof(names[0].text), "%.*s", (int)(ending - entry->d_name), entry->d_name);
        }
    }
    closedir(folder);
    return cr_make_param_array(struct name, names, count);
}

ParameterizedTest(struct name *name, configs, are_what_was_published)
{
    check_config(name->text);
}

Test(configs, are_all_in_the_table)
{
    int listed = 0, published = 0;
    for (int i = 0; i < PUBLISHED_ROWS; i++) {
        listed += i == 0 || strcmp(published_rows[i].config, published_rows[i - 1].config) != 0;
        published += published_rows[i].step_seconds != NULL;
    }
    cr_expect_eq(listed, CONFIGS);
    cr_expect_eq(published, 81);
}

Test(configs, say_what_a_published_step_means)
{
    json_t *found     = check("llama2-70b-fsdp", "bf16", 64);
    json_t *published = json_object_get(json_array_get(found, 0), "published");
    double  tokens    = json_number_value(json_object_get(published, "derived_tokens_per_s"));
    cr_expect_float_eq(tokens, 74908.99, 0.005);
    cr_expect_float_eq(1e12 / tokens / 86400.0, 154.51, 0.005);
    json_decref(found);
}

// NVIDIA published that weights, gradients and optimizer state of the 8B model take 44.27 GB per GPU on 8 GPUs in BF16.
Test(configs, hold_what_was_published)
{
    json_t *found = check("llama3.1-8b", "bf16", 8);
    json_t *plan  = json_object_get(json_array_get(found, 0), "plan");
    json_t *bytes = json_object_get(plan, "storage_bytes");
    double  held  = json_number_value(json_object_get(bytes, "weights")) +
                  json_number_value(json_object_get(bytes, "gradients")) +
                  json_number_value(json_object_get(bytes, "optimizer"));
    cr_expect_float_eq(held, 44.27e9, 0.01 * 44.27e9, "%.2f GB", held / 1e9);
    json_decref(found);
}

// Tests 128 dropless experts on 64 ranks. The expected FLOPs of a step, with recompute and padded vocabulary, must be
// about 4 forward passes of its tokens. Buffers for the worst case must fit.
Test(configs, prove_experts_that_drop_nothing_at_64_ranks)
{
    const char *words[] = {"gswbench", "check", "--config", "qwen3-30b-a3b", "--json",
                           "--ranks",  "64",    "--set",    "parallel.ep=64"};
    json_t     *found = run(words, 9), *row = json_array_get(json_object_get(found, "rows"), 0);
    json_t     *flops = json_object_get(row, "flops_per_sequence"), *plan = json_object_get(row, "plan");
    double      forward = json_number_value(json_object_get(flops, "causal")) / 3;
    double      share   = json_number_value(json_object_get(flops, "hardware")) / (4 * forward);
    cr_expect(share > 0.95 && share < 1.05, "%g", share);
    cr_expect_eq(json_integer_value(json_object_get(json_object_get(plan, "verified"), "ranks")), 64);
    cr_expect(json_number_value(json_object_get(plan, "total_bytes")) < 80e9);
    json_decref(found);
}
