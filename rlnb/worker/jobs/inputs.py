"""The policy of another run, of any library, in the env of a training."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlnb.configs.agent import choice_of
from rlnb.contracts.libraries import Backend, Policy
from rlnb.errors import RlnbError, unknown
from rlnb.hooks import plugins
from rlnb.records.layout import RunDir
from rlnb.spec import Manifest
from rlnb.storage import files
from rlnb.storage.serial import from_json
from rlnb.worker.flight.guard import refuse_not_finite
from rlnb.worker.isaac.env import configured
from rlnb.worker.isaac.spaces import env_of_spaces


def policy_of(
    run: RunDir, manifest: Manifest, name: str, env: Any, groups: Mapping[str, str], *, trust: bool
) -> Policy:
    """Return the policy of an input; see :meth:`rlnb.contracts.libraries.TrainContext.policy`.

    Args:
        run: Folder of the run that trains.
        manifest: Its manifest.
        name: Name of the input.
        env: Its env.
        groups: Names of observation groups, each with the group of ``env`` that takes its place.
        trust: Whether a file that holds more than weights may be loaded.
    """
    if name not in manifest.inputs:
        raise unknown("input", name, manifest.inputs, has="The run has")
    origin, folder = manifest.inputs[name], run.input_run(name)
    record = files.read_json(folder.manifest)
    if record is None:
        raise RlnbError(f"The input {name!r} is no policy, but a file or folder, ctx.inputs[{name!r}].")
    teacher = from_json(Manifest, record, ignore_unknown=True)
    library, source = plugins.library(teacher.library), teacher.task.source
    device, file = str(env.unwrapped.device), run.input(name, origin)
    refuse_not_finite(file)
    with _same_random_numbers(), _one_process():
        backend: Backend = plugins.new_backend(library)
        _, _, agent_cfg = configured(
            teacher.task,
            library,
            module=folder.source / Path(source).name if source else None,
            agent=choice_of(teacher),
            device=device,
        )
        try:
            policy = backend.load_policy(env_of_spaces(env, groups), agent_cfg, file, device=device, trust=trust)
        except RlnbError:
            raise
        except RuntimeError as exc:  # torch raises it for weights of other shapes
            raise RlnbError(
                f"The policy of the input {name!r}, {origin}, does not fit the observations and actions of "
                f"{manifest.task.id}: {exc}"
            ) from exc
    return _OnGroups(policy, groups) if groups else policy


class _OnGroups:
    """A policy that reads groups of observations under other names."""

    def __init__(self, policy: Policy, groups: Mapping[str, str]) -> None:
        self._policy, self._groups = policy, groups
        self.reset = policy.reset

    def __call__(self, obs: Any) -> Any:
        """Return the actions for the observation dict of the env that trains."""
        return self._policy({**obs, **{name: obs[group] for name, group in self._groups.items()}})


@contextlib.contextmanager
def _same_random_numbers() -> Iterator[None]:
    """Restore the random number generators: a library sets its seed, and draws the weights that it then replaces."""
    import numpy as np
    import torch

    state, numbers = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if torch.cuda.is_initialized() else []):
        try:
            yield
        finally:
            random.setstate(state)
            np.random.set_state(numbers)


@contextlib.contextmanager
def _one_process() -> Iterator[None]:
    """Hide the other ranks from a library, which makes its policy as in a process of its own.

    RSL-RL, for example, would start a second process group for the runner of its policy.
    """
    ranks = {name: os.environ.pop(name) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE") if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(ranks)
