// SPDX-License-Identifier: MIT
// Fuzzes result files by changing keys and values. The reader must refuse a file, or judge the run by its contents. A
// result that it accepts as valid must have plausible numbers, and every report format must print it.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_file.h"
#include "gswbench/report.h"
#include "gswbench/result.h"
#include "result_fixture.h"

static json_t *document;    // the result of a valid run

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    struct result result;
    char         *text;
    size_t        bytes;
    (void)count;
    (void)arguments;
    fixture_open(&result);
    FILE *file = open_memstream(&text, &bytes);
    require(result_write_json(&result, file));
    fclose(file);
    document = json_loadb(text, bytes, 0, NULL);
    require(document != NULL);
    free(text);
    result_free(&result);
    return 0;
}

static json_t *make_value(uint8_t choice)
{
    static const char *const texts[] = {
        "null", "-1", "0",    "9223372036854775807", "1e308",  "-0.5", "\"\"", "\"\\u001b[2J\\nRESULT VALID</script>\"",
        "[]",   "{}", "true", "\"valid\"",           "1e-300", NULL};
    const char *text = texts[choice % (sizeof(texts) / sizeof(texts[0]))];
    json_t     *made = text != NULL ? json_loads(text, JSON_DECODE_ANY, NULL) : json_integer(choice);
    require(made != NULL);
    return made;
}

// Replaces one value of a document. Each byte of `data` selects a key or index one level down. Returns the number of
// bytes used.
static size_t replace(json_t *value, const uint8_t *data, size_t bytes)
{
    size_t at = 0;
    while (at + 1 < bytes) {
        size_t  size = json_is_object(value) ? json_object_size(value) : json_array_size(value);
        void   *iter = json_object_iter(value);
        size_t  step = size > 0 ? data[at] % size : 0;
        json_t *next = json_array_get(value, step);
        for (size_t i = 0; i < step && iter != NULL; i++) {
            iter = json_object_iter_next(value, iter);
        }
        next = iter != NULL ? json_object_iter_value(iter) : next;
        at++;
        if (next == NULL) {
            return at;
        }
        bool is_leaf = !json_is_object(next) && !json_is_array(next);
        if (is_leaf || data[at] >= 240) {
            if (iter != NULL) {
                json_object_iter_set_new(value, iter, make_value(data[at]));
            } else {
                json_array_set_new(value, step, make_value(data[at]));
            }
            return at + 1;
        }
        value = next;
    }
    return bytes;
}

static void print_all(const struct result *result)
{
    for (const struct report_format *format = report_formats; format->name != NULL; format++) {
        char *text = fixture_render(format->write, result);
        free(text);
    }
}

static void check_figures(const struct result *result)
{
    for (int64_t i = 0; i < result->step_count; i++) {
        require(isfinite(result->steps[i].loss) && result->steps[i].seconds > 0);
    }
    for (int convention = 0; convention < FLOPS_COUNT; convention++) {
        double utilization = result->figures.utilization[convention];
        require(isnan(utilization) || (utilization > 0 && utilization <= 1));
    }
}

// An input that starts like JSON is a whole file. Any other input changes values of the valid document.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct result result = {0};
    const char   *path;
    if (bytes > 0 && data[0] == '{') {
        path = fuzz_file("result.json", data, bytes);
    } else {
        json_t *changed = json_deep_copy(document);
        for (size_t done = 0; done < bytes;) {
            done += replace(changed, data + done, bytes - done);
        }
        char *text = json_dumps(changed, JSON_COMPACT);
        path       = fuzz_file("result.json", text, strlen(text));
        free(text);
        json_decref(changed);
    }
    status read = result_read_json(&result, path);
    if (!failed(&read)) {
        if (result.verdict == VERDICT_VALID) {
            check_figures(&result);
        }
        print_all(&result);
    }
    result_free(&result);
    return 0;
}
