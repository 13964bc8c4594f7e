"""The recorder of a skrl agent in JAX, whose checkpoints restore the full training state.

skrl's own JAX checkpoints contain the optimisers' state from before the first step, and skrl does not load it.
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
"""Suffix of the names of an agent's learning rates."""


class NumpyState(TypedDict):
    """NumPy's random state (MT19937) in a checkpoint."""

    key: torch.Tensor
    """Shape (624,), int64, because torch's weights-only reader refuses NumPy's unsigned integers."""
    pos: int


class JaxRecorder(Recorder):
    """The :class:`Recorder` for JAX.

    It writes a checkpoint with ``torch.save``, converting the agent's trees of arrays to dicts of tensors, which can
    be loaded without running code. skrl's own checkpoints are pickles.
    """

    def complete(self) -> None:
        """Replace the agent's methods for checkpoints, and record values needed for metrics."""
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
            # skrl's trainer logs these values only in PyTorch.
            for name, value in infos.get("log", {}).items():
                if isinstance(value, torch.Tensor) and value.numel() == 1:
                    agent.track_data(name if "/" in name else f"Info / {name}", value.item())

        agent.act, agent.record_transition = act_and_keep_stddev, record_and_log

    def save(self, path: str) -> None:
        """Write the full training state to a checkpoint."""
        state = {name: _tensors(_tree(module)) for name, module in self._current().items()}
        rates = {name: float(rate) for name, rate in vars(self._agent).items() if name.endswith(RATE)}
        torch.save(
            {**state, "learning_rates": rates, "numpy": _numpy_state(), "rlnb": self.progress.state_dict()}, path
        )

    def load(self, path: str) -> None:
        """Restore the full training state from a checkpoint."""
        state = self._load(Path(path), weights_only=False)
        for name, rate in state["learning_rates"].items():
            setattr(self._agent, name, rate)
        # Other ranks keep their own random state; with equal states, all ranks would draw the same numbers.
        if os.environ.get("RANK", "0") == "0":
            numpy_state: NumpyState = state["numpy"]
            key = numpy_state["key"].numpy().astype(np.uint32)
            np.random.set_state({"bit_generator": "MT19937", "state": {"key": key, "pos": numpy_state["pos"]}})
        self.progress.load_state_dict(state["rlnb"])

    def load_weights(self, checkpoint: Path) -> None:
        """Load the models and preprocessors of a checkpoint, but not the optimisers and counters."""
        self._load(checkpoint, weights_only=True)

    def pool_statistics(self, ctx: TrainContext) -> None:
        """Pool the preprocessors' statistics over all ranks; in a negative control, turn off the gradients' sums."""
        super().pool_statistics(ctx)
        if not ctx.synchronised:
            for model in self._agent.models.values():
                model.reduce_parameters = lambda tree: tree

    def pool(self, part: Part, ctx: TrainContext) -> None:
        """Pool the statistics of a part's preprocessors over all ranks, through torch's process group."""
        for module in part.modules.values():
            if isinstance(module, RunningStandardScaler):
                pooled = [_tensors(value).to(ctx.device) for value in (module.running_mean, module.running_variance)]
                ctx.pool(*pooled)
                module.running_mean, module.running_variance = (jax.numpy.asarray(one.cpu().numpy()) for one in pooled)

    def modules(self) -> list[torch.nn.Module]:
        """Return a module of the trained values: models as parameters, preprocessors as buffers."""
        mirror = torch.nn.Module()
        for name, module in self._current().items():
            for index, leaf in enumerate(jax.tree.leaves(_tree(module))):
                if name in self._agent.models:
                    mirror.register_parameter(f"{name}_{index}", torch.nn.Parameter(_tensors(leaf)))
                elif not _is_optimizer(module):
                    mirror.register_buffer(f"{name}_{index}", _tensors(leaf))
        return [mirror]

    def entropy(self, part: Part) -> float | None:
        """Return the entropy of the last actions; None if the policy has none that follows from the deviation."""
        return (
            None
            if self._stddev is None or not self.has_std(part)
            else float(part.policy.get_entropy(self._stddev, role="policy").mean())
        )

    def _current(self) -> dict[str, Any]:
        """Return the agent's modules by name. Each step replaces an optimiser, but skrl's own dict keeps the first."""
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
    """Return NumPy's random state, from which skrl's memory in JAX samples its batches."""
    state = np.random.get_state(legacy=False)["state"]
    return {"key": torch.from_numpy(state["key"].astype(np.int64)), "pos": int(state["pos"])}
