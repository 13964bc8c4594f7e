"""Files of a policy as its users have them: exports, and checkpoints of another machine."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from rlnb.records.checkpoint_files import TENSORS, files_of

FOREIGN_GPU = "cuda:63"
"""Device of a checkpoint's tensors that no machine has, as torch writes it into the file."""
PICKLED = (".pt", ".pth", ".bin", ".ckpt")
"""Suffixes of the files of ``torch.save`` in a checkpoint that is a folder. Its other files are text or tensors."""


def run_export(name: str, path: Path, observations: np.ndarray | Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the actions, shape (n, action_dim), of a feed-forward policy in a format.

    Args:
        name: ``"torchscript"`` or ``"onnx"``.
        path: File of the policy.
        observations: Observations, shape (n, obs_dim). For a policy of several observation groups, such arrays by the
            name of the file's input, in the file's order.
    """
    groups = [*observations.values()] if isinstance(observations, Mapping) else [observations]
    if name == "torchscript":
        import torch

        with torch.no_grad():
            return torch.jit.load(str(path))(*map(torch.from_numpy, groups)).numpy()  # type: ignore[no-any-return]
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    if not isinstance(observations, Mapping):
        (source,) = session.get_inputs()
        observations = {source.name: observations}
    return session.run(None, dict(observations))[0]  # type: ignore[no-any-return]


def write_as_on_gpu(checkpoint: Path) -> None:
    """Write a checkpoint again with a GPU that this machine lacks as the device of all its tensors.

    A reader that does not choose the device fails, as it does with a checkpoint of another machine's GPU.
    """
    import torch

    for path in _pickled(checkpoint):
        state = torch.load(path, map_location="cpu", weights_only=False)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.serialization, "location_tag", lambda _: FOREIGN_GPU)
            torch.save(state, path)
        with pytest.raises(RuntimeError, match="Attempting to deserialize object on"):
            torch.load(path, weights_only=False)


class _Code:
    """An object whose pickle makes a file when it is read."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return (Path.touch, (self._trace,))


def write_with_code(checkpoint: Path, folder: Path) -> tuple[Path, Path]:
    """Copy a checkpoint, with code in the files that ``torch.save`` wrote. Skip the test if it has no such file.

    Args:
        checkpoint: The checkpoint, a file or a folder.
        folder: Existing folder for the copy.

    Returns:
        The copy, and the file that exists once the code was executed.
    """
    paths = _pickled(checkpoint)
    if not paths:
        pytest.skip(f"{checkpoint.name} has only text and tensors, which run no code")
    copy, trace = folder / checkpoint.name, folder / "executed"
    if checkpoint.is_dir():
        shutil.copytree(checkpoint, copy)
    for path in paths:
        (copy / path.relative_to(checkpoint)).write_bytes(pickle.dumps(_Code(trace)))
    return copy, trace


def _pickled(checkpoint: Path) -> list[Path]:
    """Return the files of a checkpoint that a library unpickles; those of a checkpoint of one file by its suffix."""
    if not checkpoint.is_dir():
        return [] if checkpoint.suffix in TENSORS else [checkpoint]
    return [path for path in files_of(checkpoint) if path.suffix in PICKLED]
