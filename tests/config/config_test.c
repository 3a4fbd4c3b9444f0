// SPDX-License-Identifier: MIT
// Tests how configurations are read: the order of sources, presets, rows with published times, and properties that
// every option must have. Also tests [when ...] sections, which apply only to some numbers of ranks, precisions, GPUs
// or variants.
#include "config_folder.h"
#include "line.h"

TestSuite(config, .init = install, .fini = remove_folder);

Test(config, starts_from_the_defaults)
{
    struct config config = read_text("", 0, "");
    cr_assert_eq(config.run.steps, 50);
    cr_assert_eq(config.run.warmup, 10);
    cr_assert_eq(config.run.seed, 1);
    cr_assert_str_eq(config.run.backend, "auto");
    cr_assert_str_eq(config.run.output, "results");
    cr_assert_eq(config.train.sequence, 2048);
    cr_assert_eq(config.hardware.gpus_per_node, 8);
    cr_assert_str_eq(config.path, "text.ini");
    cr_assert_str_eq(config.name, "text");
}

Test(config, accepts_bom_crlf_comments_indentation_and_no_last_newline)
{
    struct config config = read_text("\xef\xbb\xbf; first\r\n"
                                     "[run]   ; the run\r\n"
                                     "  steps = 7 ; few\r\n"
                                     "\twarmup: 2\r\n"
                                     "# note = 1\r\n"
                                     "\r\n"
                                     "output = a#b = c\r\n"
                                     "  [train]\r\n"
                                     "sequence=4Ki",
                                     0, "");
    cr_assert_eq(config.run.steps, 7);
    cr_assert_eq(config.run.warmup, 2);
    cr_assert_str_eq(config.run.output, "a#b = c");
    cr_assert_eq(config.train.sequence, 4096);
}

Test(config, reads_a_line_of_the_greatest_length_whole)
{
    char text[256] = "[run]\noutput = ", comment[400];
    memset(text + strlen(text), 'x', 174);
    strcat(text, "y            ;\n");
    cr_assert_eq(strlen(strchr(text, '\n') + 1), 198);
    struct config config = read_text(text, 0, "");
    cr_assert_eq(strlen(config.run.output), 175);
    cr_assert_eq(config.run.output[174], 'y');

    memset(comment, '#', sizeof(comment));
    comment[399] = '\0';
    read_text(comment, 0, "");
}

Test(config, lets_later_sources_win)
{
    const char   *text   = "[when ranks=8]\ntrain.sequence = 8\nrun.seed = 2\nrun.steps = 20\n"
                           "[model]\npreset = small\nheads = 8\n"
                           "[train]\nsequence = 4\n"
                           "[run]\nseed = 3\nsteps = 30\n"
                           "[when precision=bf16]\nrun.steps = 40\n"
                           "[model]\nhead_dim = 16\n";
    struct config config = read_text(text, 8, "");
    cr_assert_eq(config.model.layers, 4);
    cr_assert_eq(config.model.heads, 8);
    cr_assert_eq(config.model.head_dim, 16);
    cr_assert_str_eq(config.model.preset, "small");
    cr_assert_eq(config.train.sequence, 8);
    cr_assert_eq(config.run.seed, 2);
    cr_assert_eq(config.run.steps, 40);
    cr_assert_eq(config.ranks, 8);
    cr_assert_eq(read_text(text, 4, "").train.sequence, 4);
    cr_assert_eq(read_text(text, 0, "").train.sequence, 4);

    config = read_text(text, 8, "train.sequence=1| run.seed = 5 |train.sequence = 16");
    cr_assert_eq(config.train.sequence, 16);
    cr_assert_eq(config.run.seed, 5);
}

Test(config, matches_conditions_against_ranks_and_the_effective_precision)
{
    const char   *text   = "[precision]\ncompute = bf16\n"
                           "[when ranks=512 precision=fp8]\npublished.step_seconds = 7.091\n"
                           "[when precision=bf16 ranks=512]\npublished.step_seconds = 9\n"
                           "[when precision=fp8]\ntrain.micro_batch = 2\n"
                           "[when ranks=1Ki]\nparallel.fsdp = 128\n";
    struct config config = read_text(text, 512, "");
    cr_assert_eq(config.published.step_seconds, 9.0);
    cr_assert_eq(config.train.micro_batch, 1);
    config = read_text(text, 512, "precision.compute=fp8");
    cr_assert_eq(config.published.step_seconds, 7.091);
    cr_assert_eq(config.train.micro_batch, 2);
    config = read_text(text, 1024, "precision.compute=fp8");
    cr_assert_eq(config.published.step_seconds, 0.0);
    cr_assert_eq(config.train.micro_batch, 2);
    cr_assert_eq(config.parallel.fsdp, 128);
}

Test(config, has_no_published_time_for_a_step_that_overrides_change)
{
    const char   *text   = "[model]\npreset = small\n[train]\nsequence = 4096\n"
                           "[when ranks=64]\npublished.step_seconds = 7\npublished.mfu_percent = 52\n";
    struct config config = read_text(text, 64, "run.steps=20|train.sequence=4096|hardware.gpus_per_node=4");
    cr_expect_eq(config.published.step_seconds, 7.0);
    cr_expect_eq(config.published.mfu_percent, 52.0);

    config = read_text(text, 64, "train.sequence=2048");
    cr_expect_eq(config.published.step_seconds, 0.0);
    cr_expect_eq(config.published.mfu_percent, 0.0);
    cr_expect_eq(read_text(text, 64, "model.preset=").published.step_seconds, 0.0);
    cr_expect_eq(read_text(text, 64, "parallel.fsdp=8").published.step_seconds, 0.0);
}

Test(config, takes_presets_from_overrides_and_conditions)
{
    const char *text = "[when ranks=2]\nhardware.profile = box\n";
    cr_assert_eq(read_text(text, 2, "model.preset=small").model.layers, 4);
    cr_assert_eq(read_text(text, 2, "").hardware.gpus_per_node, 2);
    cr_assert_eq(read_text(text, 1, "").hardware.gpus_per_node, 8);
    cr_assert_eq(read_text(text, 2, "model.preset=small|hardware.profile=none").hardware.gpus_per_node, 8);
}

Test(config, takes_a_profile_from_a_file_and_leaves_what_was_measured_to_others)
{
    char path[256];
    write_text("mine.ini", "[hardware]\npeak_bf16 = 3e12 measured 2%\n[measured]\ngemm bf16,bf16,bf16 8x8x8 = 1e-6\n");
    struct config config = read_text("[model]\npreset = small\n", 0, "hardware.profile=./mine.ini");
    cr_expect_eq(config.hardware.peak[RATE_BF16].value, 3e12);
    cr_expect_eq(config.hardware.peak[RATE_BF16].spread_percent, 2.0);
    cr_expect(config_find_profile(&config, path, sizeof(path)));
    cr_expect_str_eq(path, "./mine.ini");
    config = read_text("[model]\npreset = small\n", 0, "");
    cr_expect_not(config_find_profile(&config, path, sizeof(path)));
}

Test(config, leaves_out_on_request_what_was_fitted)
{
    struct config         config;
    struct text_buffer    errors  = {0};
    struct config_request request = {.name = "a.ini", .skips_fits = true};
    const char           *text    = "[hardware]\nprofile = fitted\n[when ranks=2]\nhardware.jitter = 0.04\n";
    write_text("hardware/fitted.ini", "[fit]\njitter = 0.03 fit 10%\n[hardware]\njitter = 0.02 prior 40%\n");
    cr_expect_eq(read_text(text, 1, "").hardware.jitter.value, 0.03);
    cr_expect_eq(read_text(text, 1, "").hardware.jitter.origin, QUANTITY_FIT);
    cr_expect_eq(read_text(text, 2, "").hardware.jitter.value, 0.04);
    cr_expect_eq(read_request(&request, text).hardware.jitter.value, 0.02);
    write_text("hardware/fitted.ini", "[fit]\njiter = 0.03\n");
    config_read_text(&config, &request, text, strlen(text), &errors);
    cr_expect(strstr(errors.text,
                     "hardware/fitted.ini:2: [fit] jiter = 0.03: unknown key (did you mean \"jitter\"?)") != NULL,
              "%s", errors.text);
    text_free(&errors);
}

Test(config, finds_a_config_by_path_or_by_name)
{
    static const struct {
        const char *name, *config;
        int64_t     steps, hidden;
    } cases[] = {
        {"job", "job", 50, 128}, {"job.ini", "job", 50, 128}, {"./job.ini", "job", 50, 128}, {"here", "here", 11, 0}};
    for (int i = 0; i < LENGTH(cases); i++) {
        struct config config = read_request(&(struct config_request){.name = cases[i].name}, NULL);
        cr_assert_str_eq(config.name, cases[i].config);
        cr_assert_eq(config.run.steps, cases[i].steps);
        cr_assert_eq(config.model.hidden, cases[i].hidden);
    }
    char path[64];
    cr_assert_not(config_find("models", path, sizeof(path)), "a folder is no config");
    cr_assert_not(config_find("", path, sizeof(path)));
    cr_assert_not(config_find("none", path, sizeof(path)));
}

Test(config, lists_installed_configs_beside_the_program)
{
    unsetenv("GSWBENCH_CONFIGS");
    cr_assert_str_eq(config_folder(), line_of("%s/share/gswbench/configs", GSWBENCH_BINARY_DIR));
    setenv("GSWBENCH_CONFIGS", "elsewhere", 1);
    cr_assert_str_eq(config_folder(), "elsewhere");
}

static void check_rows(const char *text, const char *override, int count, const struct config_row *expected)
{
    write_text("rows.ini", text);
    struct config_row     rows[CONFIG_ROWS_MAX];
    struct text_buffer    errors  = {0};
    struct config_request request = {
        .name = "./rows.ini", .overrides = &override, .override_count = override != NULL ? 1 : 0};
    int    listed;
    status result = config_rows(&request, rows, &listed, &errors);
    cr_assert_str_empty(result.text, "%s", errors.text);
    cr_assert_eq(listed, count, "%d rows", listed);
    for (int i = 0; i < count; i++) {
        cr_assert_eq(rows[i].ranks, expected[i].ranks, "row %d", i);
        cr_assert_str_eq(rows[i].precision, expected[i].precision, "row %d", i);
        cr_assert_eq(rows[i].step_seconds, expected[i].step_seconds, "row %d", i);
        cr_assert_eq(rows[i].mfu_percent, expected[i].mfu_percent, "row %d", i);
        cr_assert_str_eq(rows[i].gpu, expected[i].gpu, "row %d", i);
        cr_assert_str_eq(rows[i].variant, expected[i].variant, "row %d", i);
    }
}

Test(config, lists_rows_with_the_precisions_that_are_published)
{
    const struct config_row one[]   = {{0, "bf16", 3.5, 0, "", ""}};
    const struct config_row pairs[] = {
        {64, "bf16", 6.999, 52.59, "", ""}, {64, "fp8", 4.324, 0, "", ""}, {512, "fp8", 5.043, 0, "", ""}};
    const struct config_row both[] = {
        {8, "bf16", 0, 1, "", ""}, {8, "fp8", 0, 2, "", ""}, {16, "bf16", 7, 1, "", ""}, {16, "fp8", 7, 2, "", ""}};
    const struct config_row any[] = {{0, "bf16", 0, 0, "", ""}, {0, "fp8", 2, 0, "", ""}};
    check_rows("[published]\nstep_seconds = 3.5\n", NULL, LENGTH(one), one);
    check_rows("[when ranks=512]\nparallel.fsdp = 128\n"
               "[when precision=fp8]\ntrain.micro_batch = 2\n"
               "[when ranks=64 precision=bf16]\npublished.step_seconds = 6.999\npublished.mfu_percent = 52.59\n"
               "[when ranks=64 precision=fp8]\npublished.step_seconds = 4.324\n"
               "[when ranks=512 precision=fp8]\npublished.step_seconds = 5.043\n",
               NULL, LENGTH(pairs), pairs);
    check_rows("[published]\nmfu_percent = 1\n"
               "[when ranks=16]\ntrain.micro_batch = 2\n[when ranks=8]\n[when ranks=16]\npublished.step_seconds = 7\n"
               "[when precision=fp8]\npublished.mfu_percent = 2\n",
               NULL, LENGTH(both), both);
    check_rows("[when precision=fp8]\npublished.step_seconds = 2\n", NULL, LENGTH(any), any);
}

// [when] sections name GPUs and variants here. A row is a combination of ranks, precision, GPU and variant with a
// published time.
Test(config, lists_rows_by_gpu_and_variant)
{
    const struct config_row rows[] = {{8, "bf16", 1, 0, "box", "plain"},
                                      {8, "bf16", 2, 0, "none", "compiled"},
                                      {8, "fp8", 3, 0, "none", "plain"},
                                      {16, "bf16", 4, 0, "none", "plain"}};
    const char *const       text   = "[published]\nvariant = plain\n"
                                     "[when variant=compiled]\ntrain.micro_batch = 2\n[when ranks=32]\ntrain.micro_batch = 4\n"
                                     "[when ranks=16]\npublished.step_seconds = 4\n"
                                     "[when ranks=8 gpu=box]\npublished.step_seconds = 1\n"
                                     "[when ranks=8 variant=compiled]\npublished.step_seconds = 2\n"
                                     "[when ranks=8 precision=fp8 variant=plain]\npublished.step_seconds = 3\n";
    check_rows(text, NULL, LENGTH(rows), rows);
    check_rows(text, "hardware.profile=box", 1, rows);
    check_rows(text, "published.variant=compiled", 1, rows + 1);
    check_rows(text, "precision.compute=fp8", 1, rows + 2);
    // Without a published time, rows are as in a config whose sections name no GPU.
    const struct config_row plain[] = {{4, "bf16", 0, 0, "", ""}, {4, "fp8", 0, 0, "", ""}};
    check_rows("[when gpu=box]\ntrain.micro_batch = 2\n[when ranks=4]\n[when precision=fp8]\n", NULL, 2, plain);
}

// A published time of one GPU or variant must not be used for another one.
Test(config, takes_sections_of_the_gpu_and_the_variant_in_force)
{
    const char *text = "[hardware]\nprofile = box\n[published]\nvariant = plain\n"
                       "[when gpu=box]\ntrain.micro_batch = 2\n[when variant=compiled]\nrun.steps = 7\n"
                       "[when ranks=4 gpu=box]\npublished.step_seconds = 1\n"
                       "[when ranks=4 variant=compiled]\npublished.step_seconds = 2\n"
                       "[when ranks=4 gpu=none variant=compiled]\npublished.step_seconds = 3\n";
    cr_expect_eq(read_text(text, 4, "").published.step_seconds, 1);
    cr_expect_eq(read_text(text, 4, "").train.micro_batch, 2);
    cr_expect_eq(read_text(text, 4, "published.variant=compiled").published.step_seconds, 2);
    cr_expect_eq(read_text(text, 4, "published.variant=compiled").run.steps, 7);
    cr_expect_eq(read_text(text, 4, "hardware.profile=none").published.step_seconds, 0);
    cr_expect_eq(read_text(text, 4, "hardware.profile=none").hardware.gpus_per_node, 8);
    cr_expect_eq(read_text(text, 4, "hardware.profile=none|published.variant=compiled").published.step_seconds, 3);
    // The name of a GPU may be written in other letters, as in [hardware] profile.
    cr_expect_eq(read_text("[hardware]\nprofile = Box\n[when gpu=BOX]\nrun.steps = 9\n", 4, "").run.steps, 9);
}

Test(config, writes_what_it_reads_back)
{
    struct config config = read_text(
        "[model]\npreset = small\ntied = yes\n[train]\nrecompute = selective\nglobal_batch = 24\n", 0,
        "run.output=a b#c|train.recompute_save=none|train.learning_rate=0.1234567890123456789|parallel.dp=auto|"
        "run.seed=9007199254740991");
    char  *text = NULL;
    size_t bytes;
    FILE  *file = open_memstream(&text, &bytes);
    config_write(&config, file);
    fclose(file);

    struct config again = read_text(text, 0, "");
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        cr_assert_arr_eq((const char *)&again + section->offset, (const char *)&config + section->offset,
                         section->bytes, "[%s]", section->name);
    }
    free(text);
}

Test(config, covers_every_byte_of_every_section_with_one_option)
{
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        char owned[sizeof(struct config)] = {0};
        for (const struct option *option = section->options; option->key != NULL; option++) {
            for (size_t i = option->offset; i < option->offset + option->size; i++) {
                cr_assert_lt(i, section->bytes);
                cr_assert_eq(owned[i]++, 0, "[%s] %s overlaps another option", section->name, option->key);
            }
            size_t expected = option->type == OPTION_TEXT       ? option->size
                              : option->type == OPTION_QUANTITY ? sizeof(struct quantity)
                                                                : 8;
            cr_assert_eq(option->size, expected, "[%s] %s", section->name, option->key);
        }
        for (size_t i = 0; i < section->bytes; i++) {
            cr_assert_eq(owned[i], 1, "[%s] byte %zu has no option", section->name, i);
        }
    }
}

Test(config, parses_every_default_and_documents_every_option)
{
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        for (const struct option *option = section->options; option->key != NULL; option++) {
            struct config scratch;
            status        result = option_set(option, (char *)&scratch + section->offset, option->fallback);
            cr_assert_str_empty(result.text, "[%s] %s = %s", section->name, option->key, result.text);
            cr_assert_eq(option_find(section->options, option->key), option, "[%s] %s twice", section->name,
                         option->key);
            cr_assert_gt(strlen(option->help), 5);
            cr_assert_neq(option->help[strlen(option->help) - 1], '.', "[%s] %s", section->name, option->key);
            cr_assert_null(strchr(option->help, '|'), "[%s] %s", section->name, option->key);
        }
    }
}

Test(config, has_fresh_documentation_of_its_options)
{
    char  *text = NULL;
    size_t bytes;
    FILE  *file = open_memstream(&text, &bytes);
    config_print_options(file, OPTIONS_MARKDOWN);
    fclose(file);
    bool is_fresh = strcmp(text, text_in(GSWBENCH_SOURCE_DIR "/docs/options.md")) == 0;
    cr_assert(is_fresh, "docs/options.md is stale: gswbench options --markdown > docs/options.md");
    free(text);
}
