// SPDX-License-Identifier: MIT
// Tests `gswbench predict`: its output for one job with a published step time, for all such jobs and for a sweep, and
// its errors.
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>

#include "command.h"
#include "folder.h"

Test(predict_command, predicts_a_row_beside_its_published_time)
{
    expect_success("predict --config llama3.1-8b --ranks 8");
    expect_output("config         llama3.1-8b at 8 ranks, bf16\nlayout         dp 4 cp 2 zero 1\n"
                  "program        nemo-25.02 on h100-sxm\npredicted ");
    expect_output("published      12.270 s/step: prediction error ");
    expect_output("variation      p95 0.6 % above median; in public runs of this size 1.0 % at most\n");
    expect_output("memory         59.27 GiB on rank 0 (maximum)\n");
    expect_success("predict --config llama3.1-8b --ranks 8 --layers 2 --json");
    expect_output("\"published_step_s\": null");
    expect_output("\"memory\": 0.");
    expect_output("\"bubble\": 0.0,");
}

// Eight GPUs at $4.5 an hour cost 8 x 4.5 / 3600 = $0.01 a second.
Test(predict_command, shows_what_a_million_tokens_cost)
{
    double tokens = 0.0, dollars = 0.0;
    expect_success("predict --config llama3.1-8b --ranks 8 --no-range --price 4.5");
    const char *predicted = strstr(output, "s/step: "), *shown = strstr(output, "price          $");
    cr_assert(predicted != NULL && sscanf(predicted, "s/step: %lf tokens/s", &tokens) == 1);
    cr_assert(shown != NULL && sscanf(shown, "price          $%lf per million", &dollars) == 1);
    cr_expect_float_eq(dollars, 0.01 / tokens * 1e6, 1e-4, "%g for %g tokens/s", dollars, tokens);
}

Test(predict_command, predicts_what_it_can_and_says_what_it_cannot)
{
    expect_success("predict --config llama2-70b-fsdp");
    expect_output("  published    error\n");
    expect_output("         fsdp 64, fitted\n");
    expect_80_columns();
    cr_expect_null(strstr(output, "never fitted"));
    expect_output("\n12 of 12 rows predicted\n  12 of them published and fitted: mean error ");
    expect_success("predict --no-range --config b200-mixtral-8x7b");
    expect_output(", never fitted\n");
    expect_output("\n1 of 1 rows predicted\n  1 of them published and never fitted: mean error ");
    expect_success("predict --no-range --config torchtitan-llama3-8b --ranks 64");
    expect_output("published      2.821 s/step: prediction error ");
    expect_output(" %, fitted\n");
    expect_success("predict --no-range --config b200-mixtral-8x7b --ranks 64");
    expect_output(" %, never fitted\n");
    expect_error("predict --config tiny-llama --ranks 1", EXIT_CONFIG,
                 "[hardware] peak_bf16 is unknown: set it, or use a profile that has it, e.g. --gpu h100-sxm; gswbench "
                 "calibrate writes one of this machine");
    expect_error("predict --config llama3.1-8b --trace t.json", EXIT_USAGE,
                 "--trace writes one prediction: give --ranks, and leave --all and --sweep out");
    expect_error("predict --config llama3.1-8b --ranks 8 --trace /nowhere/t.json", EXIT_OUTPUT,
                 "cannot write /nowhere/t.json: No such file or directory");
    expect_error("predict --all --ranks 8", EXIT_USAGE,
                 "--all predicts every config unchanged: leave --config, --ranks, --set and --layers out");
}

// -o must write the prediction as a result file with the same keys as a run's, and with the figures that are printed.
Test(predict_command, writes_a_prediction_as_a_result)
{
    make_folder();
    expect_success(line_of("predict llama3.1-70b --ranks 64 -o %s", folder));
    expect_output("\nfiles          /tmp/gswbench-test-");
    json_t *document = json_load_file(line_of("%s/latest/result.json", folder), JSON_REJECT_DUPLICATES, NULL), *part;
    cr_assert_not_null(document);
    json_t     *waterfall = json_object_get(document, "waterfall");
    double      step = json_real_value(json_object_get(waterfall, "step_s")), sum = 0.0;
    double      end = 0.0;
    size_t      index;
    const char *key;
    json_object_foreach(json_object_get(waterfall, "parts_s"), key, part)
    {
        sum += json_real_value(part);
    }
    json_array_foreach(json_object_get(waterfall, "turns"), index, part)
    {
        end = fmax(end, json_real_value(json_object_get(part, "end_s")));
    }
    cr_expect_float_eq(sum, step, 1e-9);
    cr_expect(end > 0.9 * step && end <= step, "%g of %g", end, step);
    cr_expect_str_eq(json_string_value(json_object_get(document, "status")), "predicted");
    cr_expect_not_null(json_object_get(document, "predicted"));
    cr_expect_null(json_object_get(document, "result"));
    part = json_array_get(json_object_get(document, "steps"), 0);
    cr_expect(json_is_null(json_object_get(part, "prediction_loss")));
    json_decref(document);

    expect_success(line_of("report %s/latest", folder));
    expect_output("\nRESULT PREDICTED 64 ranks on h100-sxm, +-");
    expect_output(", fitted  source: ");
    cr_expect_null(strstr(output, "completed step"));
    expect_success(line_of("table %s --format csv", folder));
    expect_output(",\"predicted\",1,");
    expect_error("predict llama3.1-70b --ranks 64 -o /dev/null/x", EXIT_OUTPUT,
                 "cannot create /dev/null/x: Not a directory");
    remove_folder();
}

Test(predict_command, writes_no_trace_of_a_job_that_it_cannot_predict)
{
    make_folder();
    const char *path = line_of("%s/none.json", folder);
    expect_error(line_of("predict tiny-llama --ranks 2 --no-range --trace %s", path), 3,
                 "[hardware] peak_bf16 is unknown: set it, or use a profile that has it, e.g. --gpu h100-sxm; gswbench "
                 "calibrate "
                 "writes one of this machine");
    cr_expect_neq(access(path, F_OK), 0, "%s", path);
}

Test(predict_command, warns_of_what_makes_a_prediction_doubtful_or_a_job_slow)
{
    const char *job = "predict --no-range --config tiny-llama --set hardware.profile=h100-sxm";
    expect_success(line_of("%s --ranks 2", job));
    cr_expect_null(strstr(output, "warning        gswbench"));
    expect_error(line_of("%s --ranks 2 --set hardware.memory_gb=0.01", job), 11,
                 "CANNOT RUN: gswbench needs 813.53 MiB, h100-sxm has 9.54 MiB");
    expect_output("warning        gswbench itself needs ");
    expect_output(" % of device memory ([hardware]): it does not fit\n");
    expect_error(line_of("%s --ranks 2 --set hardware.memory_gb=0.01 --json", job), 11,
                 "CANNOT RUN: gswbench needs 813.53 MiB, h100-sxm has 9.54 MiB");
    expect_output("\"gswbench\": false");
    expect_success(line_of("%s --ranks 3 --set train.global_batch=12 --set parallel.pp=3", job));
    expect_output("warning        4 layers over 3 chunks: some chunks have one layer more\n");
    expect_output("warning        stage 1 computes ");
    expect_success(line_of("%s --ranks 2 --set parallel.tp=2 --set hardware.gpus_per_node=1", job));
    expect_output("warning        [parallel] tp = 2 crosses nodes ([hardware] gpus_per_node = 1): every layer waits");
}

// A prediction must say if no job with a published step time has the same training framework, GPU, framework on that
// GPU, number of ranks, option, or network.
Test(predict_command, says_what_no_published_row_has)
{
    static const struct {
        const char *job, *gap;
    } cases[] = {
        {"llama3.1-8b --ranks 8", NULL},
        {"llama3.1-8b --ranks 8 --set software.profile=gswbench",
         "no published row is of gswbench; its error may be larger"},
        {"llama3.1-8b --ranks 8 --layers 2 --gpu a100-40gb",
         "no published row of a model without experts is on a100-40gb"},
        {"llama3.1-8b --ranks 8 --gpu a100-80gb",
         "no published row of nemo-25.02 is on a100-80gb with a model without experts"},
        {"llama3.1-8b --ranks 4224 --set train.global_batch=8448",
         "the largest published row on h100-sxm has 2048 ranks"},
        {"llama3.1-8b --ranks 8 --set software.unfused_attention=yes", "no published row has unfused attention"},
        {"llama3.1-8b --ranks 16 --set hardware.network_bandwidth=12.5e9",
         "published rows use the network of the profile, InfiniBand or EFA"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect_success(line_of("predict --no-range --config %s", cases[i].job));
        expect_80_columns();
        cr_expect_eq(strstr(output, "unchecked: ") == NULL, cases[i].gap == NULL, "%s", output);
        expect_output(cases[i].gap != NULL ? line_of("warning        unchecked: %s\n", cases[i].gap) : "");
    }
}

Test(predict_command, shows_the_values_that_a_prediction_rests_on)
{
    expect_success("predict --config llama2-70b-fsdp --ranks 64 --values --priors --set hardware.jitter=0.03");
    expect_output(" s/step +-");
    expect_output("  peak_bf16                         989000000000000 spec");
    expect_output("  gemm_efficiency                   0.728 prior 3.5%                 -2.");
    expect_output("  jitter                            0.03");
    expect_output("  reduction_parts                   7 prior 20%");
    expect_error(
        "predict --config llama2-70b-fsdp --values", EXIT_USAGE,
        "--values shows one prediction with its error: give --ranks, and leave --no-range, --json and --all out");
}

static double member(json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

// Checks the best layouts in the JSON output of a sweep with 4 ranks and 8 sequences. They must be complete and ordered
// by time, and the parts of each must sum to its step time.
static void expect_choices(size_t count)
{
    json_t *document = json_loads(output, 0, NULL), *best = json_object_get(document, "best"), *choice, *part;
    size_t  index;
    double  before = 0.0;
    cr_assert_eq(json_array_size(best), count);
    json_array_foreach(best, index, choice)
    {
        const char *key;
        double      replicas = member(choice, "dp") * member(choice, "fsdp"), parts = 0.0;
        json_object_foreach(json_object_get(choice, "parts_s"), key, part)
        {
            parts += json_number_value(part);
        }
        cr_expect(replicas * member(choice, "tp") * member(choice, "cp") * member(choice, "pp") == 4.0);
        cr_expect(replicas * member(choice, "micro_batch") * member(choice, "accumulation") == 8.0);
        cr_expect(member(choice, "step_s") >= before);
        cr_expect_float_eq(parts, member(choice, "step_s"), 1e-9, "place %zu", index + 1);
        before = member(choice, "step_s");
    }
    json_decref(document);
}

Test(predict_command, sweeps_the_layouts_of_a_model)
{
    expect_success("predict --config llama3.1-8b --ranks 4 --layers 2 --set train.accumulation=4 --sweep");
    expect_output("config         llama3.1-8b, a proxy, at 4 ranks, bf16: 8 sequences of 8192\n"
                  "               tokens per step, on h100-sxm\n");
    // The 201 layouts are all that are valid on 4 ranks and two layers. They combine the axes, ZeRO-1 for data-parallel
    // replicas without FSDP, and recompute none, attention or full. The micro batch is 1, 2, 4 or 8 and divides the 8,
    // 4 or 2 sequences of a replica.
    expect_output(
        "\nlayouts        201 valid: 0 refused, 0 too large for 79.07 GiB in gswbench or nemo-25.02, 201 may fit, ");
    expect_output("\n10  ");
    expect_output("\n    dp 2 cp 2 zero 1\nequal  ");
    expect_80_columns();
    expect_success("predict --config llama3.1-8b --ranks 4 --layers 2 --set train.accumulation=4 --sweep --json");
    expect_output("\"ranks\": 4,");
    expect_output("\"own\": {\n    \"dp\": 2,");
    expect_choices(10);
    expect_error("predict --config llama3.1-8b --sweep", EXIT_USAGE,
                 "--sweep needs --ranks, the number of ranks of its layouts");
    expect_error("predict --all --sweep", EXIT_USAGE, "--all and --sweep exclude each other: use one");
    expect_error("predict --config tiny-llama --ranks 2 --sweep", EXIT_CONFIG,
                 "no layout can be predicted: [hardware] peak_bf16 is unknown: set it, or use a profile "
                 "that has it, "
                 "e.g. --gpu h100-sxm; gswbench calibrate writes one of this machine");
}

Test(predict_command, says_which_layouts_are_equally_good_and_writes_the_first)
{
    // `predict` of the configuration that the sweep writes must predict the same time and MFU, for the same framework.
    // In this memory the six fastest layouts would fit gswbench, but not the framework.
    static const char job[] =
        "--config llama3.1-8b --layers 2 --set train.accumulation=4 --ranks 4 --set hardware.memory_gb=20";
    make_folder();
    expect_success(line_of("predict %s --sweep -o %s --json", job, folder));
    json_t *document = json_loads(output, 0, NULL), *best = json_object_get(document, "best");
    double  first = member(json_array_get(best, 0), "step_s"), range = member(document, "range_percent");
    size_t  equal = 0;
    cr_assert(range > 1.0 && range < 50.0);
    while (equal < json_array_size(best) &&
           member(json_array_get(best, equal), "step_s") <= first * (1 + range / 100)) {
        equal++;
    }
    cr_assert_gt(equal, 1);
    double mfu = member(json_array_get(best, 0), "mfu");
    for (size_t i = 0; i < json_array_size(best); i++) {
        cr_expect(member(json_array_get(best, i), "program_bytes") <= 20e9, "layout %zu does not fit", i);
    }
    json_decref(document);
    expect_success(line_of("predict %s --sweep", job));
    expect_output(
        line_of("\nequal          1 to %zu: differences are within the prediction error of %.1f %%", equal, range));
    expect_success(line_of("predict --config %s/best.ini --ranks 4 --layers 2 --no-range --json", folder));
    document          = json_loads(output, 0, NULL);
    json_t *predicted = json_object_get(json_array_get(json_object_get(document, "rows"), 0), "predicted");
    cr_expect_float_eq(member(predicted, "step_s"), first, 1e-9 * first);
    cr_expect_float_eq(member(predicted, "mfu"), mfu, 1e-9 * mfu);
    json_decref(document);
    expect_success(line_of("predict --config %s/best.ini --ranks 4 --layers 2 --no-range", folder));
    expect_output(line_of("\npredicted      %.6f s/step: ", first));
    remove_folder();
}

// --priors predicts with the default parameters of the cost model and ignores parameters that were fitted to published
// step times. No error may exceed the uncertainty of the default parameters.
Test(predict_command, predicts_every_published_row_from_priors_alone)
{
    static const char *const lines[] = {"predict --priors --no-range --config llama2-70b-fsdp",
                                        "predict --priors --no-range --config llama3.1-8b"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        double mean, maximum;
        expect_success(lines[i]);
        const char *sum = strstr(output, "mean error ");
        cr_assert_not_null(sum);
        cr_assert_eq(sscanf(sum, "mean error %lf %%, maximum %lf %%", &mean, &maximum), 2);
        cr_expect_leq(mean, 8.0, "%s: %g %% in the mean", lines[i], mean);
        cr_expect_leq(maximum, 17.0, "%s: %g %% at most", lines[i], maximum);
    }
}

Test(predict_command, advises_where_no_layout_fits)
{
    expect_success("predict --config llama3.1-70b --ranks 8 --set train.global_batch=8 --sweep");
    expect_output(", 0 may fit, ");
    expect_80_columns();
    expect_output("tp 8 with full recompute and micro_batch = 1 needs least memory, ");
    expect_output("--ranks 16, or --set hardware.profile=h200 would do\n");
    expect_success("predict --config llama3.1-70b --ranks 16 --set train.global_batch=8 --sweep --json");
    cr_expect_null(strstr(output, "\"fit\": 0,"), "the advice is right: %s", output);
}
