"""A 3D view of a living env: Isaac Lab's viser visualizer, while actions or a policy move the robots in real time."""

from __future__ import annotations

import dataclasses
import os
import select
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from rlnb.errors import RlnbError
from rlnb.spec import Task
from rlnb.worker.acting import acting, joint
from rlnb.worker.isaac import isaaclab

LOOPBACK = "127.0.0.1"


def show(task: Task, request: Mapping[str, Any], tell: Callable[[Any], None]) -> None:
    """Step an env and serve its view until the next request comes, or stdin ends.

    Args:
        task: What to show.
        request: ``num_envs``, ``policy``, ``actions``, ``seed``, ``device`` and ``asset_root``, as in
            :func:`rlnb.worker.requests.preview.preview`; ``speed``, simulated seconds per second.
        tell: Called with ``port``, where a web server on this machine's loopback shows the env, once it does.

    Raises:
        RlnbError: viser is not installed, or it listens elsewhere than on loopback.
    """
    import torch

    isaaclab.start(request.get("asset_root"))
    port = _free_port()
    task = dataclasses.replace(task, num_envs=int(request["num_envs"]))

    def configure(env_cfg: Any) -> None:
        env_cfg.sim.visualizer_cfgs = [isaaclab.viser_visualizer(LOOPBACK, port)]

    with acting(task, request, configure) as (env, act, policy_reset), torch.inference_mode():
        obs, _ = env.reset(seed=int(request["seed"]))
        _check_address(port)
        tell({"port": port})
        pace_s = isaaclab.task_env(env).step_dt / float(request["speed"])
        due_s = time.monotonic()
        while not select.select([sys.stdin], [], [], 0)[0]:
            obs, *outcome, _ = env.step(act(obs))
            _, terminated, truncated = joint(*outcome)
            policy_reset(terminated | truncated)
            due_s = max(due_s + pace_s, time.monotonic() - pace_s)  # what was missed is not caught up with
            time.sleep(max(0.0, due_s - time.monotonic()))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _check_address(port: int) -> None:
    """Make sure that this process listens on the port, on loopback and nowhere else."""
    import psutil

    listening = [
        connection.laddr
        for connection in psutil.net_connections("inet")
        if connection.pid == os.getpid() and connection.status == psutil.CONN_LISTEN
    ]
    if any(address.port == port and address.ip != LOOPBACK for address in listening):
        raise RlnbError(f"The viewer listens on more than {LOOPBACK}; it was stopped.")
    if not any(address.port == port for address in listening):
        raise RlnbError(f"The viewer does not listen on port {port}: somebody else has it. Try again.")
