// SPDX-License-Identifier: MIT
// Prints the XXH3 checksum of standard input. Test scripts use it to write files with valid checksums.
#include <inttypes.h>
#include <stdio.h>

#include <xxhash.h>

int main(void)
{
    static char   data[1 << 16];
    XXH3_state_t *state = XXH3_createState();
    size_t        bytes;
    XXH_errorcode result = XXH3_64bits_reset(state);
    while (result == XXH_OK && (bytes = fread(data, 1, sizeof(data), stdin)) > 0) {
        result = XXH3_64bits_update(state, data, bytes);
    }
    printf("%016" PRIx64 "\n", XXH3_64bits_digest(state));
    XXH3_freeState(state);
    return result == XXH_OK ? 0 : 1;
}
