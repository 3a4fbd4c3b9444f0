// SPDX-License-Identifier: MIT
// Checksums of safetensors files: every difference is found and named.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "folder.h"
#include "gswbench/safetensors.h"

static const char path[] = "two.safetensors";

TestSuite(checksums, .init = enter_folder, .fini = remove_folder);

static void write_two(void)
{
    struct safetensor         tensors[] = {{.name = "a", .format = FORMAT_F32, .dims = 1, .dim = {2}},
                                           {.name = "bb", .format = FORMAT_F32, .dims = 1, .dim = {2}}};
    float                     values[4] = {1, 2, 3, 4};
    struct safetensors_writer writer;
    safetensors_create(&writer, path, tensors, 2);
    safetensors_append(&writer, values, sizeof(values));    // both at once
    status finished = safetensors_finish(&writer);
    cr_assert_not(failed(&finished), "%s", finished.text);
}

static status read_two(float values[4])
{
    struct safetensors_reader reader;
    TRY(safetensors_open(&reader, path));
    status result = safetensors_read(&reader, "a", values, 8);
    if (!failed(&result)) {
        result = safetensors_read(&reader, "bb", values + 2, 8);
    }
    safetensors_close(&reader);
    return result;
}

static size_t read_bytes(char bytes[1024])
{
    FILE  *file  = fopen(path, "rb");
    size_t count = fread(bytes, 1, 1024, file);
    fclose(file);
    return count;
}

// Flips bits of the length, the header with its padding, and the data.
Test(checksums, finds_every_bit_that_differs, .timeout = 60)
{
    char  bytes[1024];
    float values[4];
    write_two();
    size_t count = read_bytes(bytes);
    status whole = read_two(values);
    cr_assert(!failed(&whole) && values[0] == 1 && values[3] == 4, "%s", whole.text);

    for (size_t bit = 0; bit < 8 * count; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        write_bytes(path, bytes, count);
        bytes[bit / 8] ^= (char)(1 << bit % 8);

        status read = read_two(values);

        cr_expect_eq(read.exit_code, EXIT_CHECKPOINT, "bit %zu of byte %zu is not noticed", bit % 8, bit / 8);
        cr_expect_eq(strncmp(read.text, path, strlen(path)), 0, "%s", read.text);
    }
}

Test(checksums, names_the_tensor_whose_data_are_others)
{
    char  bytes[1024], expected[128];
    float values[4];
    write_two();
    size_t count = read_bytes(bytes);
    memcpy(bytes + count - 16, (float[]){3, 4, 1, 2}, 16);
    write_bytes(path, bytes, count);

    status read = read_two(values);

    snprintf(expected, sizeof(expected), "%s: tensor 'a': its data differ from their checksum", path);
    cr_expect_str_eq(read.text, expected);
}

Test(checksums, refuses_what_is_no_number)
{
    static const uint32_t bits[] = {0x7fc00000, 0xff800000, 0x7f800001};
    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        struct safetensor         tensor   = {.name = "a", .format = FORMAT_F32, .dims = 1, .dim = {2}};
        uint32_t                  values[] = {0x3f800000, bits[i]}, back[2];
        char                      expected[128];
        struct safetensors_writer writer;
        struct safetensors_reader reader;
        safetensors_create(&writer, path, &tensor, 1);
        safetensors_append(&writer, values, sizeof(values));
        safetensors_finish(&writer);
        status opened = safetensors_open(&reader, path);

        status read = safetensors_read(&reader, "a", back, sizeof(back));

        snprintf(expected, sizeof(expected), "%s: tensor 'a': has a NaN or an infinity", path);
        cr_expect(!failed(&opened));
        cr_expect_str_eq(read.text, expected);
        cr_expect_eq(read.exit_code, EXIT_CHECKPOINT);
        safetensors_close(&reader);
    }
}
