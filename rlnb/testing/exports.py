"""Exported policies, run on the recorded observations of the policy that they have to act like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlnb.testing.files import run_export

TOLERANCE = 1e-5
"""Allowed difference between an action of a policy and of its export, relative for actions larger than 1.

The sums of two runtimes differ in their last bits, which weigh more in larger numbers.
"""
BATCHES = (1, 64, 1000)
"""Numbers of rows that a feed-forward export takes at once."""
Step = Callable[[dict[str, np.ndarray], np.ndarray], np.ndarray]
"""Function from the inputs of a step and the envs whose episode has just ended, to actions."""


def assert_exported(
    name: str, path: Path, inputs: Mapping[str, np.ndarray], actions: np.ndarray, ended: np.ndarray
) -> None:
    """Assert that an export gives the actions of the policy, in any batch size and over whole episodes.

    Args:
        name: ``"torchscript"`` or ``"onnx"``.
        path: File of the export.
        inputs: Observations by the name of the file's input, in the file's order, each of shape (steps, envs, ...).
        actions: Actions of the policy, shape (steps, envs, action_dim).
        ended: Whether an episode ended in each step, shape (steps, envs), bool.
    """
    if keeps_state(name, path, len(inputs)):
        for envs in sorted({1, actions.shape[1]}):
            some = {key: values[:, :envs] for key, values in inputs.items()}
            _compare(path, replay(name, path, some, ended[:, :envs]), actions[:, :envs])
        return
    rows = {key: values.reshape(-1, *values.shape[2:]) for key, values in inputs.items()}
    expected = actions.reshape(-1, actions.shape[-1])
    for count in BATCHES:
        some = {key: values[:count] for key, values in rows.items()}
        _compare(path, run_export(name, path, some), expected[:count])


def _compare(path: Path, exported: np.ndarray, actions: np.ndarray) -> None:
    """Assert that actions are equal. The first dimension counts rows, or the steps of a recurrent policy."""
    assert exported.shape == actions.shape, (
        f"{path.name} gives actions of shape {exported.shape} instead of {actions.shape}. Keep the number of rows free."
    )
    relative = np.abs(exported - actions) / np.maximum(1.0, np.abs(actions))
    wrong = relative.reshape(len(actions), -1).max(axis=1) > TOLERANCE
    if not wrong.any():
        return
    largest = float(np.abs(exported - actions).max())
    text = f"The actions of {path.name} differ from the policy's by up to {largest:.2g}. "
    first = int(wrong.argmax())
    if first and actions.ndim == 3:
        text += f"The first {first} steps are equal: pass the recurrent state on, and reset it where an episode ends."
    else:
        text += "Export the policy in eval mode with its normaliser, and with the scale and clip of its actions."
    raise AssertionError(text)


def keeps_state(name: str, path: Path, inputs: int) -> bool:
    """Return whether an export is of a recurrent policy: it has a method ``reset``, or further inputs.

    Args:
        name: ``"torchscript"`` or ``"onnx"``.
        path: File of the export.
        inputs: Number of inputs that are observations.
    """
    if name == "torchscript":
        import torch

        return hasattr(torch.jit.load(str(path)), "reset")
    import onnxruntime

    return len(onnxruntime.InferenceSession(str(path)).get_inputs()) > inputs


def replay(name: str, path: Path, inputs: Mapping[str, np.ndarray], ended: np.ndarray) -> np.ndarray:
    """Return the actions, shape (steps, envs, action_dim), of a recurrent export for steps in their order.

    The state starts from zeros, and is zeros again after the end of an episode.

    Args:
        name: ``"torchscript"`` or ``"onnx"``.
        path: File of the export.
        inputs: Observations by the name of the input, each of shape (steps, envs, ...).
        ended: Whether an episode ended in each step, shape (steps, envs), bool.
    """
    envs = ended.shape[1]
    if name == "torchscript":
        # The file holds the state of one env.
        columns = [_replayed(_script(path), inputs, ended, slice(env, env + 1)) for env in range(envs)]
        return np.concatenate(columns, axis=1)
    return _replayed(_session(path, inputs, envs), inputs, ended, slice(0, envs))


def _replayed(step: Step, inputs: Mapping[str, np.ndarray], ended: np.ndarray, envs: slice) -> np.ndarray:
    fresh = np.ones_like(ended[0, envs])
    rows = []
    for number in range(len(ended)):
        rows.append(step({name: values[number, envs] for name, values in inputs.items()}, fresh))
        fresh = ended[number, envs]
    return np.stack(rows)


def _script(path: Path) -> Step:
    import torch

    module = torch.jit.load(str(path))

    def step(inputs: dict[str, np.ndarray], fresh: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            if fresh[0]:
                module.reset()
            return module(*map(torch.from_numpy, inputs.values())).numpy().copy()  # type: ignore[no-any-return]

    return step


def _session(path: Path, observations: Mapping[str, np.ndarray], envs: int) -> Step:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    sources: list[Any] = [source for source in session.get_inputs() if source.name not in observations]
    shapes = [[size if isinstance(size, int) else envs for size in source.shape] for source in sources]
    state = {source.name: np.zeros(shape, np.float32) for source, shape in zip(sources, shapes, strict=True)}

    def step(inputs: dict[str, np.ndarray], fresh: np.ndarray) -> np.ndarray:
        for values in state.values():
            values[:, fresh] = 0.0
        actions, *after = session.run(None, {**inputs, **state})
        state.update(zip(state, after, strict=True))
        return actions  # type: ignore[no-any-return]

    return step
