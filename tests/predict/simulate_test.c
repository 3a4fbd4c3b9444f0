// SPDX-License-Identifier: MIT
// Simulates small timelines. All times are sums of powers of two, so results are exact.
#include <criterion/criterion.h>

#include "gswbench/predict.h"
#include "success.h"

enum { ACTORS = 3, TASKS = 4 };
enum { NODE = LINK_NODE_OUT | LINK_NODE_IN, NETWORK = LINK_NETWORK_OUT | LINK_NETWORK_IN };

// A case has the tasks of each actor (a stage of the pipeline), and their expected end. Actors without tasks are
// unused.
struct timeline {
    struct task tasks[ACTORS][TASKS];
    int32_t     participants[2];
    double      contention, processors;
    int32_t     sm_margin;
    double      end[ACTORS], compute[ACTORS];

    struct simulated_cores cores;
    double                 ranks;    // ranks per actor
    int32_t                nodes[ACTORS];
};

#define COMPUTE(time)                                                                                                  \
    {                                                                                                                  \
        .seconds = time, .rendezvous = -1, .stream = STREAM_COMPUTE                                                    \
    }
#define COMMUNICATION(time, on, through)                                                                               \
    {                                                                                                                  \
        .seconds = time, .rendezvous = -1, .stream = on, .links = through                                              \
    }
#define AFTER(index) .wait = {index}, .wait_count = 1

static void simulate_timeline(const struct timeline *timeline)
{
    struct timeline   copy           = *timeline;
    struct actor      actors[ACTORS] = {{.task_count = 0}};
    struct actor_time times[ACTORS]  = {{.tasks = NULL}};
    int32_t           count          = 0;
    for (; count < ACTORS && copy.tasks[count][0].seconds > 0; count++) {
        actors[count] = (struct actor){.tasks = copy.tasks[count], .node = copy.nodes[count], .ranks = copy.ranks};
        while (actors[count].task_count < TASKS && copy.tasks[count][actors[count].task_count].seconds > 0) {
            actors[count].task_count++;
        }
    }
    struct simulation simulation = {.actors           = actors,
                                    .actor_count      = count,
                                    .participants     = copy.participants,
                                    .rendezvous_count = 2,
                                    .contention       = copy.contention,
                                    .processors       = copy.processors,
                                    .sm_margin        = copy.sm_margin,
                                    .cores            = copy.cores};
    REQUIRE(simulate(&simulation, times));
    for (int32_t actor = 0; actor < count; actor++) {
        cr_expect_eq(times[actor].end_seconds, timeline->end[actor], "actor %d ends at %.17g", actor,
                     times[actor].end_seconds);
        cr_expect_eq(times[actor].compute_seconds, timeline->compute[actor], "actor %d computes for %.17g", actor,
                     times[actor].compute_seconds);
    }
}
#define EXPECT_TIMELINE(...) simulate_timeline(&(struct timeline){__VA_ARGS__})

Test(simulate, runs_a_stream_in_order_and_streams_beside_each_other)
{
    EXPECT_TIMELINE(.tasks = {{COMPUTE(2), COMMUNICATION(4, STREAM_WEIGHT_GATHER, NODE), COMPUTE(1)}}, .end = {4},
                    .compute = {3});
}

Test(simulate, begins_a_task_when_what_it_waits_for_has_ended)
{
    // Compute runs from 0 to 2, a collective from 2 to 6, and compute from 6 to 7. Nothing overlaps.
    EXPECT_TIMELINE(.tasks = {{COMPUTE(2),
                               {.seconds = 4, .rendezvous = -1, .stream = STREAM_TENSOR, .links = NODE, AFTER(0)},
                               {.seconds = 1, .rendezvous = -1, .stream = STREAM_COMPUTE, AFTER(1)}}},
                    .end = {7}, .compute = {3});
}

#define LAUNCHED(time, launch)                                                                                         \
    {                                                                                                                  \
        .seconds = time, .rendezvous = -1, .stream = STREAM_COMPUTE, .launch_seconds = launch                          \
    }

Test(simulate, begins_nothing_that_the_host_has_not_launched)
{
    // First the GPU is idle, so each task starts when it is launched, at 2, 4 and 6. Then the GPU is busy, and tasks
    // are launched before they can start.
    EXPECT_TIMELINE(.tasks = {{LAUNCHED(1, 2), LAUNCHED(1, 2), LAUNCHED(1, 2)}}, .end = {7}, .compute = {3});
    EXPECT_TIMELINE(.tasks = {{LAUNCHED(5, 2), LAUNCHED(5, 2), LAUNCHED(5, 2)}}, .end = {17}, .compute = {15});
    // The host reads the result of the second task, so it continues at 12, when this task has ended.
    EXPECT_TIMELINE(
            .tasks = {{LAUNCHED(5, 2),
                       {.seconds = 5, .rendezvous = -1, .stream = STREAM_COMPUTE, .launch_seconds = 2, .is_read = true},
                       LAUNCHED(5, 2)}},
            .end = {19}, .compute = {15});
}

Test(simulate, slows_nothing_down_while_a_host_launches)
{
    // The collective runs until 8. One second of compute starts at 4 and runs at half speed.
    EXPECT_TIMELINE(.tasks = {{COMMUNICATION(8, STREAM_TENSOR, NODE), LAUNCHED(1, 4)}}, .contention = 0.5, .end = {8},
                    .compute = {2});
}

Test(simulate, shares_cores_among_ranks_that_compute)
{
    // Four ranks share two cores, so they run at half speed. Stage 1 is alone after 4 seconds, and has done half of its
    // work.
    EXPECT_TIMELINE(.tasks = {{COMPUTE(2)}, {COMPUTE(4)}}, .cores = {.count = 2, .threads = 1}, .ranks = 2,
                    .end = {4, 6}, .compute = {4, 6});
    // A rank with two threads has two cores to itself.
    EXPECT_TIMELINE(.tasks = {{COMPUTE(2)}}, .cores = {.count = 2, .threads = 2}, .ranks = 1, .end = {2},
                    .compute = {2});
}

Test(simulate, delays_communications_by_what_computes_on_their_cores)
{
    // A collective of one second takes four, since ranks compute on all cores. Meanwhile compute does three seconds of
    // work.
    const struct simulated_cores cores = {.count = 2, .threads = 1, .communication_delay = 3};
    EXPECT_TIMELINE(.tasks = {{COMPUTE(4), COMMUNICATION(1, STREAM_TENSOR, NODE)}}, .contention = 0.25, .cores = cores,
                    .ranks = 2, .end = {5}, .compute = {5});
    // If one of two cores is busy, the delay is half as long: 2.5 seconds, in which compute does 2.1875 seconds of
    // work.
    EXPECT_TIMELINE(.tasks = {{COMPUTE(4), COMMUNICATION(1, STREAM_TENSOR, NODE)}}, .contention = 0.25, .cores = cores,
                    .ranks = 1, .end = {4.3125}, .compute = {4.3125});
    // After compute has ended, the collective continues without delay.
    EXPECT_TIMELINE(.tasks = {{COMPUTE(2), COMMUNICATION(1, STREAM_TENSOR, NODE)}}, .cores = cores, .ranks = 2,
                    .end = {2.5}, .compute = {2});
    // A participant with free cores waits for a participant without.
    EXPECT_TIMELINE(.tasks        = {{COMPUTE(4), {.seconds = 1, .stream = STREAM_PIPELINE_SEND, .links = NODE}},
                                     {{.seconds = 1, .stream = STREAM_PIPELINE_RECEIVE, .links = NODE}}},
                    .participants = {2}, .cores = {.count = 1, .threads = 1, .communication_delay = 3}, .ranks = 1,
                    .nodes = {0, 1}, .end = {4, 4}, .compute = {4, 0});
}

Test(simulate, takes_from_compute_what_communications_beside_it_need)
{
    // Compute runs at half speed for 2 seconds and does 1 second of work. 3 seconds of work are left.
    EXPECT_TIMELINE(.tasks = {{COMPUTE(4), COMMUNICATION(2, STREAM_TENSOR, NODE)}}, .contention = 0.5, .end = {5},
                    .compute = {5});
}

Test(simulate, takes_from_compute_the_processors_that_communications_run_on)
{
    const struct task two[] = {
        {.seconds = 2, .rendezvous = -1, .stream = STREAM_TENSOR, .links = NODE, .processors = 32},
        {.seconds = 2, .rendezvous = -1, .stream = STREAM_EXPERT, .links = NETWORK, .processors = 16}};
    // Collectives take a quarter of the SMs for 2 seconds, and an eighth of them at the same time. So compute does 1.25
    // seconds of work.
    EXPECT_TIMELINE(.tasks = {{COMPUTE(4), two[0], two[1]}}, .processors = 128, .end = {4.75}, .compute = {4.75});
    // SMs of the margin are not taken from compute.
    EXPECT_TIMELINE(.tasks = {{COMPUTE(4), two[0], two[1]}}, .processors = 128, .sm_margin = 32, .end = {4.25},
                    .compute = {4.25});
    EXPECT_TIMELINE(.tasks = {{COMPUTE(4), two[1]}}, .processors = 128, .sm_margin = 32, .end = {4}, .compute = {4});
    // Ranks on CPUs have no SMs.
    EXPECT_TIMELINE(.tasks = {{COMPUTE(4), two[0]}}, .end = {4}, .compute = {4});
}

Test(simulate, keeps_what_is_done_whenever_the_rate_changes)
{
    // Compute runs at half speed until 1, at full speed until 3, and at half speed until 4. Then 5 seconds of work are
    // left.
    EXPECT_TIMELINE(
            .tasks =
                {{COMPUTE(8),
                  COMMUNICATION(1, STREAM_TENSOR, NODE),
                  {.seconds = 1, .rendezvous = 0, .stream = STREAM_PIPELINE_RECEIVE, .links = LINK_NODE_IN}},
                 {COMPUTE(3),
                  {.seconds = 1, .rendezvous = 0, .stream = STREAM_PIPELINE_SEND, .links = LINK_NODE_OUT, AFTER(0)}}},
            .participants = {2}, .contention = 0.5, .end = {9, 4}, .compute = {9, 3});
}

Test(simulate, shares_a_link_between_the_streams_that_use_it)
{
    // Both collectives share the link and run at half speed until 4. Then 2 seconds of the longer one are left.
    EXPECT_TIMELINE(.tasks = {{COMMUNICATION(2, STREAM_TENSOR, NODE), COMMUNICATION(4, STREAM_GRADIENT_REDUCE, NODE)}},
                    .end   = {6});
    // Different links, and both directions of one link, do not slow each other down.
    EXPECT_TIMELINE(.tasks = {{COMMUNICATION(2, STREAM_TENSOR, NODE),
                               COMMUNICATION(4, STREAM_GRADIENT_REDUCE, NETWORK)}},
                    .end   = {4});
    EXPECT_TIMELINE(.tasks = {{COMMUNICATION(2, STREAM_TENSOR, LINK_NODE_OUT),
                               COMMUNICATION(4, STREAM_GRADIENT_REDUCE, LINK_NODE_IN)}},
                    .end   = {4});
}

Test(simulate, begins_a_communication_when_its_last_participant_has_come)
{
    // Three actors are ready at 1, 2 and 4. The collective takes the longest of their costs.
    EXPECT_TIMELINE(
            .tasks = {{COMPUTE(1), {.seconds = 1, .rendezvous = 0, .stream = STREAM_TENSOR, .links = NODE, AFTER(0)}},
                      {COMPUTE(2), {.seconds = 2, .rendezvous = 0, .stream = STREAM_TENSOR, .links = NODE, AFTER(0)}},
                      {COMPUTE(4), {.seconds = 1, .rendezvous = 0, .stream = STREAM_TENSOR, .links = NODE, AFTER(0)}}},
            .participants = {3}, .end = {6, 6, 6}, .compute = {1, 2, 4});
}

Test(simulate, leaves_the_time_of_every_task)
{
    // The receive is ready at 0. The send is ready at 4, since a collective slows the compute before it to half speed
    // for 2 seconds.
    struct task tasks[][3] = {
        {COMPUTE(3),
         COMMUNICATION(2, STREAM_TENSOR, NODE),
         {.seconds = 1, .rendezvous = 0, .stream = STREAM_PIPELINE_SEND, .links = NETWORK, AFTER(0)}},
        {{.seconds = 2, .rendezvous = 0, .stream = STREAM_PIPELINE_RECEIVE, .links = NETWORK},
         {.seconds = 5, .rendezvous = -1, .stream = STREAM_COMPUTE, AFTER(0)}}};
    struct actor      actors[]   = {{.tasks = tasks[0], .task_count = 3}, {.tasks = tasks[1], .task_count = 2}};
    struct op_time    first[3]   = {{.begin = -1}}, second[2];
    struct actor_time times[]    = {{.tasks = first}, {.tasks = second}};
    struct simulation simulation = {
        .actors = actors, .actor_count = 2, .participants = (int32_t[]){2}, .rendezvous_count = 1, .contention = 0.5};

    REQUIRE(simulate(&simulation, times));
    const struct op_time expected_first[] = {{0, 4}, {0, 2}, {4, 6}}, expected_second[] = {{4, 6}, {6, 11}};
    cr_expect_arr_eq(first, expected_first, sizeof(first));
    cr_expect_arr_eq(second, expected_second, sizeof(second));
}

Test(simulate, slows_a_communication_down_to_its_slowest_participant)
{
    // The second actor shares its link until its own collective ends at 4. The first collective then has 2 of 4 seconds
    // left.
    EXPECT_TIMELINE(
            .tasks        = {{{.seconds = 4, .rendezvous = 0, .stream = STREAM_PIPELINE_SEND, .links = LINK_NODE_OUT}},
                             {{.seconds = 4, .rendezvous = 0, .stream = STREAM_PIPELINE_RECEIVE, .links = LINK_NODE_IN},
                              COMMUNICATION(2, STREAM_TENSOR, NODE)}},
            .participants = {2}, .end = {6, 6});
}

// At 4 one actor starts another collective on the link. The first collective has 4 of 8 seconds left, which take 8. The
// order in which participants arrived must not matter.
Test(simulate, slows_a_communication_down_when_one_of_its_participants_begins_another)
{
#define RENDEZVOUS(time)                                                                                               \
    {                                                                                                                  \
        .seconds = time, .rendezvous = 0, .stream = STREAM_CONTEXT, .links = NODE                                      \
    }
#define OTHER                                                                                                          \
    {                                                                                                                  \
        .seconds = 4, .rendezvous = -1, .stream = STREAM_WEIGHT_GATHER, .links = NODE, AFTER(1)                        \
    }
    for (int busy = 0; busy < 2; busy++) {
        struct timeline timeline = {.participants = {2, 0}, .end = {12, 12}};
        timeline.tasks[busy][0] = timeline.tasks[1 - busy][0] = (struct task)RENDEZVOUS(8);
        timeline.tasks[busy][1]                               = (struct task)COMPUTE(4);
        timeline.tasks[busy][2]                               = (struct task)OTHER;
        timeline.compute[busy]                                = 4;
        simulate_timeline(&timeline);
    }
}

Test(simulate, says_when_actors_wait_for_each_other)
{
    struct task  tasks[] = {{.seconds = 1, .rendezvous = 0, .stream = STREAM_PIPELINE_SEND, .links = LINK_NODE_OUT}};
    struct actor actor   = {.tasks = tasks, .task_count = 1};
    struct simulation simulation = {
        .actors = &actor, .actor_count = 1, .participants = (int32_t[]){2}, .rendezvous_count = 1};
    struct actor_time time   = {.tasks = NULL};
    status            result = simulate(&simulation, &time);
    cr_expect_str_eq(result.text, "task 0 of actor 0 waits for ever");
}
