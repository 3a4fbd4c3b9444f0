// SPDX-License-Identifier: MIT
// docs/atlas.md: published rows with predictions, and rows that cannot be predicted yet with the reason.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/config.h"
#include "atlas.h"

static const char introduction[] =
    "# The atlas\n"
    "\n"
    "Training steps that others have measured and published, and what this program predicts for them. This page is "
    "printed by\n"
    "`gswbench atlas --markdown`; `gswbench atlas` prints the sums, `--ranges` how many rows are inside their 80 % "
    "range, and\n"
    "`gswbench predict NAME --ranks N` explains a row. A *family* is a configuration in `configs` or `configs/atlas`, "
    "with the\n"
    "source of its figures, and with what is assumed where the source does not say.\n"
    "\n"
    "*Mean* is that of the errors with their sign (positive: the prediction is too slow), *size* without it, *most* "
    "the largest;\n"
    "*10 %* counts the rows that are off by 10 % at most. Rows that values were fitted to say how good the fit is: "
    "only the\n"
    "others say how good predictions are. [predictions.md](predictions.md) says how the time of a step is computed.\n"
    "\n"
    "Not all that nothing was fitted to is blind: that hosts launch layers with experts step by step, and by which "
    "steps, was found\n"
    "after errors of rows of small microbatches had been seen, though `expert_launch` itself is of rows that are not "
    "here; and what\n"
    "Grok-1 on H100, AWS's hosts, GPT-OSS's kernels and torchtitan's context parallelism do was looked up after their "
    "errors had been\n"
    "seen.\n"
    "\n"
    "![Predicted against published seconds of a step, both on logarithmic axes, with lines at 10 % more and "
    "less](atlas.svg)\n"
    "\n"
    "The plot is printed by `gswbench atlas --svg`; each of its points is a row of the tables below.\n";

static void write_sums(const struct atlas *atlas, bool fitted, FILE *file)
{
    fprintf(file, "\n## Rows that %s\n\n| | | rows | mean | size | most | 10 %% |\n|---|---|---|---|---|---|---|\n",
            fitted ? "values were fitted to" : "nothing was fitted to");
    for (int key = 0; key < ATLAS_KEYS; key++) {
        int               count;
        struct atlas_sum *sums = atlas_sum_up(atlas, (enum atlas_key)key, fitted, &count);
        for (int i = 0; i < count; i++) {
            fprintf(file, "| %s | %s | %d | %+.1f %% | %.1f %% | %.1f %% | %d |\n", i == 0 ? atlas_key_names[key] : "",
                    sums[i].value, sums[i].rows, sums[i].mean, sums[i].size, sums[i].most, sums[i].within);
        }
        free(sums);
    }
}

static void write_rows(const struct atlas *atlas, FILE *file)
{
    fprintf(file, "\n## Row by row\n");
    for (int i = 0; i < atlas->count; i++) {
        const struct atlas_row *row = &atlas->rows[i];
        if (i == 0 || strcmp(row->config, atlas->rows[i - 1].config) != 0) {
            fprintf(file,
                    "\n### %s\n\n%s\n\n| ranks | GPU | precision | variant | layout | published, s | predicted, s | "
                    "error |\n|---|---|---|---|---|---|---|---|\n",
                    row->config, row->source);
        }
        fprintf(file, "| %" PRId64 " | %s | %s | %s | %s | %.4g | %.4g | %+.1f %% |\n", row->ranks, row->gpu,
                row->precision, row->variant, row->layout, row->published_seconds, row->predicted_seconds,
                row->error_percent);
    }
}

static void write_memory(const struct atlas *atlas, FILE *file)
{
    struct atlas_sum all = atlas_sum_up_memory(atlas, NULL);
    fprintf(
        file,
        "\n## Memory\n\nOf the rank that holds most, where it is published: what its allocator has given out at the "
        "worst moment\n(allocated), or all that it has taken from the device (reserved). "
        "[frameworks.md](frameworks.md#memory) "
        "says what programs hold\nbesides the tensors of a plan. %d rows: size %.1f %%, most %.1f %%, %d within "
        "10 %%.\n\n| | ranks | GPU | precision | variant | counts | published, GiB | predicted, GiB | error |\n"
        "|---|---|---|---|---|---|---|---|---|\n",
        all.rows, all.size, all.most, all.within);
    for (int i = 0; i < atlas->count; i++) {
        const struct atlas_row *row = &atlas->rows[i];
        if (row->published_memory > 0.0) {
            fprintf(file, "| %s | %" PRId64 " | %s | %s | %s | %s | %.4g | %.4g | %+.1f %% |\n", row->config,
                    row->ranks, row->gpu, row->precision, row->variant,
                    row->memory_is_reserved ? "reserved" : "allocated", row->published_memory, row->predicted_memory,
                    row->memory_error);
        }
    }
}

// Lines of the list are "rows | what | reason"; a line that begins with # is a comment.
static void write_left_out(FILE *file)
{
    char path[1400], line[1024];
    snprintf(path, sizeof(path), "%s/" CONFIG_ATLAS "/left-out.txt", config_folder());
    FILE *list = fopen(path, "r");
    if (list == NULL) {
        return;
    }
    fprintf(file, "\n## What cannot be expressed yet\n\n| rows | what | reason |\n|---|---|---|\n");
    while (fgets(line, sizeof(line), list) != NULL) {
        if (line[0] != '#' && line[0] != '\n') {
            fprintf(file, "| %.*s |\n", (int)strcspn(line, "\n"), line);
        }
    }
    fclose(list);
}

void atlas_write_page(const struct atlas *atlas, FILE *file)
{
    fputs(introduction, file);
    write_sums(atlas, false, file);
    write_sums(atlas, true, file);
    write_memory(atlas, file);
    write_left_out(file);
    write_rows(atlas, file);
}
