// SPDX-License-Identifier: MIT
// Saves a checkpoint: each rank writes its slices to a file, then rank 0 writes the manifest. In an asynchronous save,
// the slices are first copied to host memory, and a thread writes them while steps run.
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/text.h"
#include "manifest.h"
#include "slices.h"

enum { PIECE_BYTES = 1 << 20 };

// A save in progress on this rank.
struct checkpoint_save {
    const struct plan        *plan;
    const struct step        *step;
    struct comm              *comm;
    char                      folder_path[OUTPUT_PATH_BYTES];
    int64_t                   keep;
    struct checkpoint_watch   watch;
    struct checkpoint_origin  origin;
    float                    *magnitudes;    // amaxes of FP8, each the maximum over all ranks; NULL: none
    struct shard              shard;
    struct output_folder      folder;
    double                    began, stalled;    // began: start time; stalled: seconds until steps could continue
    struct manifest_file      file;              // this rank's file
    status                    written;
    struct safetensors_writer writer;
    // copy of the data in host memory, and its current end; NULL: the data are read from the step's tensors
    char       *copy, *copy_end;
    pthread_t   thread;
    bool        has_thread;
    atomic_bool is_written;
};

// Finds the maximum of each FP8 amax over all ranks. Collective.
static void gather_magnitudes(struct checkpoint_save *save)
{
    int32_t tensor = save->plan->scaling.history >= 0 ? save->plan->scaling.amaxes : -1;
    if (tensor < 0) {
        return;
    }
    int64_t slots = save->plan->tensors[tensor].elements, bytes = save->plan->tensors[tensor].bytes;
    save->magnitudes = memory_allocate((size_t)bytes);
    step_read(save->step, tensor, save->magnitudes);
    float *all = comm_gather(save->comm, save->magnitudes, (size_t)bytes);
    for (int64_t i = 0; i < slots * save->comm->topology.ranks; i++) {
        save->magnitudes[i % slots] = fmaxf(save->magnitudes[i % slots], all[i]);
    }
    free(all);
}

// Callback of pass_entry that receives a piece of a slice's data.
typedef status take_data(struct checkpoint_save *save, const void *data, int64_t bytes);

// Passes the data of an entry to `take`, in pieces that stay in the CPU cache. Rejects NaN and infinities, because a
// load would reject them, too.
static status pass_entry(struct checkpoint_save *save, int32_t index, char *piece, take_data *take)
{
    const struct shard_run  *run    = &save->shard.runs[index];
    const struct safetensor *entry  = &save->shard.entries[index];
    int64_t                  offset = format_bytes(entry->format, run->first);
    int64_t     bytes       = format_bytes(entry->format, entry->dim[0] * (entry->dims == 2 ? entry->dim[1] : 1));
    bool        is_gathered = save->magnitudes != NULL && run->tensor == save->plan->scaling.amaxes;
    const char *own         = is_gathered ? (char *)save->magnitudes : step_host_memory(save->step, run->tensor);
    for (int64_t done = 0; done < bytes; done += PIECE_BYTES) {
        int64_t count = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        if (own == NULL) {
            step_read_run(save->step, run->tensor, offset + done, count, piece);
        }
        const char *data = own != NULL ? own + offset + done : piece;
        FAIL_AS_IF(!checksum_is_finite(entry->format, data, count), EXIT_CHECKPOINT,
                   "%.600s: %.200s has a NaN or an infinity: nothing is saved, older checkpoints stay",
                   save->folder.path, entry->name);
        TRY(take(save, data, count));
    }
    return OK;
}

static status pass_data(struct checkpoint_save *save, take_data *take)
{
    char  *piece  = memory_allocate(PIECE_BYTES);
    status result = OK;
    for (int32_t i = 0; i < save->shard.count && !failed(&result); i++) {
        result = pass_entry(save, i, piece, take);
    }
    free(piece);
    return result;
}

static status take_to_file(struct checkpoint_save *save, const void *data, int64_t bytes)
{
    checkpoint_moved(&save->watch);
    return safetensors_append(&save->writer, data, bytes);
}

static status take_to_copy(struct checkpoint_save *save, const void *data, int64_t bytes)
{
    checkpoint_moved(&save->watch);
    memcpy(save->copy_end, data, (size_t)bytes);
    save->copy_end += bytes;
    return OK;
}

static status append_copy(struct checkpoint_save *save)
{
    for (int64_t done = 0; done < save->shard.bytes; done += PIECE_BYTES) {
        int64_t left = save->shard.bytes - done;
        TRY(take_to_file(save, save->copy + done, left < PIECE_BYTES ? left : PIECE_BYTES));
    }
    return OK;
}

static status write_shard(struct checkpoint_save *save)
{
    struct manifest_file *file = &save->file;
    TRY(safetensors_create_in(&save->writer, &save->folder, file->name, save->shard.entries, save->shard.count));
    status result = save->copy != NULL ? append_copy(save) : pass_data(save, take_to_file);
    result        = failed(&result) ? result : safetensors_finish(&save->writer);
    safetensors_abandon(&save->writer);
    file->bytes = save->writer.file_bytes;
    checksum_print(save->writer.header_checksum, file->checksum);
    return result;
}

static void *write_beside(void *argument)
{
    struct checkpoint_save *save = argument;
    save->written                = write_shard(save);
    atomic_store(&save->is_written, true);
    return NULL;
}

static void enter_file(const struct checkpoint_save *save, const char *name)
{
    char path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    snprintf(path, sizeof(path), "%s/%s", save->folder.path, name);
    checkpoint_enter(&save->watch, path);
}

// Copies the data to host memory and starts a thread that writes them. If no thread can be created, writes them at
// once.
static void start_write(struct checkpoint_save *save)
{
    save->copy = save->copy_end = memory_allocate((size_t)save->shard.bytes + 1);
    save->written               = pass_data(save, take_to_copy);
    save->has_thread = !failed(&save->written) && pthread_create(&save->thread, NULL, write_beside, save) == 0;
    if (failed(&save->written)) {
        atomic_store(&save->is_written, true);
    } else if (!save->has_thread) {
        write_beside(save);
    }
}

// Fails on all ranks if any rank failed. Collective.
static status agree(const struct checkpoint_save *save, status own)
{
    checkpoint_enter(&save->watch, NULL);
    return comm_agree(save->comm, own);
}

// Opens the folder of the save. Rank 0 creates it and checks for space; then the other ranks open it.
static status open_folder(struct checkpoint_save *save, int64_t whole_bytes)
{
    status own = OK;
    checkpoint_enter(&save->watch, save->folder_path);
    if (save->comm->topology.rank == 0) {
        own = folders_claim(&save->folder, save->folder_path, save->origin.step, &save->watch);
        own = failed(&own)
                  ? own
                  : output_check_space(save->folder.descriptor, save->folder.path, whole_bytes, save->shard.bytes);
    }
    TRY(agree(save, own));
    checkpoint_enter(&save->watch, save->folder_path);
    if (save->comm->topology.rank != 0) {
        own = folders_enter(&save->folder, save->folder_path, save->origin.step);
    }
    return agree(save, own);
}

static status describe_config(const struct checkpoint_save *save, struct manifest_file *file)
{
    json_t *json = describe_model(&save->plan->model, save->plan->train.sequence, save->plan->precision.weight);
    char   *text = json_text(json, JSON_FLAGS);
    snprintf(file->name, sizeof(file->name), CONFIG_NAME);
    file->bytes = (int64_t)strlen(text);
    checksum_print(XXH3_64bits(text, strlen(text)), file->checksum);
    status result = output_write(&save->folder, file->name, text, strlen(text));
    free(text);
    return result;
}

// Completes the checkpoint by writing its manifest. Only then removes older checkpoints.
static status complete(const struct checkpoint_save *save, const struct manifest_file *shards)
{
    int             ranks = save->comm->topology.ranks;
    struct manifest manifest;
    enter_file(save, MANIFEST_NAME);
    manifest_init(&manifest, save->plan, &save->origin, ranks + 1);
    memcpy(manifest.files, shards, (size_t)ranks * sizeof(*shards));
    status result = describe_config(save, &manifest.files[ranks]);
    result        = failed(&result) ? result : manifest_write(&manifest, &save->folder);
    if (!failed(&result) && save->keep > 0) {
        result = folders_prune(save->folder_path, save->keep, &manifest, &save->watch);
    }
    manifest_free(&manifest);
    return result;
}

static int64_t sum_bytes(struct comm *comm, int64_t own)
{
    int64_t  sum = 0;
    int64_t *all = comm_gather(comm, &own, sizeof(own));
    for (int rank = 0; rank < comm->topology.ranks; rank++) {
        sum += all[rank];
    }
    free(all);
    return sum;
}

void checkpoint_save_close(struct checkpoint_save *save)
{
    if (save == NULL) {
        return;
    }
    if (save->has_thread) {
        pthread_join(save->thread, NULL);
    }
    output_close_folder(&save->folder);
    shard_free(&save->shard);
    free(save->magnitudes);
    free(save->copy);
    free(save);
}

status checkpoint_save_begin(struct checkpoint_save **begun, const struct plan *plan, const struct step *step,
                             struct comm *comm, const struct checkpoint_target *target,
                             const struct checkpoint_origin *origin)
{
    struct checkpoint_save *save = memory_allocate(sizeof(*save));
    *begun                       = save;
    save->plan                   = plan;
    save->step                   = step;
    save->comm                   = comm;
    save->keep                   = target->keep;
    save->watch                  = target->watch;
    save->origin                 = *origin;
    save->began                  = clock_seconds();
    save->shard                  = shard_describe(plan);
    text_copy(save->folder_path, sizeof(save->folder_path), target->folder);
    snprintf(save->file.name, sizeof(save->file.name), SHARD_NAME, comm->topology.rank, comm->topology.ranks);
    gather_magnitudes(save);
    status result = open_folder(save, sum_bytes(comm, save->shard.bytes));
    if (failed(&result)) {
        checkpoint_save_close(save);
        *begun = NULL;
    } else {
        enter_file(save, save->file.name);
        if (target->is_asynchronous) {
            start_write(save);
        } else {
            write_beside(save);
        }
        save->stalled = clock_seconds() - save->began;
    }
    return result;
}

bool checkpoint_save_is_written(const struct checkpoint_save *save)
{
    return atomic_load(&save->is_written);
}

static status gather_shards(const struct checkpoint_save *save)
{
    struct manifest_file *shards = comm_gather(save->comm, &save->file, sizeof(save->file));
    status                result = agree(save, save->comm->topology.rank == 0 ? complete(save, shards) : OK);
    free(shards);
    return result;
}

status checkpoint_save_end(struct checkpoint_save *save, struct checkpoint_cost *cost)
{
    double begun = clock_seconds();
    if (save->has_thread) {
        enter_file(save, save->file.name);
        pthread_join(save->thread, NULL);
        save->has_thread = false;
    }
    status result = agree(save, save->written);
    result        = failed(&result) ? result : gather_shards(save);
    double now    = clock_seconds();
    *cost         = (struct checkpoint_cost){now - save->began, save->stalled + now - begun, save->shard.bytes};
    checkpoint_save_close(save);
    return result;
}
