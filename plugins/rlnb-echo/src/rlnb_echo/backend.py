"""The heavy half, which weighs nothing: curves from a formula, checkpoints in JSON.

Its agent options serve the tests: ``iteration_s`` sleeps, ``crash_at`` raises, ``hang_at`` hangs,
``ignore_sigterm`` does as it says, ``fork`` leaves a detached grandchild behind, ``noise_from`` adds
unseeded noise from an iteration on, ``peak`` is an iteration of high reward, ``goal`` is what
the reward rises to.
"""

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
from pathlib import Path
from typing import Any

from rlnb import RlnbError
from rlnb.backend import TrainContext, write_whole

HORIZON, NUM_ENVS, ITERATIONS = 16, 4, 20


class Echo:
    """The :class:`rlnb.backend.Backend` of the echo library."""

    def train(self, env: None, agent_cfg: Mapping[str, Any], ctx: TrainContext) -> None:
        """Log a curve that rises to 1, and a checkpoint every five iterations."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        if agent_cfg.get("ignore_sigterm"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if agent_cfg.get("fork"):
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        total = ctx.max_iterations or ITERATIONS
        first = json.loads(ctx.checkpoint.read_text())["iteration"] + 1 if ctx.checkpoint else 0
        ctx.started(
            horizon=HORIZON,
            frames_per_step=HORIZON * NUM_ENVS,
            first_iteration=first,
            max_iterations=total,
            num_envs=NUM_ENVS,
        )
        writer = EventFileWriter(str(ctx.log_dir), flush_secs=0.2) if ctx.rank == 0 else None
        for iteration in range(first, total):
            time.sleep(float(agent_cfg.get("iteration_s", 0.0)))
            if agent_cfg.get("hang_at") == iteration:
                time.sleep(3600.0)
            if agent_cfg.get("crash_at") == iteration:
                raise RuntimeError(f"echo crashes at iteration {iteration}, as it was asked to")
            noise = random.random() if iteration >= agent_cfg.get("noise_from", total) else 0.0
            noise += iteration == agent_cfg.get("peak")
            level = 1.0 - math.exp(-3.0 * (iteration + 1) / total)
            scalars = {
                "Train/mean_reward": agent_cfg.get("goal", 1.0) * level + 0.01 * math.sin(ctx.seed + iteration) + noise,
                "Train/mean_episode_length": 100.0 * level,
                "Metrics/success_rate": level,
                "Perf/total_fps": 1000.0,
            }
            values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
            print(f"iteration {iteration} of {total}, pid {os.getpid()}", flush=True)
            if writer is None:
                continue
            writer.add_event(Event(wall_time=time.time(), step=iteration, summary=Summary(value=values)))
            if iteration % 5 == 4 or iteration == total - 1:
                state = json.dumps({"iteration": iteration, "level": level})
                write_whole(
                    ctx.log_dir / f"model_{iteration}.json", lambda part, state=state: Path(part).write_text(state)
                )
        if writer is not None:
            writer.close()

    def evaluate(self, checkpoint: Path, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return made-up episodes, as good as the checkpoint's iteration is late."""
        level = json.loads(checkpoint.read_text())["level"]
        episodes = int(options["episodes"])
        successes = [index < round(level * episodes) for index in range(episodes)]
        return {
            "episodes": episodes,
            "returns": [level + 0.01 * math.sin(index) for index in range(episodes)],
            "lengths": [100] * episodes,
            "timeouts": successes,
            "successes": successes,
            "num_envs": NUM_ENVS,
            "seed": options["seed"],
            "checkpoint": str(options["checkpoint"]),
        }

    def load_policy(self, *_: Any, **__: Any) -> Any:
        """Refuse: there is no policy."""
        raise RlnbError("The echo library has no policy.")

    export = load_policy
