// SPDX-License-Identifier: MIT
// Splits command lines, runs them in this process, and captures their output.
#include "command.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char        *configs = GSWBENCH_SOURCE_DIR "/configs";
char               output[1 << 20];
struct text_buffer errors;

// Splits a line into words at spaces outside single quotes. Returns the number of words.
static int split(char *line, char **words, int count)
{
    bool  is_quoted = false, is_in_word = false;
    char *to = line;
    for (char *from = line; *from != '\0'; from++) {
        if (*from == '\'') {
            is_quoted = !is_quoted;
        } else if (*from == ' ' && !is_quoted) {
            *to++      = '\0';
            is_in_word = false;
        } else {
            if (!is_in_word) {
                words[count++] = to;
            }
            is_in_word = true;
            *to++      = *from;
        }
    }
    *to = '\0';
    return count;
}

status run(const char *line)
{
    char path[] = "/tmp/gswbench-cli-XXXXXX";
    cr_assert(mkstemp(path) >= 0);
    cr_assert_not_null(freopen(path, "w+", stdout));
    unlink(path);
    setenv("GSWBENCH_CONFIGS", configs, 1);

    char  copy[4096];
    char *words[64] = {"gswbench"};
    snprintf(copy, sizeof(copy), "%s", line);
    int    count  = split(copy, words, 1);
    status result = cli_run(count, words, &errors);

    rewind(stdout);
    output[fread(output, 1, sizeof(output) - 1, stdout)] = '\0';
    return result;
}

void expect_output(const char *part)
{
    static char       joined[sizeof(output)];
    static const char margin[] = "\n               ";    // of wrapped rows
    char             *to       = joined;
    for (const char *at = output; *at != '\0'; to++) {
        bool is_wrapped = strncmp(at, margin, strlen(margin)) == 0;
        *to             = is_wrapped ? ' ' : *at;
        at += is_wrapped ? strlen(margin) : 1;
    }
    *to = '\0';
    cr_expect(strstr(output, part) != NULL || strstr(joined, part) != NULL, "%s is missing in:\n%s", part, output);
}

void expect_80_columns(void)
{
    for (const char *line = output; *line != '\0'; line += strcspn(line, "\n") + 1) {
        cr_expect(line[0] == '/' || strcspn(line, "\n") <= 80, "%s", line);
    }
}

void expect_success(const char *line)
{
    status result = run(line);
    cr_assert_str_empty(result.text, "gswbench %s: %s%s", line, errors.text == NULL ? "" : errors.text, result.text);
}

void expect_error(const char *line, int exit_code, const char *text)
{
    status result = run(line);
    cr_expect_str_eq(result.text, text, "gswbench %s: %s", line, result.text);
    cr_expect_eq(result.exit_code, exit_code, "gswbench %s: exit code %d", line, result.exit_code);
}
