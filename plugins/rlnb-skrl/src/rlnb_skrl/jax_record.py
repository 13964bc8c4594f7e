"""The recorder of a skrl agent in JAX. Its checkpoints restore everything.

skrl's own checkpoints hold the optimisers as they were before the first step, and skrl loads none of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import flax
import jax
import numpy as np
import torch
from skrl.resources.preprocessors.jax import RunningStandardScaler

from rlnb.backend import TrainContext
from rlnb_skrl.part import Part
from rlnb_skrl.record import Recorder

RATE = "_learning_rate"
"""How the names of an agent's learning rates end."""


class NumpyState(TypedDict):
    """NumPy's random numbers (MT19937) in a checkpoint."""

    key: torch.Tensor
    """Shape (624,), int64: torch's weights-only reader takes no unsigned integers of NumPy."""
    pos: int


class JaxRecorder(Recorder):
    """Stands between skrl's trainer and its agent, in JAX.

    A checkpoint is written by ``torch.save``: the agent's trees of arrays as dicts of tensors, which are read again
    without running any code. skrl's are pickles.
    """

    def complete(self) -> None:
        """Take over the agent's checkpoints, and keep values that its metrics need."""
        agent = self._agent
        agent.save, agent.load = self.save, self.load
        self._stddev: Any = None
        act, record_transition = agent.act, agent.record_transition

        def act_and_keep_stddev(*args: Any, **others: Any) -> Any:
            actions, outputs = act(*args, **others)
            self._stddev = outputs.get("stddev")
            return actions, outputs

        def record_and_log(*, infos: Mapping[str, Any], **others: Any) -> None:
            record_transition(infos=infos, **others)
            # skrl's trainer does this in PyTorch only.
            for name, value in infos.get("log", {}).items():
                if isinstance(value, torch.Tensor) and value.numel() == 1:
                    agent.track_data(name if "/" in name else f"Info / {name}", value.item())

        agent.act, agent.record_transition = act_and_keep_stddev, record_and_log

    def save(self, path: str) -> None:
        """Write all that resuming takes."""
        state = {name: _tensors(_tree(module)) for name, module in self._current().items()}
        rates = {name: float(rate) for name, rate in vars(self._agent).items() if name.endswith(RATE)}
        torch.save(
            {**state, "learning_rates": rates, "numpy": _numpy_state(), "rlnb": self.progress.state_dict()}, path
        )

    def load(self, path: str) -> None:
        """Go on from a checkpoint."""
        state = self._load(Path(path), weights_only=False)
        for name, rate in state["learning_rates"].items():
            setattr(self._agent, name, rate)
        if (
            os.environ.get("RANK", "0") == "0"
        ):  # the others keep their own: with equal numbers all ranks would do the same
            numpy_state: NumpyState = state["numpy"]
            key = numpy_state["key"].numpy().astype(np.uint32)
            np.random.set_state({"bit_generator": "MT19937", "state": {"key": key, "pos": numpy_state["pos"]}})
        self.progress.load_state_dict(state["rlnb"])

    def load_weights(self, checkpoint: Path) -> None:
        """Load the models and preprocessors of a checkpoint, neither optimisers nor counters."""
        self._load(checkpoint, weights_only=True)

    def pool_statistics(self, ctx: TrainContext) -> None:
        """Have the preprocessors become those of all data; leave out the sums over ranks in a negative control."""
        super().pool_statistics(ctx)
        if not ctx.synchronised:
            for model in self._agent.models.values():
                model.reduce_parameters = lambda tree: tree

    def pool(self, part: Part, ctx: TrainContext) -> None:
        """Make the statistics of the preprocessors those of all ranks, over torch's process group."""
        for module in part.modules.values():
            if isinstance(module, RunningStandardScaler):
                pooled = [_tensors(value).to(ctx.device) for value in (module.running_mean, module.running_variance)]
                ctx.pool(*pooled)
                module.running_mean, module.running_variance = (jax.numpy.asarray(one.cpu().numpy()) for one in pooled)

    def modules(self) -> list[torch.nn.Module]:
        """Return the trained values: models as parameters, preprocessors as buffers."""
        mirror = torch.nn.Module()
        for name, module in self._current().items():
            for index, leaf in enumerate(jax.tree.leaves(_tree(module))):
                if name in self._agent.models:
                    mirror.register_parameter(f"{name}_{index}", torch.nn.Parameter(_tensors(leaf)))
                elif not _is_optimizer(module):
                    mirror.register_buffer(f"{name}_{index}", _tensors(leaf))
        return [mirror]

    def entropy(self, part: Part) -> float | None:
        """Return the entropy of the last actions; None for a policy without."""
        return None if self._stddev is None else float(part.policy.get_entropy(self._stddev, role="policy").mean())

    def _current(self) -> dict[str, Any]:
        """Return the agent's modules by name: each step replaces an optimiser, and skrl's own dict keeps the first."""
        return {name: getattr(self._agent, name, module) for name, module in self._agent.checkpoint_modules.items()}

    def _load(self, checkpoint: Path, *, weights_only: bool) -> dict[str, Any]:
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
        for name, module in self._current().items():
            if not _is_optimizer(module):
                loaded = flax.serialization.from_state_dict(_tree(module), _arrays(state[name]))
                module.state_dict = module.state_dict.replace(params=loaded)
            elif not weights_only:
                loaded = flax.serialization.from_state_dict(module.state, _arrays(state[name]))
                setattr(self._agent, name, module.replace(state=loaded))
        return state


def _is_optimizer(module: Any) -> bool:
    return hasattr(module, "transformation")


def _tree(module: Any) -> Any:
    return module.state if _is_optimizer(module) else module.state_dict.params


def _tensors(tree: Any) -> Any:
    """Return a tree of arrays as nested dicts of tensors."""
    return jax.tree.map(lambda leaf: torch.from_numpy(np.array(leaf)), flax.serialization.to_state_dict(tree))


def _arrays(tensors: Any) -> Any:
    return jax.tree.map(lambda tensor: jax.numpy.asarray(tensor.numpy()), tensors)


def _numpy_state() -> NumpyState:
    """Return the state of NumPy's random numbers, by which skrl's memory in JAX picks its batches."""
    state = np.random.get_state(legacy=False)["state"]
    return {"key": torch.from_numpy(state["key"].astype(np.int64)), "pos": int(state["pos"])}
