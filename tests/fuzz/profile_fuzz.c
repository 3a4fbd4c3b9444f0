// SPDX-License-Identifier: MIT
// Fuzzes machine profiles. Reading must either fail with errors, or give a machine that has every measured op of the
// file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_file.h"
#include "gswbench/config.h"
#include "gswbench/measured.h"

static bool is_same(const struct op_key *key, const char *text)
{
    struct op_key again;
    return op_key_parse(text, &again) && memcmp(key, &again, sizeof(again)) == 0;
}

static void check_measured(const char *path)
{
    struct measured_ops measured;
    status              read = measured_read(&measured, path);
    require(!failed(&read) || read.exit_code == EXIT_CONFIG);
    for (int32_t i = 0; i < measured.count && !failed(&read); i++) {
        char text[OP_KEY_BYTES];
        op_key_print(&measured.ops[i].key, text);
        require(is_same(&measured.ops[i].key, text));
        require(measured_find_key(&measured, &measured.ops[i].key) != NULL);
    }
    measured_free(&measured);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const char           *path = fuzz_file("machine.ini", data, bytes);
    char                  text[300];
    struct config         config;
    struct text_buffer    errors  = {0};
    struct config_request request = {.name = "fuzz.ini", .ranks = 8};
    int                   length  = snprintf(text, sizeof(text), "[hardware]\nprofile = %s\n", path);
    status                result  = config_read_text(&config, &request, text, (size_t)length, &errors);
    require(failed(&result) == (errors.length > 0) && (!failed(&result) || result.exit_code == EXIT_CONFIG));
    text_free(&errors);
    check_measured(path);
    return 0;
}
