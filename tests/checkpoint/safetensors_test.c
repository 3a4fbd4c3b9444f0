// SPDX-License-Identifier: MIT
// Tests the safetensors format: the bytes that are written, and files that must be refused with the reason. These are
// malformed files, files that differ from their checksums, and files with NaN.
#include "gswbench/safetensors.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "line.h"
#include "safetensors_read.h"
#include "success.h"

static const char path[] = "model.safetensors";

static struct safetensors_writer writer;
static struct safetensors_reader reader;

static void make_file(void)
{
    enter_folder();
    write_text(path, "");
}

static void remove_file(void)
{
    safetensors_close(&reader);
    remove_folder();
}

TestSuite(safetensors, .init = make_file, .fini = remove_file);

// Writes a file that has this header, then data_bytes bytes of zeros.
static void write_header(const char *header, size_t data_bytes)
{
    char   bytes[4096] = {0};
    size_t length      = strlen(header);
    bytes[0]           = (char)(length & 0xff);
    bytes[1]           = (char)(length >> 8);
    memcpy(bytes + 8, header, length);
    write_bytes(path, bytes, 8 + length + data_bytes);
}

static void expect_refused(const char *reason, size_t row)
{
    status result = safetensors_open(&reader, path);

    const char *text = line_of("%s: %s", path, reason);
    cr_expect_eq(result.exit_code, EXIT_CHECKPOINT, "row %zu: exit code %d", row, result.exit_code);
    bool is_reason = strncmp(result.text, text, strlen(text)) == 0;    // a message of the JSON library may follow
    cr_expect(is_reason, "row %zu: %s", row, result.text);
    cr_expect_null(reader.file);
}

static size_t read_bytes(char bytes[1024])
{
    FILE  *file  = fopen(path, "rb");
    size_t count = fread(bytes, 1, 1024, file);
    fclose(file);
    return count;
}

Test(safetensors, writes_the_bytes_of_the_format)
{
    struct safetensor tensors[] = {{.name = "b", .format = FORMAT_I32, .dims = 2, .dim = {1, 2}},
                                   {.name = "a", .format = FORMAT_BF16, .dims = 0}};
    int32_t           b[]       = {1, -2};
    bf16              a         = 0x3f80;
    static const char expected[] =
        "\xe0\0\0\0\0\0\0\0"
        "{\"__metadata__\":{\"format\":\"pt\",\"xxh3\":\"8d6918ab55ed0bba\",\"xxh3 b\":\"24d903658672aaf1\","
        "\"xxh3 a\":\"d5b04a01d92a33e2\"},\"b\":{\"dtype\":\"I32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[8,10]}}"
        " \x01\0\0\0\xfe\xff\xff\xff\x80\x3f";

    REQUIRE(safetensors_create(&writer, path, tensors, 2));
    REQUIRE(safetensors_append(&writer, b, sizeof(b)));
    REQUIRE(safetensors_append(&writer, &a, sizeof(a)));
    REQUIRE(safetensors_finish(&writer));

    char   bytes[1024];
    size_t count = read_bytes(bytes);
    cr_expect_eq(count, sizeof(expected) - 1, "%zu bytes", count);
    cr_expect_arr_eq(bytes, expected, sizeof(expected) - 1, "%.*s", (int)count - 8, bytes + 8);
    cr_expect_eq(tensors[1].begin, 8);
}

Test(safetensors, reads_what_it_wrote)
{
    struct safetensor tensors[] = {{.name = "tokens", .format = FORMAT_I32, .dims = 3, .dim = {1, 2, 2}},
                                   {.name = "empty", .format = FORMAT_F32, .dims = 1, .dim = {0}},
                                   {.name = "weight", .format = FORMAT_F32, .dims = 1, .dim = {2}}};
    int32_t           tokens[]  = {5, 6, 7, 8}, tokens_back[4];
    float             weight[]  = {0.5f, -3}, weight_back[2];
    safetensors_create(&writer, path, tensors, 3);
    safetensors_append(&writer, tokens, sizeof(tokens));
    safetensors_append(&writer, weight, sizeof(weight));
    safetensors_finish(&writer);

    REQUIRE(safetensors_open(&reader, path));
    EXPECT_SUCCESS(safetensors_read(&reader, "weight", weight_back, sizeof(weight_back)));
    EXPECT_SUCCESS(safetensors_read(&reader, "tokens", tokens_back, sizeof(tokens_back)));
    EXPECT_SUCCESS(safetensors_read(&reader, "empty", NULL, 0));
    cr_expect_arr_eq(tokens_back, tokens, sizeof(tokens));
    cr_expect_arr_eq(weight_back, weight, sizeof(weight));
    cr_expect_eq(reader.count, 3);
    EXPECT_ERROR_WITH(safetensors_read(&reader, "weight", weight_back, 4), EXIT_CHECKPOINT,
                      "tensor 'weight': 8 bytes, expected 4");
    EXPECT_ERROR_WITH(safetensors_read(&reader, "bias", weight_back, 4), EXIT_CHECKPOINT,
                      "tensor 'bias': not in the file");
}

Test(safetensors, leaves_the_older_file_when_writing_is_abandoned)
{
    struct safetensor tensor = {.name = "a", .format = FORMAT_F32, .dims = 1, .dim = {2}};
    struct stat       about;
    char              temporary[300];

    safetensors_create(&writer, path, &tensor, 1);
    snprintf(temporary, sizeof(temporary), "%s", writer.output.temporary);
    int present = access(temporary, F_OK);
    safetensors_abandon(&writer);

    cr_expect_eq(present, 0, "%s", temporary);
    cr_expect_neq(access(temporary, F_OK), 0);
    cr_expect(stat(path, &about) == 0 && about.st_size == 0, "the empty file that was there");
}

Test(safetensors, reports_a_file_that_cannot_be_written)
{
    struct safetensor tensor = {.name = "a", .format = FORMAT_F32, .dims = 1, .dim = {1 << 20}};

    EXPECT_ERROR(safetensors_create(&writer, "/no/such/folder/file", &tensor, 1), EXIT_OUTPUT,
                 "cannot write /no/such/folder/file: No such file or directory");
    tensor.dims   = 3;
    tensor.dim[1] = tensor.dim[2] = 1 << 20;
    EXPECT_ERROR_WITH(safetensors_create(&writer, path, &tensor, 1), EXIT_OUTPUT,
                      ": tensor 'a' is larger than any file");
    tensor.dim[2] = 1;
    EXPECT_ERROR_WITH(safetensors_create(&writer, path, &tensor, 1), EXIT_OUTPUT,
                      ": No space left on device: it needs 4.00 TiB");
}

Test(safetensors, accepts_any_order_of_entries_and_trailing_spaces)
{
    write_header("{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
                 "\"a\":{\"data_offsets\":[0,4],\"shape\":[2],\"dtype\":\"BF16\"}}   ",
                 8);

    REQUIRE(safetensors_open(&reader, path));
    cr_expect_str_eq(reader.tensors[0].name, "a");
    cr_expect_eq(reader.tensors[0].format, FORMAT_BF16);
    cr_expect_eq(reader.tensors[1].begin, 4);
}

Test(safetensors, accepts_a_file_without_tensors)
{
    write_header("{}", 0);

    REQUIRE(safetensors_open(&reader, path));
    cr_expect_eq(reader.count, 0);
}

#define ENTRY(name, format, shape, begin, end)                                                                         \
    "\"" name "\":{\"dtype\":" format ",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"
#define ONE(format, shape, begin, end) "{" ENTRY("a", format, shape, begin, end) "}"
#define LONG_NAME                                                                                                      \
    "0123456789012345678901234567890123456789012345678901234567890123"                                                 \
    "0123456789012345678901234567890123456789012345678901234567890123"

Test(safetensors, refuses_every_header_that_lies)
{
    // clang-format off
    static const struct {
        const char *header;
        size_t      data_bytes;
        const char *reason;
    } rows[] = {
        {"", 0, "the header does not begin with '{'"},
        {" {}", 0, "the header does not begin with '{'"},
        {"[]", 0, "the header does not begin with '{'"},
        {"{\"a\":", 0, "the header is not valid JSON: "},
        {"{} x", 0, "the header is not valid JSON: "},
        {"{\"a\":1e999}", 0, "the header is not valid JSON: "},
        {"{\"\\u0000\":1}", 0, "the header is not valid JSON: "},
        {"{\"\xff\":1}", 0, "the header is not valid JSON: "},
        {"{" ENTRY("a", "\"F32\"", "[1]", "0", "4") "," ENTRY("a", "\"F32\"", "[1]", "4", "8") "}", 8,
         "the header is not valid JSON: "},
        {"{\"__metadata__\":[]}", 0, "tensor '__metadata__': must be an object"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "tensor '__metadata__': every value must be a string"},
        {"{\"a\":7}", 0, "tensor 'a': an entry has exactly dtype, shape and data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 0, "tensor 'a': an entry has exactly dtype, shape and data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"x\":1}}", 4,
         "tensor 'a': an entry has exactly dtype, shape and data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"offsets\":[0,4]}}", 4,
         "tensor 'a': data_offsets must be [begin, end] with 0 <= begin <= end"},
        {ONE("\"F64\"", "[1]", "0", "8"), 8, "tensor 'a': dtype is not one of F32, BF16, I32"},
        {ONE("\"F16\"", "[1]", "0", "2"), 2, "tensor 'a': dtype is not one of F32, BF16, I32"},
        {ONE("\"f32\"", "[1]", "0", "4"), 4, "tensor 'a': dtype is not one of F32, BF16, I32"},
        {ONE("null", "[1]", "0", "4"), 4, "tensor 'a': dtype is not one of F32, BF16, I32"},
        {ONE("\"F32\"", "{}", "0", "4"), 4, "tensor 'a': shape must be a list"},
        {ONE("\"F32\"", "[1.0]", "0", "4"), 4, "tensor 'a': each dimension must be a whole number, 0 or more"},
        {ONE("\"F32\"", "[\"1\"]", "0", "4"), 4, "tensor 'a': each dimension must be a whole number, 0 or more"},
        {ONE("\"F32\"", "[-1]", "0", "4"), 4, "tensor 'a': each dimension must be a whole number, 0 or more"},
        {ONE("\"F32\"", "[-1,-1]", "0", "4"), 4, "tensor 'a': each dimension must be a whole number, 0 or more"},
        {ONE("\"F32\"", "[1,1,1,1,1]", "0", "4"), 4, "tensor 'a': more than 4 dimensions are not supported"},
        {ONE("\"F32\"", "[4294967296,4294967296]", "0", "0"), 0, "tensor 'a': the shape's size overflows"},
        {ONE("\"F32\"", "[4611686018427387904]", "0", "0"), 0, "tensor 'a': the shape's size overflows"},
        {ONE("\"F32\"", "[99999999999999999999]", "0", "4"), 4,
         "the header is not valid JSON: "},
        {ONE("\"F32\"", "[1]", "-4", "0"), 4, "tensor 'a': data_offsets must be [begin, end] with 0 <= begin <= end"},
        {ONE("\"F32\"", "[1]", "4", "0"), 4, "tensor 'a': data_offsets must be [begin, end] with 0 <= begin <= end"},
        {ONE("\"F32\"", "[1]", "0", "4,8"), 4, "tensor 'a': data_offsets must be [begin, end] with 0 <= begin <= end"},
        {ONE("\"F32\"", "[1]", "0", "4.0"), 4, "tensor 'a': data_offsets must be [begin, end] with 0 <= begin <= end"},
        {ONE("\"F32\"", "[2]", "0", "4"), 4, "tensor 'a': data_offsets differ from the size that dtype and shape give"},
        {ONE("\"BF16\"", "[2]", "0", "8"), 8, "tensor 'a': data_offsets differ from the size that dtype and shape give"},
        {ONE("\"F32\"", "[1]", "4", "8"), 8, "tensor 'a': a hole lies before its data"},
        {"{" ENTRY("a", "\"F32\"", "[1]", "0", "4") "," ENTRY("b", "\"F32\"", "[1]", "8", "12") "}", 12,
         "tensor 'b': a hole lies before its data"},
        {"{" ENTRY("a", "\"F32\"", "[2]", "0", "8") "," ENTRY("b", "\"F32\"", "[2]", "4", "12") "}", 12,
         "tensor 'b': its data overlap another tensor's"},
        {"{" ENTRY("a", "\"F32\"", "[1]", "0", "4") "," ENTRY("b", "\"F32\"", "[1]", "0", "4") "}", 4,
         "tensor 'b': its data overlap another tensor's"},
        {ONE("\"F32\"", "[2]", "0", "8"), 7, "tensor 'a': its data lie beyond the end of the file: the file is cut short"},
        {ONE("\"F32\"", "[2]", "0", "8"), 0, "tensor 'a': its data lie beyond the end of the file: the file is cut short"},
        {ONE("\"F32\"", "[2]", "0", "8"), 9, "1 bytes after the last tensor"},
        {"{}", 3, "3 bytes after the last tensor"},
        {"{" ENTRY("\\u001b[31m", "\"F64\"", "[1]", "0", "8") "}", 8, "tensor '?[31m': dtype is not one of F32, BF16, I32"},
        {"{" ENTRY(LONG_NAME, "\"F32\"", "[1]", "0", "4") "}", 4,
         "tensor '012345678901234567890123456789012345678901234567890123456789012301234567890123456789012345678901234567890"
         "1234567890123456789012': names longer than 127 bytes are not supported"},
    };
    // clang-format on

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_header(rows[i].header, rows[i].data_bytes);
        expect_refused(rows[i].reason, i);
    }
}

Test(safetensors, refuses_files_that_end_before_the_header_does)
{
    static const struct {
        const char *bytes;
        size_t      count;
        const char *reason;
    } rows[] = {
        {"", 0, "shorter than the 8 bytes that every safetensors file begins with"},
        {"\2\0\0\0\0\0\0", 7, "shorter than the 8 bytes that every safetensors file begins with"},
        {"\2\0\0\0\0\0\0\0", 8, "header of 2 bytes in a file of 8: the file is cut short"},
        {"\3\0\0\0\0\0\0\0{}", 10, "header of 3 bytes in a file of 10: the file is cut short"},
        {"\0\0\0\0\0\0\0\0", 8, "the header does not begin with '{'"},
        {"\1\xe1\xf5\5\0\0\0\0{}", 10,
         "header of 100000001 bytes: not a safetensors file (the limit is 100000000 bytes)"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10,
         "header of 18446744073709551615 bytes: not a safetensors file (the limit is 100000000 bytes)"},
        {"\3\0\0\0\0\0\0\0{}\0", 11, "the header is not valid JSON: "},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_bytes(path, rows[i].bytes, rows[i].count);
        expect_refused(rows[i].reason, i);
    }
}

Test(safetensors, refuses_what_is_no_regular_file)
{
    remove(path);
    expect_refused("cannot be opened: No such file or directory", 0);
    mkfifo(path, 0600);
    expect_refused("is a pipe, not a file", 1);
    remove(path);
    mkdir(path, 0700);
    expect_refused("is a directory, not a file", 2);
    rmdir(path);
}

// Writes a file with these tensors. One call appends the data of the whole file.
static void write_tensors(struct safetensor *tensors, int32_t count, const void *data, int64_t bytes)
{
    REQUIRE(safetensors_create(&writer, path, tensors, count));
    REQUIRE(safetensors_append(&writer, data, bytes));
    REQUIRE(safetensors_finish(&writer));
}

static void write_two(void)
{
    struct safetensor tensors[] = {{.name = "a", .format = FORMAT_F32, .dims = 1, .dim = {2}},
                                   {.name = "bb", .format = FORMAT_F32, .dims = 1, .dim = {2}}};
    write_tensors(tensors, 2, (float[]){1, 2, 3, 4}, 4 * sizeof(float));
}

static status read_two(float values[4])
{
    TRY(safetensors_open(&reader, path));
    status result = safetensors_read(&reader, "a", values, 8);
    if (!failed(&result)) {
        result = safetensors_read(&reader, "bb", values + 2, 8);
    }
    safetensors_close(&reader);
    return result;
}

// Flips every bit of the file, one at a time: of the header length, of the header with its padding, and of the data.
Test(safetensors, finds_every_bit_that_differs, .timeout = 60)
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

Test(safetensors, names_the_tensor_whose_data_are_others)
{
    char  bytes[1024];
    float values[4];
    write_two();
    size_t count = read_bytes(bytes);
    memcpy(bytes + count - 16, (float[]){3, 4, 1, 2}, 16);
    write_bytes(path, bytes, count);

    EXPECT_ERROR(read_two(values), EXIT_CHECKPOINT,
                 line_of("%s: tensor 'a': its data differ from their checksum", path));
}

Test(safetensors, refuses_what_is_no_number)
{
    static const uint32_t bits[] = {0x7fc00000, 0xff800000, 0x7f800001};
    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        struct safetensor tensor   = {.name = "a", .format = FORMAT_F32, .dims = 1, .dim = {2}};
        uint32_t          values[] = {0x3f800000, bits[i]}, back[2];
        write_tensors(&tensor, 1, values, sizeof(values));
        EXPECT_SUCCESS(safetensors_open(&reader, path));
        EXPECT_ERROR(safetensors_read(&reader, "a", back, sizeof(back)), EXIT_CHECKPOINT,
                     line_of("%s: tensor 'a': has a NaN or an infinity", path));
        safetensors_close(&reader);
    }
}
