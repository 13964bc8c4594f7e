"""The envs that a backend makes itself: one after the other in its process, and further ones in other processes."""

from __future__ import annotations

import importlib.util
import json
import pickle
import pickletools
import subprocess
import sys
from pathlib import Path

import pytest

import rlnb
from rlnb.launchers import Resources
from rlnb.plugin import Manifest
from rlnb.records.layout import JobDir
from rlnb.spec import Job
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.worker.jobs.envs import EnvFactory

FACTORY = EnvFactory(job_dir="/runs/r/jobs/0-train", num_envs=4, sharing=2, seed=7, device="cpu")


def test_the_pickle_of_a_factory_names_its_class_and_holds_plain_values() -> None:
    data = pickle.dumps(FACTORY)
    assert pickle.loads(data) == FACTORY
    strings = {argument for _, argument, _ in pickletools.genops(data) if isinstance(argument, str)}
    own = {"rlnb.worker.jobs.envs", "EnvFactory", "copyreg", "__newobj__", "_dataclass_setstate", "dataclasses"}
    assert strings - own == {"/runs/r/jobs/0-train", "cpu"}
    assert len(data) < 200


BACKEND = """
import json, multiprocessing, os
import rlnb

LIBRARY = rlnb.plugin.Library(
    name="own_env", backend="own_env:Own", makes_env=True, default_agent="own_env:config", agent_key="own_cfg"
)


class Plugin:
    @staticmethod
    @rlnb.plugin.hookimpl
    def rlnb_libraries():
        return [LIBRARY]

    @staticmethod
    @rlnb.plugin.hookimpl
    def rlnb_configure_env(env_cfg, manifest):
        env_cfg.episode_length_s = 3.0


def config():
    return {"horizon": 2}


def facts(env):
    raw = env.unwrapped
    return [raw.num_envs, raw.cfg.sim.dt, raw.cfg.episode_length_s, raw.cfg.seed]


def elsewhere(factory, answers):
    rlnb.register(Plugin)
    env = factory()
    answers.send(facts(env))
    env.close()
    os._exit(0)


class Own:
    def train(self, env, agent_cfg, ctx):
        told = {"env": env, "agent": agent_cfg, "envs": ctx.num_envs}
        first = ctx.make_env()
        first.reset()
        told["first"] = facts(first)
        try:
            ctx.make_env(num_envs=2)
        except rlnb.RlnbError as exc:
            told["two"] = str(exc)
        context = multiprocessing.get_context("spawn")
        answers, other = context.Pipe()
        process = context.Process(target=elsewhere, args=(ctx.env_factory(num_envs=3, seed=5), other))
        process.start()
        told["elsewhere"] = answers.recv()
        process.join()
        first.close()
        second = ctx.make_env(num_envs=2, seed=9)
        second.reset()
        told["second"] = facts(second)
        second.unwrapped.close()  # as some wrappers do
        told["third"] = facts(ctx.make_env())
        ctx.started(horizon=2, frames_per_step=2 * ctx.num_envs, max_iterations=1)
        (ctx.log_dir / "told.json").write_text(json.dumps(told))
        return []
"""


@pytest.mark.isaaclab
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_a_backend_decides_when_it_makes_an_env(tmp_path: Path) -> None:
    (tmp_path / "own_env.py").write_text(BACKEND)
    task = rlnb.Task(id="Isaac-Cartpole-Direct", num_envs=8, overrides={"sim.dt": 0.01})
    resources = Resources(device="cpu")
    manifest = Manifest(run_id="r", created="", task=task, library="own_env", resources=resources)
    files.write_once(tmp_path / "manifest.json", to_json(manifest))
    job = JobDir(tmp_path / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    files.write_once(job.job, to_json(Job(kind="train")))
    code = "import sys, rlnb, own_env; rlnb.register(own_env.Plugin)\n" + (
        "from pathlib import Path\nfrom rlnb.worker.jobs.train import train\ntrain(Path(sys.argv[1]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(job.path)], capture_output=True, text=True, cwd=tmp_path, timeout=580
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    told = json.loads((tmp_path / "logs" / "told.json").read_text())
    assert (told["env"], told["agent"], told["envs"]) == (None, {"horizon": 2}, 8)
    assert told["first"] == told["third"] == [8, 0.01, 3.0, 42], "overrides and plugins hold for each env"
    assert told["second"] == [2, 0.01, 3.0, 9]
    assert told["elsewhere"] == [3, 0.01, 3.0, 5]
    assert told["two"].startswith("The process of rank 0 has an env already")
    assert "Use env.close() first, or ctx.env_factory()" in told["two"]
    result = files.read_json(job.result) or {}
    ranks = result["values"]["ranks"]  # type: ignore[index,call-overload]
    assert ranks["observations"][0], "the first env is watched"  # type: ignore[index,call-overload]
    assert (tmp_path / "logs" / "params" / "env.yaml").exists()
