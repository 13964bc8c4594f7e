"""A 3D view of a living env: Isaac Lab's viser visualizer, while actions or a policy move the robots in real time."""

from __future__ import annotations

import dataclasses
import os
import socket
import time
from collections.abc import Callable
from typing import Any

from rlnb.display.own_user import refuse_other_users
from rlnb.errors import RlnbError
from rlnb.protocol.requests import Hold, Push, View, ViewAddress
from rlnb.spec import Task
from rlnb.worker.actions import acting, joint
from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.controls import Controls, viser_server
from rlnb.worker.requests.sidebar import Sidebar

LOOPBACK = "127.0.0.1"


def show(
    request: View, tell: Callable[[ViewAddress], None], answer: Callable[[Callable[[Push | Hold], None]], bool]
) -> ViewAddress:
    """Step an env and serve its view until the next request comes, or stdin ends; return the view's address.

    Args:
        request: The task, and the policy or the kind of actions.
        tell: Called with the address, once a web server on this machine's loopback interface shows the env.
        answer: Answers the requests about the view that have come, with the function that does them. Returns whether
            another request has come, or the end of stdin.

    Raises:
        RlnbError: viser is not installed, or it does not listen on loopback alone.
    """
    import torch

    refuse_other_users()
    port = _free_port()
    request = dataclasses.replace(request, task=without_stream(request.task))

    def configure(env_cfg: Any) -> None:
        env_cfg.sim.visualizer_cfgs = [isaaclab.viser_visualizer(LOOPBACK, port)]

    with acting(request, configure) as (env, act, policy_reset), torch.inference_mode():
        obs, _ = env.reset(seed=request.seed)
        _check_address(port)
        controls = Controls(env)
        sidebar = Sidebar(viser_server(env), controls)
        address = ViewAddress(port=port, commands=controls.commands)
        tell(address)
        pace_s = isaaclab.task_env(env).step_dt / request.speed
        due_s = time.monotonic()
        while not answer(sidebar.do):
            sidebar.do_requests()
            obs, *outcome, _ = env.step(act(obs))
            _, terminated, truncated = joint(*outcome)
            policy_reset(terminated | truncated)
            due_s = max(due_s + pace_s, time.monotonic() - pace_s)  # late steps are not made up for
            time.sleep(max(0.0, due_s - time.monotonic()))
    return address


def without_stream(task: Task) -> Task:
    """Return a task without ``livestream``: viser cannot show the env while Isaac Sim streams its window."""
    others = {name: value for name, value in task.launcher_args.items() if name != "livestream"}
    return dataclasses.replace(task, launcher_args=others)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _check_address(port: int) -> None:
    """Check that this process listens on the port, and only on loopback."""
    import psutil

    listening = [
        connection.laddr
        for connection in psutil.net_connections("inet")
        if connection.pid == os.getpid() and connection.status == psutil.CONN_LISTEN
    ]
    if any(address.port == port and address.ip != LOOPBACK for address in listening):
        raise RlnbError(f"The viewer listened on more than {LOOPBACK}, so it was stopped.")
    if not any(address.port == port for address in listening):
        raise RlnbError(f"The viewer does not listen on port {port}: another process uses it. Try again.")
