# SPDX-License-Identifier: MIT
"""Tests damaged checkpoints: flipped bits, and files that are cut off, exchanged or added. Each must be refused with
exit code 10 and the name of the file, and of the tensor if its data changed. If the process is killed at any system
call that writes, the previous checkpoint must still load. Without --all, only a sample of the damages and kills is
tested."""
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ["GSWBENCH"]
XXH3 = pathlib.Path(os.environ["GSWBENCH_BINARY_DIR"]) / "tests/xxh3"
FAULTY = pathlib.Path(os.environ["GSWBENCH_BINARY_DIR"]) / "tests/libfaulty_disk.so"
ALL = "--all" in sys.argv
UNUSABLE = 10
TINY = ["run", "tiny-llama", "--layers", "1", "--backend", "host", "--comm", "local", "--warmup", "0", "--quiet", "--trace",
        "0", "--set", "train.sequence=16", "--set", "run.verify=light", "--set", "model.vocab=64", "--set", "model.hidden=32",
        "--set", "model.ffn=48", "--set", "model.head_dim=8", "--set", "model.heads=4", "--set", "model.kv_heads=2"]


def run(place, *words, environment=None):
    return subprocess.run([PROGRAM, *words], cwd=place, text=True, timeout=120, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={**os.environ, **(environment or {})})


def save(place, folder, steps, *more, environment=None):
    """Trains on two ranks and saves a checkpoint in the folder."""
    return run(place, *TINY, "--steps", str(steps), "--ranks", "2", "--set", "parallel.fsdp=2", "--set",
               f"checkpoint.save={folder}", "--out", "results", *more, environment=environment)


class Header:
    """The header of a safetensors file, which tests change and write back, and the data after it."""

    def __init__(self, path):
        raw = path.read_bytes()
        self.length, = struct.unpack("<Q", raw[:8])
        self.entries = json.loads(raw[8:8 + self.length])
        self.data = raw[8 + self.length:]

    def bytes(self, entries=None, length=None):
        text = json.dumps(self.entries if entries is None else entries, separators=(",", ":")).encode()
        return struct.pack("<Q", len(text) if length is None else length) + text + self.data

    def names(self):
        return [name for name in self.entries if name != "__metadata__"]

    def owner(self, offset):
        """Returns the name of the tensor that contains the byte at this offset of the data."""
        return next(name for name in self.names() if offset < self.entries[name]["data_offsets"][1]
                    and offset >= self.entries[name]["data_offsets"][0])


def flip(raw, place, bit):
    return raw[:place] + bytes([raw[place] ^ 1 << bit]) + raw[place + 1:]


def shard_damages(path, count, draw):
    """Yields damaged versions of the file: (description, new bytes, name of the tensor that the error must have, or
    "")."""
    raw, header = path.read_bytes(), Header(path)
    begin = 8 + header.length
    for _ in range(count * 4):
        place = draw.randrange(begin, len(raw))
        yield f"bit of data {place}", flip(raw, place, draw.randrange(8)), header.owner(place - begin)
    for _ in range(count * 4):
        place = draw.randrange(begin)
        yield f"bit of header {place}", flip(raw, place, draw.randrange(8)), ""
    for _ in range(count * 2):
        place = draw.randrange(len(raw))
        yield f"cut off at {place}", raw[:place], ""
    for _ in range(count):
        yield "bytes behind", raw + draw.randbytes(draw.randrange(1, 64)), ""
    yield "empty", b"", ""


def entry_changes(entry, other, size):
    """Returns invalid versions of a tensor's header entry, each with a description."""
    begin, end = entry["data_offsets"]
    return [("overlaps", entry | {"data_offsets": [max(begin - 4, 0), max(begin - 4, 0) + end - begin]} if begin else
             entry | {"data_offsets": other["data_offsets"]}),
            ("is beyond the end", entry | {"data_offsets": [size, size + end - begin]}),
            ("overflows", entry | {"data_offsets": [2**63 - 4, 2**63 - 4 + end - begin]}),
            ("is negative", entry | {"data_offsets": [-4, end - begin - 4]}),
            ("is reversed", entry | {"data_offsets": [end, begin]}),
            ("is too short", entry | {"data_offsets": [begin, end - 4]}),
            ("has a huge shape", entry | {"shape": [2**62, 2**62]}),
            ("has another shape", entry | {"shape": [entry["shape"][0] + 1, *entry["shape"][1:]]}),
            ("has no shape", {key: entry[key] for key in ("dtype", "data_offsets")}),
            ("has another type", entry | {"dtype": "F8_E4M3"}),
            ("has more", entry | {"more": 1})]


def foreign_damages(path, count, draw):
    """Yields damaged versions of a file without checksums, as other programs write them. Only errors in the header can
    be detected."""
    header = Header(path)
    header.entries["__metadata__"] = {"format": "pt"}
    names = header.names()
    for _ in range(count):
        name, other = draw.sample(names, 2)
        for what, entry in entry_changes(header.entries[name], header.entries[other], len(header.data)):
            yield f"{name} {what}", header.bytes(header.entries | {name: entry}), ""
    for _ in range(count):
        place = draw.randrange(len(header.data))
        yield f"cut off {place}", header.bytes()[:-place - 1], ""
        yield "a length of its own", header.bytes(length=draw.randrange(2**40, 2**63)), ""


class Damage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.place = pathlib.Path(cls.temporary.name)
        done = save(cls.place, "saved", 2)
        assert done.returncode == 0, done.stderr
        cls.folder = cls.place / "saved/step-00000002"
        done = run(cls.place, "checkpoint", "export", "saved", "plain")
        assert done.returncode == 0, done.stderr
        cls.plain = cls.place / "plain"
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        print(f"{cls.count} damages")
        assert cls.count >= (1400 if ALL else 60), cls.count
        cls.temporary.cleanup()

    def verify(self, folder, what, *named):
        done = run(self.place, "checkpoint", "verify", str(folder))
        self.assertEqual(done.returncode, UNUSABLE, f"{what}: {done.stdout}{done.stderr}")
        for name in named:
            self.assertIn(name, done.stderr, what)
        type(self).count += 1

    def damage(self, path, damages):
        raw = path.read_bytes()
        try:
            for what, changed, tensor in damages:
                if changed != raw:
                    path.write_bytes(changed)
                    self.verify(path.parent, f"{path.name}, {what}", path.name, tensor)
        finally:
            path.write_bytes(raw)

    def test_whole_ones_are_verified(self):
        for folder in (self.folder, self.plain):
            for command in ("checkpoint", "verify"), ("verify",):
                done = run(self.place, *command, str(folder))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, r"\d+ tensors in \d+ slices of \d+ files?, .*: whole")

    def test_what_changes_in_a_shard_is_found(self):
        draw = random.Random(1)
        for path in sorted(self.folder.glob("rank-*")):
            self.damage(path, shard_damages(path, 40 if ALL else 1, draw))

    def test_what_changes_beside_shards_is_found(self):
        draw = random.Random(2)
        for name in ("manifest.json", "config.json"):
            raw = (self.folder / name).read_bytes()
            places = draw.sample(range(len(raw)), min(100 if ALL else 4, len(raw)))
            self.damage(self.folder / name, [(f"bit of {place}", flip(raw, place, draw.randrange(8)), "")
                                             for place in places])
            # The flipped bits above test the checksum of manifest.json, which covers its whole length.
            if name != "manifest.json":
                self.damage(self.folder / name, [("cut off", raw[:place], "") for place in places])

    def test_sequences_without_tokens_are_refused(self):
        path = self.folder / "manifest.json"
        raw = path.read_text()
        for sequence in (0, -5):
            changed = raw.replace(json.loads(raw)["xxh3"], "0" * 16).replace('"sequence":16', f'"sequence":{sequence}')
            checksum = subprocess.run([XXH3], input=changed, capture_output=True, text=True, check=True).stdout.strip()
            path.write_text(changed.replace("0" * 16, checksum, 1))
            self.verify(self.folder, f"sequence {sequence}", f"manifest.json: a sequence of {sequence} tokens")
        path.write_text(raw)

    def test_shards_that_are_exchanged_or_missing_are_found(self):
        one, two = sorted(self.folder.glob("rank-*"))
        raw = one.read_bytes(), two.read_bytes()
        for first, second in ((raw[1], raw[0]), (raw[0], raw[0]), (raw[1], raw[1])):
            one.write_bytes(first)
            two.write_bytes(second)
            self.verify(self.folder, "exchanged", "rank-0000")
            one.write_bytes(raw[0])
            two.write_bytes(raw[1])
        for path, content in zip((one, two), raw, strict=True):
            path.unlink()
            self.verify(self.folder, "missing", path.name)
            path.symlink_to("/dev/zero")
            self.verify(self.folder, "a device", path.name)
            path.unlink()
            path.mkdir()
            self.verify(self.folder, "a folder", path.name)
            path.rmdir()
            path.write_bytes(content)

    def test_headers_of_other_programs_are_not_believed(self):
        draw = random.Random(3)
        path = self.plain / "model.safetensors"
        self.damage(path, foreign_damages(path, 40 if ALL else 1, draw))

    def test_scales_are_those_that_a_run_saves(self):
        """Adds FP8 scale tensors to the weights of another program. Unknown names, missing tensors and wrong sizes must
        be refused."""
        header, names = Header(self.plain / "model.safetensors"), ("scales", "factors", "magnitudes", "history")
        for sizes, refused in (({"other": 1}, "other"), ({"scales": 2, "factors": 2, "magnitudes": 2}, "history"),
                               ({"factors": 2}, "factors"), (dict(zip(names, (2, 2, 1, 4), strict=True)), "magnitudes"),
                               (dict(zip(names, (2, 2, 2, 5), strict=True)), "history"),
                               (dict(zip(names, (2, 2, 2, 6), strict=True)), None)):
            folder = self.place / "scaled"
            shutil.copytree(self.plain, folder)
            entries, data = dict(header.entries), header.data
            entries["__metadata__"] = {"format": "pt"}
            for name, size in sizes.items():
                entries[f"scaling.{name}"] = {"dtype": "F32", "shape": [size],
                                              "data_offsets": [len(data), len(data) + 4 * size]}
                data += struct.pack("<f", 1.0) * size
            text = json.dumps(entries).encode()
            (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
            done = run(self.place, *TINY, "--steps", "1", "--set", f"checkpoint.load={folder}", "--out", "results")
            shutil.rmtree(folder)
            self.assertEqual(done.returncode, UNUSABLE if refused else 0, f"{sizes}: {done.stdout}{done.stderr}")
            if refused:
                self.assertIn(f"tensor 'scaling.{refused}'", done.stderr)

    def test_an_index_does_not_lead_out_of_its_folder(self):
        path = self.plain / "model.safetensors.index.json"
        names = Header(self.plain / "model.safetensors").names()
        outside = self.place / "model.safetensors"
        shutil.copy(self.plain / "model.safetensors", outside)
        for name in ("../model.safetensors", str(outside), "./model.safetensors", "a/model.safetensors", "none", "", "."):
            path.write_text(json.dumps({"weight_map": {tensor: name for tensor in names}}))
            self.verify(self.plain, name, "plain")
        for tensor in names:
            path.write_text(json.dumps({"weight_map": {one: "model.safetensors" for one in names if one != tensor}}))
            self.verify(self.plain, "not in the index", tensor)
        path.write_text(json.dumps({"weight_map": {one: "model.safetensors" for one in [*names, "more"]}}))
        self.verify(self.plain, "in the index alone", "plain")
        path.unlink()

    def test_a_checkpoint_of_another_model_is_refused(self):
        others = ["model.hidden=48", "model.ffn=64", "model.vocab=80", "run.layers=2", "model.kv_heads=4", "model.tied=yes",
                  "model.rope_theta=5000", "model.norm_epsilon=1e-6", "model.rope_scaling=8", "model.family=gswbench"]
        for folder in (self.folder, self.plain):
            for other in others if ALL else others[::3] + others[8:9]:
                done = run(self.place, *TINY, "--steps", "1", "--set", f"checkpoint.load={folder}", "--set", other)
                self.assertEqual(done.returncode, UNUSABLE, f"{other}: {done.stdout}{done.stderr}")
                self.assertRegex(done.stderr, r"tensor '|config\.json: ", other)
                type(self).count += 1

    def test_slices_of_many_pieces_are_loaded_and_verified(self):
        """Tests a file of more than 8 MiB, because slices are read and verified in pieces of 4 MiB."""
        large = ["--set", "model.hidden=256", "--set", "model.ffn=2048", "--set", "model.head_dim=64", "--json"]
        whole = save(self.place, "large", 2, *large, "--set", "checkpoint.every=1")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        step = json.loads(whole.stdout)["steps"][1]
        path, = (self.place / "large/step-00000001").glob("rank-00001-*")
        raw, header = path.read_bytes(), Header(path)
        self.assertGreater(len(raw), 2 * (4 << 20))
        changed = len(raw) - (1 << 20)
        load = ["--set", "checkpoint.load=large/step-00000001"]
        done = save(self.place, "again", 1, *large, *load)
        self.assertEqual(done.returncode, 0, done.stderr)
        again, = json.loads(done.stdout)["steps"]
        self.assertEqual((again["loss"], again["grad_norm"]), (step["loss"], step["grad_norm"]))
        shutil.rmtree(self.place / "again")
        path.write_bytes(flip(raw, changed, 3))
        done = save(self.place, "again", 1, *large, *load)
        self.assertEqual(done.returncode, UNUSABLE, done.stdout)
        self.assertIn(f"{path.name}: tensor '{header.owner(changed - 8 - header.length)}': its data differ", done.stderr)

    def test_one_rank_reads_all_headers(self):
        """Each of four files must be opened only twice: by the rank that reads all headers, and by the rank that needs
        the slices."""
        log = self.place / "opened"
        four = ["--ranks", "4", "--set", "parallel.fsdp=4"]
        done = save(self.place, "four", 1, *four)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = save(self.place, "further", 1, *four, "--set", "checkpoint.load=four",
                    environment={"LD_PRELOAD": str(FAULTY), "FAULTY_OPENED": "four/step-00000001/rank-", "FAULTY_LOG": str(log)})
        self.assertEqual(done.returncode, 0, done.stderr)
        opened = log.read_text().split("\n")[:-1]
        self.assertEqual(len(set(opened)), 4)
        self.assertEqual(len(opened), 8, opened)

    def test_a_pipe_in_the_place_of_data_is_named(self):
        """Replaces a file by a pipe after its header was read. The pipe has no writer, so a program that opens it would
        wait forever."""
        self.assertEqual(save(self.place, "piped", 1).returncode, 0)
        done = save(self.place, "after", 1, "--set", "checkpoint.load=piped",
                    environment={"LD_PRELOAD": str(FAULTY), "FAULTY_OPENED": "piped/step-00000001/rank-", "FAULTY_PIPE": "3",
                                 "FAULTY_LOG": str(self.place / "piped-log")})
        self.assertEqual(done.returncode, UNUSABLE, done.stderr)
        self.assertRegex(done.stderr, r"rank-0000[01]-of-00002.safetensors: is a pipe, not a file")

    def test_a_killed_save_leaves_a_whole_checkpoint(self):
        twice, older = self.place / "twice", self.place / "older"
        done = save(self.place, "older", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        call, log = 1, self.place / "log"
        while True:
            shutil.rmtree(twice, ignore_errors=True)
            shutil.copytree(older, twice)
            log.unlink(missing_ok=True)
            done = save(self.place, "twice", 1, "--set", "checkpoint.load=twice", "--set", "checkpoint.keep=1",
                        environment={"LD_PRELOAD": str(FAULTY), "FAULTY_CALL": str(call), "FAULTY_LOG": str(log),
                                     "FAULTY_SIGNAL": str(int(signal.SIGKILL))})
            verified = run(self.place, "checkpoint", "verify", "twice")
            self.assertEqual(verified.returncode, 0, f"call {call}: {verified.stderr}")
            if not log.exists():
                break
            self.assertEqual(done.returncode, -signal.SIGKILL)
            # A save that was killed can leave an unfinished checkpoint. The next save must remove it.
            if "step 1" in verified.stdout:
                done = save(self.place, "twice", 1, "--set", "checkpoint.load=twice")
                self.assertEqual(done.returncode, 0, f"call {call}: {done.stderr}")
                verified = run(self.place, "checkpoint", "verify", "twice/step-00000002")
                self.assertEqual(verified.returncode, 0, f"call {call}: {verified.stderr}")
            call += 1 if ALL else 9
        self.assertGreater(call, 40)
        self.assertEqual([path.name for path in twice.iterdir()], ["step-00000002"])


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--all"])
