"""Checkpoint files of C++ FSDP2 hold the state of Python's FSDP2 after the same training, and it reads files of other programs. The
reader in this test follows only the description of the format."""

import json
import os
import socket
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import needs
import pytest

PROGRAM = needs.PROGRAMS / "fsdp_resume"
ORACLE = needs.PYTHON_PROGRAMS / "fsdp_numbers.py"

CASES = {
    "fp32, 2 ranks": "world=2 steps=3 model=network",
    "fp32, 4 ranks, some without a shard": "world=4 steps=3 model=network",
    "bf16 parameters, fp32 reduce": "world=2 steps=3 model=gpt param=bf16 reduce=f32",
    "bf16 stored": "world=2 steps=3 model=network store=bf16 param=bf16 reduce=f32",
    "hsdp": "world=4 steps=3 model=network hsdp=2",
    "shard dimension 1": "world=2 steps=3 model=gpt shard_dim=1",
    "tied in a group": "world=2 steps=3 model=gpt group=1 tied=1",
    "two meshes": "world=4 steps=3 model=network second_mesh=hsdp",
    "frozen": "world=2 steps=3 model=network frozen=1",
    "reshard 2": "world=4 steps=3 model=network reshard=2",
}


WHY_NOT = needs.why_not(PROGRAM)
pytestmark = [pytest.mark.recorded, pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]


def free_port():
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return listening.getsockname()[1]


def run_ranks(world, lines):
    env = {**os.environ, "MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(world)}
    pipe = subprocess.PIPE
    ranks = [
        subprocess.Popen([PROGRAM], stdin=pipe, stderr=pipe, text=True, env={**env, "RANK": str(rank)})
        for rank in range(world)
    ]
    try:
        for rank in ranks:
            rank.stdin.write("\n".join(lines) + "\n")
            rank.stdin.close()
            rank.stdin = None
        for rank in ranks:
            _, messages = rank.communicate(timeout=300)
            assert rank.returncode == 0, messages
    finally:
        for rank in ranks:
            rank.kill()


def read_file(path):
    """{name: (dtype, shape, bytes)} and the metadata."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    metadata = header.pop("__metadata__", {})
    tensors = {
        name: (info["dtype"], info["shape"], body[slice(*info["data_offsets"])]) for name, info in header.items()
    }
    assert sum(len(values) for _, _, values in tensors.values()) == len(body)
    return tensors, metadata


def write_file(path, tensors):
    """Writes tensors back to back in the given order, after the header without alignment, as other programs do."""
    header, offset = {}, 0
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(values)]}
        offset += len(values)
    text = json.dumps(header).encode()
    text += b" " * ((3 - len(text)) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(values for _, _, values in tensors.values()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def saved(folder):
    """For each case, the folder that all ranks saved into: full, split and sharded."""
    found = {}
    for world in (2, 4):
        lines = []
        for number, line in enumerate(CASES.values()):
            if not line.startswith(f"world={world} "):
                continue
            found[line] = folder / str(number)
            lines += [
                f"{line} save={found[line]}/full",
                f"{line} save={found[line]}/split file_bytes=1000",
                f"{line} save={found[line]}/sharded form=sharded",
            ]
        run_ranks(world, lines)
    return found


@pytest.fixture(scope="module")
def torchs():
    done = subprocess.run(
        [sys.executable, str(ORACLE)],
        input="\n".join(CASES.values()) + "\n",
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **needs.pretend_gpu()},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["ranks"]


def sum_of(values):
    return f"{zlib.crc32(values):08x}"


@pytest.mark.parametrize("name", CASES)
def test_the_full_file_holds_torchs_full_tensors_to_the_bit(saved, torchs, name):
    line = CASES[name]
    tensors, metadata = read_file(saved[line] / "full" / "model.safetensors")
    assert metadata == {"format": "pt"}
    theirs = torchs[line][0]["full_parameters"]
    buffers = {"order"} if "model=gpt" in line else set()
    assert set(tensors) == set(theirs) | buffers
    assert {name: sum_of(tensors[name][2]) for name in theirs} == theirs
    assert all(
        dtype == ("BF16" if "store=bf16" in line else "F32") for dtype, _, _ in (tensors[name] for name in theirs)
    )


@pytest.mark.parametrize("name", CASES)
def test_the_split_files_and_their_index_hold_the_same_tensors(saved, name):
    folder = saved[CASES[name]]
    whole, _ = read_file(folder / "full" / "model.safetensors")
    index = json.loads((folder / "split" / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(len(values) for _, _, values in whole.values())
    files = {file: read_file(folder / "split" / file)[0] for file in set(index["weight_map"].values())}
    assert len(files) > 1
    assert {name: files[file][name] for name, file in index["weight_map"].items()} == whole


def assembled(files):
    """Full tensors from the ranks' files, placed by the files' metadata."""
    pieces = {}
    for tensors, metadata in files:
        for name, (dtype, shape, values) in tensors.items():
            note = json.loads(metadata.get(f"shard.{name}", json.dumps({"shape": shape, "dim": 0, "start": 0})))
            pieces.setdefault(name, []).append((note["start"], dtype, note, shape, values))
    wholes = {}
    for name, parts in pieces.items():
        parts.sort(key=lambda part: part[0])
        _, dtype, note, _, _ = parts[0]
        rows = 1
        for size in note["shape"][: note["dim"]]:
            rows *= size
        # A row of the full tensor is the concatenation of the rows of its parts.
        split = [
            [values[i * len(values) // rows : (i + 1) * len(values) // rows] for i in range(rows)]
            for _, _, _, _, values in parts
        ]
        wholes[name] = (dtype, note["shape"], b"".join(b"".join(part[row] for part in split) for row in range(rows)))
    return wholes


@pytest.mark.parametrize("name", CASES)
def test_the_ranks_files_hold_the_same_tensors(saved, name):
    folder = saved[CASES[name]]
    whole, _ = read_file(folder / "full" / "model.safetensors")
    files = [read_file(path) for path in sorted((folder / "sharded").iterdir())]
    assert all(metadata["format"] == "pt" for _, metadata in files)
    assert assembled(files) == whole


@pytest.mark.parametrize("dtype", ["F32", "F64", "BF16"])
def test_files_of_another_program_are_read(saved, folder, dtype):
    """Unaligned, in another order, in another dtype, on another number of ranks."""
    line = CASES["fp32, 2 ranks"]
    tensors, _ = read_file(saved[line] / "full" / "model.safetensors")
    expected, given = {}, {}
    for number, (name, (_, shape, values)) in enumerate(sorted(tensors.items(), reverse=True)):
        numbers = [
            (i * 37 + number * 11) % 128 - 64 for i in range(len(values) // 4)
        ]  # BF16 represents all of them exactly
        floats = struct.pack(f"<{len(numbers)}f", *numbers)
        expected[name] = ("F32", shape, floats)
        other = {
            "F32": floats,
            "F64": struct.pack(f"<{len(numbers)}d", *numbers),
            "BF16": b"".join(floats[i + 2 : i + 4] for i in range(0, len(floats), 4)),
        }
        given[name] = (dtype, shape, other[dtype])
    source = folder / f"others-{dtype}.safetensors"
    write_file(source, given)
    target = folder / f"ours-{dtype}"
    run_ranks(3, [f"world=3 steps=0 model=network load={source} save={target}"])
    assert read_file(target / "model.safetensors")[0] == expected
