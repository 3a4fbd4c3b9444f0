// SPDX-License-Identifier: MIT
// Runs attention on the device. cuDNN computes it, if it is installed, supports the shape and its plan runs; otherwise
// the built-in kernels do. The choice is made when the op is prepared, and is then final.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn_attention.h"
#include "gemm.h"
#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/random.h"
#include "kernels/elements.h"

static bool is_backward(const struct op *op)
{
    return op->kind == OP_ATTENTION_BACKWARD;
}

// Lists the outputs that cuDNN first writes to scratch, because it writes only bf16 and never adds. A cast then
// converts the forward output to fp32, or adds a gradient to the accumulated one; other gradients are bf16. A bf16
// forward output also goes to scratch. This costs no memory: all ops share one scratch, and backward ops need more.
enum { STAGED_MAX = 2 };
static int list_staged(const struct op *op, int slots[STAGED_MAX])
{
    int count = 0;
    if (!is_backward(op)) {
        slots[count++] = ATTENTION_OUT;
    }
    if (is_backward(op) && op->shape.attention.adds_query) {
        slots[count++] = ATTENTION_GRADIENT_QUERY;
    }
    if (is_backward(op) && op->accumulates) {
        slots[count++] = ATTENTION_GRADIENT_KEY_VALUE;
    }
    return count;
}

static int64_t staged_bytes(const struct op *op, int slot)
{
    return cuda_align(format_bytes(FORMAT_BF16, op_operand_elements(op, slot)));
}

struct trial {
    struct cuda            *cuda;
    struct cudnn_attention *cudnn;
    struct cudnn_entry     *entry;
    const struct op        *op;
    struct buffer           buffers[OP_OPERANDS];
    void                   *data;    // all buffers, then scratch
    char                   *scratch;
    status                  refusal;    // error of the plan that failed last
};

static int64_t max_scratch(struct cudnn_entry *entry)
{
    int64_t maximum = 0;
    for (entry->taken = 0; entry->taken < entry->count; entry->taken++) {
        maximum = number_max(maximum, cudnn_attention_scratch(entry));
    }
    entry->taken = 0;
    return maximum;
}

// Assigns memory to the operands of a trial run, with the types that cuDNN expects: fp32 for the log-sum-exp, else
// bf16. Returns the number of bytes.
static int64_t place_operands(struct trial *trial)
{
    bool    is_forward = trial->op->kind == OP_ATTENTION_FORWARD;
    int     count      = is_forward ? ATTENTION_STATISTICS + 1 : ATTENTION_GRADIENT_KEY_VALUE + 1;
    int     fp32       = is_forward ? (int)ATTENTION_STATISTICS : (int)ATTENTION_GRADIENT_STATISTICS;
    int64_t bytes      = 0;
    for (int slot = 0; slot < count; slot++) {
        struct buffer *buffer = &trial->buffers[slot];
        buffer->format        = slot == fp32 ? FORMAT_F32 : FORMAT_BF16;
        buffer->elements      = op_operand_elements(trial->op, slot);
        buffer->data          = (char *)trial->data + bytes;    // data is NULL while bytes are counted
        bytes += cuda_align(format_bytes(buffer->format, buffer->elements));
    }
    return bytes;
}

static status open_trial(struct trial *trial)
{
    const struct cuda         *cuda   = trial->cuda;
    const struct kernel_target target = device_stream_target(&cuda->device, STREAM_COMPUTE);
    int64_t                    placed = place_operands(trial), scratch = max_scratch(trial->entry);
    TRY(cuda_allocate_for("try cuDNN's attention", "use a smaller train.micro_batch, or run.attention = own",
                          placed + scratch, &trial->data));
    place_operands(trial);
    trial->scratch = (char *)trial->data + placed;
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        const struct buffer    *buffer = &trial->buffers[slot];
        struct random_fill_args args   = {.out      = buffer->data,
                                          .elements = buffer->elements,
                                          .type     = buffer->format,
                                          .key      = random_key(0, (uint64_t)slot)};
        if (buffer->data != NULL) {
            CUDA_CHECK(kernel_random_fill(&args, &target));
        }
    }
    return OK;
}

static bool run_plan(void *work, int plan)
{
    struct trial       *trial  = work;
    struct cudnn_memory memory = {trial->buffers, trial->scratch, trial->cuda->device.streams[STREAM_COMPUTE]};
    trial->entry->taken        = plan;
    status ran                 = cudnn_attention_run(trial->cudnn, trial->entry, trial->op, &memory);
    if (failed(&ran)) {
        trial->refusal = ran;
        cudaGetLastError();
    }
    return !failed(&ran);
}

static status take_first(struct trial *trial)
{
    for (int plan = 0; plan < trial->entry->count; plan++) {
        if (run_plan(trial, plan)) {
            CUDA_CHECK(cudaStreamSynchronize(trial->cuda->device.streams[STREAM_COMPUTE]));
            return OK;
        }
    }
    return trial->refusal;
}

static status take_known(struct trial *trial, const struct gemm_choice *choice)
{
    uint64_t plan = choice->algorithm[0], engine = choice->algorithm[1];
    if (plan < (uint64_t)trial->entry->count) {
        trial->entry->taken = (int)plan;
        if ((uint64_t)cudnn_attention_engine(trial->entry) == engine) {
            return run_plan(trial, (int)plan) ? OK : trial->refusal;
        }
    }
    return fail_as(EXIT_OUTPUT, "%s: cuDNN does not propose its engine for %s: delete the file, which is recreated",
                   trial->cuda->gemms->cache.path, choice->problem);
}

static void name_problem(const struct cuda *cuda, struct cudnn_attention *cudnn, const struct op *op,
                         char problem[GEMM_PROBLEM_BYTES])
{
    const struct attention_shape *shape = &op->shape.attention;
    char                          version[32];
    char                          window[32] = "", values[48] = "";
    if (attention_value_dim(shape) != shape->head_dim) {
        snprintf(values, sizeof(values), " with values of %" PRId64, shape->value_dim);
    }
    cudnn_attention_version(cudnn, version, sizeof(version));
    if (shape->window > 0) {
        snprintf(window, sizeof(window), " by %" PRId64, shape->window);
    }
    snprintf(problem, GEMM_PROBLEM_BYTES,
             "%s %" PRId64 " x %" PRId64 " after %" PRId64 "%s%s, %" PRId64 " heads %" PRId64 " of %" PRId64
             "%s, %s, %.100s",
             op_name((enum op_kind)op->kind), shape->batch, shape->sequence, shape->earlier,
             shape->causal ? " causal" : "", window, shape->heads, shape->kv_heads, shape->head_dim, values, version,
             cuda->gemms->device);
}

static status take_fastest(struct trial *trial)
{
    struct gemms      *gemms  = trial->cuda->gemms;
    struct gemm_choice choice = {.algorithm = {0}};
    struct gemm_times  times;
    name_problem(trial->cuda, trial->cudnn, trial->op, choice.problem);
    const struct gemm_choice *known = gemm_cache_find(&gemms->cache, choice.problem);
    if (known != NULL) {
        status taken = take_known(trial, known);
        if (!failed(&taken) || known->origin == GEMM_REMEMBERED) {
            return taken;
        }
    }
    int best = tune_fastest(&(struct tune){.stream   = trial->cuda->device.streams[STREAM_COMPUTE],
                                           .run      = run_plan,
                                           .work     = trial,
                                           .count    = trial->entry->count,
                                           .is_first = trial->cuda->tuned == 0},
                            &times);
    if (best < 0) {
        return trial->refusal;
    }
    trial->cuda->tuned++;
    trial->entry->taken = best;
    choice.algorithm[0] = (uint64_t)best;
    choice.algorithm[1] = (uint64_t)cudnn_attention_engine(trial->entry);
    gemm_cache_add(&gemms->cache, &choice, &times);
    return OK;
}

// Selects the fastest of cuDNN's plans for a shape. The times come from trial runs on scratch operands, or from a file
// that an earlier process wrote. A plan from the file is also run once, because a finalized plan may still fail to
// execute. In deterministic mode the first plan that runs is selected. Fails if none runs. If plans could not be tried,
// fails with EXIT_MEMORY (no memory for a trial) or EXIT_OUTPUT (the file has an engine that cuDNN does not propose).
static status try_plans(struct cuda *cuda, struct cudnn_attention *cudnn, struct cudnn_entry *entry,
                        const struct op *op)
{
    struct trial trial = {.cuda = cuda, .cudnn = cudnn, .entry = entry, .op = op};
    TRY(open_trial(&trial));
    status taken = cuda->gemms->is_deterministic ? take_first(&trial) : take_fastest(&trial);
    CUDA_CHECK(cudaStreamSynchronize(cuda->device.streams[STREAM_COMPUTE]));
    CUDA_CHECK(cudaFree(trial.data));
    return taken;
}

struct attention {
    int64_t                 choice;                // enum attention_choice
    struct cudnn_attention *cudnn;                 // NULL: unavailable
    status                  refusal;               // why cuDNN is unavailable, or why it refused an op
    bool                    has_cudnn, has_own;    // whether an op uses cuDNN, and the built-in kernels
};

void cuda_attention_open(struct cuda *cuda, const struct backend_setup *setup)
{
    struct attention *attention = memory_allocate(sizeof(*attention));
    *attention                  = (struct attention){.choice = setup->attention};
    // cuDNN's backward kernels add query gradients in arrival order, so results do not repeat bit by bit. A
    // deterministic run with attention = auto therefore uses the built-in kernels.
    if (attention->choice == ATTENTION_OWN) {
        attention->refusal = fail("it was not asked for");
    } else if (attention->choice == ATTENTION_AUTO && setup->is_deterministic) {
        attention->refusal = fail("its results do not repeat bit by bit");
    } else {
        attention->refusal = cudnn_attention_open(&attention->cudnn);
    }
    cuda->attention = attention;
}

void cuda_attention_close(struct cuda *cuda)
{
    struct attention *attention = cuda->attention;
    if (attention->cudnn != NULL) {
        cudnn_attention_close(attention->cudnn);
    }
    free(attention);
}

static prepared_run run_cudnn;

// Finds or selects cuDNN's plan for the op's kind and shape. Fails with the reason if cuDNN cannot run the op.
static status find_cudnn(struct cuda *cuda, const struct op *op, struct cudnn_entry **found)
{
    struct attention *attention = cuda->attention;
    if (attention->cudnn == NULL) {
        return attention->refusal;
    }
    if (op->shape.attention.sloped_heads > 0) {
        return fail("gswbench's cuDNN graphs do not support ALiBi ([model] positions = alibi)");
    }
    TRY(cudnn_attention_prepare(attention->cudnn, op, found));
    if ((*found)->prepared.run == NULL) {
        (*found)->refusal = try_plans(cuda, attention->cudnn, *found, op);
        TRY((*found)->refusal);
        // The results of backward ops vary in their last bits: key blocks add to the query gradients in arrival order.
        (*found)->prepared = (struct prepared){run_cudnn, is_backward(op)};
    }
    return OK;
}

status cuda_attention_prepare(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS],
                              const struct prepared **prepared)
{
    struct cuda        *cuda      = backend->state;
    struct attention   *attention = cuda->attention;
    struct cudnn_entry *chosen    = NULL;
    TRY(backend_check_op(backend->ops->name, op, buffers));
    status refusal = find_cudnn(cuda, op, &chosen);
    if (!failed(&refusal)) {
        attention->has_cudnn = true;
        *prepared            = &chosen->prepared;
        return OK;
    }
    // With these codes no plan could be tried, so it is unknown whether cuDNN supports the op.
    if (refusal.exit_code == EXIT_MEMORY || refusal.exit_code == EXIT_OUTPUT) {
        return refusal;
    }
    if (attention->choice == ATTENTION_CUDNN) {
        return fail_as(EXIT_LAUNCH, "[run] attention = cudnn: %.700s; attention = own needs no cuDNN", refusal.text);
    }
    status own = device_attention_check(&cuda->device, op);
    if (failed(&own)) {
        return fail("%.300s, and cuDNN does not help: %.600s", own.text, refusal.text);
    }
    if (!failed(&attention->refusal)) {
        attention->refusal = refusal;
    }
    attention->has_own = true;
    return OK;
}

void cuda_attention_name(const struct cuda *cuda, const struct op *op, char problem[GEMM_PROBLEM_BYTES])
{
    if (cuda->attention->cudnn != NULL) {
        name_problem(cuda, cuda->attention->cudnn, op, problem);
    }
}

int64_t cuda_attention_scratch(struct cuda *cuda, const struct op *op)
{
    struct cudnn_entry *chosen  = NULL;
    status              refusal = find_cudnn(cuda, op, &chosen);
    if (failed(&refusal)) {
        return is_backward(op) ? device_attention_backward_scratch(op, NULL) : 0;
    }
    int     slots[STAGED_MAX];
    int64_t bytes = cuda_align(cudnn_attention_scratch(chosen));
    for (int i = list_staged(op, slots) - 1; i >= 0; i--) {
        bytes += staged_bytes(op, slots[i]);
    }
    return bytes;
}

static void cast(struct backend *backend, const struct buffer *from, const struct buffer *to, bool accumulates)
{
    struct op cast = {.kind                    = OP_CAST,
                      .stream                  = STREAM_COMPUTE,
                      .accumulates             = accumulates,
                      .shape.elements.elements = from->elements};
    device_cast(backend, &cast, (struct buffer[OP_OPERANDS]){[CAST_IN] = *from, [CAST_OUT] = *to});
}

static void run_cudnn(struct backend *backend, const struct prepared *prepared, const struct op *op,
                      const struct buffer buffers[OP_OPERANDS])
{
    const struct cuda        *cuda    = backend->state;
    const struct cudnn_entry *entry   = (const struct cudnn_entry *)prepared;    // prepared is its first member
    char                     *scratch = (char *)cuda->device.scratch + cuda_align(cudnn_attention_scratch(entry));
    bool                      stages  = is_backward(op) || buffers[ATTENTION_OUT].format == FORMAT_F32;
    struct buffer             bound[OP_OPERANDS];
    int                       slots[STAGED_MAX], count = stages ? list_staged(op, slots) : 0;

    memcpy(bound, buffers, sizeof(bound));
    for (int i = 0; i < count; i++) {
        bound[slots[i]] = (struct buffer){scratch, op_operand_elements(op, slots[i]), FORMAT_BF16};
        scratch += staged_bytes(op, slots[i]);
    }
    struct cudnn_memory memory = {bound, cuda->device.scratch, cuda_stream(backend, op)};
    status              result = cudnn_attention_run(cuda->attention->cudnn, entry, op, &memory);
    if (failed(&result)) {
        cuda_failed(result.text, op->tag.role, __FILE__, __LINE__);
    }
    for (int i = 0; i < count; i++) {
        cast(backend, &bound[slots[i]], &buffers[slots[i]], is_backward(op));
    }
}

static bool is_listed(const char *list, const char *item)
{
    const char *found = strstr(list, item);
    while (found != NULL && found[strlen(item)] != ',' &&
           found[strlen(item)] != '\0') {    // skips "forward 21" if item is "forward 2"
        found = strstr(found + 1, item);
    }
    return found != NULL;
}

// Lists cuDNN's engine numbers for all shapes, each once: "forward 2, backward 6".
static void name_engines(const struct attention *attention, char *text, size_t bytes)
{
    for (const struct cudnn_entry *entry = attention->cudnn->entries; entry != NULL; entry = entry->next) {
        char   engine[32];
        size_t used = strlen(text);
        snprintf(engine, sizeof(engine), "%s %lld", entry->kind == OP_ATTENTION_FORWARD ? "forward" : "backward",
                 (long long)cudnn_attention_engine(entry));
        if (entry->prepared.run != NULL && !is_listed(text, engine)) {
            snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "", engine);
        }
    }
}

void cuda_attention(struct backend *backend, struct backend_attention *found)
{
    const struct cuda      *cuda      = backend->state;
    const struct attention *attention = cuda->attention;
    *found                            = (struct backend_attention){.provider = ""};
    snprintf(found->provider, sizeof(found->provider), "%s%s%s", attention->has_cudnn ? "cudnn" : "",
             attention->has_cudnn && attention->has_own ? " and " : "", attention->has_own ? "own" : "");
    if (attention->cudnn != NULL) {
        cudnn_attention_version(attention->cudnn, found->library, sizeof(found->library));
        name_engines(attention, found->engines, sizeof(found->engines));
    }
    if (attention->has_own && attention->choice == ATTENTION_AUTO) {
        snprintf(found->refusal, sizeof(found->refusal), "%.255s", attention->refusal.text);
    }
}
