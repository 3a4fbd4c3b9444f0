// SPDX-License-Identifier: MIT
// Prints the log line of a step in the format of gswbench or of another framework, for scripts that parse such logs.
// Fields of other frameworks that gswbench does not measure are 0.
#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "gswbench/config.h"
#include "internal.h"

static double known(double value)
{
    return isfinite(value) ? value : 0.0;
}

// Returns the number of a step. The numbers continue the step numbers of the loaded checkpoint.
static int64_t number(const struct result *result, const struct result_step *step)
{
    return result->checkpoint.first_step + step->index;
}

static int64_t last(const struct result *result)
{
    return result->checkpoint.first_step + result->planned_steps;
}

// Returns tokens per second and device.
static double tokens(const struct result *result, const struct result_step *step)
{
    return result->figures.tokens_per_step / step->seconds / (double)result->mesh.world;
}

// Returns the model TFLOP/s per device, by the FLOP convention of the result's headline figures.
static double teraflops(const struct result *result, const struct result_step *step)
{
    double flops_per_token = result->flops_per_sequence[result->figures.convention] / (double)result->sequence;
    return flops_per_token * tokens(result, step) / 1e12;
}

void report_write_step(const struct result *result, const struct result_step *step, FILE *file)
{
    double rate = teraflops(result, step);
    fprintf(file, "completed step: %" PRId64 ", seconds: %s, TFLOP/s/device: ", number(result, step),
            report_seconds(step->seconds));
    fprintf(file, rate < 1 ? "%.6f" : "%.3f", rate);
    fprintf(file, ", loss: %.6f, grad_norm: %.6f\n", step->loss, step->gradient_norm);
}

// Writes the load of a checkpoint as a line of NeMo's log, followed by bytes and bandwidth.
void report_write_load(const struct result *result, double began, FILE *file)
{
    const struct result_checkpoint *made = &result->checkpoint;
    fprintf(file,
            "Global Checkpoint Load : Rank : 0 : Start time : %.3fs : Time spent in load_checkpoint: %.3fs : %.3f GB, "
            "%.3f GB/s\n",
            began, made->load_seconds, made->load_bytes / 1e9, made->load_bandwidth / 1e9);
}

void report_write_save(const struct result *result, int64_t step, double began, FILE *file)
{
    const struct result_checkpoint *made = &result->checkpoint;
    fprintf(file,
            "Global Checkpoint Save : Rank: 0 : Iteration: %" PRId64
            " : Start time: %.3fs : Save duration: %.3fs : %.3f GB, %.3f GB/s\n",
            step, began, made->save_seconds, made->save_bytes / 1e9, made->save_bandwidth / 1e9);
}

static void write_clock(const char *format, FILE *file)
{
    char      text[64];
    time_t    now = time(NULL);
    struct tm local;
    strftime(text, sizeof(text), format, localtime_r(&now, &local));
    fputs(text, file);
}

static void write_maxtext(const struct result *result, const struct result_step *step, double learning_rate, FILE *file)
{
    (void)learning_rate;
    fprintf(file,
            "completed step: %" PRId64
            ", seconds: %.3f, TFLOP/s/device: %.3f, Tokens/s/device: %.3f, total_weights: %.0f, "
            "loss: %.3f\n",
            number(result, step), step->seconds, teraflops(result, step), tokens(result, step),
            result->figures.tokens_per_step, known(step->loss));
}

static void write_nemo(const struct result *result, const struct result_step *step, double learning_rate, FILE *file)
{
    fprintf(file,
            "Training epoch 0, iteration %" PRId64 "/%" PRId64 " | lr: %.4g | global_batch_size: %" PRId64
            " | global_step: %" PRId64 " | peak_memory_usage: %" PRId64 " | reduced_train_loss: %.4g",
            number(result, step), last(result) - 1, learning_rate, result->global_batch, number(result, step),
            result->allocated_bytes, known(step->loss));
    fprintf(file, " | train_step_timing in s: %.4g | TFLOPS_per_GPU: %.5g | consumed_samples: %" PRId64 "\n",
            step->seconds, teraflops(result, step), (number(result, step) + 1) * result->global_batch);
}

static void write_torchtitan(const struct result *result, const struct result_step *step, double learning_rate,
                             FILE *file)
{
    double rate = teraflops(result, step), gib = (double)result->allocated_bytes / (1 << 30);
    (void)learning_rate;
    write_clock("[titan] %Y-%m-%d %H:%M:%S,000 - root - INFO - ", file);
    fprintf(file,
            "step: %2" PRId64 "  loss: %7.4f  grad_norm: %7.4f  memory: %5.2fGiB(0.00%%)  tps: %s  tflops: %.2f  mfu: "
            "%.2f%%\n",
            number(result, step) + 1, known(step->loss), known(step->gradient_norm), gib,
            report_grouped(round(tokens(result, step)), ','), rate, known(100.0 * rate * 1e12 / result->peak));
}

// Writes a step as a log line of Megatron-LM. The second line has the format of Megatron-Bridge's scripts.
static void write_megatron(const struct result *result, const struct result_step *step, double learning_rate,
                           FILE *file)
{
    double rate = teraflops(result, step);
    write_clock(" [%Y-%m-%d %H:%M:%S]", file);
    fprintf(file,
            " iteration %8" PRId64 "/%8" PRId64 " | consumed samples: %12" PRId64
            " | elapsed time per iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: %.6E |",
            number(result, step) + 1, last(result), (number(result, step) + 1) * result->global_batch,
            1e3 * step->seconds, rate, learning_rate);
    fprintf(file,
            " global batch size: %5" PRId64 " | lm loss: %.6E | loss scale: 1.0 | grad norm: %.3f | number of skipped "
            "iterations:   0 | number of nan iterations:   0 |\n",
            result->global_batch, known(step->loss), known(step->gradient_norm));
    fprintf(file, "Step Time : %.2fs GPU utilization: %.1fMODEL_TFLOP/s/GPU\n", step->seconds, rate);
}

static void write_own(const struct result *result, const struct result_step *step, double learning_rate, FILE *file)
{
    (void)learning_rate;
    report_write_step(result, step, file);
}

void report_write_styled_step(const struct result *result, const struct result_step *step, int64_t style,
                              double learning_rate, FILE *file)
{
    typedef void             write_step(const struct result *, const struct result_step *, double, FILE *);
    static write_step *const writers[] = {[LOG_GSWBENCH]   = write_own,
                                          [LOG_MAXTEXT]    = write_maxtext,
                                          [LOG_NEMO]       = write_nemo,
                                          [LOG_TORCHTITAN] = write_torchtitan,
                                          [LOG_MEGATRON]   = write_megatron};
    writers[style](result, step, learning_rate, file);
}
