"""Whether the numbers in a checkpoint are finite, found without torch and without running code in the file."""

from __future__ import annotations

import functools
import json
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rlnb.errors import RlnbError
from rlnb.records import torch_file
from rlnb.storage import files
from rlnb.storage.entries import files_below

if TYPE_CHECKING:
    import numpy as np

MOST_KEPT = 4096
"""Number of files whose answer is kept, so that a checkpoint is read once."""
UNREADABLE = (
    *(OSError, RlnbError, ValueError, EOFError, MemoryError, RecursionError, zipfile.BadZipFile),
    *(LookupError, TypeError, AttributeError),
)
"""Errors of reading a file that is damaged or has another format."""
SAFETENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
"""NumPy's dtypes of real numbers in a safetensors file."""


def fault_of(checkpoint: Path) -> str:
    """Return the first weight of a checkpoint that is nan or infinite, as a clause; empty if all are finite.

    Weights are all tensors: those of networks, normalisers and optimisers. Of a checkpoint that is a single JSON file,
    they are all its numbers, but one outside of lists may be infinite, as the best return so far is at first. An
    additive mask, which has nothing but 0 and -inf, is finite. So is a file of another format, and one that cannot be
    read, of which nothing is known.

    Args:
        checkpoint: A file, or a folder of files.
    """
    if checkpoint.is_dir():
        faults = ((path, _fault_of(path, files.stamp(path), is_part=True)) for path in sorted(files_below(checkpoint)))
        return next((f"{fault} in {path.relative_to(checkpoint)}" for path, fault in faults if fault), "")
    return _fault_of(checkpoint, files.stamp(checkpoint), is_part=False)


@functools.lru_cache(MOST_KEPT)
def _fault_of(path: Path, stamp: str, *, is_part: bool) -> str:
    """Return the fault of a file, whose ``stamp`` changes when it is written."""
    if not stamp:
        return ""
    try:
        with files.open_regular(path) as file:
            for name, values in _tensors(path, file, is_part=is_part):
                if fault := _fault(name, values):
                    return fault
    except UNREADABLE:
        return ""
    return ""


def _tensors(path: Path, file: BinaryIO, *, is_part: bool) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and the numbers of each tensor in a file."""
    import numpy as np

    if path.suffix == ".json":
        if not is_part:
            numbers = torch_file.leaves(json.loads(file.read(files.LARGEST_BYTES)))
            floats = ((name, value) for name, value in numbers if isinstance(value, float))
            yield from ((name, np.array(value)) for name, value in floats if not _is_initial(name, value))
    elif path.suffix == ".safetensors":
        yield from _of_safetensors(file)
    elif path.suffix == ".npz":
        with np.load(file, allow_pickle=False) as arrays:
            yield from ((name, arrays[name]) for name in arrays.files)
    elif file.read(2) == b"PK":
        yield from torch_file.tensors_of(file)


def _is_initial(name: str, value: float) -> bool:
    """Return whether a number in JSON is infinite by design, as a best return is before the first one.

    Weights are numbers in lists. This one has a name of its own.
    """
    return math.isinf(value) and not name.rpartition(".")[2].isdigit()


def _of_safetensors(file: BinaryIO) -> Iterator[tuple[str, np.ndarray]]:
    import numpy as np

    length = int.from_bytes(file.read(8), "little")
    if length > files.LARGEST_BYTES:
        return
    header = json.loads(file.read(length))
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] not in SAFETENSORS:
            continue
        begin, end = entry["data_offsets"]
        file.seek(8 + length + begin)
        values = np.frombuffer(file.read(end - begin), SAFETENSORS[entry["dtype"]])
        is_upper_half = entry["dtype"] == "BF16"
        yield name, (values.astype(np.uint32) << 16).view(np.float32) if is_upper_half else values


def _fault(name: str, values: np.ndarray) -> str:
    """Return a clause about the first number of an array that is not finite; empty if there is none."""
    import numpy as np

    if values.dtype.kind not in "fc":
        return ""
    wrong = ~np.isfinite(values)
    if not wrong.any() or _is_mask(values, wrong):
        return ""
    count, place = int(wrong.sum()), int(np.argmax(wrong.reshape(-1)))
    value = values.reshape(-1)[place]
    if values.size == 1:
        return f"{name} is {value}"
    return f"{name} is not finite in {count} of {values.size} values, first {value} at index {place}"


def is_faulty(values: np.ndarray) -> bool:
    """Return whether an array has a number that is nan or infinite, and is no additive mask."""
    return _fault("", values) != ""


def _is_mask(values: np.ndarray, wrong: np.ndarray) -> bool:
    """Return whether an array has 0 where attention is allowed, and -inf everywhere else."""
    import numpy as np

    if values.ndim < 2 or wrong.all() or values.dtype.kind != "f":
        return False
    return bool(np.isneginf(values[wrong]).all() and (values[~wrong] == 0).all())
