// SPDX-License-Identifier: MIT
// Tests that backends are opened by name, fall back to the CPU where no GPU exists, and count their memory.
#include <criterion/criterion.h>
#include <string.h>

#include "gswbench/backend.h"
#include "gswbench/text.h"
#include "success.h"

// Start of the list of backends that messages print, which depends on the build. "host, null" always follows.
#ifdef GSWBENCH_CUDA
#define DEVICES "cuda, "
#else
#define DEVICES ""
#endif

static struct backend backend;

static status open_named(const char *name)
{
    return backend_open(&backend, name, &(struct backend_setup){.threads = 1});
}

static void close_backend(void)
{
    if (backend.ops != NULL) {
        backend_close(&backend);
    }
}

TestSuite(backend, .fini = close_backend);

Test(backend, opens_each_of_the_list_by_name)
{
    for (int i = 0; backend_list[i] != NULL; i++) {
        if (backend_list[i]->is_device) {
            continue;
        }
        REQUIRE(open_named(backend_list[i]->name));
        cr_assert_eq(backend.ops, backend_list[i]);
        backend_close(&backend);
    }
}

// Returns the first backend of the list if the machine has a device for it, else NULL.
static const struct backend_ops *device_here(void)
{
    if (backend_list[0]->detect == NULL) {
        return NULL;
    }
    status detected = backend_list[0]->detect();
    return failed(&detected) ? NULL : backend_list[0];
}

Test(backend, takes_the_host_where_there_is_no_device)
{
    if (device_here() != NULL) {
        cr_skip_test("a device is here");
    }
    REQUIRE(open_named("auto"));
    cr_assert_str_eq(backend.ops->name, "host");
    cr_assert_not(backend.ops->is_device);
    cr_assert_eq(strncmp(backend.choice, "not cuda: ", strlen(DEVICES) > 0 ? 10 : 0), 0, "%s", backend.choice);
}

Test(backend, says_why_a_named_one_has_no_device)
{
    if (device_here() != NULL || !backend_list[0]->is_device) {
        cr_skip_test("a device is here, or the build knows none");
    }
    status opened = open_named("cuda");

    cr_assert_eq(opened.exit_code, EXIT_LAUNCH);
    cr_assert_eq(strncmp(opened.text, "[run] backend = cuda: ", 22), 0, "%s", opened.text);
    cr_assert_not_null(strstr(opened.text, "; backend = host needs no device"));
    cr_assert_null(backend.ops);
}

Test(backend, takes_the_host_for_fp32_whatever_device_is_here)
{
    if (!backend_list[0]->is_device) {
        cr_skip_test("the build knows no device");
    }
    const struct backend_setup setup = {.threads = 1, .is_fp32 = true};
    struct backend             named;

    REQUIRE(backend_open(&backend, "auto", &setup));
    cr_expect_str_eq(backend.ops->name, "host");
    cr_expect_str_eq(backend.choice, "not cuda: it does not support fp32 attention");
    EXPECT_ERROR(backend_open(&named, "cuda", &setup), EXIT_LAUNCH,
                 "[run] backend = cuda: it does not support fp32 attention; backend = host needs no device");
}

// Checks that `text` is `before`, then auto and every backend's name in the order of the list, then `after`.
static void expect_listed(const char *text, const char *before, const char *after)
{
    struct text_buffer wanted = {0};
    text_append(&wanted, "%sauto", before);
    for (int i = 0; backend_list[i] != NULL; i++) {
        text_append(&wanted, ", %s", backend_list[i]->name);
    }
    text_append(&wanted, "%s", after);
    cr_expect_str_eq(text, wanted.text);
    cr_expect_eq(strncmp(text + strlen(before), "auto, " DEVICES "host, ", strlen("auto, " DEVICES "host, ")), 0, "%s",
                 text);
    cr_expect_not_null(strstr(text, ", null)"), "%s", text);
    text_free(&wanted);
}

Test(backend, suggests_the_nearest_name)
{
    status opened = open_named("hots");

    cr_assert_eq(opened.exit_code, EXIT_CONFIG);
    expect_listed(opened.text, "[run] backend = hots: no such backend in this build (", "); did you mean host?");
}

#ifndef GSWBENCH_CUDA
Test(backend, says_what_to_do_where_a_build_is_without_one)
{
    status opened = open_named("cuda");

    cr_assert_str_eq(opened.text, "[run] backend = cuda: no such backend in this build (auto, host, null); "
                                  "docs/building.md says what a build with it needs");
}
#endif

Test(backend, lists_the_names_when_none_is_near)
{
    status opened = open_named("tenstorrent");

    expect_listed(opened.text, "[run] backend = tenstorrent: no such backend in this build (", ")");
}

Test(backend, runs_every_compute_op_and_no_communication)
{
    for (int i = 0; backend_list[i] != NULL; i++) {
        if (backend_list[i]->is_device) {
            continue;
        }
        for (int kind = 0; kind < OP_COUNT; kind++) {
            bool is_run = backend_list[i]->run[kind] != NULL;
            cr_assert_neq(is_run, op_is_communication((enum op_kind)kind), "%s: %s", backend_list[i]->name,
                          op_name((enum op_kind)kind));
        }
    }
}

Test(backend, zeroes_and_counts_memory)
{
    enum { BYTES = 5 << 20 };
    REQUIRE(open_named("host"));

    unsigned char *data = backend_allocate(&backend, BYTES);
    backend_reserve_scratch(&backend, 1000);
    backend_reserve_scratch(&backend, 900);

    cr_assert_eq(backend.allocations, 2);
    cr_assert_eq(backend.allocated_bytes, BYTES + 1000);
    cr_assert(data[0] == 0 && data[BYTES - 1] == 0);
    cr_assert_eq((uintptr_t)data % 256, 0);
    cr_assert_gt(backend.ops->available_bytes(&backend), BYTES);
    backend_release(&backend, data, BYTES);
    cr_assert_eq(backend.allocated_bytes, 1000);
}

Test(backend, copies_to_and_from_the_device)
{
    REQUIRE(open_named("null"));
    int32_t from[3] = {1, 2, 3}, to[3] = {0};

    void *data = backend_allocate(&backend, sizeof(from));
    backend.ops->upload(&backend, data, from, sizeof(from));
    backend.ops->download(&backend, to, data, sizeof(to));

    cr_assert_arr_eq(to, from, sizeof(to));
    backend_release(&backend, data, sizeof(from));
}

Test(backend, describes_processor_threads_and_library)
{
    REQUIRE(backend_open(&backend, "host", &(struct backend_setup){.threads = 3}));
    char text[256], cut[8];

    backend.ops->describe(&backend, text, sizeof(text));
    backend.ops->describe(&backend, cut, sizeof(cut));

    cr_assert_not_null(strstr(text, ", 3 threads, OpenBLAS 0."), "%s", text);
    cr_assert_eq(strlen(cut), 7);
}
