"""A library that needs no simulator: gradient descent with momentum on a linear policy. It passes the kit.

Every other backend of this module has one fault, which the kit must find.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rlnb_echo.event_file import EventFile

from rlnb.backend import EvaluationResult, TrainContext, write_whole

BATCH, HORIZON, NUM_ENVS = 16, 4, 4
"""Frames of an iteration, in env steps of a number of envs."""
EVERY = 5
"""Iterations between two checkpoints."""
RATE, MOMENTUM = 0.02, 0.9
GOAL = np.array([1.0, -2.0, 3.0])
"""The best weights."""


@dataclass
class State:
    """The state of a training after an iteration, as a checkpoint holds it."""

    iteration: int
    weights: list[float]
    momentum: list[float]
    random: Mapping[str, Any]

    @classmethod
    def fresh(cls, seed: int) -> State:
        generator = np.random.default_rng(seed)
        weights = generator.normal(size=len(GOAL)).tolist()
        return cls(-1, weights, [0.0] * len(GOAL), generator.bit_generator.state)

    @classmethod
    def read(cls, path: Path) -> State:
        return cls(**json.loads((path / "state.json" if path.is_dir() else path).read_text()))


class Tiny:
    """The library without a fault."""

    def train(self, env: None, agent_cfg: Mapping[str, Any], ctx: TrainContext) -> None:
        state, total = self.first(ctx), self.total(ctx)
        generator = np.random.default_rng()
        generator.bit_generator.state = state.random
        ctx.started(
            horizon=HORIZON,
            frames_per_step=self.frames(),
            first_iteration=state.iteration + 1,
            max_iterations=total,
            num_envs=NUM_ENVS,
        )
        events = EventFile(ctx.log_dir)
        for iteration in range(state.iteration + 1, total):
            began = time.monotonic()
            reward = descend(state, generator)
            time.sleep(agent_cfg.get("iteration_s", 0.0))
            state.iteration, state.random = iteration, generator.bit_generator.state
            fps = BATCH / (time.monotonic() - began)
            events.add(self.step(iteration), {"Train/reward": reward, "Perf/fps": fps})
            save = partial(self.save, ctx.log_dir, state)
            if (iteration + 1) % EVERY == 0 or iteration == total - 1:
                save()
            self.finished(ctx, save)
        events.close()

    def evaluate(self, agent_cfg: Any, checkpoint: Path, *, episodes: int, seed: int, **_: Any) -> EvaluationResult:
        observations = np.random.default_rng(seed).normal(size=(episodes, len(GOAL)))
        returns = -((observations @ (self.policy(checkpoint) - GOAL)) ** 2)
        return EvaluationResult(returns=returns.tolist(), lengths=[HORIZON] * episodes, timeouts=[True] * episodes)

    def first(self, ctx: TrainContext) -> State:
        """Return the state from which to train."""
        if ctx.checkpoint is not None:
            return self.resumed(State.read(ctx.checkpoint), ctx)
        state = State.fresh(self.seed(ctx))
        if ctx.init_from is not None:
            state.weights = self.start(State.read(ctx.init_from), state)
        return state

    def resumed(self, state: State, ctx: TrainContext) -> State:
        return state

    def start(self, other: State, fresh: State) -> list[float]:
        return other.weights

    def seed(self, ctx: TrainContext) -> int:
        return ctx.seed

    def total(self, ctx: TrainContext) -> int:
        return ctx.max_iterations or 20

    def frames(self) -> float:
        return BATCH

    def step(self, iteration: int) -> int:
        return iteration

    def name(self, iteration: int) -> str:
        return f"model_{iteration}.json"

    def save(self, folder: Path, state: State) -> None:
        text = json.dumps(asdict(state))
        write_whole(folder / self.name(state.iteration), lambda path: Path(path).write_text(text))

    def finished(self, ctx: TrainContext, save: Any) -> None:
        ctx.iteration_finished(save)

    def policy(self, checkpoint: Path) -> np.ndarray:
        return np.array(State.read(checkpoint).weights)


def descend(state: State, generator: np.random.Generator) -> float:
    """Improve the weights of a state with a batch of random observations, and return the mean reward."""
    observations = generator.normal(size=(BATCH, len(GOAL)))
    errors = observations @ (np.array(state.weights) - GOAL)
    momentum = MOMENTUM * np.array(state.momentum) + 2.0 * observations.T @ errors / BATCH
    state.momentum, state.weights = momentum.tolist(), (np.array(state.weights) - RATE * momentum).tolist()
    return float(-np.mean(errors**2))


class InFolders(Tiny):
    """A sound library whose checkpoints are folders."""

    def name(self, iteration: int) -> str:
        return f"step_{iteration}"

    def save(self, folder: Path, state: State) -> None:
        def write(path: str) -> None:
            Path(path).mkdir()
            (Path(path) / "state.json").write_text(json.dumps(asdict(state)))

        write_whole(folder / self.name(state.iteration), write)


class NeverResumes(Tiny):
    """A sound library with ``resumes=False``."""


# -- one fault each


class CheckpointIgnored(Tiny):
    def resumed(self, state: State, ctx: TrainContext) -> State:
        return State.fresh(ctx.seed)


class WeightsLost(Tiny):
    """The resumed training counts on from the checkpoint, with fresh weights."""

    def resumed(self, state: State, ctx: TrainContext) -> State:
        state.weights = State.fresh(ctx.seed).weights
        return state


class OptimiserLost(Tiny):
    def resumed(self, state: State, ctx: TrainContext) -> State:
        state.momentum = [0.0] * len(GOAL)
        return state


class RandomLost(Tiny):
    def resumed(self, state: State, ctx: TrainContext) -> State:
        state.random = State.fresh(ctx.seed).random
        return state


class SeedIgnored(Tiny):
    def seed(self, ctx: TrainContext) -> int:
        return 0


class Unseeded(Tiny):
    def seed(self, ctx: TrainContext) -> int:
        return time.time_ns()


class InitIgnored(Tiny):
    def start(self, other: State, fresh: State) -> list[float]:
        return fresh.weights


class StepsWrong(Tiny):
    def step(self, iteration: int) -> int:
        return iteration + 1


class FramesWrong(Tiny):
    """The frames of one env are counted, not those of all."""

    def frames(self) -> float:
        return HORIZON


class TooLong(Tiny):
    def total(self, ctx: TrainContext) -> int:
        return (ctx.max_iterations or 20) + 1


class NamedWrong(Tiny):
    def name(self, iteration: int) -> str:
        return f"model_{iteration + 1}.json"


class StopIgnored(Tiny):
    """The library promises to save when it is stopped, and does not."""

    def finished(self, ctx: TrainContext, save: Any) -> None:
        pass


class StopUnsaved(Tiny):
    """The training stops, but has saved its first checkpoint only."""

    def save(self, folder: Path, state: State) -> None:
        if state.iteration < EVERY:
            super().save(folder, state)


class EvaluationOfFresh(Tiny):
    """The evaluation does not use the checkpoint."""

    def policy(self, checkpoint: Path) -> np.ndarray:
        return np.array(State.fresh(42).weights)


class EvaluationTrains(Tiny):
    """The evaluation goes on training, and saves what it has learned."""

    def policy(self, checkpoint: Path) -> np.ndarray:
        state = State.read(checkpoint)
        before = copy.copy(state.weights)
        descend(state, np.random.default_rng(0))
        checkpoint.write_text(json.dumps(asdict(state)))
        return np.array(before)


class EvaluationLitters(Tiny):
    """The evaluation leaves a file in the working folder, another one each time."""

    def policy(self, checkpoint: Path) -> np.ndarray:
        Path(f"rollout-{time.time_ns()}.txt").touch()
        return super().policy(checkpoint)


class Unlogged(Tiny):
    """The registration names a tag that is never logged."""
