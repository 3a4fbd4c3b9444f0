# SPDX-License-Identifier: MIT
"""Compares ten training steps of models with latent attention in gswbench with PyTorch."""
import unittest

import compared_training

# Latent attention needs heads = kv_heads. All widths differ, so that mistaking one for another shows.
LATENT = {"model.family": "gswbench", "model.kv_heads": 4, "model.head_dim": 24, "model.rope_dim": 12, "model.kv_rank": 36}


class Latent(compared_training.TrainingTest):
    def test_compressed_queries(self):
        """Tests compressed queries, and latent norms with a separate epsilon, with tp, and with cp by all-gather and by
        ring."""
        self.compare("tiny-llama", LATENT | {"model.q_rank": 40, "model.value_dim": 20, "model.norm_epsilon": 1e-3,
                                             "model.latent_norm_epsilon": 1e-2},
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.tp=2"),
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.tp=2", "--set", "parallel.cp=2",
                      "--set", "parallel.context=gather"),
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.cp=2", "--set", "parallel.context=ring",
                      "--set", "train.recompute=selective", "--set", "train.recompute_save=latent"))

    def test_queries_that_are_not_compressed(self):
        """Tests values that are wider than the non-rotary part of keys, and experts as in Moonlight after a dense layer."""
        self.compare("tiny-llama", LATENT | {"model.value_dim": 48, "model.pattern": "dense, experts",
                                             "model.experts": 4, "model.expert_ffn": 48, "model.shared_ffn": 48,
                                             "model.top_k": 2, "model.router_score": "sigmoid",
                                             "model.router_scale": 2.5, "model.auxiliary_loss": 0.01,
                                             "train.capacity_scope": "sequence", "run.seed": 3},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=2", "--set", "parallel.tp=2"))


if __name__ == "__main__":
    unittest.main()
