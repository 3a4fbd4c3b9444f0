# SPDX-License-Identifier: MIT
"""Reads safetensors files with the standard library alone."""
import array
import json
import pathlib
import struct
import typing

CODES = {"F32": "f", "I32": "i"}


class Tensor(typing.NamedTuple):
    shape: list
    values: array.array    # flat, row-major


def widen(raw):
    """Converts BF16 to fp32. BF16 is the upper half of fp32."""
    halves = array.array("H", raw)
    return array.array("f", array.array("I", (half << 16 for half in halves)).tobytes())


def read(path):
    """Returns the tensors of one file by name."""
    raw = pathlib.Path(path).read_bytes()
    (header_bytes,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + header_bytes])
    assert header.pop("__metadata__")["format"] == "pt"
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
        own = raw[begin:end]
        values = widen(own) if entry["dtype"] == "BF16" else array.array(CODES[entry["dtype"]], own)
        tensors[name] = Tensor(entry["shape"], values)
    return tensors


def write(path, tensors):
    """Writes a file as another program could: without metadata, tensors sorted by name."""
    header, data = {}, b""
    for name, tensor in sorted(tensors.items()):
        raw = tensor.values.tobytes()
        code = {value: key for key, value in CODES.items()}[tensor.values.typecode]
        header[name] = {"dtype": code, "shape": tensor.shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_folder(folder):
    """Returns the tensors of a Hugging Face folder, in one file or several shards."""
    folder = pathlib.Path(folder)
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return read(folder / "model.safetensors")
    weight_map = json.loads(index.read_text())["weight_map"]
    tensors = {}
    for file in sorted(set(weight_map.values())):
        tensors.update(read(folder / file))
    assert set(tensors) == set(weight_map)
    return tensors
