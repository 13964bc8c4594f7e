"""Files of a policy as its users have them: exports, and checkpoints of another machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

FOREIGN_GPU = "cuda:63"
"""Device of a checkpoint's tensors that no machine has, as torch writes it into the file."""


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

    state = torch.load(checkpoint, map_location="cpu", weights_only=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.serialization, "location_tag", lambda _: FOREIGN_GPU)
        torch.save(state, checkpoint)
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on"):
        torch.load(checkpoint, weights_only=False)
