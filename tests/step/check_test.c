// SPDX-License-Identifier: MIT
// Tests steps with check enabled: the job ends at the first op that produces a NaN or an infinity, and names this op.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buffers.h"
#include "layouts.h"
#include "training.h"

static struct backend_ops broken;
static op_run            *table[OP_COUNT];
static double             planted;
static int                runs;    // runs of activation ops; the sixth writes the planted value

static void run_broken(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    backend_host.run[OP_ACTIVATION_FORWARD](backend, op, buffers);
    if (++runs == 6) {
        set(&buffers[ACTIVATION_OUT], 7, planted);
    }
}

static struct training start(bool checks)
{
    struct training training = {.tiny = tiny_of(""), .steps = 4, .threads = 1, .seed = 5, .ranks = 1, .checks = checks};
    broken                   = backend_host;
    memcpy(table, backend_host.run, sizeof(table));
    table[OP_ACTIVATION_FORWARD] = run_broken;
    broken.run                   = table;
    training.backend             = &broken;
    return training;
}

static char output[1024];    // error output of the latest training

// Trains in a child process. Returns its exit code.
static int train_apart(bool checks)
{
    int ends[2], ended;
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct training training = start(checks);
        dup2(ends[1], STDERR_FILENO);
        training_run(&training);
        _exit(isfinite(training.loss[3]) ? isfinite(training.loss[2]) ? 0 : 99 : 98);
    }
    close(ends[1]);
    size_t  used = 0;    // a message may arrive in pieces
    ssize_t more;
    while ((more = read(ends[0], output + used, sizeof(output) - 1 - used)) > 0) {
        used += (size_t)more;
    }
    output[used] = '\0';
    close(ends[0]);
    waitpid(child, &ended, 0);
    return WEXITSTATUS(ended);
}

// Each step runs the activation of two layers, so the sixth activation is in the last layer of step 2 (counted from 0).
Test(check, names_the_first_op_that_made_a_nan)
{
    planted = NAN;
    cr_expect_eq(train_apart(true), EXIT_NUMBER, "%s", output);
    cr_expect_not_null(strstr(output, "rank 0 on "), "%s", output);
    cr_expect_not_null(strstr(output, ": step 2, op "), "%s", output);
    cr_expect_not_null(strstr(output, " activation_forward \"activation\", forward"), "%s", output);
    cr_expect_not_null(strstr(output, "layer 1"), "%s", output);
    cr_expect_not_null(strstr(output, "nan as element 7 of "), "%s", output);
}

Test(check, names_the_first_op_that_made_an_infinity)
{
    planted = -INFINITY;
    cr_expect_eq(train_apart(true), EXIT_NUMBER, "%s", output);
    cr_expect_not_null(strstr(output, "-inf as element 7 of "), "%s", output);
}

// Without checks, AdamW skips the update of a step whose gradient norm is NaN. So the next step has a finite loss.
Test(check, is_off_by_default_and_such_a_step_changes_no_weight)
{
    planted = NAN;
    cr_expect_eq(train_apart(false), 99, "%s", output);
}

// Checks find nothing in correct steps, in layouts whose collectives overlap with compute ops, too.
Test(check, finds_nothing_in_sound_steps)
{
    static const char *const layouts[] = {"dp 1",
                                          "fsdp 2",
                                          "tp 2; sequence_parallel yes",
                                          "cp 2; context ring",
                                          "pp 2; micro_batch 1; accumulation 2",
                                          "compute fp8; recipe delayed",
                                          "dp 2; ep 2; experts 4; top_k 2; auxiliary_loss 0.05; capacity_factor 1"};
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        struct training training = {.steps = 2, .threads = 1, .seed = 5, .checks = true};
        training.tiny            = tiny_of("hidden 32; head_dim 8; ffn 32; vocab 64; sequence 16");
        training.ranks           = layout_apply(&training.tiny, layouts[i]);
        training_run(&training);
        cr_expect(isfinite(training.loss[1]), "%s", layouts[i]);
    }
}
