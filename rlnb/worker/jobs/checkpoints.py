"""Checkpoints, for every library's backend: vetted, written whole, with the state of random numbers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from rlnb.errors import RlnbError

if TYPE_CHECKING:
    import torch

TORCH_BEGINS = (b"P", b"\x80")
"""First bytes of a file of ``torch.save``: of an archive (PK), or, before torch 1.6, of a pickle."""


def vet_checkpoint(checkpoint: Path, trust: bool) -> None:
    """Refuse a checkpoint that holds more than tensors, numbers, strings and their containers.

    The libraries unpickle whatever they are given, which runs any code that a file brings.

    Args:
        checkpoint: A file written by ``torch.save``.
        trust: Whether the user vouches for its origin; then nothing is checked.

    Raises:
        RlnbError: torch has not written it; or its weights-only reader refuses it, and nobody vouches for it.
    """
    with open(checkpoint, "rb") as file:
        if file.read(1) not in TORCH_BEGINS:
            raise RlnbError(f"{checkpoint} is no checkpoint: torch.save writes no such file.")
    if trust:
        return
    import numpy as np
    import torch

    # Numbers of numpy are harmless, and RL-Games saves the best reward as one.
    scalar = np.float32(0).__reduce__()[0]  # the function that such a pickle calls
    numbers: list[Any] = [scalar, np.dtype, np.dtypes.Float32DType, np.dtypes.Float64DType]
    try:
        with torch.serialization.safe_globals(numbers):
            torch.load(checkpoint, map_location="cpu", weights_only=True)
    except Exception as exc:
        raise RlnbError(
            f"{checkpoint} holds more than weights and is not loaded: {exc}\n"
            "If you know where it comes from, pass trust=True."
        ) from exc


def write_whole(path: str | Path, write: Callable[[str], object]) -> Path:
    """Have a file appear under its name only once it is whole: a kill may come at any time.

    Args:
        path: The file.
        write: ``function(temporary_path)`` that writes it; the temporary path ends as the file does.
    """
    path = Path(path)
    part = path.with_name(f".part-{path.name}")
    write(str(part))
    os.replace(part, path)
    return path


class RandomState(TypedDict):
    """The state of torch's random numbers, as a checkpoint holds it: weights-only readers take plain dicts alone."""

    cpu: torch.Tensor
    cuda: list[torch.Tensor]
    """One for each GPU that the process sees."""


def random_state() -> RandomState:
    """Return the state of torch's random numbers, for a checkpoint."""
    import torch

    return {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []}


def restore_random_state(state: RandomState) -> None:
    """Go on with the random numbers of a checkpoint, on rank 0, whose they were.

    The other ranks keep those of their own seed: with the same numbers all ranks would collect the same data.
    """
    import torch

    if os.environ.get("RANK", "0") == "0":
        torch.set_rng_state(state["cpu"].cpu())
        if state["cuda"] and len(state["cuda"]) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all([one.cpu() for one in state["cuda"]])
