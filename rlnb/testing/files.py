"""Files of a policy as its users have them: exports, and checkpoints of another machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

FOREIGN_GPU = "cuda:63"
"""Device of a checkpoint's tensors that no machine has, as torch writes it into the file."""


def run_export(name: str, path: Path, observations: np.ndarray) -> np.ndarray:
    """Return the actions, shape (n, action_dim), of a policy in a format for observations, shape (n, obs_dim)."""
    if name == "torchscript":
        import torch

        with torch.no_grad():
            return torch.jit.load(str(path))(torch.from_numpy(observations)).numpy()  # type: ignore[no-any-return]
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    (source,) = session.get_inputs()
    return session.run(None, {source.name: observations})[0]  # type: ignore[no-any-return]


def write_as_on_gpu(checkpoint: Path) -> None:
    """Write a checkpoint again with a GPU that this machine lacks as the device of all its tensors.

    A reader that does not choose the device fails, as it does with a checkpoint of another machine's GPU.
    """
    import torch

    state = torch.load(checkpoint, map_location="cpu", weights_only=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.serialization, "location_tag", lambda _: FOREIGN_GPU)
        torch.save(state, checkpoint)
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on"):
        torch.load(checkpoint, weights_only=False)
