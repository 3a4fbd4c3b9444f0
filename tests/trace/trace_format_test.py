# SPDX-License-Identifier: MIT
"""Parses trace.json of a prediction and of a run strictly as Trace Event Format. Slices of a track must not overlap,
arrows lead from a send to the receive of the same data, and the sums of slices equal the waterfall."""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["GSWBENCH"]
JOB = ("--config tiny-llama --ranks 4 --set parallel.pp=2 --set parallel.vp=2 --set parallel.dp=2 --set train.global_batch=16"
       " --set model.tied=yes --set model.hidden=32 --set model.heads=2 --set model.kv_heads=1 --set model.head_dim=16"
       " --set model.ffn=32 --set model.vocab=64 --set train.sequence=16 --set hardware.profile=h100-sxm")
KEYS = {"M": {"ph", "name", "pid", "tid", "args"}, "X": {"ph", "name", "cat", "pid", "tid", "ts", "dur", "args"},
        "s": {"ph", "name", "cat", "id", "pid", "tid", "ts"}, "f": {"ph", "name", "cat", "id", "pid", "tid", "ts", "bp"}}
COMPUTES = ("memory", "cast", "recompute", "optimizer")


def nanoseconds(microseconds):
    """Converts microseconds to whole nanoseconds, the unit of viewers. Fractions of a nanosecond are an error."""
    whole = round(1000 * microseconds)
    assert abs(1000 * microseconds - whole) < 1e-4 and whole >= 0, microseconds
    return whole


def parts_of(event):
    """Returns the waterfall parts that a slice of the compute stream may belong to, by its phase and kind."""
    kind, phase = event["args"]["kind"], event["cat"]
    if phase in ("recompute", "reduce", "optimizer"):
        return {"recompute" if phase == "recompute" else "optimizer"}
    if "gemm" in kind:
        return {"gemm"}
    if kind.startswith("attention_") and "merge" not in kind:
        return {"attention"}
    return {"memory", "cast"}


class Trace:
    def __init__(self, text):
        def once(pairs):
            assert len(dict(pairs)) == len(pairs), pairs
            return dict(pairs)
        document = json.loads(text, object_pairs_hook=once, parse_constant=lambda word: 1 / 0)
        assert set(document) == {"displayTimeUnit", "traceEvents", "otherData"} and document["displayTimeUnit"] == "ms"
        self.source = document["otherData"]
        self.names, self.arrows = {}, collections.defaultdict(list)
        self.tracks = collections.defaultdict(list)
        for event in document["traceEvents"]:
            self.add(event)

    def add(self, event):
        assert set(event) == KEYS[event["ph"]], event
        assert all(isinstance(event[key], int) and event[key] >= 0 for key in ("pid", "tid")), event
        assert isinstance(event["name"], str) and event["name"] != "", event
        track = event["pid"], event["tid"]
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and set(event["args"]) == {"name"}, event
            key = event["name"], event["pid"], event["tid"] if event["name"] == "thread_name" else 0
            assert key not in self.names, event
            self.names[key] = event["args"]["name"]
        elif event["ph"] == "X":
            begin = nanoseconds(event["ts"])
            self.tracks[track].append((begin, begin + nanoseconds(event["dur"]), event))
        else:
            self.arrows[event["cat"], event["name"], event["id"]].append((track, nanoseconds(event["ts"]), event))

    def around(self, track, moment, kind):
        """Returns the slices to which a viewer attaches the end of an arrow."""
        found = [event for begin, end, event in self.tracks[track]
                 if begin <= moment <= end and event["args"]["kind"] == kind]
        return found

    def seconds(self, rank, lane=None):
        """Returns seconds by part, and seconds and counts by kind and phase."""
        parts, kinds, counts = collections.Counter(), collections.Counter(), collections.Counter()
        for (pid, tid), slices in self.tracks.items():
            for begin, end, event in slices if pid == rank else ():
                key = event["args"]["kind"], event["cat"]
                kinds[key] += 1e-9 * (end - begin)
                counts[key] += 1
                if self.names["thread_name", pid, tid] == "compute":
                    assert event["args"]["part"] in parts_of(event), event
                    parts[event["args"]["part"]] += 1e-9 * (end - begin)
        return parts, kinds, counts


class Timelines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, folder)

        def run(words):
            done = subprocess.run([PROGRAM, *words.split()], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
            return json.loads(done.stdout)
        row = run(f"predict {JOB} --no-range --json --trace predicted.json")["rows"][0]["predicted"]
        cls.predicted = Trace((folder / "predicted.json").read_text()), row["parts_s"], row["busiest_stage"] * 2
        result = run(f"run {JOB} --comm local --backend host --steps 4 --warmup 1 --json --out results --trace all")
        (path,) = folder.rglob("trace.json")
        cls.measured = Trace(path.read_text()), result["waterfall"]["parts_s"], result["waterfall"]["rank"]
        assert result["waterfall"]["timed_by"] == "clock" and result["waterfall"]["lost_records"] == 0, result
        cls.op_times = result["waterfall"]["op_times"]
        cls.few = Trace(cls.draw_few(folder, run))

    @staticmethod
    def draw_few(folder, run):
        run(f"run {JOB} --comm local --backend host --steps 4 --warmup 1 --json --out few --trace 0,3")
        return next((folder / "few").rglob("trace.json")).read_text()

    def test_every_track_has_a_name_and_slices_that_do_not_overlap(self):
        for trace, ranks in ((self.predicted[0], 2), (self.measured[0], 4), (self.few, 2)):
            self.assertEqual(len({pid for pid, _ in trace.tracks}), ranks)
            self.assertEqual(len({number for slices in trace.tracks.values() for _, _, event in slices
                                  for number in [(event["pid"], event["args"]["op"])]}),
                             sum(map(len, trace.tracks.values())))
            for (pid, tid), slices in trace.tracks.items():
                self.assertEqual(trace.names["process_name", pid, 0], f"rank {pid}")
                self.assertIn(("thread_name", pid, tid), trace.names)
                for (_, end, first), (begin, _, second) in zip(slices, slices[1:]):
                    self.assertLessEqual(end, begin, f"{first} reaches into {second}")

    def test_a_trace_says_by_what_its_ops_were_timed(self):
        for trace, source in ((self.predicted[0], "prediction"), (self.measured[0], "clock"), (self.few, "clock")):
            self.assertEqual(trace.source, {"timed_by": source, "lost_records": 0})

    def test_every_arrow_leads_from_a_send_to_the_receive_of_the_same_data(self):
        for trace, is_predicted in ((self.predicted[0], True), (self.measured[0], False)):
            links = [event for slices in trace.tracks.values() for _, _, event in slices
                     if event["args"]["kind"] in ("send", "receive")]
            self.assertGreater(len(links), 30)
            self.assertEqual(2 * len(trace.arrows), len(links))
            for key, ends in trace.arrows.items():
                self.assertEqual([event["ph"] for _, _, event in sorted(ends, key=lambda end: end[2]["ph"] == "f")],
                                 ["s", "f"], key)
                (source, left, _), (target, came, _) = sorted(ends, key=lambda end: end[2]["ph"] == "f")
                sends = trace.around(source, left, "send")
                receives = trace.around(target, came, "receive")
                self.assertNotEqual(source[0], target[0])
                self.assertTrue(any(send["args"].get("microbatch") == receive["args"].get("microbatch") and
                                    send["cat"] == receive["cat"] for send in sends for receive in receives), key)
                if is_predicted:
                    self.assertLessEqual(left, came, key)

    def test_no_arrow_leads_to_a_rank_that_is_not_drawn(self):
        for key, ends in self.few.arrows.items():
            self.assertEqual(len(ends), 2, key)

    def test_slices_add_up_to_the_waterfall(self):
        for trace, parts, rank in (self.predicted, self.measured):
            sums, _, _ = trace.seconds(rank)
            slack = 2e-9 * len(trace.tracks[rank, 0])
            gemms = parts["ideal"] + parts["gemm"] + parts["attention"]
            contention = parts["contention"]
            self.assertLessEqual(gemms, sums["gemm"] + sums["attention"] + slack)
            for part in COMPUTES:
                self.assertAlmostEqual(sums[part], parts[part], delta=slack + contention, msg=part)
            self.assertAlmostEqual(sum(sums.values()), gemms + sum(parts[part] for part in COMPUTES) + contention,
                                   delta=slack)

    def test_slices_add_up_to_the_times_of_ops(self):
        trace, _, rank = self.measured
        _, seconds, counts = trace.seconds(rank)
        self.assertEqual(counts, {(op["kind"], op["phase"]): op["count"] for op in self.op_times})
        for op in self.op_times:
            self.assertAlmostEqual(seconds[op["kind"], op["phase"]], op["time_s"], delta=1e-9 * op["count"])


if __name__ == "__main__":
    unittest.main()
