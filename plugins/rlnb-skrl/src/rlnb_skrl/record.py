"""rlnb's additions to a skrl agent, through its public methods: speed metrics, complete checkpoints, exact resuming."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import torch
from skrl.resources.preprocessors.torch import RunningStandardScaler

from rlnb.backend import RandomState, TrainContext, random_state, restore_random_state, write_whole
from rlnb_skrl.part import Part, means_over, parts


class ProgressState(TypedDict):
    """The state of :class:`Progress` in a checkpoint."""

    timestep: int
    random_state: RandomState


class Progress:
    """The part of a checkpoint that skrl leaves out: the timestep and the random state."""

    def __init__(self) -> None:
        self.timestep = 0

    def state_dict(self) -> ProgressState:
        """Return the state to save."""
        return {"timestep": self.timestep, "random_state": random_state()}

    def load_state_dict(self, state: ProgressState) -> None:
        """Restore a saved state."""
        self.timestep = int(state["timestep"])
        restore_random_state(state["random_state"])


class Recorder:
    """Wraps the methods of a skrl agent that skrl's trainer calls.

    skrl's own trainer starts every run at timestep 0, measures no speed, holds scalars back for minutes and writes
    checkpoints in place.
    """

    def __init__(self, agent: Any, horizon: int, frames_per_timestep: int) -> None:
        """Wrap an agent. A checkpoint has to be loaded afterwards.

        Args:
            agent: A skrl agent.
            horizon: Timesteps per iteration.
            frames_per_timestep: Number of envs on all ranks together.
        """
        self._agent, self._horizon, self._frames = agent, horizon, frames_per_timestep
        self.progress = Progress()
        self._parts = parts(agent)
        self.complete()
        self._write, agent.write_tracking_data = agent.write_tracking_data, self._write_tracking_data
        agent.write_checkpoint = self._write_checkpoint
        self._start_s = time.monotonic()
        self.iteration_finished: Callable[[Callable[[], object]], None] = lambda save: None

    def complete(self) -> None:
        """Add the state that skrl leaves out to the agent's checkpoints."""
        self._parts[0].modules["rlnb"] = self.progress
        for part in self._parts:
            if part.scheduler is not None:
                part.modules["scheduler"] = part.scheduler

    def load_weights(self, checkpoint: Path) -> None:
        """Load the models and preprocessors of a checkpoint, but not the optimisers and counters."""
        others = []
        for part in self._parts:
            others.append({name: one for name, one in part.modules.items() if not isinstance(one, torch.nn.Module)})
            for name in others[-1]:
                del part.modules[name]
        self._agent.load(str(checkpoint))
        for part, modules in zip(self._parts, others, strict=True):
            part.modules.update(modules)

    def save(self, path: str) -> None:
        """Write a checkpoint of the present state, with its companions beside it."""
        self.write_companions(Path(path))
        self._agent.save(path)

    def write_companions(self, checkpoint: Path) -> None:
        """Write what belongs beside a checkpoint. On-policy algorithms have nothing there."""

    def load_companions(self, checkpoint: Path) -> None:
        """Load what lies beside a checkpoint."""

    def remove_companions(self, checkpoint: Path) -> None:
        """Remove what lies beside older checkpoints of the training and is not needed any more."""

    def values(self) -> dict[str, float]:
        """Return further values to log at the end of an iteration, by tag."""
        return {}

    def pool_statistics(self, ctx: TrainContext) -> None:
        """Pool the preprocessors' statistics, which skrl keeps per rank, over all ranks after each update."""
        update = self._agent.update

        def update_and_pool(*, uid: str = "", **arguments: Any) -> None:
            """Update one agent; skrl passes its name if there are several."""
            update(**arguments, **({"uid": uid} if uid else {}))
            self.pool(next(part for part in self._parts if part.name == uid), ctx)

        self._agent.update = update_and_pool

    def pool(self, part: Part, ctx: TrainContext) -> None:
        """Pool the statistics of a part's preprocessors over all ranks."""
        for module in part.modules.values():
            if isinstance(module, RunningStandardScaler):
                ctx.pool(module.running_mean, module.running_variance)

    def modules(self) -> list[torch.nn.Module]:
        """Return the trained modules."""
        modules = (module for part in self._parts for module in part.modules.values())
        return [module for module in modules if isinstance(module, torch.nn.Module)]

    def entropy(self, part: Part) -> float | None:
        """Return the entropy of the last actions; None if the policy has no entropy."""
        if not hasattr(part.policy, "get_entropy"):
            return None
        return float(part.policy.get_entropy(role="policy").mean().detach())

    def has_std(self, part: Part) -> bool:
        """Return whether the actions have a standard deviation, which those of a discrete policy have not."""
        return not any("Categorical" in base.__name__ for base in type(part.policy).__mro__)

    def start_at(self, timestep: int) -> None:
        """Make the agent count from a timestep, although the trainer counts from 0."""

        def shift(method: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, timestep: int, timesteps: int, **others: Any) -> Any:
                return method(*args, timestep=timestep + start, timesteps=timesteps + start, **others)

            return call

        start = timestep
        for name in ("act", "record_transition", "pre_interaction", "post_interaction"):
            setattr(self._agent, name, shift(getattr(self._agent, name)))

    def begin(self) -> None:
        """Start the clock of the first iteration."""
        self._start_s = time.monotonic()

    def end(self, timesteps: int) -> None:
        """Write the checkpoint of the last timestep, unless it was due at its end, and close the event file."""
        if self.progress.timestep < timesteps:
            self._write_checkpoint(timestep=timesteps, timesteps=timesteps)
        self._agent.writer.close()

    def _write_tracking_data(self, *, timestep: int, timesteps: int) -> None:
        data = self._agent.tracking_data
        if not data:
            return  # this iteration's scalars were written before its checkpoint
        now = time.monotonic()
        seconds, self._start_s = now - self._start_s, now
        learning = sum(data.get("Stats / Algorithm update time (ms)", [0.0])) / 1000
        data["Perf / Frames per second"] = [self._horizon * self._frames / seconds]
        data["Perf / Collection time (s)"] = [seconds - learning]
        data["Perf / Learning time (s)"] = [learning]
        for part in self._parts:
            entropy = self.entropy(part)
            if entropy is not None:
                data[part.tag("Policy / Entropy")] = [entropy]
            if not self.has_std(part):
                data.pop(part.tag("Policy / Standard deviation"), None)  # skrl logs nan
        data.update({tag: [value] for tag, value in self.values().items()})
        data.update(means_over(self._parts, data))
        self._write(timestep=timestep, timesteps=timesteps)
        self._agent.writer.flush()
        self.iteration_finished(lambda: self._write_checkpoint(timestep=timestep, timesteps=timesteps))

    def _write_checkpoint(self, *, timestep: int, timesteps: int) -> None:
        # By default, skrl writes an iteration's scalars after its checkpoint. A run killed between the two would resume
        # without these scalars.
        if timestep % self._horizon == 0:
            self._write_tracking_data(timestep=timestep, timesteps=timesteps)
        folder = Path(self._agent.experiment_dir) / "checkpoints"
        folder.mkdir(parents=True, exist_ok=True)
        self.progress.timestep = timestep
        checkpoint = folder / f"agent_{timestep}.pt"
        self.write_companions(checkpoint)
        write_whole(checkpoint, self._agent.save)
        self.remove_companions(checkpoint)
        best = self._agent.checkpoint_best_modules
        if best["modules"] and not best["saved"]:
            write_whole(folder / "best_agent.pt", self._agent.save)
            best["saved"] = True
