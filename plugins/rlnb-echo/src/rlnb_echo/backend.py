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

from rlnb.backend import EvaluationResult, TrainContext, write_whole
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
    start: float
    """Level before the first iteration."""


class Echo:
    """The :class:`rlnb.backend.Evaluating` backend of the echo library."""

    def train(self, env: None, agent_cfg: Mapping[str, Any], ctx: TrainContext) -> None:
        """Log a curve that rises to the goal, and write a checkpoint every five iterations."""
        options = Options.of(agent_cfg)
        if options.ignore_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if options.fork:
            subprocess.Popen([sys.executable, "-P", "-c", FORK], start_new_session=True)
        total = ctx.max_iterations or ITERATIONS
        first, start = 0, _read(ctx.init_from)["level"] if ctx.init_from else 0.0
        if ctx.checkpoint:
            earlier = _read(ctx.checkpoint)
            first, start = earlier["iteration"] + 1, earlier["start"]
        ctx.started(
            horizon=HORIZON,
            frames_per_step=HORIZON * NUM_ENVS,
            first_iteration=first,
            max_iterations=total,
            num_envs=NUM_ENVS,
        )
        events = EventFile(ctx.log_dir) if ctx.rank == 0 else None
        for iteration in range(first, total):
            level = _level(iteration, total, start)
            scalars = _iterate(iteration, total, level, options, ctx.seed)
            if events is None:
                continue
            events.add(iteration, scalars)
            checkpoint: Checkpoint = {"iteration": iteration, "level": level, "start": start}
            if iteration % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1 or iteration == total - 1:
                _write(ctx.log_dir, checkpoint)
            ctx.iteration_finished(partial(_save, events, ctx.log_dir, checkpoint))
        if events is not None:
            events.close()

    def evaluate(self, agent_cfg: Mapping[str, Any], checkpoint: Path, *, episodes: int, **_: Any) -> EvaluationResult:
        """Return made-up episodes that succeed more often the later the checkpoint's iteration is."""
        level = _read(checkpoint)["level"]
        successes = [index < round(level * episodes) for index in range(episodes)]
        return EvaluationResult(
            returns=[level + 0.01 * math.sin(index) for index in range(episodes)],
            lengths=[100] * episodes,
            timeouts=successes,
            successes=successes,
        )


def _iterate(iteration: int, total: int, level: float, options: Options, seed: int) -> dict[str, float]:
    """Sleep, hang or crash as the options say; return the iteration's scalars by tag."""
    time.sleep(options.iteration_s)
    if iteration == options.hang_at:
        time.sleep(3600.0)
    if iteration == options.crash_at:
        raise RuntimeError(f"echo crashes at iteration {iteration}, as its agent option crash_at requests")
    noise = random.random() if options.noise_from is not None and iteration >= options.noise_from else 0.0
    noise += iteration == options.peak
    print(f"iteration {iteration} of {total}, pid {os.getpid()}", flush=True)
    return {
        "Train/mean_reward": options.goal * level + 0.01 * math.sin(seed + iteration) + noise,
        "Train/mean_episode_length": 100.0 * level,
        "Metrics/success_rate": level,
        "Perf/total_fps": 1000.0,
    }


def _level(iteration: int, total: int, start: float) -> float:
    """Return the level of the curve after an iteration, from ``start`` to 1."""
    return 1.0 - (1.0 - start) * math.exp(-3.0 * (iteration + 1) / total)


def _save(events: EventFile, folder: Path, checkpoint: Checkpoint) -> None:
    events.close()
    _write(folder, checkpoint)


def _write(folder: Path, checkpoint: Checkpoint) -> None:
    def write(path: str) -> None:
        Path(path).write_text(json.dumps(checkpoint))

    write_whole(folder / f"model_{checkpoint['iteration']}.json", write)


def _read(path: Path) -> Checkpoint:
    values = json.loads(path.read_text())
    # rlnb 0.1 wrote no start
    return {"iteration": values["iteration"], "level": values["level"], "start": values.get("start", 0.0)}
