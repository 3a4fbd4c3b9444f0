// SPDX-License-Identifier: MIT
// Send and receive between threads: the receiver copies directly from the sender's memory.
#include "local_meeting.h"

#include <inttypes.h>
#include <string.h>

#include "gswbench/fatal.h"

// Publishes the data, and sleeps until the receiver has copied it.
void letter_send(struct comm_group *group, const struct transfer_shape *shape, const void *data, int64_t bytes)
{
    struct meeting *meeting = group->meeting;
    struct letter  *letter  = &meeting->letters[group->index];
    pthread_mutex_lock(&meeting->mutex);
    *letter =
        (struct letter){.is_waiting = true, .to = shape->peer, .channel = shape->channel, .bytes = bytes, .data = data};
    pthread_cond_broadcast(&meeting->changed);
    while (letter->is_waiting) {
        pthread_cond_wait(&meeting->changed, &meeting->mutex);
    }
    pthread_mutex_unlock(&meeting->mutex);
}

void letter_receive(struct comm_group *group, const struct transfer_shape *shape, void *data, int64_t bytes)
{
    struct meeting *meeting = group->meeting;
    struct letter  *letter  = &meeting->letters[shape->peer];
    pthread_mutex_lock(&meeting->mutex);
    while (!letter->is_waiting || letter->to != group->index || letter->channel != shape->channel) {
        pthread_cond_wait(&meeting->changed, &meeting->mutex);
    }
    pthread_mutex_unlock(&meeting->mutex);
    if (letter->bytes != bytes) {
        FATAL(EXIT_INTERNAL, "a receive of %" PRId64 " bytes met a send of %" PRId64, bytes, letter->bytes);
    }
    memcpy(data, letter->data, (size_t)bytes);
    pthread_mutex_lock(&meeting->mutex);
    letter->is_waiting = false;
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->mutex);
}
