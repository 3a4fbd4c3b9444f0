// SPDX-License-Identifier: MIT
// Parsing of NCCL log lines, versions 2.19 to 2.30.
#include <criterion/criterion.h>

#include "comm/nccl_log.h"

Test(nccl_log, tells_algorithm_protocol_and_channels)
{
    static const struct {
        const char        *line;
        struct comm_choice choice;
    } cases[] = {
        {"n1:7:9 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..15}",
         {"NVLS_TREE", "SIMPLE", 16}},
        {"NCCL INFO AllGather: 64 Bytes -> Algo PAT proto LL channel{Lo..Hi}={3..3}", {"PAT", "LL", 1}},
        {"NCCL INFO 4096 Bytes -> Algo 4 proto 1 time 12.345679", {"NVLS", "LL128", 0}},
        {"NCCL INFO 4096 Bytes -> Algo 77 proto 1 time 12.345679", {"77", "LL128", 0}},
        {"NCCL INFO ReduceScatter [Symmetric]: 8192 Bytes -> Kernel ReduceScatter_LDMC nchannels 8 nthreads 512 nWorks "
         "1",
         {"ReduceScatter_LDMC", "symmetric", 8}},
        {"NCCL INFO AllGather [Copy Engine]: 8192 Bytes -> cudaMemcpy; CE synchronization with NVLS",
         {"copy engine", "", 0}},
        {"NCCL INFO AlltoAll [Hierarchical CE]: 8192 Bytes -> RMA proxy + CE", {"copy engine", "", 0}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct comm_choice choice;
        cr_expect(nccl_log_parse(cases[i].line, &choice), "case %zu", i);
        cr_expect_str_eq(choice.algorithm, cases[i].choice.algorithm);
        cr_expect_str_eq(choice.protocol, cases[i].choice.protocol);
        cr_expect_eq(choice.channels, cases[i].choice.channels, "case %zu", i);
    }
}

Test(nccl_log, leaves_out_what_it_does_not_know)
{
    static const char *const lines[] = {
        "",
        "NCCL INFO a communicator of 8 ranks",
        "NCCL INFO 8192 Bytes -> by pigeon",
        "8192 Bytes -> Algo RING",
        "NCCL INFO AllReduce: tuner chunk size 4 exceeds buffer max 2, clamping",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct comm_choice choice;
        cr_expect_not(nccl_log_parse(lines[i], &choice), "%s", lines[i]);
        cr_expect_str_eq(choice.algorithm, "");
    }
}
