// SPDX-License-Identifier: MIT
// Searches op outputs, weights and optimizer state for NaN and infinity.
#include "internal.h"

#include <math.h>

#include "gswbench/fatal.h"
#include "gswbench/format.h"

enum { PIECE = 1 << 22 };    // elements per copy to the host

bool finding_search(struct step_finding *finding, struct backend *backend, const struct buffer *buffer, int64_t first,
                    int64_t end, float expected)
{
    bool is_found = false;
    if (buffer->data == NULL || first >= end) {
        return false;
    }
    void *piece = memory_allocate((size_t)format_bytes(buffer->format, end - first < PIECE ? end - first : PIECE));
    for (; first < end && !is_found; first += PIECE) {
        int64_t count = end - first < PIECE ? end - first : PIECE;
        backend->ops->download(backend, piece, (const char *)buffer->data + format_offset(buffer->format, first),
                               format_bytes(buffer->format, count));
        for (int64_t i = 0; i < count && !is_found; i++) {
            finding->element = first + i;
            finding->value   = element_read(buffer->format, piece, i);
            is_found         = isnan(expected) ? !isfinite(finding->value) : finding->value != expected;
        }
    }
    free(piece);
    return is_found;
}

static bool find_not_finite(struct step_finding *finding, struct backend *backend, const struct buffer *buffer)
{
    return buffer->format != FORMAT_I32 && finding_search(finding, backend, buffer, 0, buffer->elements, NAN);
}

void finding_note(struct step_finding *first, const struct step_finding *finding)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    if (first->tensor < 0 || finding->op < first->op) {
        *first = *finding;
    }
    pthread_mutex_unlock(&mutex);
}

// Returns the slot of an operand that the op reads and that has a NaN or an infinity; -1: none. An enqueued collective
// may have written such a value, because check_op does not check the outputs of enqueued collectives.
static int find_source(struct backend *backend, const struct queued_op *queued)
{
    struct step_finding unused;
    for (int slot = 0; slot < queued->op->operand_count; slot++) {
        if (queued->op->access[slot] == ACCESS_READ && find_not_finite(&unused, backend, &queued->buffers[slot])) {
            return slot;
        }
    }
    return -1;
}

noreturn static void end_job(const struct check *check, const struct queued_op *queued,
                             const struct step_finding *finding, int source)
{
    char        op[240], tensor[160], read[160];
    enum format format = check->plan->tensors[finding->tensor].format;
    plan_op_name(check->plan, finding->op, op, sizeof(op));
    plan_tensor_name(check->plan, finding->tensor, tensor, sizeof(tensor));
    if (source >= 0) {
        plan_tensor_name(check->plan, queued->op->operand[source], read, sizeof(read));
    }
    FATAL(EXIT_NUMBER, "step %lld, %s: wrote %g as element %lld of %s (%s)%s%s", (long long)check->step, op,
          (double)finding->value, (long long)finding->element, tensor, format_name(format),
          source >= 0 ? ", having read one in " : "", source >= 0 ? read : "");
}

// Waits for the op. If it wrote a NaN or an infinity, records the finding or, without check->finding, ends the job.
static void check_op(struct streams *streams, const struct queued_op *queued, void *state)
{
    const struct check *check = state;
    const struct op    *op    = queued->op;
    // Waiting for an enqueued collective here could deadlock: its peer may need ops that this rank has not issued.
    if (queued->group != NULL && streams->device_streams != NULL && streams->comm_ops->is_enqueued) {
        return;
    }
    streams_synchronize(streams, op->stream);
    struct known_rows now;
    int32_t           number = queued->number - 1;
    if (row_counts_apply(streams, queued, &now)) {
        queued = &now.queued;
        if (now.rows == 0 && op->kind != OP_GEMM) {
            return;    // with zero rows the op did not run
        }
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        struct step_finding finding = {.op = number, .tensor = op->operand[slot]};
        if ((op->access[slot] & ACCESS_WRITE) && find_not_finite(&finding, streams->backend, &queued->buffers[slot])) {
            int source          = find_source(streams->backend, queued);
            finding.is_received = queued->group != NULL || source >= 0;
            if (check->finding == NULL) {
                end_job(check, queued, &finding, source);
            }
            finding_note(check->finding, &finding);
            return;
        }
    }
}

static void count_step(struct step *step, void *state)
{
    struct check *check = state;
    (void)step;
    check->step++;
}

static const struct op_hooks check_hooks = {.after_event = check_op, .after_step = count_step};

void check_set(struct step *step, struct check *check)
{
    observers_set(&step->streams, OBSERVER_CHECK, check != NULL ? &check_hooks : NULL, check);
}

void step_check(struct step *step)
{
    step->check  = memory_allocate(sizeof(*step->check));
    *step->check = (struct check){.plan = step->plan};
    check_set(step, step->check);
}

void step_find_made(struct step *step, struct step_finding *finding)
{
    struct check check = {.plan = step->plan, .finding = finding};
    *finding           = (struct step_finding){.op = -1, .tensor = -1};
    check_set(step, &check);
    step_run(step);
    check_set(step, step->check);
}

bool step_find_held(const struct step *step, struct step_finding *finding)
{
    const struct plan *plan = step->plan;
    *finding                = (struct step_finding){.op = -1, .tensor = -1};
    for (int32_t tensor = 0; tensor < plan->tensor_count; tensor++) {
        enum storage storage = plan->tensors[tensor].storage;
        if (plan->tensors[tensor].whole != tensor || (storage != STORAGE_WEIGHT && storage != STORAGE_OPTIMIZER)) {
            continue;
        }
        struct buffer buffer = step_buffer(step, tensor);
        if (find_not_finite(finding, step->backend, &buffer)) {
            finding->tensor = tensor;
            return true;
        }
    }
    return false;
}
