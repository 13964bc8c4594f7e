"""Whether the numbers in a checkpoint are finite, found without torch and without running code in the file."""

from __future__ import annotations

import functools
import json
import math
import pickletools
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

from rlnb.errors import RlnbError
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
            numbers = leaves(json.loads(file.read(files.LARGEST_BYTES)))
            floats = ((name, value) for name, value in numbers if isinstance(value, float))
            yield from ((name, np.array(value)) for name, value in floats if not _is_initial(name, value))
    elif path.suffix == ".safetensors":
        yield from _of_safetensors(file)
    elif path.suffix == ".npz":
        with np.load(file, allow_pickle=False) as arrays:
            yield from ((name, arrays[name]) for name in arrays.files)
    elif file.read(2) == b"PK":
        yield from tensors_of(file)


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


# -- files of torch.save ---------------------------------------------------------------------------------------------
# The format is a zip archive: ``data.pkl`` has the names, shapes and places of the tensors, ``data/<key>`` the
# numbers. https://docs.pytorch.org/docs/stable/notes/serialization.html describes it. The pickle is read opcode by
# opcode (:mod:`pickletools`). A call in it is looked up here by its name and never made.


DTYPES = {
    "torch FloatStorage": "f4",
    "torch DoubleStorage": "f8",
    "torch HalfStorage": "f2",
    "torch BFloat16Storage": "u2",
    "torch ComplexFloatStorage": "c8",
    "torch ComplexDoubleStorage": "c16",
}
"""NumPy's dtype of each storage that holds real or complex numbers. Those of bfloat16 are the upper half of a f4."""
BFLOAT16 = "torch BFloat16Storage"
TENSORS = ("torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2")
PARAMETERS = ("torch._utils _rebuild_parameter", "torch._utils _rebuild_parameter_with_state")
Value: TypeAlias = Any


class Name(NamedTuple):
    """The name of a class or function in a pickle."""

    name: str
    """Module and name, with a space between them."""


class Storage(NamedTuple):
    """The numbers of one or more tensors."""

    kind: str
    """Name of its class."""
    key: str
    """Name of its file in the archive."""


class Tensor(NamedTuple):
    """A view of a storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In numbers, not in bytes."""


def tensors_of(file: BinaryIO) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and the numbers of each tensor of real or complex numbers.

    Args:
        file: A file that is a zip archive. One of another program has no tensors.

    Raises:
        ValueError: torch did not write the file, or it is damaged.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            index = next((name for name in archive.namelist() if name.endswith("/data.pkl")), None)
            if index is None:
                return
            folder = index.removesuffix("data.pkl")
            order = _read(archive, f"{folder}byteorder") if f"{folder}byteorder" in archive.namelist() else b"little"
            content = _Machine().run(_read(archive, index))
            for name, tensor in leaves(content):
                if isinstance(tensor, Tensor) and tensor.storage.kind in DTYPES:
                    data = _read(archive, f"{folder}data/{tensor.storage.key}", limit_bytes=None)
                    yield name, _numbers(tensor, data, ">" if order == b"big" else "<")
    except (zipfile.BadZipFile, LookupError, TypeError, AttributeError, OverflowError, NotImplementedError) as exc:
        raise ValueError(f"it is not a file of torch.save: {exc}") from exc


def leaves(value: Value, name: str = "") -> Iterator[tuple[str, Value]]:
    """Yield the values inside dicts, lists and tuples, each with the path of its keys, such as ``"actor.0.weight"``."""
    seen: set[int] = set()
    stack = [(name, value)]
    while stack:
        path, one = stack.pop()
        if isinstance(one, Tensor) or not isinstance(one, dict | list | tuple):
            yield path, one
        elif id(one) not in seen:
            seen.add(id(one))
            items = [*one.items()] if isinstance(one, dict) else [*enumerate(one)]
            stack += [(f"{path}.{key}" if path else str(key), inner) for key, inner in reversed(items)]


def _read(archive: zipfile.ZipFile, name: str, limit_bytes: int | None = files.LARGEST_BYTES) -> bytes:
    """Return a file of the archive. torch does not compress them, so it is no larger than the archive."""
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED or (limit_bytes is not None and info.file_size > limit_bytes):
        raise ValueError(f"{name} is compressed or too large")
    return archive.read(info)


def _numbers(tensor: Tensor, data: bytes, order: str) -> np.ndarray:
    import numpy as np

    storage = np.frombuffer(data, dtype=np.dtype(f"{order}{DTYPES[tensor.storage.kind]}"))
    if tensor.storage.kind == BFLOAT16:
        storage = (storage.astype(np.uint32) << 16).view(np.float32)
    lengths, strides = tensor.shape, tensor.strides
    last = tensor.offset + sum((length - 1) * stride for length, stride in zip(lengths, strides, strict=True))
    if 0 in lengths:
        return storage[:0]
    if min((tensor.offset, *lengths, *strides)) < 0 or last >= len(storage):
        raise ValueError("a tensor does not lie within its storage")
    steps = [stride * storage.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(storage[tensor.offset :], lengths, steps, writeable=False)


class _Machine:
    """Reads a pickle. Containers become dicts, lists and tuples, tensors :class:`Tensor`, other objects dicts."""

    def __init__(self) -> None:
        self._stack: list[Value] = []
        self._marks: list[int] = []
        self._memo: dict[int, Value] = {}

    def run(self, data: bytes) -> Value:
        """Return the content of a pickle.

        Raises:
            ValueError: It is damaged, or has an opcode that torch does not write.
        """
        argument: Value
        for opcode, argument, _ in pickletools.genops(data):
            name = opcode.name
            if name == "STOP":
                break
            if (step := STEPS.get(name)) is not None:
                step(self)
            elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
                self._memo[argument] = self._stack[-1]
            elif name in ("GET", "BINGET", "LONG_BINGET"):
                self._stack.append(self._memo[argument])
            elif name == "GLOBAL":
                self._stack.append(Name(argument))
            elif opcode.arg is not None and opcode.stack_before == [] and len(opcode.stack_after) == 1:
                self._stack.append(argument)  # a number, a text or bytes
            elif name not in ("PROTO", "FRAME"):
                raise ValueError(f"its pickle has the opcode {name}")
        return self._stack[-1]

    def pop(self) -> Value:
        return self._stack.pop()

    def push(self, value: Value) -> None:
        self._stack.append(value)

    def mark(self) -> None:
        self._marks.append(len(self._stack))

    def since_mark(self) -> list[Value]:
        begin = self._marks.pop()
        values, self._stack[begin:] = self._stack[begin:], []
        return values

    def several(self, count: int) -> list[Value]:
        values, self._stack[-count:] = self._stack[-count:], []
        return values

    def memoize(self) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def set_items(self, values: list[Value]) -> None:
        if isinstance(target := self._stack[-1], dict):
            target.update(_pairs(values))

    def extend(self, values: list[Value]) -> None:
        if isinstance(target := self._stack[-1], list):
            target += values

    def call(self) -> None:
        function, arguments = self.several(2)
        self.push(_called(function, arguments))

    def build(self) -> None:
        state, target = self.pop(), self._stack[-1]
        if isinstance(target, dict):
            target.update(state if isinstance(state, dict) else {"state": state})


def _called(function: Value, arguments: Value) -> Value:
    """Return the result of a call, without making it."""
    name = function.name if isinstance(function, Name) else ""
    if name in TENSORS:
        storage, offset, shape, strides = arguments[:4]
        return Tensor(storage, offset, tuple(shape), tuple(strides))
    if name in PARAMETERS:
        return arguments[0]
    if name == "collections OrderedDict":
        return dict(arguments[0]) if arguments else {}
    if name == "torch Size":
        return tuple(arguments[0])
    return {"": arguments} if arguments else {}


def _storage(value: Value) -> Value:
    """Return the storage of a persistent id, ``("storage", class, key, location, length)``."""
    return Storage(value[1].name, str(value[2])) if value[0] == "storage" and isinstance(value[1], Name) else None


def _pairs(values: list[Value]) -> dict[Value, Value]:
    return dict(zip(values[::2], values[1::2], strict=True))


STEPS: dict[str, Callable[[_Machine], object]] = {
    "MARK": _Machine.mark,
    "MEMOIZE": _Machine.memoize,
    "REDUCE": _Machine.call,
    "NEWOBJ": _Machine.call,
    "BUILD": _Machine.build,
    "POP": _Machine.pop,
    "POP_MARK": _Machine.since_mark,
    "NONE": lambda machine: machine.push(None),
    "NEWTRUE": lambda machine: machine.push(True),
    "NEWFALSE": lambda machine: machine.push(False),
    "EMPTY_DICT": lambda machine: machine.push({}),
    "EMPTY_LIST": lambda machine: machine.push([]),
    "EMPTY_TUPLE": lambda machine: machine.push(()),
    "EMPTY_SET": lambda machine: machine.push([]),
    "TUPLE": lambda machine: machine.push(tuple(machine.since_mark())),
    "TUPLE1": lambda machine: machine.push(tuple(machine.several(1))),
    "TUPLE2": lambda machine: machine.push(tuple(machine.several(2))),
    "TUPLE3": lambda machine: machine.push(tuple(machine.several(3))),
    "LIST": lambda machine: machine.push(machine.since_mark()),
    "FROZENSET": lambda machine: machine.push(machine.since_mark()),
    "DICT": lambda machine: machine.push(_pairs(machine.since_mark())),
    "SETITEM": lambda machine: machine.set_items(machine.several(2)),
    "SETITEMS": lambda machine: machine.set_items(machine.since_mark()),
    "APPEND": lambda machine: machine.extend(machine.several(1)),
    "APPENDS": lambda machine: machine.extend(machine.since_mark()),
    "ADDITEMS": lambda machine: machine.extend(machine.since_mark()),
    "STACK_GLOBAL": lambda machine: machine.push(Name(" ".join(machine.several(2)))),
    "BINPERSID": lambda machine: machine.push(_storage(machine.pop())),
    "NEWOBJ_EX": lambda machine: machine.push(_called(*machine.several(3)[:2])),
}
"""What each opcode does, if it has no argument."""
