# SPDX-License-Identifier: MIT
"""Compares ten training steps of models with MTP modules in gswbench with PyTorch."""
import unittest

import compared_training

# The weight is so large that the MTP loss affects the gradient norm.
FURTHER = {"model.family": "gswbench", "train.prediction_weight": 0.5}


class Prediction(compared_training.TrainingTest):
    def test_two_further_tokens(self):
        """Trains on one rank, with tp and cp, and with the embedding on another stage than the head. Embeddings and logits are
        scaled, in MTP modules as well."""
        self.compare("tiny-llama", FURTHER | {"model.predicted_tokens": 2, "model.embedding_scale": 3, "model.logit_scale": 1.5},
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.tp=2", "--set", "parallel.cp=2"),
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.pp=2", "--set", "parallel.last_chunk_layers=1"))

    def test_three_further_tokens(self):
        """Each MTP module reads the token that the previous one predicts."""
        self.compare("tiny-llama", FURTHER | {"model.predicted_tokens": 3})

    def test_one_as_in_deepseek_v3(self):
        """Tests latent attention and experts after a dense layer, sharded and with expert parallelism."""
        self.compare("tiny-llama", FURTHER | {"model.predicted_tokens": 1, "model.kv_heads": 4, "model.head_dim": 24,
                                              "model.rope_dim": 12, "model.kv_rank": 36, "model.q_rank": 40,
                                              "model.pattern": "dense, experts", "model.experts": 4,
                                              "model.expert_ffn": 48, "model.shared_ffn": 48, "model.top_k": 2,
                                              "model.router_score": "sigmoid", "model.router_scale": 2.5,
                                              "model.auxiliary_loss": 0.01, "train.capacity_scope": "sequence",
                                              "run.seed": 3},
                     ("--ranks", "2", "--comm", "local", "--set", "parallel.fsdp=2"),
                     ("--ranks", "4", "--comm", "local", "--set", "parallel.ep=2", "--set", "parallel.tp=2"))


if __name__ == "__main__":
    unittest.main()
