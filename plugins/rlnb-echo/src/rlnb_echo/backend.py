"""The backend of the echo library: curves from a formula, checkpoints in JSON, no heavy imports."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from rlnb import RlnbError
from rlnb.backend import TrainContext, write_whole
from rlnb_echo.event_file import EventFile
from rlnb_echo.options import Options

HORIZON, NUM_ENVS, ITERATIONS = 16, 4, 20
CHECKPOINT_EVERY = 5
"""Iterations between checkpoints."""
FORK = "import time; time.sleep(600)"


class Checkpoint(TypedDict):
    """The JSON content of a checkpoint."""

    iteration: int
    level: float


class EvaluationOptions(TypedDict):
    """The evaluation options that this library reads."""

    episodes: int
    seed: int
    checkpoint: str


class Episodes(TypedDict):
    """The record of an evaluation; each list has one value per episode."""

    episodes: int
    returns: list[float]
    lengths: list[int]
    timeouts: list[bool]
    successes: list[bool]
    num_envs: int
    seed: int
    checkpoint: str


class Echo:
    """The :class:`rlnb.backend.Backend` of the echo library."""

    def train(self, env: None, agent_cfg: Mapping[str, Any], ctx: TrainContext) -> None:
        """Log a curve that rises to the goal, and write a checkpoint every five iterations."""
        options = Options.of(agent_cfg)
        if options.ignore_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if options.fork:
            subprocess.Popen([sys.executable, "-c", FORK], start_new_session=True)
        total = ctx.max_iterations or ITERATIONS
        first = _read(ctx.checkpoint)["iteration"] + 1 if ctx.checkpoint else 0
        if ctx.init_from is not None:
            _read(ctx.init_from)  # the curve is a formula, so there are no weights to start from
        ctx.started(
            horizon=HORIZON,
            frames_per_step=HORIZON * NUM_ENVS,
            first_iteration=first,
            max_iterations=total,
            num_envs=NUM_ENVS,
        )
        events = EventFile(ctx.log_dir) if ctx.rank == 0 else None
        for iteration in range(first, total):
            scalars = _iterate(iteration, total, options, ctx.seed)
            if events is None:
                continue
            events.add(iteration, scalars)
            checkpoint: Checkpoint = {"iteration": iteration, "level": _level(iteration, total)}
            if iteration % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1 or iteration == total - 1:
                _write(ctx.log_dir, checkpoint)
            ctx.iteration_finished(partial(_save, events, ctx.log_dir, checkpoint))
        if events is not None:
            events.close()

    def evaluate(self, checkpoint: Path, options: EvaluationOptions) -> Episodes:
        """Return made-up episodes that succeed more often the later the checkpoint's iteration is."""
        level = _read(checkpoint)["level"]
        episodes = options["episodes"]
        successes = [index < round(level * episodes) for index in range(episodes)]
        return {
            "episodes": episodes,
            "returns": [level + 0.01 * math.sin(index) for index in range(episodes)],
            "lengths": [100] * episodes,
            "timeouts": successes,
            "successes": successes,
            "num_envs": NUM_ENVS,
            "seed": options["seed"],
            "checkpoint": options["checkpoint"],
        }

    def load_policy(self, *_: Any, **__: Any) -> Any:
        """Refuse: there is no policy."""
        raise RlnbError("The echo library has no policy.")

    export = load_policy


def _iterate(iteration: int, total: int, options: Options, seed: int) -> dict[str, float]:
    """Sleep, hang or crash as the options say; return the iteration's scalars by tag."""
    time.sleep(options.iteration_s)
    if iteration == options.hang_at:
        time.sleep(3600.0)
    if iteration == options.crash_at:
        raise RuntimeError(f"echo crashes at iteration {iteration}, as its agent option crash_at requests")
    noise = random.random() if options.noise_from is not None and iteration >= options.noise_from else 0.0
    noise += iteration == options.peak
    level = _level(iteration, total)
    print(f"iteration {iteration} of {total}, pid {os.getpid()}", flush=True)
    return {
        "Train/mean_reward": options.goal * level + 0.01 * math.sin(seed + iteration) + noise,
        "Train/mean_episode_length": 100.0 * level,
        "Metrics/success_rate": level,
        "Perf/total_fps": 1000.0,
    }


def _level(iteration: int, total: int) -> float:
    """Return the level of the curve after an iteration, from 0 to 1."""
    return 1.0 - math.exp(-3.0 * (iteration + 1) / total)


def _save(events: EventFile, folder: Path, checkpoint: Checkpoint) -> None:
    events.close()
    _write(folder, checkpoint)


def _write(folder: Path, checkpoint: Checkpoint) -> None:
    def write(path: str) -> None:
        Path(path).write_text(json.dumps(checkpoint))

    write_whole(folder / f"model_{checkpoint['iteration']}.json", write)


def _read(path: Path) -> Checkpoint:
    checkpoint: Checkpoint = json.loads(path.read_text())
    return checkpoint
