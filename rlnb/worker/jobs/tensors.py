"""Tensors in files that run no code, for what a library keeps beside a checkpoint, such as a replay buffer."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.contracts.libraries import Library
from rlnb.errors import RlnbError
from rlnb.records.checkpoints import companions_of, is_whole_file
from rlnb.storage import files
from rlnb.worker.jobs.checkpoints import write_whole

if TYPE_CHECKING:
    import torch


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
