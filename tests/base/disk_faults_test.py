# SPDX-License-Identifier: MIT
"""Tests failing and full disks: for every command that writes files, each system call that can fail fails once.

After a failure, the exit code must be 9 and the error must have path and reason. Exit code 0 is correct only if the
output is complete. No file may be half written, no temporary file may remain, and files from before must be intact.
Without --all, only every tenth call fails, and calibrate is skipped."""
import errno
import json
import os
import pathlib
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

PROGRAM = os.environ["GSWBENCH"]
FAULTY = pathlib.Path(os.environ["GSWBENCH_BINARY_DIR"]) / "tests/libfaulty_disk.so"
OUTPUT_CANNOT_BE_WRITTEN = 9
TINY = ["--config", "tiny-llama", "--layers", "1"]
OLDER = b"an older file\n"

# Each command with its arguments, and the files that exist before the command and that it replaces.
COMMANDS = {
    "run": (["run", *TINY, "--steps", "3", "--warmup", "1", "--out", "results", "--weights-out", "weights", "--trace", "0",
             "--quiet"], []),
    "data": (["data", "--config", "tiny-llama", "--steps", "2", "-o", "tokens.safetensors"], ["tokens.safetensors"]),
    "weights": (["weights", *TINY, "-o", "weights"], []),
    "predict": (["predict", "--config", "llama3.1-8b", "--ranks", "8", "--no-range", "-o", "predictions",
                 "--trace", "timeline.json"], ["timeline.json"]),
    "init": (["init", "--model", "tiny-llama", "job.ini"], []),
    "calibrate": (["calibrate", *TINY, "--backend", "host", "-o", "profile.ini"], ["profile.ini"]),
}
RUN_FILES = {"config.merged.ini", "steps.csv", "ranks.csv", "compute_times.csv", "report.html", "result.json",
             "run.jsonl", "trace.json"}
PREDICTION_FILES = RUN_FILES - {"run.jsonl", "trace.json"}
WEIGHT_FILES = {"config.json", "model.safetensors"}


def check_whole(path):
    """Checks that a file is complete, as its format allows."""
    data = path.read_bytes()
    if path.suffix == ".json":
        json.loads(data)
    elif path.suffix == ".safetensors":
        length, = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + length])
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        assert len(data) == 8 + length + max(ends), f"{path} has {len(data)} bytes"
    elif path.suffix == ".html":
        assert data.rstrip().endswith(b"</html>"), f"{path} is cut off"
    elif path.suffix == ".csv":
        assert len({line.count(b",") for line in data.splitlines()}) == 1 and data.endswith(b"\n"), f"{path} is cut off"
    elif path.suffix == ".prom":
        ends = b"\ngswbench_allocated_bytes{" in data or any(
            # Predictions and invalid results lack this line.
            b'status="%s"' % status in data for status in (b"predicted", b"invalid"))
        assert data.endswith(b"\n") and ends, f"{path} is cut off"
    elif path.suffix != ".jsonl":    # the journal may end in the middle: readers stop at its last whole line
        assert data.endswith(b"\n") and b"[" in data, f"{path} is cut off"


def check_result(folder):
    """Checks that a folder with result.json or config.json has all its files. A run that could not write weights or a
    trace must say so in result.json."""
    names = {path.name for path in folder.iterdir()}
    if "result.json" in names:
        kept = json.loads((folder / "result.json").read_text())
        if any(reason["id"] == "not-written" for reason in kept["reasons"]):
            assert (kept["status"], kept["exit_code"]) == ("invalid", 5), kept["reasons"]
            names |= {"trace.json"}
        assert names in (RUN_FILES, PREDICTION_FILES), names
    if "config.json" in names:
        assert names == WEIGHT_FILES, names


def check_files(place, replaced, is_done):
    """Checks all files in a command's folder. is_done: whether the command must have replaced the files from before, or
    None if either is correct."""
    for path in place.rglob("*"):
        assert not path.name.endswith(".tmp"), f"{path} is left"
        if path.is_file() and not (path.name in replaced and path.read_bytes() == OLDER):
            check_whole(path)
        elif path.is_dir():
            check_result(path)
    for name in replaced:
        is_older = (place / name).read_bytes() == OLDER
        assert is_done is None or is_older != is_done, f"{name} is {'older' if is_older else 'replaced'}"


def empty(place):
    for path in place.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def prepare(place, name):
    """Empties the folder, then writes the files that the command will replace."""
    empty(place)
    for older in COMMANDS[name][1]:
        (place / older).write_bytes(OLDER)


def execute(place, words, environment=None, **how):
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": {**os.environ, **(environment or {})}, **how}
    return subprocess.run([PROGRAM, *words], cwd=place, text=True, timeout=120, check=False, **how)


def run(place, name, environment=None, **how):
    prepare(place, name)
    return execute(place, COMMANDS[name][0], environment, **how)


def check_refused(done, reasons):
    """Checks for exit code 9 with a reason and the path."""
    assert done.returncode == OUTPUT_CANNOT_BE_WRITTEN, f"exit code {done.returncode}: {done.stderr}"
    assert any(os.strerror(reason) in done.stderr for reason in reasons), done.stderr
    assert "cannot " in done.stderr, done.stderr
    assert "RESULT VALID" not in (done.stdout or ""), done.stdout


def fail_call(place, name, call, reason):
    """Runs a command in which system call number `call` fails. Returns the name of that call, or None if the command
    makes fewer calls."""
    log = place.parent / "log"
    log.unlink(missing_ok=True)
    done = run(place, name, {"LD_PRELOAD": str(FAULTY), "FAULTY_CALL": str(call), "FAULTY_ERRNO": str(reason),
                             "FAULTY_LOG": str(log)})
    if not log.exists():
        assert done.returncode == 0, done.stderr
        return None
    failed = log.read_text().split(" ", 1)[1].strip()
    try:
        if done.returncode != 0:
            check_refused(done, [reason])
        # If fsync of a folder fails, the file just written is complete but may lose its name, and files after it are
        # not replaced.
        is_done = None if failed == "fsync of a folder" else done.returncode == 0
        check_files(place, COMMANDS[name][1], is_done)
    except AssertionError as error:
        raise AssertionError(f"{name}, call {call} ({failed}), {os.strerror(reason)}: {error}") from None
    return failed


def fail_calls(place, names, step):
    """For each command, fails its first call and then every step-th call, one per run. Returns the number of runs."""
    cells = 0
    for name in names:
        for reason in (errno.EIO, errno.ENOSPC):
            call = 1
            while fail_call(place, name, call, reason) is not None:
                call += step
                cells += 1
            assert call > 1, f"{name}: no call of it is seen"
    return cells


def fill_disk(place, names):
    """Runs the commands on disks that are too small, or with file size limits if no disk can be mounted. Returns the
    number of runs."""
    cells = 0
    for room in (4 << 10, 64 << 10, 1 << 20):
        has_disk = os.environ.get("GSWBENCH_OWN_MOUNTS") == "yes"
        if has_disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", place], check=True)
        try:
            for name in names:
                done = run(place, name, preexec_fn=None if has_disk else lambda bytes=room: resource.setrlimit(
                    resource.RLIMIT_FSIZE, (bytes, bytes)))
                if done.returncode != 0:
                    check_refused(done, [errno.ENOSPC, errno.EFBIG])
                check_files(place, COMMANDS[name][1], done.returncode == 0)
                cells += 1
        finally:
            if has_disk:
                subprocess.run(["umount", place], check=True)
    return cells


def limit_files(place, name):
    """Tests a file size limit (RLIMIT_FSIZE). Its signal, SIGXFSZ, would kill a program that does not handle it."""
    done = run(place, name, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
    check_refused(done, [errno.EFBIG])
    check_files(place, COMMANDS[name][1], False)


def fill_standard_output(place, name):
    """Writes standard output to /dev/full. The files must be written, and the exit code must report the failed
    write."""
    with open("/dev/full", "w", encoding="ascii") as full:
        done = run(place, name, stdout=full)
    check_refused(done, [errno.ENOSPC])
    assert "standard output" in done.stderr, done.stderr


def forbid_writing(place, name):
    """Tests a read-only folder: a read-only mount if mounting is possible, else file permissions, which do not restrict
    root."""
    has_disk = os.environ.get("GSWBENCH_OWN_MOUNTS") == "yes"
    if not has_disk and os.geteuid() == 0:
        return
    empty(place)
    if has_disk:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=True)
    prepare(place, name)
    subprocess.run(["mount", "-o", "remount,ro", place] if has_disk else ["chmod", "555", place], check=True)
    try:
        done = execute(place, COMMANDS[name][0])
        check_refused(done, [errno.EROFS, errno.EACCES])
        assert not done.stdout, f"found too late: {done.stdout}"
        check_files(place, COMMANDS[name][1], False)
    finally:
        subprocess.run(["umount", place] if has_disk else ["chmod", "755", place], check=True)


def name_missing_folder(place, name):
    """Tests an output path in a missing folder, which must not be created. Only `run` creates its results folder."""
    empty(place)
    words = COMMANDS[name][0]
    if name != "run":
        done = execute(place, [*words[:-1], f"missing/{words[-1]}"])
        check_refused(done, [errno.ENOENT])
        assert not list(place.iterdir())


def main():
    is_all = sys.argv[1:] == ["--all"]
    if os.geteuid() == 0 and "GSWBENCH_OWN_MOUNTS" not in os.environ:
        # Runs the test in a new mount namespace, in which it can mount disks of any size. Not every system allows that.
        if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode == 0:
            os.execvpe("unshare", ["unshare", "-m", sys.executable, *sys.argv], {**os.environ, "GSWBENCH_OWN_MOUNTS": "yes"})
    names = [name for name in COMMANDS if is_all or name != "calibrate"]
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder) / "place"
        place.mkdir()
        cells = fail_calls(place, names, 1 if is_all else 10)
        disks = fill_disk(place, names)
        for name in names:
            for trouble in (limit_files, fill_standard_output, forbid_writing, name_missing_folder):
                trouble(place, name)
    print(f"{cells} calls that fail, {disks} small disks")


if __name__ == "__main__":
    main()
