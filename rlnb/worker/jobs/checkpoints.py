"""Checkpoints, for every backend: vetting, complete writes, tensors, random numbers, and removal of old ones."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from rlnb.contracts.libraries import Library
from rlnb.errors import RlnbError
from rlnb.records.checkpoints import OLDER, REMOVED, TENSORS, Save, append_save, companions_of, is_whole_file, put_back
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.records.record import RunRecord
from rlnb.storage import entries, files
from rlnb.storage.entries import files_below, walk

if TYPE_CHECKING:
    import torch

TORCH_BEGINS = (b"P", b"\x80")
"""First byte of a file from ``torch.save``: a zip archive (PK), or, before torch 1.6, a pickle."""
PART = ".part-"
"""Beginning of the name of a file or folder that is not complete yet."""
PLAIN = (".json", ".yaml", ".txt", *TENSORS)
"""Suffixes of files that are read without running code: text, and tensors; see :func:`vet_tensors`."""

_training: JobDir | None = None
"""Job whose checkpoints are recorded; None while none are."""


def vet_checkpoint(checkpoint: Path, trust: bool) -> None:
    """Refuse a checkpoint that holds more than tensors, numbers, strings and their containers.

    The libraries unpickle any file, which runs the code in it. Of a checkpoint that is a folder, every file is checked
    but those that are text or tensors by their names: ``.json``, ``.yaml``, ``.txt``, ``.npz`` and ``.safetensors``.

    Args:
        checkpoint: A file written by ``torch.save``, a ``.npz`` or ``.safetensors`` file, or a folder of files.
        trust: Whether the user vouches for the file's origin. If so, its content is not checked.

    Raises:
        RlnbError: The path is neither a regular file nor a folder with files, torch did not write the file, or its
            weights-only reader refuses the file and ``trust`` is False; or a ``.npz`` or ``.safetensors`` file is not
            complete.
    """
    if checkpoint.is_dir():
        if not (paths := list(_files_of(checkpoint))):
            raise RlnbError(f"{checkpoint} is not a checkpoint: the folder has no files.")
        for path in paths:
            if path.suffix not in PLAIN:
                vet_checkpoint(path, trust)
        return
    if checkpoint.suffix in TENSORS:
        if not is_whole_file(checkpoint):
            raise RlnbError(f"{checkpoint} is not a checkpoint: it is not a complete {checkpoint.suffix} file.")
        return
    try:
        with files.open_regular(checkpoint) as file:
            begin = file.read(1)
    except RlnbError:
        raise
    except OSError as exc:  # such as a link that leads to itself
        raise RlnbError(f"{checkpoint} is not a checkpoint: {exc.strerror or exc}.") from exc
    if begin not in TORCH_BEGINS:
        raise RlnbError(f"{checkpoint} is not a checkpoint: torch.save did not write it.")
    if trust:
        return
    import numpy as np
    import torch

    # NumPy scalars are harmless, and RL-Games saves the best reward as one.
    scalar = np.float32(0).__reduce__()[0]  # the function that the pickle of a scalar calls
    numbers: list[Any] = [scalar, np.dtype, np.dtypes.Float32DType, np.dtypes.Float64DType]
    try:
        with torch.serialization.safe_globals(numbers):
            torch.load(checkpoint, map_location="cpu", weights_only=True)
    except Exception as exc:
        raise RlnbError(
            f"{checkpoint} holds more than weights and is not loaded: {exc}\n"
            "If you know where it comes from, pass trust=True."
        ) from exc


def _files_of(folder: Path) -> Iterator[Path]:
    """Yield all files below a folder and below the folders to which links in it lead.

    All of them: :func:`files_below` stops after some hundred folders, and the library may read the others.

    Raises:
        RlnbError: Links lead to a folder twice, as in a circle, which would never end.
    """
    waiting, seen = [folder], set()
    while waiting:
        status = (here := waiting.pop()).stat()
        if (identity := (status.st_dev, status.st_ino)) in seen:
            raise RlnbError(f"{folder} is not a checkpoint: a link leads to a folder again, {here}. Remove the link.")
        seen.add(identity)
        for path in sorted(entries.children(here)):
            if path.is_dir():
                waiting.append(path)
            else:
                yield path


def write_whole(path: str | Path, write: Callable[[str], object]) -> Path:
    """Write a file or a folder that appears under its name only when complete and on the disk.

    The process may be killed at any time, and the machine may lose its power.

    Args:
        path: The file or folder.
        write: ``function(temporary_path)`` that writes it. The temporary path has the suffix of ``path``; a folder does
            not exist yet.
    """
    path, start_s = Path(path), time.perf_counter()
    part, older = path.with_name(f"{PART}{path.name}"), path.with_name(f"{OLDER}{path.name}")
    if part.is_dir():  # of a process that was killed
        entries.remove_tree(part)
    if older.is_dir():
        put_back(path.parent)
    write(str(part))
    size = sum(map(_sync, (*files_below(part), part) if part.is_dir() else (part,)))
    if path.is_dir():  # a folder cannot be replaced in one step
        entries.rename(path, older.name)
    entries.rename(part, path.name)
    entries.remove_tree(older, ignore_errors=True)
    _sync(path.parent)
    if _training is not None:
        duration_s = time.perf_counter() - start_s
        append_save(_training, Save(file=path.name, end_s=time.time(), duration_s=duration_s, size=size))
    return path


def remove_parts(folder: Path) -> None:
    """Remove what is left of checkpoints that a killed process was writing, replacing or removing.

    A complete one that was about to be replaced gets its name back.

    Args:
        folder: Folder of a training's logs, where no other process writes.
    """
    put_back(folder)
    found = [below / name for below, folders, names in walk(folder) for name in (*folders, *names)]
    for part in (path for path in found if path.name.startswith((PART, REMOVED))):
        if part.is_dir() and not part.is_symlink():
            entries.remove_tree(part, ignore_errors=True)
        else:
            entries.remove(part)


def remove_older(paths: Iterable[Path], keep: int) -> None:
    """Remove all but the newest files, such as the replay buffers of older checkpoints.

    Args:
        paths: The files. One that does not exist any more counts as the oldest.
        keep: Number of files to keep.
    """
    newest_last = sorted(paths, key=_modified_ns)
    for path in newest_last[: max(0, len(newest_last) - keep)]:
        entries.remove(path)


def _modified_ns(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):  # removed at this moment, since keep= leaves newer ones only
        return path.stat().st_mtime_ns
    return 0


@contextlib.contextmanager
def saves_recorded(job: JobDir | None) -> Iterator[None]:
    """Record each file that :func:`write_whole` writes, with the time that it took, as a checkpoint of a training.

    Args:
        job: Job of the training; None records nothing meanwhile.
    """
    global _training
    before, _training = _training, job
    try:
        yield
    finally:
        _training = before


def _sync(path: Path) -> int:
    """Write a file, or the names in a folder, to the disk; return the bytes of the file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        status = os.fstat(descriptor)
        return status.st_size if stat.S_ISREG(status.st_mode) else 0
    finally:
        os.close(descriptor)


class RandomState(TypedDict):
    """State of torch's random number generators in a checkpoint: a plain dict, which weights-only readers accept."""

    cpu: torch.Tensor
    cuda: list[torch.Tensor]
    """That of the training's own GPU; empty after a training on a CPU."""


def random_state() -> RandomState:
    """Return the state of torch's random number generators, for a checkpoint.

    It holds the state of one GPU: torch's current one, which Isaac Lab sets to the training's. The number of visible
    GPUs may differ when the training is resumed. A process without CUDA tensors makes no CUDA context for this.
    """
    import torch

    cuda = [torch.cuda.get_rng_state()] if torch.cuda.is_initialized() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def restore_random_state(state: RandomState) -> None:
    """Restore the random number generators from a checkpoint on rank 0, which saved it.

    The other ranks keep the state of their own seed: with the same state all ranks would collect the same data.
    """
    import torch

    if os.environ.get("RANK", "0") == "0":
        torch.set_rng_state(state["cpu"].cpu())
        if state["cuda"] and torch.cuda.is_initialized():
            several = len(state["cuda"]) > 1  # rlnb 0.1.0 wrote the state of every visible GPU
            own = torch.cuda.current_device() if several else 0
            if own < len(state["cuda"]):
                torch.cuda.set_rng_state(state["cuda"][own].cpu())


# -- tensors ---------------------------------------------------------------------------------------------------------


def write_tensors(path: str | Path, tensors: Mapping[str, torch.Tensor]) -> Path:
    """Write tensors to an ``.npz`` file, which appears under its name only when complete and on the disk.

    One tensor after the other is copied from its device, so a buffer on a GPU needs little memory here. A companion of
    a checkpoint is written before the checkpoint.

    Args:
        path: The file, with the suffix ``.npz``.
        tensors: Tensors of any shape by name, of a dtype that NumPy has (not bfloat16).
    """
    import numpy as np

    def write(part: str) -> None:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
            for name, tensor in tensors.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, tensor.detach().cpu().numpy(), allow_pickle=False)

    return write_whole(path, write)


def read_tensors(path: str | Path, device: str = "cpu") -> dict[str, torch.Tensor]:
    """Return the tensors that :func:`write_tensors` wrote.

    Args:
        path: The file.
        device: Device of the tensors.

    Raises:
        RlnbError: The file is not an ``.npz`` file, or holds more than numbers.
        OSError: The file does not exist, or cannot be read.
    """
    import numpy as np
    import torch

    vet_tensors(Path(path))
    with np.load(path, allow_pickle=False) as arrays:
        return {name: torch.from_numpy(arrays[name]).to(device) for name in arrays.files}


def vet_companions(checkpoint: Path, library: Library) -> None:
    """Refuse the companions of a checkpoint that hold more than numbers, which ``trust`` does not change.

    Raises:
        RlnbError: A companion is damaged, or holds Python objects.
    """
    for path in companions_of(checkpoint, library):
        if files.there(path):
            vet_tensors(path)


def vet_tensors(path: Path) -> None:
    """Refuse a file that holds more than numbers. Only the headers of its tensors are read.

    Raises:
        RlnbError: The file is no complete ``.npz`` or ``.safetensors`` file, or holds Python objects.
        OSError: The file does not exist, or cannot be read.
    """
    path.stat()  # a file that does not exist is not damaged
    fault = f"{path} is not complete, or no file of tensors."
    if not is_whole_file(path):
        raise RlnbError(fault)
    if path.suffix == ".safetensors":
        return
    try:
        name = _object_in(path)
    except zipfile.BadZipFile as exc:
        raise RlnbError(fault) from exc
    if name is not None:
        raise RlnbError(f"{path} is not loaded: {name} holds Python objects, and not only numbers.")


def _object_in(path: Path) -> str | None:
    """Return the first member of an ``.npz`` file that is not an array of numbers; None if all are."""
    import numpy as np

    with files.open_regular(path) as file, zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                try:
                    version = np.lib.format.read_magic(member)
                    read = {(1, 0): np.lib.format.read_array_header_1_0}.get(
                        version, np.lib.format.read_array_header_2_0
                    )
                    _, _, dtype = read(member)
                except ValueError:  # the member is no array
                    return name
                if dtype.hasobject:
                    return name
    return None


# -- retention -------------------------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)

EVERY_S = 10.0


@contextlib.contextmanager
def retention(job: JobDir, keep: int | None) -> Iterator[None]:
    """Keep the newest ``keep`` checkpoints and the best by reward; remove the others regularly and at the end.

    No checkpoint is removed before the training has started, since it may go on from one of them.

    Args:
        job: Job of the training.
        keep: Number of newest checkpoints to keep; None keeps all checkpoints.
    """
    if keep is None:
        yield
        return
    record, over = RunRecord(run_dir_of(job.path).path), threading.Event()

    def tidy_if_started() -> None:
        if files.there(job.started):
            tidy_checkpoints(record, keep)

    def tidy_now_and_then() -> None:
        while not over.wait(EVERY_S):
            tidy_if_started()

    thread = threading.Thread(target=tidy_now_and_then, name="rlnb-retention", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        tidy_if_started()


def tidy_checkpoints(record: RunRecord, keep: int) -> None:
    """Remove spare checkpoints. A process that is reading one keeps its open file."""
    try:
        checkpoints = record.checkpoints
        for path in checkpoints.spare(keep):
            checkpoints.delete(path)
    except (OSError, RlnbError) as exc:  # a failed removal must not end a training
        logger.warning("spare checkpoints of %s were not removed: %s", record.id, exc)
