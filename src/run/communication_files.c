// SPDX-License-Identifier: MIT
// Writes transfers/RANK.csv for a traced step: one line per collective, send or receive. The time of a line begins when
// the op is first in its stream, so it includes waiting for other ranks.
#include "trace.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/number.h"
#include "gswbench/report.h"

enum { LINE_BYTES = 256 };    // maximum; typical lines have 150
static const int64_t AUTO_BYTES = 1 << 30;

static bool is_first_of_stage(const struct plan *plan, int64_t rank)
{
    int64_t place[AXIS_COUNT], first[AXIS_COUNT] = {0};
    mesh_coordinates(&plan->mesh, rank, place);
    first[AXIS_PP] = place[AXIS_PP];
    return mesh_rank(&plan->mesh, first) == rank;
}

bool communication_files_have(const struct communication_files *files, int64_t rank)
{
    return trace_config_lists(files->trace, rank) && (!files->is_cut || is_first_of_stage(files->plan, rank));
}

struct communication_files communication_files_of(const struct trace_config *trace, const struct plan *plan)
{
    struct communication_files files = {.trace = trace, .plan = plan};
    int64_t                    ranks = plan->mesh.world, listed = 0, communications = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        communications += op_is_communication((enum op_kind)plan->ops[i].kind);
    }
    files.bytes_of_all = ranks * communications * LINE_BYTES;
    files.is_cut       = trace_config_chooses(trace) && files.bytes_of_all > AUTO_BYTES;
    for (int64_t rank = 0; rank < ranks; rank++) {
        listed += communication_files_have(&files, rank);
    }
    files.bytes = listed * communications * LINE_BYTES;
    return files;
}

static void write_index(int64_t value, FILE *file)
{
    if (value >= 0) {
        fprintf(file, "%" PRId64, value);
    }
    fputc(',', file);
}

static void write_communication(const struct communication_times_setup *setup, const struct communication_rows *rows,
                                int32_t index, FILE *file)
{
    const struct plan             *plan    = setup->plan;
    const struct op               *op      = &plan->ops[index];
    const struct plan_group       *group   = &plan->groups[op->shape.communication.group];
    const struct op_time          *time    = &setup->times[index];
    const struct communication_row row     = communication_describe(plan, op);
    const struct comm_choice      *chosen  = communication_chosen(rows, &row);
    int64_t                        bytes   = format_bytes((enum format)row.format, row.elements);
    double                         seconds = time->end - time->begin;
    char                           axes[64];
    fprintf(file, "%" PRId32 ",%s,%s,%s,", index, op_name((enum op_kind)op->kind), op->tag.role,
            op_phase_name((enum phase)op->tag.phase));
    write_index(op->tag.layer, file);
    write_index(op->tag.microbatch, file);
    fprintf(file, "%s,%s,%" PRId64 ",%" PRId64 ",", op_stream_name((enum stream)op->stream),
            axis_names(row.axes, axes, sizeof(axes)), group->ranks[0], row.group_size);
    write_index(op_is_link((enum op_kind)op->kind) ? group->ranks[op->shape.communication.peer] : -1, file);
    fprintf(file, "%s,%" PRId64 ",%" PRId64 ",%.9f,%.9f,", format_name((enum format)row.format), row.elements, bytes,
            time->begin, seconds);
    csv_write_real(communication_bus_factor(op->kind, (double)row.group_size) * (double)bytes / seconds, file);
    fputc(',', file);
    csv_write_text(chosen != NULL ? chosen->algorithm : "", file);
    fputc(',', file);
    csv_write_text(chosen != NULL ? chosen->protocol : "", file);
    fprintf(file, ",%" PRId64 "\n", chosen != NULL ? chosen->channels : 0);
}

static void write_own(const struct communication_times_setup *setup, const struct communication_rows *rows, FILE *file)
{
    fprintf(file,
            "op,kind,role,phase,layer,microbatch,lane,axes,first_rank,ranks,peer,dtype,elements,bytes,begin_s,time_s,"
            "bus_bytes_per_s,algorithm,protocol,channels\n");
    for (int32_t i = 0; i < setup->plan->op_count; i++) {
        if (op_is_communication((enum op_kind)setup->plan->ops[i].kind)) {
            write_communication(setup, rows, i, file);
        }
    }
}

// The rank broadcasts its text in pieces, so that no other rank stores more than one piece.
void collect_text(struct comm *comm, int rank, const struct text_stream *own, struct output *file, status *written)
{
    enum { PIECE = 1 << 16 };
    struct piece {
        size_t bytes, left;    // left: bytes that follow this piece
        char   text[PIECE];
    } *piece    = memory_allocate(sizeof(*piece));
    piece->left = own->bytes;
    do {
        if (comm->topology.rank == rank) {
            const char *next = own->data + own->bytes - piece->left;
            piece->bytes     = piece->left < PIECE ? piece->left : PIECE;
            piece->left -= piece->bytes;
            memcpy(piece->text, next, piece->bytes);
        }
        comm->ops->share(comm, piece, sizeof(*piece), rank);
        if (comm->topology.rank == 0 && !failed(written)) {
            *written = output_append(file, piece->text, piece->bytes);
        }
    } while (piece->left > 0);
    free(piece);
}

// Writes the file of the rank `rank`: rank 0 opens the file, and `rank` sends it the text.
static void write_file(const struct communication_times_setup *setup, const struct communication_rows *rows, int rank,
                       const struct output_folder *inside, status *written)
{
    bool               is_first = setup->comm->topology.rank == 0;
    struct output      file     = {.is_open = false};
    struct text_stream own      = {.data = NULL};
    char               name[32];
    snprintf(name, sizeof(name), "%d.csv", rank);
    if (is_first && !failed(written)) {
        *written = output_begin_in(&file, inside, name);
    }
    if (rank == setup->comm->topology.rank) {
        text_stream_open(&own);
        write_own(setup, rows, own.file);
        text_stream_close(&own);
    }
    collect_text(setup->comm, rank, &own, &file, written);
    free(own.data);
    if (is_first && !failed(written)) {
        *written = output_finish(&file);
    }
}

// Opens the subfolder "transfers" with its own descriptor, so that `folder` stays open.
static status open_inside(struct output_folder *inside, const struct output_folder *folder)
{
    static const char name[] = "transfers";
    bool              is_new;
    TRY(output_make_folder(folder, name, &is_new));
    *inside            = *folder;
    inside->descriptor = fcntl(folder->descriptor, F_DUPFD_CLOEXEC, 0);
    return output_enter_folder(inside, name);
}

status communication_files_write(const struct communication_times_setup *setup, const struct communication_rows *rows,
                                 const struct output_folder *folder)
{
    struct output_folder inside  = {.is_open = false};
    status               written = OK;
    char                 size[32];
    if (rows->rows[0].group_size == 0) {    // no rank of the job communicates
        return OK;
    }
    struct communication_files files = communication_files_of(&setup->config->trace, setup->plan);
    setup->comm->ops->share(setup->comm, &files.is_cut, sizeof(files.is_cut), 0);
    if (files.is_cut) {
        result_note(
            setup->result, NOTE("transfers-cut"),
            "collectives of the traced step are listed for the first rank of each pipeline stage only: files of "
            "all %" PRId64 " ranks may need %s (trace.communications = all writes them)",
            files.plan->mesh.world, number_bytes(size, sizeof(size), (double)files.bytes_of_all));
    }
    if (setup->comm->topology.rank == 0) {
        written = open_inside(&inside, folder);
    }
    for (int rank = 0; rank < setup->comm->topology.ranks; rank++) {
        if (communication_files_have(&files, rank)) {
            write_file(setup, rows, rank, &inside, &written);
        }
    }
    output_close_folder(&inside);
    return written;
}
