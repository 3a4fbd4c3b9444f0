// SPDX-License-Identifier: MIT
// Verifies AdamW; Muon is not verified. AdamW overwrites its inputs, so a sample of them is kept in host memory. After
// the step, AdamW runs again with this sample and the gradients, which are still in memory, and writes to activation
// memory. It must produce the same bits, even if the gradients are nondeterministic, because both runs read the same
// ones.
#include "internal.h"

#include "gswbench/number.h"

enum { UNIT = 128 };    // pieces start at a multiple of UNIT elements, which is a multiple of 16 bytes in any format

// Operands that AdamW writes; it reads some of them, too.
static const int changed[] = {ADAMW_MASTER, ADAMW_FIRST, ADAMW_SECOND, ADAMW_WEIGHT};
enum { CHANGED = sizeof(changed) / sizeof(changed[0]) };

static bool is_read(const struct op *op, int slot)
{
    return op->operand[slot] >= 0 && op->access[slot] == ACCESS_UPDATE;
}

static int64_t operand_bytes(const struct plan *plan, const struct op *op, int slot, int64_t elements)
{
    return format_bytes(plan->tensors[op->operand[slot]].format, elements);
}

static int64_t read_bytes(const struct plan *plan, const struct op *op, int64_t elements)
{
    int64_t bytes = 0;
    for (int i = 0; i < CHANGED; i++) {
        bytes += is_read(op, changed[i]) ? operand_bytes(plan, op, changed[i], elements) : 0;
    }
    return bytes;
}

int64_t sample_state_bytes(const struct plan *plan)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        bytes += op->kind == OP_ADAMW ? read_bytes(plan, op, op->shape.elements.elements) : 0;
    }
    return bytes;
}

// The elements of one AdamW op that are in the sample.
struct piece {
    int64_t first, count;
};

static struct piece find_piece(const struct op *op, double share, int64_t taken)
{
    int64_t all   = op->shape.elements.elements;
    int64_t count = share < 1 ? number_max((int64_t)((double)all * share) / UNIT, 1) * UNIT : all;
    int64_t first = taken % ((all + count - 1) / count) * count;    // the last of an op's pieces may be shorter
    return (struct piece){first, number_min(count, all - first)};
}

static double find_share(const struct plan *plan, int64_t maximum)
{
    int64_t state = sample_state_bytes(plan);
    return state > maximum ? (double)maximum / (double)state : 1;
}

int64_t sample_bytes(const struct plan *plan, int64_t maximum)
{
    double  share = find_share(plan, maximum);
    int64_t bytes = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        bytes += op->kind == OP_ADAMW ? read_bytes(plan, op, find_piece(op, share, 0).count) : 0;
    }
    return bytes;
}

void sample_take(struct sample *sample, const struct validation_setup *setup)
{
    const struct plan *plan  = setup->plan;
    double             share = find_share(plan, setup->sample_bytes);
    if (sample->data == NULL) {
        sample->bytes = sample_bytes(plan, setup->sample_bytes);
        sample->data  = sample->bytes > 0 ? step_allocate_host(setup->step, sample->bytes) : NULL;
    }
    char *next = sample->data;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op->kind != OP_ADAMW) {
            continue;
        }
        struct piece piece = find_piece(op, share, sample->taken);
        for (int j = 0; j < CHANGED; j++) {
            if (is_read(op, changed[j])) {
                int64_t bytes = operand_bytes(plan, op, changed[j], piece.count);
                step_read_run(setup->step, op->operand[changed[j]], operand_bytes(plan, op, changed[j], piece.first),
                              bytes, next);
                next += bytes;
            }
        }
        validation_beat(setup);
    }
}

void sample_close(struct sample *sample, const struct validation_setup *setup)
{
    if (sample->data != NULL) {
        step_release_host(setup->step, sample->data);
    }
    sample->data = NULL;
}

// Returns a buffer with the piece's elements of an operand.
static struct buffer piece_buffer(const struct validation_setup *setup, const struct op *op, int slot,
                                  struct piece piece)
{
    struct buffer buffer = {.data = NULL};
    if (op->operand[slot] >= 0) {
        buffer          = step_buffer(setup->step, op->operand[slot]);
        buffer.data     = (char *)buffer.data + operand_bytes(setup->plan, op, slot, piece.first);
        buffer.elements = piece.count;
    }
    return buffer;
}

// Runs AdamW again on a part of a piece. where[i]: saved input of operand changed[i]. Returns whether the output is the
// same as in the step.
static bool repeat_part(const struct validation_setup *setup, const struct op *op, struct piece part,
                        char *const where[CHANGED])
{
    struct buffer buffers[OP_OPERANDS] = {[ADAMW_HYPER]    = step_buffer(setup->step, op->operand[ADAMW_HYPER]),
                                          [ADAMW_SCALE]    = step_buffer(setup->step, op->operand[ADAMW_SCALE]),
                                          [ADAMW_GRADIENT] = piece_buffer(setup, op, ADAMW_GRADIENT, part)};
    char         *space                = step_storage(setup->step, STORAGE_ACTIVATION).data;
    struct op     again                = *op;
    bool          is_same              = true;
    again.shape.elements.elements      = part.count;
    for (int i = 0; i < CHANGED; i++) {
        struct buffer *buffer = &buffers[changed[i]];
        *buffer               = piece_buffer(setup, op, changed[i], part);
        if (buffer->data != NULL) {
            int64_t bytes = format_bytes(buffer->format, part.count);
            buffer->data  = space;
            space += number_round_up(bytes, PLAN_ALIGNMENT);
            if (is_read(op, changed[i])) {
                step_copy(setup->step, buffer->data, where[i], bytes);
            }
        }
    }
    step_run_elsewhere(setup->step, &again, buffers);
    for (int i = 0; i < CHANGED && is_same; i++) {
        struct digest found, expected;
        struct buffer written = piece_buffer(setup, op, changed[i], part);
        if (written.data != NULL) {
            step_digest_buffer(setup->step, &written, &found);
            step_digest_buffer(setup->step, &buffers[changed[i]], &expected);
            is_same = found.hash == expected.hash;
        }
    }
    return is_same;
}

// Returns the maximum number of elements whose AdamW outputs fit into activation memory.
static int64_t part_elements(const struct validation_setup *setup)
{
    int64_t each = CHANGED * (int64_t)sizeof(float);
    return (step_storage(setup->step, STORAGE_ACTIVATION).elements - CHANGED * PLAN_ALIGNMENT) / each / UNIT * UNIT;
}

// Runs one AdamW op again on its piece. *next points to the saved inputs of the op, and advances to the saved inputs of
// the next AdamW op.
static bool repeat_op(const struct validation_setup *setup, const struct op *op, struct piece piece, char **next)
{
    int64_t maximum = part_elements(setup);
    bool    is_same = true;
    char   *begin[CHANGED];
    for (int i = 0; i < CHANGED; i++) {
        begin[i] = *next;
        *next += is_read(op, changed[i]) ? operand_bytes(setup->plan, op, changed[i], piece.count) : 0;
    }
    for (int64_t done = 0; done < piece.count && maximum > 0 && is_same; done += maximum) {
        struct piece part = {piece.first + done, piece.count - done < maximum ? piece.count - done : maximum};
        char        *where[CHANGED];
        for (int i = 0; i < CHANGED; i++) {
            where[i] = begin[i] + (is_read(op, changed[i]) ? operand_bytes(setup->plan, op, changed[i], done) : 0);
        }
        is_same = repeat_part(setup, op, part, where);
        validation_beat(setup);
    }
    return is_same;
}

int32_t sample_compare(struct sample *sample, const struct validation_setup *setup)
{
    const struct plan *plan  = setup->plan;
    double             share = find_share(plan, setup->sample_bytes);
    char              *next  = sample->data;
    int32_t            wrong = -1;
    for (int32_t i = 0; i < plan->op_count && wrong < 0; i++) {
        const struct op *op = &plan->ops[i];
        if (op->kind == OP_ADAMW) {
            wrong = repeat_op(setup, op, find_piece(op, share, sample->taken), &next) ? -1 : i;
        }
    }
    sample->taken++;
    return wrong;
}
