// SPDX-License-Identifier: MIT
// Verifies a job: builds plans until it knows the classes of ranks with equal communication, matches the communication
// of one rank per class, and checks for deadlocks. Members of a class issue the same communication ops with the same
// dependencies, and are in the same state at any time. So one rank represents them all: if the representatives reach
// the end, so do all ranks. In large jobs, only samples of a class are built and compared (is_sampled); the other
// members are assumed to match.
//
// "Match" finds the ops that communicate with each other (match.c), "drain" runs them (drain.c).
//
// Classes follow from the distinct axes of the mesh. An axis is distinct if changing only the coordinate on it changes
// the communication in more than rank numbers. Ranks with the same coordinates on every distinct axis form a class. At
// first only pp is distinct, if it has several ranks. An axis becomes distinct when two ranks of a class turn out to
// have different communication. Compute ops, and therefore op indices, may differ within a class. Each plan is reduced
// to a skeleton, a list of its communication ops, and then freed. Skeletons are compared, matched and run.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/verify.h"
#include "internal.h"

// In jobs up to either limit, every rank's plan is compared. The ops of a job are estimated as the ops of rank 0, times
// the number of ranks.
enum { COMPARED_RANKS = 8, COMPARED_OPS = 1 << 20 };

void job_report(struct verification *job, int64_t rank, int32_t op, const char *format, ...)
{
    status  error = {.exit_code = EXIT_INTERNAL};
    char    name[JOB_NAME_BYTES];
    int     used = op < 0 ? 0 : snprintf(error.text, sizeof(error.text), "%s: ", job_name(job, rank, op, name));
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.text + used, sizeof(error.text) - (size_t)used, format, arguments);
    va_end(arguments);
    job->proof->findings++;
    status_add(&job->errors, error);
}

// Builds the rank's plan again to name the op, because plans are not kept.
const char *job_name(const struct verification *job, int64_t rank, int32_t op, char text[JOB_NAME_BYTES])
{
    struct plan plan;
    status      built = job->plans->build(job->plans->state, rank, &plan);
    int         used  = snprintf(text, JOB_NAME_BYTES, "rank %lld: ", (long long)rank);
    if (failed(&built)) {
        snprintf(text + used, JOB_NAME_BYTES - (size_t)used, "op %d", op);
    } else {
        plan_op_name(&plan, op, text + used, JOB_NAME_BYTES - (size_t)used);
    }
    plan_free(&plan);
    return text;
}

// Whether an axis is distinct, so that ranks with different coordinates on it are in different classes.
static bool is_distinct(const struct verification *job, int axis)
{
    return job->distinct_axes >> axis & 1u;
}

// Combines the coordinates of two ranks, and returns the rank with the result. On a distinct axis it has the coordinate
// of `to`; on another axis, (that of `to`) + sign * (that of `from`), modulo the size of the axis.
static int64_t combine(const struct verification *job, int64_t from, int64_t to, int64_t sign)
{
    int64_t start[AXIS_COUNT], end[AXIS_COUNT];
    mesh_coordinates(&job->mesh, from, start);
    mesh_coordinates(&job->mesh, to, end);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        int64_t size = job->mesh.size[axis];
        end[axis]    = is_distinct(job, axis) ? end[axis] : (end[axis] + sign * start[axis] + size) % size;
    }
    return mesh_rank(&job->mesh, end);
}

// A peer has the same relation to its rank on all ranks of a class, for example "the next rank along dp". The relation
// is stored as the number of the rank that has it to the class's representative.
int64_t job_relation(const struct verification *job, int64_t from, int64_t to)
{
    return combine(job, from, to, -1);
}

// Inverse of job_relation: returns the rank `to` for which job_relation(job, from, to) is `relation`.
int64_t job_related(const struct verification *job, int64_t from, int64_t relation)
{
    return combine(job, from, relation, 1);
}

// Returns the rank that represents the class of `rank`: the same rank with coordinate 0 on axes that are not distinct.
int64_t job_class(const struct verification *job, int64_t rank)
{
    return combine(job, rank, rank, -1);
}

static void measure(struct job_proof *proof, const struct plan *plan)
{
    int64_t bytes = plan_total_bytes(plan);
    if (bytes > proof->largest_bytes || (bytes == proof->largest_bytes && plan->rank < proof->largest_rank)) {
        proof->largest_bytes           = bytes;
        proof->largest_rank            = plan->rank;
        proof->largest_ops             = plan->op_count;
        proof->largest_quantized_bytes = plan_quantized_bytes(plan);
        memcpy(proof->largest_storage_bytes, plan->storage_bytes, sizeof(plan->storage_bytes));
    }
}

// Verifies a plan. Adds the findings to the job or, if there are none, extracts the communication into a skeleton.
static void inspect(struct verification *job, const struct plan *plan)
{
    int32_t findings = 0;
    status  verified = plan_verify(plan, &findings);
    job->proof->built++;
    measure(job->proof, plan);
    job->proof->findings += findings;
    if (findings > 0) {
        status_add(&job->errors, verified);
    } else {
        job->skeletons[plan->rank] = skeleton_create(job, plan);
    }
}

static status visit(struct verification *job, int64_t rank)
{
    if (job->skeletons[rank] != NULL) {
        return OK;
    }
    struct plan plan;
    status      built = job->plans->build(job->plans->state, rank, &plan);
    if (!failed(&built)) {
        inspect(job, &plan);
    }
    plan_free(&plan);
    return failed(&built) ? built : job->errors;
}

// Returns whether a rank's plan is built and compared with its representative's. In a large job, this is done only
// where plans are expected to differ, at the ends of axes and of the pipeline. These ranks are:
// - every representative, on all pipeline stages: coordinate 0 on all axes that are not distinct (away == 0);
// - on the first and last stage, the second and the last rank along each such axis, with coordinate 0 on the others
//   (away == 1);
// - on the first and last stage, the rank that is last along all such axes (last == axes).
static bool is_sampled(const struct verification *job, int64_t rank)
{
    int64_t coordinates[AXIS_COUNT];
    int     axes = 0, away = 0, last = 0, second = 0;
    mesh_coordinates(&job->mesh, rank, coordinates);
    bool is_end = coordinates[AXIS_PP] == 0 || coordinates[AXIS_PP] == job->mesh.size[AXIS_PP] - 1;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        int64_t size = job->mesh.size[axis];
        if (!is_distinct(job, axis) && size > 1) {
            axes++;
            away += coordinates[axis] > 0;
            last += coordinates[axis] == size - 1;
            second += coordinates[axis] == 1;
        }
    }
    return job->compares_all || away == 0 || (is_end && (last == axes || (away == 1 && last + second > 0)));
}

// Compares the communication of a rank and the representative of its class. If it differs, walks from the
// representative to the rank, changing one coordinate at a time. The first axis that changes the communication becomes
// a distinct axis (struct verification), so that its ranks are in different classes.
static status compare(struct verification *job, int64_t rank, bool *has_changed)
{
    int64_t here = job_class(job, rank), at[AXIS_COUNT], to[AXIS_COUNT];
    TRY(visit(job, here));
    TRY(visit(job, rank));
    if (skeleton_signature(job, job->skeletons[here]) == skeleton_signature(job, job->skeletons[rank])) {
        return OK;
    }
    mesh_coordinates(&job->mesh, here, at);
    mesh_coordinates(&job->mesh, rank, to);
    for (int axis = 0; !*has_changed; axis++) {
        at[axis]     = to[axis];
        int64_t next = mesh_rank(&job->mesh, at);
        TRY(visit(job, next));
        if (skeleton_signature(job, job->skeletons[here]) != skeleton_signature(job, job->skeletons[next])) {
            job->distinct_axes |= 1u << axis;
            *has_changed = true;
        }
        here = next;
    }
    return OK;
}

static status find_distinct(struct verification *job)
{
    bool has_changed   = true;
    job->distinct_axes = job->mesh.size[AXIS_PP] > 1 ? 1u << AXIS_PP : 0;
    while (has_changed) {
        has_changed = false;
        for (int64_t rank = 0; rank < job->mesh.world && !has_changed; rank++) {
            if (is_sampled(job, rank)) {
                TRY(compare(job, rank, &has_changed));
            }
        }
    }
    return OK;
}

// Lists the representatives of the classes, and counts their ops and FLOPs. All classes have the same number of
// members, so the FLOPs of the job are the FLOPs of all representatives times this number. With Muon and zero = 1,
// members update different matrices, and a representative counts the mean of these updates (plan.owner_flops).
static void list_classes(struct verification *job)
{
    double flops = 0;
    job->classes = arena_allocate(&job->arena, (size_t)job->proof->built * sizeof(*job->classes));
    for (int64_t rank = 0; rank < job->mesh.world; rank++) {
        struct skeleton *skeleton = job->skeletons[rank];
        if (skeleton != NULL && job_class(job, rank) == rank) {
            job->classes[job->class_count++] = skeleton;
            job->proof->ops += skeleton->op_count;
            flops += skeleton->flops;
        }
    }
    int64_t members     = job->mesh.world / job->class_count;
    job->proof->classes = job->class_count;
    job->proof->flops   = flops * (double)members;
}

static bool has_members(const struct skeleton *skeleton, const struct skeleton_group *group)
{
    for (int32_t g = 0; g < skeleton->group_count; g++) {
        if (skeleton->groups[g].members == group->members) {
            return true;
        }
    }
    return false;
}

// Checks that the members of a group list the same ranks. Skips groups that no op uses, and ranks without a skeleton.
static void check_groups(struct verification *job, const struct skeleton *skeleton)
{
    for (int32_t g = 0; g < skeleton->group_count; g++) {
        const struct skeleton_group *group = &skeleton->groups[g];
        for (int64_t i = 0; i < group->size && group->first_op >= 0; i++) {
            const struct skeleton *member = job->skeletons[group->ranks[i]];
            if (member != NULL && !has_members(member, group)) {
                job_report(job, skeleton->rank, group->first_op,
                           "its group of %lld ranks from %lld to %lld is no group of rank %lld", (long long)group->size,
                           (long long)group->ranks[0], (long long)group->ranks[group->size - 1],
                           (long long)member->rank);
                break;
            }
        }
    }
}

static status prove(struct verification *job)
{
    TRY(job->errors);
    TRY(find_distinct(job));
    list_classes(job);
    for (int64_t rank = 0; rank < job->mesh.world; rank++) {
        if (job->skeletons[rank] != NULL) {
            check_groups(job, job->skeletons[rank]);
        }
    }
    TRY(job->errors);
    struct match match;
    match_create(&match, job);
    if (!failed(&job->errors)) {
        job_drain(job, &match);
    }
    arena_free(&match.arena);
    return job->errors;
}

status job_verify_plans(const struct job_plans *plans, struct job_proof *proof)
{
    struct verification job = {.plans = plans, .proof = proof, .errors = OK};
    struct plan         first;
    *proof        = (struct job_proof){.world = 0};
    status result = plans->build(plans->state, 0, &first);
    if (failed(&result)) {
        plan_free(&first);
        return result;
    }
    job.mesh         = first.mesh;
    job.compares_all = job.mesh.world <= COMPARED_RANKS || job.mesh.world * first.op_count <= COMPARED_OPS;
    job.skeletons    = arena_allocate(&job.arena, (size_t)job.mesh.world * sizeof(*job.skeletons));
    proof->world     = job.mesh.world;
    inspect(&job, &first);
    plan_free(&first);

    result = prove(&job);
    arena_free(&job.arena);
    return result;
}
