# SPDX-License-Identifier: MIT
"""Tests `gswbench init --from`, which converts a job of another program. The result must have the parameter counts that
the publisher of the model states."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["GSWBENCH"]

# The sizes are copied from the models' config.json on Hugging Face.
LLAMA = dict(model_type="llama", hidden_act="silu", hidden_size=4096, intermediate_size=14336, num_attention_heads=32,
             num_hidden_layers=32, num_key_value_heads=8, rms_norm_eps=1e-5, rope_theta=500000.0, vocab_size=128256,
             rope_scaling=dict(factor=8.0, rope_type="llama3"), tie_word_embeddings=False, torch_dtype="bfloat16")
MIXTRAL = dict(model_type="mixtral", hidden_act="silu", hidden_size=4096, intermediate_size=14336,
               num_attention_heads=32, num_hidden_layers=32, num_key_value_heads=8, num_local_experts=8,
               num_experts_per_tok=2, rms_norm_eps=1e-5, rope_theta=1000000.0, router_aux_loss_coef=0.02,
               sliding_window=None, tie_word_embeddings=False, vocab_size=32000)
QWEN = dict(model_type="qwen3_moe", hidden_act="silu", hidden_size=2048, intermediate_size=6144, head_dim=128,
            num_attention_heads=32, num_hidden_layers=48, num_key_value_heads=4, num_experts=128,
            num_experts_per_tok=8, moe_intermediate_size=768, norm_topk_prob=True, rms_norm_eps=1e-6,
            rope_theta=1000000.0, tie_word_embeddings=False, vocab_size=151936)
QWEN2 = dict(model_type="qwen2", hidden_act="silu", hidden_size=5120, intermediate_size=13824, num_attention_heads=40,
             num_hidden_layers=48, num_key_value_heads=8, rms_norm_eps=1e-5, rope_theta=1000000.0, sliding_window=131072,
             # gswbench adds a bias to each output projection, which this model does not have: 48 x 5120 parameters
             # more.
             use_sliding_window=False, tie_word_embeddings=False, vocab_size=152064)
DEEPSEEK = dict(model_type="deepseek_v3", hidden_act="silu", hidden_size=7168, intermediate_size=18432,
                num_attention_heads=128, num_hidden_layers=61, num_key_value_heads=128, q_lora_rank=1536,
                kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, n_routed_experts=256,
                n_shared_experts=1, num_experts_per_tok=8, moe_intermediate_size=2048, first_k_dense_replace=3,
                n_group=8, topk_group=4, norm_topk_prob=True, routed_scaling_factor=2.5, scoring_func="sigmoid",
                rms_norm_eps=1e-6, rope_theta=10000, tie_word_embeddings=False, vocab_size=129280)
NANO = dict(model_type="nemotron_h", hidden_size=2688, intermediate_size=1856, mlp_hidden_act="relu2",
            hybrid_override_pattern="MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", num_hidden_layers=52,
            num_attention_heads=32, num_key_value_heads=2, head_dim=128, mamba_num_heads=64, mamba_head_dim=64,
            ssm_state_size=128, n_groups=8, conv_kernel=4, chunk_size=128, n_routed_experts=128, n_shared_experts=1,
            moe_intermediate_size=1856, moe_shared_expert_intermediate_size=3712, num_experts_per_tok=6, n_group=1,
            topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5, layer_norm_epsilon=1e-5,
            tie_word_embeddings=False, vocab_size=131072)
GPT_OSS = dict(model_type="gpt_oss", hidden_act="silu", hidden_size=2880, intermediate_size=2880, head_dim=64,
               num_attention_heads=64, num_hidden_layers=36, num_key_value_heads=8, num_local_experts=128,
               num_experts_per_tok=4, attention_bias=True, sliding_window=128, rms_norm_eps=1e-5, rope_theta=150000,
               layer_types=["sliding_attention", "full_attention"] * 18, tie_word_embeddings=False, vocab_size=201088)
BLOCKS = {"M": "mamba", "*": "attention", "E": "moe"}    # names of layers in newer files of Nemotron

MEGATRON = """#!/bin/bash
# --num-layers 99
GPT_ARGS=(
    --num-layers 80 --hidden-size 8192 \\   # was --num-layers 24
    --num-attention-heads 64 --group-query-attention --num-query-groups 8
    --ffn-hidden-size 28672 --seq-length 4096 --max-position-embeddings 4096 --swiglu --normalization RMSNorm
    --disable-bias-linear --position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 32000
    --micro-batch-size 1 --global-batch-size=128 --bf16 --wandb-exp-name "run #3" --tensor-model-parallel-size 4
    --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 5 --sequence-parallel
    --use-distributed-optimizer --lr 1e-4 --log-interval 1 --train-iters 500000
)
torchrun pretrain_gpt.py "${GPT_ARGS[@]}"
"""
GPT3 = """--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --ffn-hidden-size 49152
--max-position-embeddings 2048 --vocab-size 50257 --tensor-model-parallel-size 8 --micro-batch-size 1"""
# As in Megatron's own scripts, flags are the last words of an array, before the name of the next array.
MEGATRON_MIXTRAL = """MODEL_ARGS=(
    --disable-bias-linear --seq-length 4096 --max-position-embeddings 32768 --num-layers 32 --hidden-size 4096
    --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8 --swiglu
    --normalization RMSNorm --use-rotary-position-embeddings --vocab-size 32000 --untie-embeddings-and-output-weights
)
MOE_ARGS=(
    --num-experts 8 --moe-layer-freq 1 --overlap-param-gather
)
TRAINING_ARGS=(
    --micro-batch-size 1 --global-batch-size 256 --grad-reduce-in-bf16 --recompute-activations --bf16
)
MODEL_PARALLEL_ARGS=(
    --pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 --expert-model-parallel-size 8
    --context-parallel-size 2 --cp-comm-type a2a --sequence-parallel --use-distributed-optimizer
)
torchrun pretrain_gpt.py ${MODEL_ARGS[@]} ${MOE_ARGS[@]}
"""
TORCHTITAN = """[job]
dump_folder = "./outputs"
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 8192
steps = 1000  # of the schedule
[parallelism]
data_parallel_shard_degree = -1
tensor_parallel_degree = 2
[activation_checkpoint]
mode = "selective"
"""


class Import(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def init(self, text, *flags):
        (self.folder / "ours.ini").unlink(missing_ok=True)
        (self.folder / "theirs").write_text(text)
        return subprocess.run([PROGRAM, "init", "ours.ini", "--from", "theirs", *flags], cwd=self.folder,
                              capture_output=True, text=True)

    def check(self, text, ranks, *flags):
        """Converts a job, and returns the result of `check --json` for the written configuration."""
        result = self.init(text, "--ranks", str(ranks), *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = subprocess.run([PROGRAM, "check", "--json", "--config", "ours.ini", "--ranks", str(ranks)],
                                cwd=self.folder, capture_output=True, text=True)
        return json.loads(answer.stdout)["rows"][0], result.stderr

    def test_hugging_face(self):
        for model, ep, parameters, active in ((LLAMA, 1, 8030261248, 8030261248),
                                              (MIXTRAL, 8, 46702792704, 12879925248),
                                              (QWEN, 8, 30532122624, 3353032704),
                                              (QWEN2, 1, 14770033664 + 48 * 5120, 14770033664 + 48 * 5120),
                                              (DEEPSEEK, 8, 671026404352, 37552282624),
                                              (NANO, 8, 31577937344, 3580073408),
                                              (GPT_OSS, 8, 116829156672, 5711982912)):
            with self.subTest(model["model_type"]):
                # A rank then has few experts, so that they fit.
                row, _ = self.check(json.dumps(model), 8, "--set", f"parallel.ep={ep}")
                self.assertEqual(row["parameters"], parameters)
                self.assertEqual(row["active_parameters"], active)

    def test_layers_of_hugging_face(self):
        letters = NANO["hybrid_override_pattern"]
        blocks = {"hybrid_override_pattern": None, "layers_block_type": [BLOCKS[letter] for letter in letters]}
        window = {"sliding_window": 4096}
        for model, expected in ((NANO | blocks | {"num_hidden_layers": None}, ["52", letters, None, None]),
                                (NANO | blocks | {"num_nextn_predict_layers": 2, "mtp_layers_block_type": ["attention", "moe"]},
                                 ["52", letters + "/*E/*E", "2", None]),
                                (NANO | {"num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "*E"},
                                 ["52", letters + "/*E", "1", None]),
                                (GPT_OSS, ["36", "(window_attention + experts, experts)", None, "128"]),
                                (MIXTRAL | window, ["32", "window_attention + experts", None, "4096"]),
                                (LLAMA | window | {"layer_types": ["sliding_attention"] * 3 + ["full_attention"] * 1},
                                 ["32", "(3 x window_attention + mlp, dense)", None, "4096"]),
                                (QWEN2 | {"layer_types": ["full_attention"] * 48}, ["48", None, None, None])):
            with self.subTest(expected):
                self.convert(json.dumps(model), 8)
                self.assertEqual(self.settings("layers", "pattern", "predicted_tokens", "window"), expected)

    def test_numbers_that_json_lacks(self):
        passed = self.convert(json.dumps(LLAMA | {"time_step_limit": [0.0, float("inf")], "a": float("-inf"),
                                                   "b": float("nan"), "c\\\"Infinity": 1, "vocab_size": 99}), 8)
        self.assertEqual(self.settings("vocab"), ["99"])
        self.assertIn('c\\"Infinity', passed)

    def test_names_of_hugging_face_with_two_meanings(self):
        # A bias has no name in exports of Llama.
        self.convert(json.dumps(LLAMA | {"attention_bias": True}), 8)
        self.assertEqual(self.settings("family", "attention_bias"), [None, "yes"])
        # transformers writes the rotary width as head_dim, and the sum of both widths as qk_head_dim.
        self.init(json.dumps(DEEPSEEK | {"head_dim": 64, "qk_head_dim": 192}), "--ranks", "8")
        self.assertEqual(self.settings("head_dim", "rope_dim"), ["128", "64"])
        newer = {name: value for name, value in LLAMA.items() if not name.startswith("rope_")}
        self.init(json.dumps(newer | {"rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", "factor": 8.0}}))
        self.assertEqual(self.settings("rope_theta", "rope_scaling"), ["500000", "8"])

    def test_megatron(self):
        row, passed = self.check(MEGATRON, 64)
        self.assertEqual(row["parameters"], 68976648192)    # parameters of Llama 2 70B
        self.assertEqual(row["layout"], "dp 4 tp 4 pp 4 vp 4 zero 1")
        self.assertEqual(passed, "not used by gswbench: wandb_exp_name, log_interval, train_iters\n")
        self.assertEqual(self.settings("steps"), [None])    # a benchmark is no training of months

    def test_values_without_effect_in_megatron(self):
        # Without --group-query-attention and --multi-latent-attention, Megatron ignores their sizes.
        text = MEGATRON.replace("--group-query-attention", "--kv-lora-rank 512")
        passed = self.convert(text, 64)
        self.assertEqual(self.settings("heads", "kv_heads", "kv_rank"), ["64", "64", None])
        self.assertIn("num_query_groups", passed)
        self.assertIn("kv_lora_rank", passed)
        text = text.replace("--num-query-groups 8", "--multi-latent-attention --use-rope-scaling")
        self.convert(text, 64)
        self.assertEqual(self.settings("kv_rank", "head_dim", "rope_dim", "value_dim", "rope_scaling"),
                         ["512", "128", "64", "128", "8"])
        self.convert(text + "--qk-layernorm", 64)    # norms of the latent vectors, which are always here
        self.assertEqual(self.settings("qk_norm"), [None])
        self.convert(MEGATRON.replace("--num-query-groups 8", ""), 64, "--set", "parallel.tp=1")
        self.assertEqual(self.settings("kv_heads"), ["1"])

    def test_precision_of_megatron(self):
        for flags, expected in (("--fp8-format e4m3 --bf16", ["fp8", "delayed", "1", "e4m3", None]),
                                ("--fp8-format hybrid --fp8-recipe tensorwise --fp8-param-gather",
                                 ["fp8", "current", "1", None, "yes"]),
                                ("--fp8-format hybrid --fp8-recipe mxfp8 --fp8-param-gather",
                                 ["fp8", "mxfp8", "1", None, None])):
            with self.subTest(flags):
                passed = self.convert(MEGATRON.replace("--bf16", flags), 64)
                self.assertEqual(self.settings("compute", "recipe", "fp8_history", "fp8_format", "fp8_weights"), expected)
                self.assertEqual("fp8_param_gather" in passed, "mxfp8" in flags)
        self.convert(MEGATRON.replace("--bf16", ""), 64)
        self.assertEqual(self.settings("compute"), ["fp32"])
        self.convert(MEGATRON + "--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16", 64)
        self.assertEqual(self.settings("moments"), ["bf16"])

    def convert(self, text, ranks, *flags):
        """Converts a job without checking it, which is faster, and returns the messages."""
        result = self.init(text, "--ranks", str(ranks), *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    def settings(self, *names):
        """Returns the values of these options in the written configuration."""
        lines = dict(line.split(" = ", 1) for line in (self.folder / "ours.ini").read_text().splitlines()
                     if " = " in line and line[0] not in ";#")
        return [lines.get(name) for name in names]

    def test_flags_of_megatron_take_no_word(self):
        row, _ = self.check(MEGATRON_MIXTRAL, 64)
        self.assertEqual(row["parameters"], 46702792704)
        self.assertEqual(row["layout"], "dp 8 cp 2 ep 8 pp 4 vp 2 zero 1 ep_over_cp")
        self.assertEqual(self.settings("top_k", "vocab_multiple", "context", "zero_gather", "recompute", "gradients"),
                         ["2", "128", "exchange", "forward", "attention", "bf16"])

    def test_layers_with_experts_of_megatron(self):
        for frequency, pattern in (("([0]*3+[1]*29)", "3 x dense, 29 x experts"), ("2", "(experts, 1 x dense)"),
                                   ("[0,1]*15+[1,1]", "15 x (dense, experts), 1 x (experts, experts)"),
                                   ("([0]+[1]*31)", "1 x dense, 31 x experts")):
            self.convert(MEGATRON_MIXTRAL.replace("--moe-layer-freq 1", f"--moe-layer-freq {frequency} --optimizer adamw"), 64)
            self.assertEqual(self.settings("pattern"), [pattern])

    def test_shell_variables(self):
        for script, word, expected in (("N=80", "$N", "80"), ("export N='80'", "${N}", "80"),
                                       ("N=${2:-80}", "$N", "80"), ("", "${N:-80}", "80"),
                                       ('N=${N:-"80"}', "$N", "80"), ("M=8; N=${M}0", "$N", "80"),
                                       ("N=8\nN=8", "${N}0", "80"), ("# N=9\nNN=7\nN=80", "$N", "80"),
                                       ("N=${N-${M:=80}}", "$N", "80"), ("N=80\nN=40", "$N", None),
                                       ("N=80\nN+=0", "$N", None), ("N=$(nproc)", "$N", None), ("N=`nproc`", "$N", None),
                                       ("N=$1", "$N", None), ("N=$M\nM=$N", "$N", None), ("N=$N", "$N", None),
                                       ("", "${N", None), ("N=80", "$((N))", None),
                                       ("N=" + "${N:-" * 50000 + "}" * 50000, "$N", None),
                                       ("\n".join(f"N{i}=$N{i + 1}$N{i + 1}" for i in range(40)), "$N0", None)):
            with self.subTest(script=script, word=word):
                text = MEGATRON.replace("--num-layers 80", f"--num-layers {word}").replace("GPT_ARGS=(", script + "\nGPT_ARGS=(")
                result = self.init(text, "--ranks", "64", "--set", "parallel.vp=1")
                self.assertEqual(result.returncode, 0 if expected else 3, result.stderr)
                if expected:
                    self.assertEqual(self.settings("layers"), [expected])
                else:
                    self.assertIn("is a shell variable without one value in the file: put its value", result.stderr)

    def test_vocabulary_of_megatron(self):
        text = MEGATRON.replace("--vocab-size 32000", "")
        result = self.init(text, "--ranks", "64")
        self.assertEqual(result.returncode, 3)
        self.assertIn("Megatron reads the vocabulary from the tokenizer: add --set model.vocab=N\n", result.stderr)
        self.convert(text, 64, "--set", "model.vocab=32000")
        for name in "padded-vocab-size", "pad-vocab-size-to":
            self.convert(f"{text}--{name} 32064", 64)
            self.assertEqual(self.settings("vocab", "vocab_multiple"), ["32064", None])

    def test_options_of_megatron(self):
        experts = "--num-experts 8 --disable-bias-linear"
        fsdp = "--use-megatron-fsdp --data-parallel-sharding-strategy"
        stages = "--account-for-embedding-in-pipeline-split --num-layers-per-virtual-pipeline-stage 5"
        for flags, names, expected in (
                ("--normalization RMSNorm --apply-layernorm-1p", "norm", [None]),
                ("--normalization LayerNorm --apply-layernorm-1p", "norm", ["layernorm1p"]),
                ("--position-embedding-type alibi", "positions", ["alibi"]),
                ("--position-embedding-type yarn", "positions", [None]),
                ("--checkpoint-activations", "recompute", ["full"]),
                (f"{experts} --recompute-activations --moe-layer-recompute", "recompute_modules", ["core_attn, moe"]),
                ("--main-grads-dtype bf16", "gradients", ["bf16"]),
                (f"{fsdp} optim_grads_params --pipeline-model-parallel-size 1 --num-layers-per-virtual-pipeline-stage 80",
                 "dp fsdp zero", [None, "auto", None]),
                (f"{fsdp} optim_grads", "fsdp zero gradient_reduce", [None, "1", "microbatch"]),
                (f"{experts} --moe-router-pre-softmax", "router_normalise router_offset", ["no", None]),
                (f"{experts} --moe-router-bias-update-rate 0.01", "router_bias_rate", [None]),
                (f"{experts} --moe-router-enable-expert-bias", "router_bias_rate", ["0.001"]),
                (f"{experts} --moe-router-force-load-balancing", "routing", ["balanced"]),
                (f"{experts} --window-size 127,0 --window-attn-skip-freq 2 --softmax-type learnable", "pattern window attention_sinks",
                 ["(window_attention + experts, experts)", "128", "yes"]),
                ("--window-size 127,0", "pattern window", ["window_attention + mlp", "128"]),
                (f"{stages} --account-for-loss-in-pipeline-split --num-layers 78", "vp layers_per_chunk_embedding",
                 ["4", "yes"]),
                ("--hybrid-layer-pattern M*-M*- --mamba-head-dim 32 --num-layers-per-virtual-pipeline-stage 80 "
                 "--pipeline-model-parallel-size 1", "layers mamba_heads mamba_groups", ["6", "512", "8"])):
            with self.subTest(flags):
                self.convert(f"{MEGATRON}{flags}", 64)
                self.assertEqual(self.settings(*names.split()), expected)

    def test_recomputed_layers_of_megatron(self):
        self.convert(MEGATRON + "--recompute-granularity full --recompute-method block --recompute-num-layers 3", 64)
        self.assertEqual(self.settings("recompute", "recompute_layers"), ["full", "3"])
        modules = "--recompute-modules core_attn mlp"
        self.convert(f"{MEGATRON}--recompute-granularity selective {modules}\n", 64)
        self.assertEqual(self.settings("recompute", "recompute_modules"), ["modules", "core_attn, mlp"])
        passed = self.convert(f"{MEGATRON}--recompute-granularity full --recompute-method uniform "
                               f"--recompute-num-layers 2 {modules}", 64)
        for name in "recompute_method", "recompute_num_layers", "recompute_modules":
            self.assertIn(name, passed)

    def test_megatron_without_arguments_is_gpt(self):
        row, _ = self.check(GPT3.replace("--ffn-hidden-size 49152", ""), 8)
        # For h = 12288, each of the 96 layers has 12 h^2 + 13 h parameters with biases and norms. The final norm has 2
        # h, the embedding 50,257 rows of h, and the positions 2,048 rows of h.
        self.assertEqual(row["parameters"], 96 * (12 * 12288**2 + 13 * 12288) + 2 * 12288 + (50257 + 2048) * 12288)

    def test_torchtitan(self):
        row, _ = self.check(TORCHTITAN, 64)
        self.assertEqual(row["parameters"], 8030261248)
        self.assertEqual(row["layout"], "fsdp 32 tp 2")
        self.convert(TORCHTITAN.replace("local_batch_size = 1", "batch_size = 2"), 64)    # the name until May 2025
        self.assertEqual(self.settings("micro_batch", "global_batch"), ["2", None])

    def test_precision_of_torchtitan(self):
        for section, recipe, expected in (("quantize.linear.float8", None, ["fp8", "current", "yes", None]),
                                          ("quantize.dense.float8", None, ["fp8", "current", "yes", None]),
                                          ("float8", "rowwise", ["fp8", "rows", None, None]),
                                          ("float8", "rowwise_with_gw_hp", ["fp8", "rows", None, "no"]),
                                          ("quantize.linear.mx", None, ["fp8", "mxfp8", None, None])):
            with self.subTest(section=section, recipe=recipe):
                converter = TORCHTITAN.replace('"8B"', f'"8B"\nconverters = [  # linears\n  "{section}",\n]')
                value = f'recipe_name = "{recipe}"' if recipe else "enable_fsdp_float8_all_gather = true"
                self.convert(f"{converter}[{section}]\n{value}\n", 64)
                self.assertEqual(self.settings("compute", "recipe", "fp8_weights", "fp8_weight_gradients"), expected)

    def test_recompute_of_torchtitan(self):
        # mode, selective_ac_option: "selective" and "2" are torchtitan's defaults
        for lines, expected in (('mode = "selective"', ["block_every", "2"]), ("", ["block_every", "2"]),
                                ('selective_ac_option = "op"\nmode = "selective"', ["selective", None]),
                                ('selective_ac_option = "1"', ["full", None]), ('mode = "full"', ["full", None]),
                                ('mode = "none"', [None, None])):
            with self.subTest(lines):
                self.convert(TORCHTITAN.replace('mode = "selective"', lines), 64)
                self.assertEqual(self.settings("recompute", "recompute_every"), expected)

    def test_other_sections_have_other_meanings(self):
        passed = self.convert(TORCHTITAN + "[validation]\nlocal_batch_size = 4\nseq_len = 1024\n", 64)
        self.assertEqual(self.settings("micro_batch", "sequence"), [None, "8192"])
        self.assertIn("validation.seq_len", passed)
        passed = self.convert(json.dumps(LLAMA | {"vision_config": {"hidden_size": 99},
                                                   "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}), 8)
        self.assertEqual(self.settings("hidden", "rope_scaling"), ["4096", None])
        self.assertEqual(passed, "not used by gswbench: rope_scaling.rope_type, rope_scaling.factor, torch_dtype,\n"
                         "  vision_config.hidden_size\n"
                         "a config.json has no batch; defaults: [train] sequence = 2048, micro_batch = 1,\n"
                         "one microbatch per step\n")

    def test_precision_without_recipe(self):
        self.convert(json.dumps(LLAMA | {"fp8_format": "hybrid"}), 8)
        self.assertEqual(self.settings("compute", "recipe"), ["fp8", None])

    def test_unused_names_end_at_column_80(self):
        for letters in range(50, 60):
            passed = self.convert(json.dumps({"b": 1, "a" * letters: 1} | LLAMA), 8)
            self.assertLessEqual(max(map(len, passed.split("\n"))), 80)

    def test_many_names(self):
        many = "".join(f"--unknown-{i} 1\n" for i in range(400))
        passed = self.convert(MEGATRON + many + "--seq-length 8192\n" * 300, 64)
        self.assertEqual(self.settings("sequence"), ["8192"])
        self.assertIn("unknown_399", passed)

    def test_schedules(self):
        stages = "--pipeline-model-parallel-size 4 --use-distributed-optimizer"
        self.check(f"{GPT3} {stages} --enable-zero-bubble --global-batch-size 8", 32)
        self.assertRegex((self.folder / "ours.ini").read_text(), r"(?m)^schedule = zero-bubble$")
        schedule = '[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = '
        row, _ = self.check(TORCHTITAN.replace("[parallelism]", f'{schedule}"Interleaved1F1B"'), 64)
        self.assertEqual(row["layout"], "fsdp 16 tp 2 pp 2 vp 2")
        # The 8 sequences of a pipeline are microbatches of one, and FSDP keeps gathered weights.
        self.convert(TORCHTITAN.replace("[parallelism]", f'{schedule}"1F1B"').replace("size = 1", "size = 8"), 64)
        self.assertEqual(self.settings("micro_batch", "accumulation", "reshard"), [None, "8", "never"])

    def test_errors(self):
        for text, expected in (
                (json.dumps(LLAMA | {"model_type": "gpt_neox"}), "model_type = gpt_neox is not read"),
                (json.dumps(LLAMA | {"hidden_act": "quick_gelu"}), "hidden_act = quick_gelu is not supported: set it to one of silu, gelu,"),
                (json.dumps(LLAMA | {"n_shared_experts": 9 * 10**18, "moe_intermediate_size": 2048}),
                 "model.shared_ffn=18432000000000000000000: expected an integer"),
                ('{"train_batch_size": 1}', "theirs has no model_type: of JSON files only config.json of Hugging Face"),
                (json.dumps(QWEN2 | {"use_sliding_window": True}), "use_sliding_window = true is not supported: remove it"),
                (json.dumps(QWEN | {"mlp_only_layers": [1]}), "mlp_only_layers = [1] is not supported: remove it"),
                (json.dumps(QWEN | {"decoder_sparse_step": 2}), "decoder_sparse_step = 2 is not supported: set it to one of 1 in"),
                (json.dumps(GPT_OSS | {"layer_types": ["linear_attention"]}), "layer_types is not read: only full_attention"),
                (json.dumps(DEEPSEEK | {"moe_layer_freq": 2}), "moe_layer_freq = 2 is not read; 1 is"),
                (json.dumps(NANO | {"num_nextn_predict_layers": 10**8, "mtp_hybrid_override_pattern": "*E"}), "model.pattern="),
                (json.dumps(NANO | {"layers_block_type": ["rwkv"]}), "layers_block_type is not read: only mamba, attention"),
                (MEGATRON + "--fp16", "fp16 = true is not supported: remove it"),
                (MEGATRON + "--decoder-first-pipeline-num-layers 3", "decoder_first_pipeline_num_layers = 3 is not supported"),
                (MEGATRON + "--account-for-loss-in-pipeline-split", "are read only together"),
                (MEGATRON + "--fp8-format hybrid --first-last-layers-bf16", "first_last_layers_bf16 is not supported unless"),
                (MEGATRON + "--window-size 127,0 --window-attn-skip-freq [1,0]", "window_attn_skip_freq = [1,0] and moe_layer_freq"),
                (MEGATRON + "--hybrid-layer-pattern M*|M*", "M*|M* has pipeline stages (|), which are not supported: leave"),
                (MEGATRON.replace("pretrain_gpt", "pretrain_t5"), "theirs runs pretrain_t5.py: only decoders"),
                (TORCHTITAN.replace('"8B"', '"8B"\nconverters = ["lora"]'), "model.converters = lora is not supported: set it to one of quantize"),
                (TORCHTITAN.replace("[parallelism]", "[parallelism]\npipeline_parallel_layers_per_stage = 2"),
                 "pipeline_parallel_layers_per_stage = 2 is not supported: remove it"),
                (json.dumps(LLAMA | {"global_batch_size": "*"}), "--from train.global_batch=*: expected an integer"),
                (json.dumps(LLAMA | {"rope_scaling": {"rope_type": "llama3"}}), "rope_scaling has no factor"),
                ("{\n\"a\": }", "theirs:2: "),
                (TORCHTITAN.replace("[parallelism]", '[parallelism]\npipeline_parallel_schedule = "ZBVZeroBubble"'),
                 "pipeline_parallel_schedule = ZBVZeroBubble is not supported: set it to one of 1F1B, Interleaved1F1B "),
                (TORCHTITAN.replace("llama3", "qwen3"), "the sizes of model qwen3 8B are not known"),
                (TORCHTITAN + "converters = [", "converters: the array has no ]"),
                (TORCHTITAN + "seq_len 4096", '"seq_len 4096" is neither name = value nor [section]'),
                (TORCHTITAN.replace('"8B"', '"8B"\nconverters = ["float8"]') + '[float8]\nrecipe_name = "columnwise"',
                 "float8.recipe_name = columnwise is not supported: set it to one of tensorwise, rowwise, "),
                ("".join(f"--unknown-{i} 1\n" for i in range(513)), "theirs has more than 512 names"),
                (MEGATRON_MIXTRAL.replace("--moe-layer-freq 1", "--moe-layer-freq [0,2]*16"),
                 "moe_layer_freq = [0,2]*16 is not read; a number, [0]*3+[1]*58 and [0,1]*24 are"),
                (MEGATRON + "--zero-bubble-v-schedule", "zero_bubble_v_schedule = true is not supported: remove it in a copy of this file"),
                (MEGATRON.replace("--num-layers 80", "--num-layers $LAYERS"), "$LAYERS is a shell variable"),
                ("--log-interval 5\n--save here", "no name that means something here"),
                ("hello", "neither a config.json"),
                ("", "neither a config.json")):
            with self.subTest(expected):
                result = self.init(text)
                self.assertEqual(result.returncode, 3, result.stderr)
                self.assertIn(expected, result.stderr)
                self.assertFalse((self.folder / "ours.ini").exists())


if __name__ == "__main__":
    unittest.main()
