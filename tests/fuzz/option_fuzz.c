// SPDX-License-Identifier: MIT
// Fuzzes option values. An accepted value must be printed as a text that sets the same value again; a refused value
// must change nothing.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_file.h"
#include "gswbench/config.h"

static void round_trip(const struct config_section *section, const struct option *option, const char *text)
{
    struct config first, second, untouched;
    memset(&first, 0, sizeof(first));
    memset(&second, 0, sizeof(second));
    memset(&untouched, 0, sizeof(untouched));
    status result = option_set(option, (char *)&first + section->offset, text);
    if (failed(&result)) {
        require(memcmp(&first, &untouched, sizeof(first)) == 0);
        return;
    }
    char printed[512];
    option_print(option, (const char *)&first + section->offset, printed, sizeof(printed));
    result = option_set(option, (char *)&second + section->offset, printed);
    require(!failed(&result) && memcmp(&first, &second, sizeof(first)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    require(text != NULL);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        option_suggest(section->options, text);
        for (const struct option *option = section->options; option->key != NULL; option++) {
            round_trip(section, option, text);
        }
    }
    free(text);
    return 0;
}
