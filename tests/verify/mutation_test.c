// SPDX-License-Identifier: MIT
// Tests verification with mutated plans of every layout below. Each has one error, which must be found with its rank,
// op and tag. The original plans must have no findings.
#include <criterion/criterion.h>
#include <string.h>

#include "line.h"
#include "mistakes.h"
#include "success.h"

// clang-format off
static const char one[]      = "",
                  dp[]       = "dp 4",
                  fsdp[]     = "fsdp 4; layers 4",
                  hsdp[]     = "fsdp 2; dp 2",
                  low_precision[]   = "dp 2; compute bf16; reduce bf16",
                  zero[]     = "dp 2; cp 2; zero 1; accumulation 2; micro_batch 1",
                  each[]     = "dp 4; accumulation 2; gradient_reduce microbatch",
                  tp[]       = "tp 2",
                  rings[]    = "tp 4; tp_overlap yes",
                  ring[]     = "cp 4; micro_batch 1",
                  gather[]   = "cp 2; context gather; micro_batch 1",
                  pp[]       = "pp 4; accumulation 4; layers 4",
                  chunks[]   = "pp 2; vp 2; layers 4",
                  turns[]    = "pp 2; vp 2; accumulation 4; layers 4",
                  cube[]     = "fsdp 2; tp 2; pp 2; accumulation 2",
                  fp8[]      = "dp 2; tp 2; accumulation 2; compute fp8; recipe delayed",
                  blocks[]   = "tp 2; tp_overlap yes; accumulation 2; compute fp8; recipe block",
                  zero_fp8[] = "dp 4; zero 1; compute fp8; recipe delayed; fp8_weights yes",
                  fsdp_fp8[] = "fsdp 4; compute fp8; recipe current; fp8_weights yes",
                  noted[]    = "fsdp 2; tp 2; compute fp8; recipe current",
                  counted[]  = "dp 2; ep 2; experts 4; top_k 2; accumulation 2",
                  whole[]    = "dp 2; tp 2; ep 4; etp 1; experts 4; top_k 2; accumulation 2",
                  shared[]   = "dp 2; tp 2; cp 2; ep 4; etp 1; experts 4; top_k 2; capacity_factor 1; micro_batch 1",
                  deep[]     = "tp 2; cp 2; pp 2; vp 2; accumulation 4; tp_overlap yes; layers 4; micro_batch 1";
// clang-format on

struct mutation {
    const char *layout;
    int64_t     rank;
    plant_fn   *plant;
    const char *role;
    int         layer, microbatch;
    const char *op, *what;    // the op and the text of the finding
};

// clang-format off
static const struct mutation mutations[] = {
    // Errors in the order of ops.
    {dp, 2, forget_waits, "gradient reduce", 1, 0,
     "all_reduce \"gradient reduce\", reduce, layer 1, microbatch 0", "is not ordered after the write of \"gradients, layer 1\""},
    {each, 1, forget_waits, "gradient reduce", 1, 1,
     "all_reduce \"gradient reduce\", reduce, layer 1, microbatch 1", "is not ordered after the write of \"whole gradients, layer 1, microbatch 1\""},
    {each, 3, forget_waits, "gradient cast", ANY, 0,
     "cast \"gradient cast\", reduce, microbatch 0", "is not ordered after the write of \"whole gradients, microbatch 0\""},
    {hsdp, 3, forget_waits, "attention norm", 1, 0,
     "norm_forward \"attention norm\", forward, layer 1, microbatch 0", "is not ordered after the write of \"norm1, layer 1"},
    {deep, 7, forget_waits, "residual send", ANY, 1,
     "send \"residual send\", forward, microbatch 1", "is not ordered after the write of"},
    {ring, 1, forget_stream, "kv ring", 0, 0,
     "layer 0, microbatch 0", "is not ordered after the write of \"seen kv, layer 0, microbatch 0\""},
    {tp, 1, wait_for_the_op_before, "qkv input", 1, 0,
     "all_gather \"qkv input\"", "is not ordered after the write of"},
    {hsdp, 0, wait_for_a_later_op, "gradient reduce-scatter", 0, 0,
     "reduce_scatter \"gradient reduce-scatter\", reduce, layer 0, microbatch 0", "waits for an op that does not come before it"},
    {fsdp, 3, forget_waits, "weight gather", 3, 0,
     "all_gather \"weight gather\", forward, layer 3, microbatch 0", "overwrites bytes that may still be read"},
    {cube, 5, forget_stream, "residual gradient send", ANY, 0,
     "rank 5", "overwrites bytes that may still be read"},
    {fsdp, 1, move_behind_its_reader, "weight gather", 1, 0,
     "norm_forward \"attention norm\", forward, layer 1, microbatch 0", "reads what nothing has written: \"norm1, layer 1"},
    // Errors in memory offsets.
    {cube, 6, write_over_the_input, "fc1", 1, 1, "layer 1, microbatch 1", "reads what was overwritten since"},
    {deep, 2, write_over_its_end, "fc2", ANY, 2, "rank 2", "reads what was overwritten since"},
    {one, 0, leave_the_arena, "fc2", 1, 0,
     "gemm \"fc2\", forward, layer 1, microbatch 0", "leaves the storage of \"fc2, layer 1, microbatch 0\""},
    {pp, 0, write_over_a_saved_value, "fc1", 0, 3, "rank 0", "reads what was overwritten since"},
    {low_precision, 1, write_over_a_saved_value, "fc1", 1, 0, "rank 1", "reads what was overwritten since"},
    // Values that are missing or set twice.
    {gather, 1, remove_op, "rope", 1, 0,
     "layer 1, microbatch 0", "reads what nothing has written: \"kv, layer 1, microbatch 0\""},
    {ring, 3, insert_copy, "mlp norm", 0, 0,
     "norm_forward \"mlp norm\", forward, layer 0, microbatch 0", "sets a second time"},
    {zero, 1, overwrite_instead_of_adding, "fc1 weight gradient", 1, 1,
     "gemm \"fc1 weight gradient\", backward, layer 1, microbatch 1", "sets a second time \"weight gradient, layer 1"},
    {deep, 5, say_that_it_adds, "fc1 weight gradient", ANY, 0,
     "gemm \"fc1 weight gradient\", backward, layer 3, microbatch 0", "does not read and write as its kind does"},
    {pp, 3, add_to_what_is_not_there, "fc1 weight gradient", 3, 0,
     "gemm \"fc1 weight gradient\", backward, layer 3, microbatch 0", "reads what nothing has written: \"weight gradient, layer 3"},
    // Errors in operands and shapes.
    {rings, 3, lack_an_operand, "fc1", 0, 0, "gemm \"fc1\", forward, layer 0, microbatch 0", "lacks an operand"},
    {rings, 0, be_too_deep, "fc1", 1, 0, "gemm \"fc1\", forward, layer 1, microbatch 0", "has a shape that does not fit"},
    {one, 0, be_too_wide, "mlp norm", 1, 0, "\"mlp norm\"", "has a shape that does not fit"},
    {ring, 2, have_a_head_more, "attention merge", 1, 0, "\"attention merge\"", "has a shape that does not fit"},
    {gather, 0, have_a_head_more, "rope gradient", 1, 0, "\"rope gradient\"", "has a shape that does not fit"},
    // Errors in collectives.
    {dp, 2, swap_with_the_next, "gradient reduce", -1, 0, "all_reduce \"gradient reduce\", reduce, microbatch 0",
     "672 elements of f32 meet those of rank 2"},
    {fsdp, 3, remove_op, "weight gather", -1, 0, "rank 3", "reads what nothing has written: \"embedding table"},
    {zero, 3, remove_op, "gradient reduce-scatter", 1, 1,
     "reduce_scatter \"gradient reduce-scatter\", reduce, layer 0, microbatch 1", "2208 elements of f32 meet those of rank 3"},
    {ring, 3, remove_op, "kv gradient ring", 1, 0, "rotate \"kv ring\", backward, layer 1", "is not ordered after the write of"},
    {hsdp, 1, insert_copy, "gradient reduce", 0, 0,
     "all_reduce \"gradient reduce\", reduce, layer 0, microbatch 0", "meet"},
    {tp, 1, shrink, "replicated gradient reduce", 1, 0,
     "all_reduce \"replicated gradient reduce\", reduce, layer 1, microbatch 0", "32 elements of f32 meet those of rank 1"},
    {dp, 0, shrink_alone, "gradient reduce", 1, 0, "\"gradient reduce\"", "2200 elements over 4 ranks do not fit its operand of 2208"},
    {dp, 1, low_precision_output, "gradient reduce", 0, 0, "all_reduce \"gradient reduce\", reduce, layer 0, microbatch 0",
     "elements of f32 meet those of rank 1"},
    {fsdp, 0, low_precision_output, "weight gather", 0, 0, "\"weight gather\"", "its operands are f32 and bf16"},
    {hsdp, 2, use_another_group, "gradient reduce", 1, 0,
     "all_reduce \"gradient reduce\", reduce, layer 1, microbatch 0", "meet"},
    {dp, 3, be_a_broadcast, "gradient reduce", 0, 0, "meet those of rank 3", "broadcast \"gradient reduce\", reduce, layer 0"},
    {rings, 2, be_a_broadcast, "row ring", 1, 0, "broadcast \"row ring\", forward, layer 1", "reads what nothing has written: \"row block"},
    {rings, 1, turn_round, "sum ring", 1, 0, "rotate \"sum ring\", forward, layer 1", "1 places on meet"},
    {tp, 0, use_another_stream, "qkv input", 1, 0,
     "all_gather \"qkv input\", forward, layer 1, microbatch 0", "on stream expert meet nothing"},
    {hsdp, 0, list_a_stranger, "weight gather", -1, 0, "all_gather \"weight gather\", forward, microbatch 0",
     "its group of 2 ranks from 0 to 3 is no group of rank 3"},
    {hsdp, 0, leave_the_group, "weight gather", -1, 0, "\"weight gather\"", "its group does not list this rank once"},
    // Errors in FP8 scales.
    {fp8, 1, remove_op, "magnitude reduce", ANY, ANY, "rescale \"rescale\", optimizer",
     "scales by what is not the largest of all ranks: \"magnitudes\", used by"},
    {fp8, 2, be_a_sum, "magnitude reduce", ANY, ANY, "rescale \"rescale\", optimizer", "scales by what is not the largest of all ranks"},
    {fp8, 0, lack_a_factor, "fc1", 1, 1, "gemm \"fc1\", forward, layer 1, microbatch 1", "lacks the factor of \"fc1 input in e4m3"},
    {fp8, 1, lack_the_other_factor, "fc2 data gradient", 0, 0,
     "gemm \"fc2 data gradient\", backward, layer 0, microbatch 0", "lacks the factor of \"fc2 weight in e4m3, transposed, layer 0"},
    {fp8, 2, read_along_columns, "qkv weight gradient", 1, 0,
     "gemm \"qkv weight gradient\", backward, layer 1, microbatch 0", "needs the transpose of \"qkv gradient in e5m2, transposed"},
    {fp8, 3, copy_nothing, "fc1 weight", 0, 0, "quantize \"fc1 weight\", forward, layer 0, microbatch 0", "makes no low-precision copy"},
    {fp8, 3, copy_nothing, "activation gradient", 0, 1,
     "activation_backward \"activation gradient\", backward, layer 0, microbatch 1", "makes no low-precision copy"},
    {blocks, 1, lack_factors, "activation", 1, 0, "activation_forward \"activation\", forward, layer 1, microbatch 0",
     "lacks the factors of \"activation in e4m3"},
    {blocks, 1, lack_factors, "qkv weight", 1, 0, "quantize \"qkv weight\", forward, layer 1, microbatch 0",
     "lacks the factors of \"qkv weight in e4m3"},
    {blocks, 0, scale_squares_by_squares, "fc1", 0, 1, "gemm \"fc1\", forward, layer 0, microbatch 1",
     "cannot multiply by the scaling of \"fc1 weight in e4m3"},
    {zero_fp8, 3, remove_op, "magnitude reduce", ANY, ANY, "rescale \"rescale\", optimizer", "scales by what is not the largest of all ranks"},
    {fsdp_fp8, 2, remove_op, "magnitude reduce", ANY, ANY, "rescale \"rescale\", optimizer", "scales by what is not the largest of all ranks"},
    {noted, 2, remove_op, "magnitude reduce", ANY, ANY, "rescale \"rescale\", optimizer", "scales by what is not the largest of all ranks"},
    {zero_fp8, 1, shrink, "magnitude reduce", ANY, ANY, "rescale \"rescale\", optimizer", "scales by what is not the largest of all ranks"},
    {zero_fp8, 3, let_it_not_wait, "fc2 weight", 1, -1, "all_gather \"weight gather\", optimizer, layer 1",
     "is not ordered after the write of \"weight slice, layer 1\", used by op 98 quantize"},
    {zero_fp8, 3, shrink_what_waits, "fc2 weight", 1, -1, "all_gather \"weight gather\", optimizer, layer 1",
     "2176 elements of e4m3 meet those of rank 3"},
    {zero_fp8, 3, remove_what_waits, "fc2 weight", 0, -1, "all_gather \"weight gather\", optimizer, layer 0",
     "2176 elements of e4m3 meet those of rank 3"},
    {fsdp_fp8, 1, forget_waits, "magnitude reduce", ANY, ANY,
     "all_reduce_maximum \"magnitude reduce\", optimizer", "is not ordered after the write of \"magnitudes\", used by"},
    {noted, 1, forget_waits, "magnitude reduce", ANY, ANY,
     "all_reduce_maximum \"magnitude reduce\", optimizer", "is not ordered after the write of \"magnitudes\", used by"},
    {one, 0, have_a_factor, "fc1", 0, 0, "gemm \"fc1\", forward, layer 0, microbatch 0", "has a factor for \"mlp norm"},
    // Errors in token counts.
    {counted, 1, forget_waits, "dispatch exchange", 1, 0,
     "all_to_all \"dispatch exchange\", forward, layer 1, microbatch 0", "is not ordered after its rows are counted"},
    {counted, 0, forget_waits, "read token counts", 1, 1,
     "read_token_counts \"read token counts\", forward, layer 1, microbatch 1", "is not ordered after the write of \"received token counts"},
    {counted, 0, follow_another_layer, "fc1", 0, 1, "layer 0, microbatch 1",
     "follows what was counted for another op: \"dispatch exchange, layer 0"},
    {counted, 1, follow_another_layer, "output exchange", 1, 0,
     "\"fc2\", forward, layer 1, microbatch 0", "follows what was counted for another op: \"fc2, layer 1"},
    {counted, 1, follow_the_next_expert, "activation", 0, 0, "gemm \"fc1\", forward, layer 0, microbatch 0",
     "follows what was counted for another op: \"fc1"},
    {counted, 1, read_numbers_as_indices, "dispatch", 1, 0,
     "dispatch \"dispatch\", forward, layer 1, microbatch 0", "would run in warm-up on indices that nobody fills: \"sources"},
    {counted, 0, plan_a_row_more, "fc2", 1, 0, "gemm \"fc2\", forward, layer 1, microbatch 0",
     "has other rows than are expected of"},
    {counted, 0, have_places_for_the_expected, "fc1", 1, 0, "gemm \"fc1\", forward, layer 1, microbatch 0",
     "has a shape that does not fit \"fc1, layer 1"},
    {counted, 0, shrink_alone, "dispatch exchange", 1, 0, "\"dispatch exchange\"", "do not fit its operand of"},
    // Errors with etp 1, where experts are not sharded over tp.
    {whole, 1, forget_waits, "dispatch exchange", 1, 0,
     "all_to_all \"dispatch exchange\", forward, layer 1, microbatch 0", "is not ordered after its rows are counted"},
    {whole, 2, use_another_group, "token count exchange", 1, 0, "all_to_all \"token count exchange\", forward, layer 1", "meet"},
    {whole, 3, remove_op, "output exchange", 0, 1, "combine \"combine\", forward, layer 0, microbatch 1", "reads what was overwritten since: \"expert outputs"},
    {whole, 3, remove_op, "replicated gradient reduce", 1, 1,
     "all_reduce \"gradient reduce\", reduce, layer 1, microbatch 1", "is not ordered after the write of \"gradients, layer 1"},
    {whole, 2, shrink, "replicated gradient reduce", 1, 1,
     "all_reduce \"replicated gradient reduce\", reduce, layer 1, microbatch 1", "88 elements of f32 meet those of rank 3"},
    {whole, 1, follow_another_layer, "fc1", 0, 1, "layer 0, microbatch 1",
     "follows what was counted for another op: \"dispatch exchange, layer 0"},
    {shared, 5, use_another_group, "gradient reduce", 1, 0, "all_reduce \"gradient reduce\", reduce, layer 1, microbatch 0", "meet"},
    {shared, 6, remove_op, "input gradient exchange", 1, 0, "combine \"dispatch gradient\", backward, layer 1", "reads what was overwritten since: \"dispatched gradients"},
    {shared, 7, shrink, "dispatch exchange", 1, 0, "gemm \"fc1\", forward, layer 1, microbatch 0", "reads what nothing has written: \"dispatch exchange"},
    {shared, 3, use_another_group, "output exchange", 0, 0, "all_to_all \"output exchange\", forward, layer 0", "meet"},
    // Errors in sends and receives.
    {pp, 1, send_further, "residual send", ANY, 2, "send \"residual send\", forward, microbatch 2", "meet nothing on rank 3"},
    {pp, 2, send_home, "residual gradient send", ANY, 0, "send \"residual gradient send\"", "its peer is the rank itself"},
    {deep, 6, use_another_channel, "residual receive", ANY, 0, "receive \"residual receive\", forward, microbatch 0", "meet nothing on rank"},
    {cube, 3, remove_op, "residual gradient receive", ANY, 1, "rank 3", "reads what was overwritten since: \"residual gradient, microbatch 1\""},
    {chunks, 1, swap_with_the_next, "residual receive", ANY, 0, "receive \"residual receive\", forward, microbatch 0", "the job deadlocks"},
    {turns, 1, swap_with_the_next, "residual gradient receive", ANY, 0,
     "receive \"residual receive\", forward, microbatch", "the job deadlocks"},
};
// clang-format on

static bool is_found(const struct mutation *mutation)
{
    struct faulty    faulty = faulty_of(line_of("kv_heads 4; context ring; %s", mutation->layout));
    const char      *rank   = line_of("rank %d", (int)mutation->rank);
    struct job_proof proof;
    EXPECT_SUCCESS(faulty_verify(&faulty, &proof));
    cr_expect_eq(proof.findings, 0);

    faulty.rank       = mutation->rank;
    faulty.plant      = mutation->plant;
    faulty.role       = mutation->role;
    faulty.layer      = mutation->layer;
    faulty.microbatch = mutation->microbatch;
    status found      = faulty_verify(&faulty, &proof);
    bool   is_named   = proof.findings > 0 && strstr(found.text, rank) && strstr(found.text, "op ") &&
                    strstr(found.text, mutation->op) && strstr(found.text, mutation->what);
    cr_expect(is_named, "row %d (%s), %s: \"%s\" names not all of \"%s\", \"%s\" and \"%s\"",
              (int)(mutation - mutations), mutation->layout, mutation->role, found.text, rank, mutation->op,
              mutation->what);
    return is_named;
}

Test(mutation, is_found_and_named, .timeout = 60)
{
    int found = 0, planted = (int)(sizeof(mutations) / sizeof(mutations[0]));
    for (int i = 0; i < planted; i++) {
        found += is_found(&mutations[i]);
    }
    cr_log_info("%d of %d planted mistakes found", found, planted);
    cr_expect_geq(planted, 20);
    cr_expect_eq(found, planted);
}

static void expect_found_of_many(const char *layout, int64_t rank)
{
    struct faulty    faulty = faulty_of(layout);
    struct job_proof proof;
    faulty.rank       = rank;
    faulty.plant      = use_another_group;
    faulty.role       = "gradient reduce";
    faulty.layer      = 1;
    faulty.microbatch = 0;
    status found      = faulty_verify(&faulty, &proof);
    cr_expect_not_null(strstr(found.text, line_of("rank %d: op", (int)rank)), "%s", found.text);
    cr_expect_not_null(strstr(found.text, "all_reduce \"gradient reduce\", reduce, layer 1"), "%s", found.text);
}

Test(mutation, is_found_on_any_of_128_ranks)
{
    expect_found_of_many("fsdp 16; dp 8", 77);
}

Test(mutation, is_found_on_the_last_of_2048_ranks)
{
    expect_found_of_many("fsdp 128; dp 16; layers 24", 2047);
}
