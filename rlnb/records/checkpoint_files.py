"""The files of one checkpoint: a file, or a folder with all its files, and the companions beside it.

A companion is written before its checkpoint, so a checkpoint that exists has all of its companions.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from rlnb.contracts.libraries import STEM, Library
from rlnb.errors import RlnbError
from rlnb.records import remote, weights
from rlnb.records.layout import RunDir, is_match
from rlnb.storage import entries, files
from rlnb.storage.entries import files_below

TENSORS = (".npz", ".safetensors")
"""Suffixes of files that hold nothing but tensors."""
MOST_SEARCHED_BYTES = 2**30
"""Size up to which a companion is searched for values that are not finite. Its arrays are read into memory."""
REMOVED = ".removed-"
"""Begin of the name of a folder that is being removed."""


def checkpoints_of(run: RunDir, library: Library) -> tuple[list[Path], frozenset[Path]]:
    """Return the checkpoints of a run, oldest iteration first, and those that are not wholly on this machine.

    Args:
        run: The run.
        library: The library that wrote them.
    """
    away = remote.far_files(run)
    far = {path for path in (_owner(path, run, library) for path in away) if path is not None}
    folders = library.checkpoint_is_folder
    paths = run.checkpoints(library.checkpoint_glob, library.checkpoint_pattern, far, folders=folders)
    paths = [path for path in paths if not _is_companion(path.name, library)]
    far |= {path for path in paths if any(companion in away for companion in companions_of(path, library))}
    return paths, frozenset(far)


def newest_of(run: RunDir, library: Library) -> str | None:
    """Return the path of the newest checkpoint below the run's folder, as a result has it; None if there is none."""
    paths, _ = checkpoints_of(run, library)
    return paths[-1].relative_to(run.path).as_posix() if paths else None


def far_files_of(run: RunDir, checkpoint: Path, library: Library) -> list[Path]:
    """Return the files of a checkpoint that are only on another machine, in the order in which they are copied.

    The file with the checkpoint's own name is the last, so a checkpoint that has arrived has its companions.
    """
    away = remote.far_files(run)
    companions = [path for path in companions_of(checkpoint, library) if path in away]
    return [*companions, *sorted(path for path in away if path == checkpoint or checkpoint in path.parents)]


def files_of(checkpoint: Path) -> Iterator[Path]:
    """Yield the files of a checkpoint without its companions: itself, or all files of a folder."""
    return files_below(checkpoint) if checkpoint.is_dir() else iter([checkpoint])


def companions_of(checkpoint: Path, library: Library) -> list[Path]:
    """Return the paths of a checkpoint's companions, whether they exist or not."""
    names = (name.replace(STEM, checkpoint.stem) for name in library.checkpoint_companions)
    return [checkpoint.with_name(name) for name in names]


def folder_of(path: PurePosixPath, library: Library) -> PurePosixPath | None:
    """Return the checkpoint that is a folder and has a file in it; None if there is none.

    Args:
        path: Path of the file below the logs.
        library: The library that wrote it.
    """
    if not library.checkpoint_is_folder:
        return None
    parents = [*path.parents][-2::-1]  # without "."
    return next((parent for parent in parents if is_match(parent.as_posix(), library.checkpoint_glob)), None)


def belongs(path: PurePosixPath, library: Library) -> bool:
    """Return whether a file is part of a checkpoint, by its path below the logs."""
    if _is_companion(path.name, library) or folder_of(path, library) is not None:
        return True
    return not library.checkpoint_is_folder and is_match(path.as_posix(), library.checkpoint_glob)


def size_of(checkpoint: Path, library: Library) -> int:
    """Return the size of all files of a checkpoint, in bytes."""
    return sum(map(_size, (*files_of(checkpoint), *companions_of(checkpoint, library))))


def remove(checkpoint: Path, library: Library) -> None:
    """Remove all files of a checkpoint, and the companions last: a checkpoint that is still listed has them.

    Raises:
        OSError: A file cannot be removed.
    """
    if checkpoint.is_dir() and not checkpoint.is_symlink():
        hidden = checkpoint.with_name(f"{REMOVED}{checkpoint.name}")  # half a folder would look like a checkpoint
        entries.rename(checkpoint, hidden.name)
        entries.remove_tree(hidden)
    else:
        entries.remove(checkpoint)
    for companion in companions_of(checkpoint, library):
        entries.remove(companion)


def is_whole(checkpoint: Path, library: Library) -> bool:
    """Return whether a checkpoint and its companions are complete, as far as that shows without loading them.

    A loss of power, a full disk or a broken copy leaves an empty or a truncated file. A companion that does not exist
    was not saved.
    """
    if library.checkpoint_is_folder != checkpoint.is_dir():
        return False
    companions = (path for path in companions_of(checkpoint, library) if files.there(path))
    paths = [*files_of(checkpoint), *companions]
    return bool(paths) and all(map(is_whole_file, paths))


def fault_of(checkpoint: Path, library: Library, *, to_resume: bool = False) -> str:
    """Return why a checkpoint cannot be used, as the end of a sentence: torn, or not finite. Empty if it can.

    Args:
        checkpoint: The checkpoint.
        library: The library that wrote it.
        to_resume: Whether its companions are searched too for values that are not finite. Only a training that goes on
            reads them. The worker searches those that are larger than :data:`MOST_SEARCHED_BYTES`.
    """
    if not is_whole(checkpoint, library):
        return "is not a complete checkpoint: it is torn"
    fault = weights.fault_of(checkpoint)
    if fault or not to_resume:
        return f"is not finite: {fault}" if fault else ""
    searched = (path for path in companions_of(checkpoint, library) if _size(path) <= MOST_SEARCHED_BYTES)
    faults = ((path, weights.fault_of(path)) for path in searched)
    return next((f"is not finite: {fault} in {path.name}" for path, fault in faults if fault), "")


def is_whole_file(path: Path) -> bool:
    """Return whether a file is complete, as far as its format tells.

    ``torch.save`` and ``numpy.savez`` write a zip archive, which ends with its directory (section 4.3.6 of PKWARE's
    APPNOTE).
    """
    try:
        with files.open_regular(path) as file:
            if path.suffix == ".safetensors":
                return _is_whole_safetensors(file)
            begin = file.read(2)
            if begin == b"PK":
                return zipfile.is_zipfile(file)
        return bool(begin) and (path.suffix != ".json" or files.read_json(path) is not None)
    except (OSError, RlnbError, ValueError):
        return False


def _is_whole_safetensors(file: BinaryIO) -> bool:
    """Return whether a file is as long as its header says, which is a length, JSON, and then the tensors.

    https://huggingface.co/docs/safetensors describes the format.
    """
    length = int.from_bytes(file.read(8), "little")
    if length > files.LARGEST_BYTES:
        return False
    try:
        tensors = (entry for name, entry in json.loads(file.read(length)).items() if name != "__metadata__")
        end = max((int(entry["data_offsets"][1]) for entry in tensors), default=0)
    except (AttributeError, LookupError, TypeError):  # other JSON
        return False
    return file.seek(0, os.SEEK_END) == 8 + length + end


def _owner(path: Path, run: RunDir, library: Library) -> Path | None:
    """Return the checkpoint to which a file of a run belongs; None for a companion, and for any other file."""
    if not path.is_relative_to(run.logs):
        return None
    below = PurePosixPath(path.relative_to(run.logs))
    if (folder := folder_of(below, library)) is not None:
        return run.logs / folder
    is_own = belongs(below, library) and not _is_companion(below.name, library)
    return path if is_own else None


def _is_companion(name: str, library: Library) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern.replace(STEM, "*")) for pattern in library.checkpoint_companions)


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):  # removed at this moment in favour of a newer one
        return path.stat().st_size
    return 0
