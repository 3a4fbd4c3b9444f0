// SPDX-License-Identifier: MIT
// Tests how the watchdog finds the rank that blocks the others. It reads the state of four ranks from shared memory:
// two replicas of two FSDP shards. Also tests how the position of a rank in the step is described to the user from the
// bytes that the rank sent.
#include <criterion/criterion.h>

#include "gswbench/plan.h"
#include "meshes.h"
#include "watch/internal.h"

enum { RANKS = 4, SHARDS = 1 << AXIS_FSDP, REPLICAS = 1 << AXIS_DP };

static struct slot slots[RANKS];
enum { PHASES = 15 };    // of every rank, unless a test sets another

// Sets all ranks to compute in step 7. None waits.
static void show_ranks(void)
{
    for (int rank = 0; rank < RANKS; rank++) {
        slots[rank] = (struct slot){
            .rank = rank, .pid = 100 + rank, .phase = WATCH_STEP, .step = 7, .phases = PHASES, .state = 'R'};
        for (int stream = 0; stream < STREAM_COUNT; stream++) {
            slots[rank].streams[stream] = (struct stream_slot){.op = -1, .peer = -1};
        }
    }
}

// Moves one rank to a phase, and all other ranks to another. phases, others_phases: added to PHASES.
static void set_phases(int rank, int phase, int phases, int others_phase, int others_phases)
{
    show_ranks();
    for (int i = 0; i < RANKS; i++) {
        slots[i].phase = i == rank ? phase : others_phase;
        slots[i].phases += i == rank ? phases : others_phases;
    }
}

static void put_in(int rank, int stream, int op, uint32_t axes, uint32_t mark)
{
    slots[rank].streams[stream] = (struct stream_slot){.op = op, .axes = axes, .mark = mark, .peer = -1};
}

static void expect_blame(enum blame blame, int64_t rank, int64_t waiting)
{
    const struct mesh mesh = MESH(.dp = 2, .fsdp = 2);
    int64_t           found, seen;
    cr_expect_eq(blame_find(slots, RANKS, &mesh, &found, &seen), blame);
    cr_expect(blame == BLAME_NOBODY || found == rank, "rank %d", (int)found);
    cr_expect_eq(seen, waiting, "%d wait", (int)seen);
}

TestSuite(blame, .init = show_ranks);

Test(blame, falls_on_nobody_where_nobody_waits)
{
    expect_blame(BLAME_NOBODY, -1, 0);
}

// Rank 3 has not reached the gradient reduction over its replicas. Ranks 1 and 2 wait for it in
// collectives, and rank 0 waits for rank 1.
Test(blame, falls_on_the_rank_that_all_wait_for_in_the_end)
{
    put_in(0, STREAM_GRADIENT_REDUCE, 12, SHARDS, 5);
    put_in(1, STREAM_GRADIENT_REDUCE, 11, REPLICAS, 6);
    put_in(2, STREAM_GRADIENT_REDUCE, 12, SHARDS, 5);
    slots[3].streams[STREAM_COMPUTE].op = 9;

    expect_blame(BLAME_AWAITED, 3, 3);
}

Test(blame, falls_on_a_rank_that_is_still_in_the_step)
{
    set_phases(1, WATCH_STEP, 0, WATCH_BETWEEN, 1);
    expect_blame(BLAME_AWAITED, 1, 3);
}

// The others wait for rank 1 before the first op of step 7.
Test(blame, falls_on_a_rank_that_does_not_come_to_the_step)
{
    slots[1].phase = WATCH_BETWEEN;
    slots[1].step  = 6;
    slots[1].phases--;
    expect_blame(BLAME_AWAITED, 1, 3);
}

// Ranks 0, 2 and 3 have written their checkpoint files and wait for the file of rank 1.
Test(blame, falls_on_a_rank_that_is_still_at_a_file)
{
    set_phases(1, WATCH_FILE, 0, WATCH_FILES, 1);
    expect_blame(BLAME_AWAITED, 1, 3);
}

// Rank 2 hangs in the save after step 7, before it opens a file. The others have finished a file and wait for rank 2.
Test(blame, falls_on_a_rank_that_hangs_in_a_save_before_its_file)
{
    set_phases(2, WATCH_SAVING, 2, WATCH_FILES, 3);
    expect_blame(BLAME_AWAITED, 2, 3);
}

// Rank 3 hangs between its step and the save in which the others are. Then rank 0 hangs at the end of a save that the
// others have left.
Test(blame, falls_on_a_rank_that_hangs_before_a_save_or_after_it)
{
    set_phases(3, WATCH_BETWEEN, 1, WATCH_SAVING, 2);
    expect_blame(BLAME_AWAITED, 3, 3);
    set_phases(0, WATCH_FILES, 6, WATCH_BETWEEN, 7);
    expect_blame(BLAME_AWAITED, 0, 3);
}

// Rank 2 skipped the collective in which rank 3 waits, and waits in the next one. So ranks wait for each other in a
// cycle, and the rank that is ahead is at fault.
Test(blame, falls_on_the_one_of_a_circle_that_is_further)
{
    put_in(0, STREAM_GRADIENT_REDUCE, 12, SHARDS, 8);
    put_in(1, STREAM_GRADIENT_REDUCE, 11, REPLICAS, 6);
    put_in(2, STREAM_GRADIENT_REDUCE, 12, SHARDS, 8);
    put_in(3, STREAM_GRADIENT_REDUCE, 10, SHARDS, 5);

    expect_blame(BLAME_AWAITED, 2, 3);    // rank 2 itself waits as well
}

Test(blame, falls_on_a_process_that_is_stopped_or_gone_whatever_it_did)
{
    static const struct {
        char       state;
        double     age;
        enum blame blame;
    } rows[] = {{'T', 0, BLAME_STOPPED},
                {'t', 0, BLAME_STOPPED},
                {'-', 0, BLAME_GONE},
                {'Z', 0, BLAME_GONE},
                {'D', 9, BLAME_DEAF}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        show_ranks();
        for (int rank = 0; rank < RANKS; rank++) {
            put_in(rank, STREAM_GRADIENT_REDUCE, 10, SHARDS, 5);
        }
        slots[1].state = rows[i].state;
        slots[1].age   = rows[i].age;

        expect_blame(rows[i].blame, 1, 0);
    }
}

// A send of one rank matches the receive of its peer, and not the peer's send.
Test(blame, falls_on_the_rank_that_does_not_receive)
{
    slots[0].streams[STREAM_PIPELINE_SEND] = (struct stream_slot){.op = 3, .axes = SHARDS, .mark = 40, .peer = 1};
    slots[1].streams[STREAM_PIPELINE_SEND] = (struct stream_slot){.op = -1, .peer = -1};
    expect_blame(BLAME_AWAITED, 1, 1);

    slots[1].streams[STREAM_PIPELINE_RECEIVE] = (struct stream_slot){.op = 4, .axes = SHARDS, .mark = 41, .peer = 0};
    expect_blame(BLAME_NOBODY, -1, 0);
}

// Ranks 0 and 1 are pipeline stages. Rank 0 has started five sends and skipped one, so rank 1 waits for the fifth, and
// rank 0 waits for a gradient of rank 1. The ops of rank 1 have higher numbers, because the stages have different ops.
// Then rank 0 waits in its sixth send, too.
Test(blame, falls_on_the_stage_that_skips_a_send)
{
    slots[0].streams[STREAM_PIPELINE_RECEIVE] = (struct stream_slot){.op = 4, .axes = SHARDS, .mark = 41, .peer = 1};
    slots[1].streams[STREAM_PIPELINE_RECEIVE] = (struct stream_slot){.op = 9, .axes = SHARDS, .mark = 41, .peer = 0};
    slots[0].messages[0]                      = (struct messages){.peer = 1, .sent = 5, .received = 2};
    slots[1].messages[1]                      = (struct messages){.peer = 0, .sent = 1, .received = 5};
    expect_blame(BLAME_AWAITED, 0, 1);

    slots[0].streams[STREAM_PIPELINE_SEND] = (struct stream_slot){.op = 8, .axes = SHARDS, .mark = 40, .peer = 1};
    slots[0].messages[0].sent              = 6;
    expect_blame(BLAME_AWAITED, 0, 1);
}

// No rank is in a collective, and only rank 2 is still in an op. The others have finished their ops and wait for it.
Test(blame, falls_on_the_rank_whose_op_alone_does_not_end)
{
    slots[2].streams[STREAM_COMPUTE].op = 4;
    expect_blame(BLAME_AWAITED, 2, 3);

    slots[2].phases++;
    expect_blame(BLAME_NOBODY, -1, 0);
}

static void enqueue_up_to(int rank, int op)
{
    slots[rank].streams[STREAM_COMPUTE].op         = op;
    slots[rank].streams[STREAM_GRADIENT_REDUCE].op = op - 1;
}

// Devices execute the collectives, so no rank is in one. Rank 2 has enqueued fewer ops than the other ranks, then none,
// then it has not begun the step.
Test(blame, falls_on_the_rank_that_has_enqueued_fewer_ops)
{
    static const int ops[] = {90, 90, 9, 90};
    for (int rank = 0; rank < RANKS; rank++) {
        enqueue_up_to(rank, ops[rank]);
        slots[rank].sequence = 1;
    }
    expect_blame(BLAME_AWAITED, 2, 3);
    enqueue_up_to(2, -1);
    expect_blame(BLAME_AWAITED, 2, 3);
    slots[2].phases--;
    slots[2].phase = WATCH_BETWEEN;
    expect_blame(BLAME_AWAITED, 2, 3);
}

// Ranks 0 and 1 are another pipeline stage, with other ops. Their devices wait, and their queues are full.
Test(blame, falls_on_the_rank_that_is_furthest_behind_in_its_pipeline_stage)
{
    static const int ops[] = {7, 6, 9, 90};
    for (int rank = 0; rank < RANKS; rank++) {
        enqueue_up_to(rank, ops[rank]);
        slots[rank].sequence = rank / 2 + 1;
    }
    expect_blame(BLAME_AWAITED, 2, 2);
    enqueue_up_to(1, 7);
    enqueue_up_to(3, 9);
    expect_blame(BLAME_NOBODY, -1, 0);
}

// Ranks 2 and 3 are on another host, and rank 3 does not arrive. On this host, rank 0 waits for rank 1, which waits for
// rank 3. So no rank of this host is at fault.
Test(blame, falls_on_nobody_of_a_host_whose_ranks_wait_for_those_of_another)
{
    const struct mesh mesh = MESH(.dp = 2, .fsdp = 2);
    int64_t           index_found, waiting;
    put_in(0, STREAM_GRADIENT_REDUCE, 12, SHARDS, 5);
    put_in(1, STREAM_GRADIENT_REDUCE, 11, REPLICAS, 6);
    cr_expect_eq(blame_find(slots, 2, &mesh, &index_found, &waiting), BLAME_NOBODY);

    put_in(2, STREAM_GRADIENT_REDUCE, 12, SHARDS, 5);
    cr_expect_eq(blame_find(slots + 2, 2, &mesh, &index_found, &waiting), BLAME_AWAITED);
    cr_expect_eq(index_found, 1);

    for (int rank = 0; rank < 2; rank++) {    // devices wait for the other host, and their queues are full
        put_in(rank, STREAM_GRADIENT_REDUCE, 90 - rank, 0, 0);
        slots[rank].sequence = 1;
    }
    cr_expect_eq(blame_find(slots, 2, &mesh, &index_found, &waiting), BLAME_NOBODY);
}

static void expect_place(int phase, const char *place)
{
    const struct plan plan = {.mesh = MESH(.dp = 2)};
    struct slot       slot = {.rank = 1, .pid = 7, .phase = phase, .step = 12, .where = "in its own words"};
    char              text[80];
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        slot.streams[stream].op = -1;
    }
    slot_name_place(&slot, &plan, text, sizeof(text));
    cr_expect_str_eq(text, place, "phase %d: %s", phase, text);
}

Test(slot, names_the_phases_that_it_knows)
{
    expect_place(WATCH_OPENING, "before the first step");
    expect_place(WATCH_STEP, "between ops of step 12");
    expect_place(WATCH_BETWEEN, "after step 12");
    expect_place(WATCH_FILE, "in its own words");
    expect_place(WATCH_FILES, "between files");
    expect_place(WATCH_SAVING, "in the checkpoint after step 12");
}

Test(slot, leaves_other_phases_to_the_words_of_the_rank)
{
    expect_place(WATCH_SAVING + 1, "in its own words");
    expect_place(1 << 30, "in its own words");
    expect_place(-1, "in its own words");
}

// The rank has started op 3 on another stream, but neither an op on the compute stream nor a communication op.
Test(slot, is_in_the_op_that_it_started_last)
{
    struct slot slot = {.rank = 1};
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        slot.streams[stream].op = -1;
    }
    cr_expect_eq(slot_op(&slot), -1);
    slot.streams[STREAM_WEIGHT_GATHER].op = 3;
    cr_expect_eq(slot_op(&slot), 3);
    slot.streams[STREAM_COMPUTE].op = 2;
    cr_expect_eq(slot_op(&slot), 2);
}
