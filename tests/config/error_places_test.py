# SPDX-License-Identifier: MIT
"""An error about contradictory values must name the places where these values were set: file and line, or flag."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["GSWBENCH"]
SOURCES = pathlib.Path(os.environ["GSWBENCH_SOURCE_DIR"]) / "src"
BASE = {"model": {"layers": "2", "hidden": "64", "ffn": "128", "heads": "4", "kv_heads": "2", "head_dim": "16", "vocab": "256"},
        "train": {"sequence": "32", "global_batch": "4", "micro_batch": "1"}, "parallel": {"dp": "auto"}}
LATENT = "model.kv_heads=4 model.kv_rank=8 model.rope_dim=8 model.value_dim=16"
SPARSE = "model.experts=4 model.top_k=2"

# Each case has a number of ranks and settings that contradict each other. The error must name the place of at least one
# of them.
CASES = [
    (1, "model.q_rank=8"), (1, "model.window=8"), (1, "model.positions=learned"), (1, "model.max_positions=8"),
    (1, "model.positions=learned model.max_positions=64 model.predicted_tokens=1"), (1, f"{LATENT} model.positions=alibi"),
    (1, f"{LATENT} model.attention_sinks=yes"), (1, f"{LATENT} model.qk_norm=yes"), (1, f"{LATENT} model.norm=layernorm"),
    (1, "model.top_k=2"), (1, "model.expert_ffn=64"), (1, "model.shared_ffn=64"), (1, "model.capacity_factor=1"),
    (1, "model.auxiliary_loss=0.1"), (1, "model.family=foo"), (1, "model.family=llama model.norm=layernorm"),
    (1, "model.family=llama model.activation=gelu"), (1, "model.family=llama model.rope_fraction=0.5"),
    (1, "model.family=llama model.attention_bias=yes"), (1, "model.family=llama model.embedding_scale=2"),
    (1, f"model.family=llama {LATENT}"), (1, "model.family=llama model.predicted_tokens=1"), (1, "model.family=mixtral"),
    (1, f"model.family=mixtral {SPARSE} model.shared_ffn=64"), (1, f"model.family=mixtral {SPARSE} model.router_score=sigmoid"),
    (1, f"model.family=llama {SPARSE}"), (1, "model.family=qwen3"), (1, "model.family=llama model.qk_norm=yes"),
    (1, "train.recompute=modules train.recompute_modules=moe"), (1, "model.positions=learned model.max_positions=8"),
    (1, "model.kv_heads=3"), (1, "model.head_dim=15"), (1, "model.experts=4 model.top_k=9"), (1, "model.pattern=foo"),
    (1, "model.rope_fraction=0.3"), (4, "parallel.tp=3"), (4, "parallel.fsdp=8"), (4, "parallel.cp=4 train.sequence=30"),
    (4, "parallel.ep=4"), (4, "parallel.pp=4"), (2, "parallel.pp=2 parallel.vp=2"),
    (2, "parallel.pp=2 parallel.last_chunk_layers=2"), (4, "train.global_batch=5"), (4, "train.accumulation=3 train.global_batch=4"),
    (1, "precision.compute=fp32 precision.gradients=bf16"), (1, "precision.compute=fp32 precision.fp8_weights=yes"),
    (1, "precision.compute=fp8 precision.recipe=delayed precision.fp8_weights=yes precision.fp8_gemms=fc1"),
    (1, "run.warmup=9 run.steps=5"), (1, "run.backend=cuda precision.compute=fp32"), (1, "run.backend=cuda model.head_dim=512"),
    (1, "checkpoint.every=5"), (1, "checkpoint.keep=2"), (1, "checkpoint.grace=5"),
    (1, "checkpoint.save=x checkpoint.at_end=no"), (1, "profile.stop_step=4"), (1, "profile.start_step=500"),
    (1, "profile.start_step=5 profile.stop_step=4"), (1, "profile.start_step=5 profile.ranks=7"),
    (1, "trace.steps=0 trace.timeline=0"), (1, "trace.timeline=7"), (2, "train.overlap_microbatches=yes"),
    (2, f"{SPARSE} train.overlap_microbatches=yes"), (2, "parallel.etp=2"),
]

# Messages without a place: a value is missing, or the error is about the environment.
PLACELESS = ("[model] %s is missing", "[parallel] the axes use", "[section] key", "[titan] %Y",
             "[hardware] %s%s is unknown")


class Places(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.place = pathlib.Path(temporary.name)

    def errors(self, ranks, values, *words):
        """Checks a configuration file with these values. Returns its errors, and the line of each value."""
        lines, line_of = [], {}
        for section, options in values.items():
            lines.append(f"[{section}]")
            for key, value in options.items():
                lines.append(f"{key} = {value}")
                line_of[f"{section}.{key}"] = len(lines)
        (self.place / "c.ini").write_text("\n".join(lines) + "\n")
        done = subprocess.run([PROGRAM, "check", "c.ini", "--ranks", str(ranks), *words], cwd=self.place, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 3, (words, values, done.stdout))
        return [line for line in done.stderr.splitlines() if line.startswith("E-CONFIG")], line_of

    def test_in_a_file(self):
        for ranks, settings in CASES:
            values = {section: dict(options) for section, options in BASE.items()}
            for name, value in (setting.split("=", 1) for setting in settings.split()):
                section, key = name.split(".")
                values.setdefault(section, {})[key] = value
            errors, line_of = self.errors(ranks, values)
            places = [f"{name.split('.')[1]}: c.ini:{line_of[name]}" for name in re.findall(r"([a-z0-9_.]+)=", settings)]
            with self.subTest(settings):
                for error in errors:
                    self.assertRegex(error, r"c\.ini:[0-9]+[;)]")
                self.assertTrue(any(place in error for place in places for error in errors), (places, errors))

    def test_of_a_flag(self):
        for ranks, settings in CASES:
            words = [word for setting in settings.split() for word in ("--set", setting)]
            errors, _ = self.errors(ranks, BASE, *words)
            with self.subTest(settings):
                self.assertTrue(any(f"--set {setting}" in error for setting in settings.split() for error in errors), errors)

    def test_every_message_names_an_option(self):
        """Every message must name an option by its section in brackets and its key. The program finds the places of a
        message by these names."""
        listed = subprocess.run([PROGRAM, "options", "--markdown"], capture_output=True, text=True, check=True).stdout
        options, section = {}, None
        for line in listed.splitlines():
            heading, row = re.match(r"## \[?([a-z]+)\]?", line), re.match(r"\| `([a-z0-9_]+)`", line)
            if heading:
                section = heading.group(1)
            elif row:
                options.setdefault(section, set()).add(row.group(1))
        self.assertIn("layers", options["model"])
        found = 0
        for path in sorted(SOURCES.rglob("*.c")):
            text = re.sub(r'"\s*(?:PRI[a-z0-9]+\s*)?"', "", path.read_text())
            for message in re.findall(r'"(\[[a-z]+\] [^"]+)', text):
                section, words = re.match(r"\[([a-z]+)\] (.*)", message).groups()
                found += 1
                named = "%s" in words.split()[0] or options.get(section, set()) & set(re.findall(r"[a-z0-9_]+", words))
                self.assertTrue(named or message.startswith(PLACELESS), f"{path.name}: {message}")
        self.assertGreater(found, 100)


if __name__ == "__main__":
    unittest.main()
