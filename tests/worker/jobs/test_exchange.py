"""Three ranks on a CPU, a learner and two actors, tell each other about their envs and get a group for each role."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.plugin import Manifest
from rlnb.records.layout import JobDir, RunDir
from rlnb.records.options import TrainOptions
from rlnb.worker.jobs.context import Context
from rlnb.worker.jobs.train import exchange

pytestmark = [
    pytest.mark.isaaclab,  # for torch
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed here"),
]
PLUGIN = """
import os
import rlnb

def roles(world_size, agent):
    first = "learner" if os.environ["RANK"] in agent["agreed"] else "teacher"
    return [rlnb.plugin.Role(name=first, env=False), *[rlnb.plugin.Role(name="actor")] * (world_size - 1)]

LIBRARY = rlnb.plugin.Library(name="mine", backend="m:B", distributed=True, roles="their_plugin:roles")

class Plugin:
    @staticmethod
    @rlnb.plugin.hookimpl
    def rlnb_libraries():
        return [LIBRARY]
"""
RANK = """
import json, os, sys
from pathlib import Path
import torch, torch.distributed as dist
import rlnb
from rlnb.records.layout import JobDir, RunDir
from rlnb.records.options import TrainOptions
from rlnb.storage.serial import to_json
from rlnb.worker.jobs import ranks
from rlnb.worker.jobs.context import Context
from rlnb.worker.jobs.train import exchange
from their_plugin import Plugin

rlnb.register(Plugin)
folder = Path(sys.argv[1])
manifest = rlnb.plugin.Manifest(
    run_id="r", created="", task=rlnb.Task(id="T"), library="mine", agent={"agreed": sys.argv[2]},
    resources=rlnb.launchers.Resources(nproc_per_node=3),
)
ctx = Context(RunDir(folder), JobDir(folder / "jobs" / "0-train"), manifest, TrainOptions())
ctx.device = "cpu"
agent_cfg = None
if ctx.has_env:
    agent_cfg = {"horizon": 16, "sizes": (64, 32)}
    ctx.num_envs_here, ctx.asset_root, ctx.assets = 8, "/assets (chosen)", {"a.usd": "0"}
try:
    with ranks.process_group("cpu", role=ctx.role) as clock:
        got = exchange(ctx, agent_cfg)
        total = torch.tensor([float(ctx.rank + 1)])
        dist.all_reduce(total, group=ctx.group)
        mean, variance = torch.tensor([float(ctx.rank)]), torch.zeros(1)
        if ctx.role == "actor":
            ctx.pool(mean, variance)
        torch.manual_seed(0 if ctx.role == "learner" else 1)
        roles = [role.name for role in ctx.roles]
        digests = ranks.compare([torch.nn.Linear(2, 2)], "seen" if ctx.has_env else "", roles=roles)
    print(json.dumps({
        "role": ctx.role, "agent": got, "num_envs": ctx.num_envs, "devices": ctx.devices, "root": ctx.asset_root,
        "assets": dict(ctx.assets), "sum": total.item(), "digests": to_json(digests),
        "pooled": [mean.item(), variance.item()],
    }))
except rlnb.RlnbError as exc:
    print(json.dumps({"error": str(exc)}), flush=True)
    os._exit(1)
"""


def answers_of(tmp_path: Path, agreed: str) -> list[dict[str, Any]]:
    """Return what each of three ranks prints."""
    (tmp_path / "their_plugin.py").write_text(PLUGIN)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "3"}
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ranks = []
    for rank in range(3):
        env = {**os.environ, **place, "RANK": str(rank), "LOCAL_RANK": str(rank), "PYTHONPATH": path}
        argv = [sys.executable, "-c", RANK, str(tmp_path), agreed]
        ranks.append(subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True))
    outputs = [rank.communicate(timeout=250)[0] for rank in ranks]
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def test_the_learner_gets_the_agent_config_and_the_envs_of_the_actors(tmp_path: Path) -> None:
    learner, *actors = answers_of(tmp_path, "012")
    assert [answer["role"] for answer in (learner, *actors)] == ["learner", "actor", "actor"]
    assert {answer["num_envs"] for answer in (learner, *actors)} == {16}
    assert learner["agent"] == actors[0]["agent"] == {"horizon": 16, "sizes": [64, 32]}
    assert (learner["root"], learner["assets"]) == ("/assets (chosen)", {"a.usd": "0"})
    assert learner["devices"] == ["cpu"] * 3
    assert [answer["sum"] for answer in (learner, *actors)] == [1.0, 5.0, 5.0], "each role has a group of its own"
    assert [answer["pooled"] for answer in actors] == [[1.5, 0.25]] * 2, "the learner has nothing to pool"
    digests = learner["digests"]
    assert digests["roles"] == ["learner", "actor", "actor"]
    assert digests["observations"] == ["", "seen", "seen"]
    assert digests["parameters"][0] != digests["parameters"][1] == digests["parameters"][2]


def test_ranks_that_have_got_different_roles_say_so(tmp_path: Path) -> None:
    answers = answers_of(tmp_path, "02")
    assert any(
        "has got the roles learner, actor, actor, but rank 1 teacher, actor, actor. Library.roles" in answer["error"]
        for answer in answers
    )


def test_without_roles_each_rank_has_the_same_number_of_envs(tmp_path: Path) -> None:
    manifest = Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo")
    ctx = Context(RunDir(tmp_path), JobDir(tmp_path / "jobs" / "0-train"), manifest, TrainOptions())
    ctx._library, ctx.world_size, ctx.num_envs_here = plugins.library("rsl_rl"), 4, 8
    agent_cfg = object()
    assert exchange(ctx, agent_cfg) is agent_cfg
    assert (ctx.num_envs, ctx.group, ctx.devices) == (32, None, ())
