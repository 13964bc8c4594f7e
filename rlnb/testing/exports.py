"""Exported and recorded policies, run on the observations of the policy that they have to act like."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlnb
from rlnb.records.checkpoints import TENSORS, files_of

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


# -- policies --------------------------------------------------------------------------------------------------------


LOAD_S = 300.0
"""Seconds that a simulator may take to start and load the policies."""
NUM_ENVS, STEPS = 8, 128
"""Size of a recording."""
ACT = """
import copy, dataclasses, json, sys
from pathlib import Path
import numpy as np
import torch
import rlnb
from rlnb.hooks import plugins
from rlnb.configs.agent import choice_of
from rlnb.worker.actions import joint
from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.env import environment

run, loads, path, num_envs, steps = sys.argv[1:]
manifest = rlnb.Run(Path(run)).manifest
library = plugins.library(manifest.library)
isaaclab.start(manifest.asset_root)
task = dataclasses.replace(manifest.task, num_envs=int(num_envs))
observations, arrays = None, {}


def add(name, value, to):
    if isinstance(value, dict):
        for key, part in value.items():
            add(f"{name}.{key}" if name else key, part, to)
    else:
        to.setdefault(name, []).append(value.detach().cpu().numpy().copy())


def flat(actions):
    parts = actions.values() if isinstance(actions, dict) else [actions]
    return np.concatenate([part.cpu().numpy().ravel() for part in parts])


def record(env, policy, obs):
    tape = {}
    for _ in range(int(steps)):
        add("obs", obs, tape)
        actions = policy(obs)
        add("actions", actions, tape)
        obs, *outcome, _ = env.step(actions)
        _, terminated, truncated = joint(*outcome)
        add("ended", terminated | truncated, tape)
        policy.reset(terminated | truncated)
    policy.reset(torch.ones_like(terminated))
    return {name: np.stack(values) for name, values in tape.items()}


for number, (checkpoint, seed) in enumerate(json.loads(loads)):
    opened = environment(task, library, agent=choice_of(manifest), seed=seed, device="cpu", manifest=manifest)
    with opened as (env, agent_cfg), torch.inference_mode():
        backend = plugins.load(library.backend)()
        policy = backend.load_policy(env, agent_cfg, Path(checkpoint), device="cpu", trust=False)
        own, _ = env.reset()
        observations = observations or copy.deepcopy(own)
        arrays[f"load.{number}"] = flat(policy(observations))
        if number == 0:
            policy.reset(torch.ones(int(num_envs), dtype=torch.bool))
            arrays |= record(env, policy, own)
            arrays["repeat"] = flat(policy(observations))
np.savez(path, **arrays)
"""
"""Script that loads each checkpoint in a new env with the given seed and calls the policy with the observations of the
first of these resets. The first policy also acts for a while, and is then called with these observations again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """Actions of the policies of several checkpoints, and steps of the first of them."""

    loads: Sequence[np.ndarray]
    """Actions of each policy for the same observations, all in one array."""
    repeat: np.ndarray
    """Actions of the first policy for these observations, after it has acted and was reset."""
    observations: Mapping[str, np.ndarray]
    """Observations of each step by group, or by agent, each of shape (steps, envs, ...)."""
    actions: Mapping[str, np.ndarray]
    """Actions of each step, of shape (steps, envs, action_dim), by agent; under ``""`` if there is one agent."""
    ended: np.ndarray
    """Whether an episode ended in each step, of shape (steps, envs)."""


def recorded(run: rlnb.Run, folder: Path, *loads: tuple[Path, int]) -> Recording:
    """Load policies of a run and let the first one act.

    Args:
        run: The run.
        folder: Existing folder for the recording.
        loads: A checkpoint and the seed of its env, for each policy.
    """
    path = folder / "recording.npz"
    checkpoints = json.dumps([(str(checkpoint), seed) for checkpoint, seed in loads])
    argv = [sys.executable, "-c", ACT, str(run.path), checkpoints, str(path), str(NUM_ENVS), str(STEPS)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LOAD_S)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    with np.load(path) as file:
        arrays = dict(file)
    return Recording(
        loads=[arrays[f"load.{number}"] for number in range(len(loads))],
        repeat=arrays["repeat"],
        observations=_below("obs.", arrays),
        actions=_below("actions.", arrays) or {"": arrays["actions"]},
        ended=arrays["ended"],
    )


def _below(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}


# -- files -----------------------------------------------------------------------------------------------------------


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
