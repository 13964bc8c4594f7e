"""Isaac Sim's runtime: its launcher arguments, and the processes that can start it. A stand-in for its app starts."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlnb.worker.isaac.kit import arguments_of

RIG = Path(__file__).parents[2] / "rig" / "isaac_sim"
SCENARIOS = """
import argparse, gc, json, os, sys, types, weakref
from rlnb.worker.isaac import isaaclab, kit

isaaclab.start("/assets")
from isaaclab.sensors import CameraCfg
from isaaclab_newton.physics import NewtonCfg
from isaaclab_ov.physics import OvPhysxCfg
from isaaclab_physx.physics import PhysxCfg
from isaaclab_physx.renderers import IsaacRtxRendererCfg

physx = argparse.Namespace(physics=PhysxCfg())
newton = argparse.Namespace(physics=NewtonCfg())
camera = argparse.Namespace(
    physics=PhysxCfg(), camera=CameraCfg(prim_path="/World/Camera", renderer_cfg=IsaacRtxRendererCfg(), spawn=None)
)

invalid = argparse.Namespace(physics=OvPhysxCfg(), camera=camera.camera)

TASKS = [(physx, newton, invalid, newton), ({}, {}, {}, {"livestream": 2})]

def launch(cfg, device="cpu", world_size=1, own=None):
    with kit.launched(cfg, kit.arguments_of(device, world_size, own)):
        pass

def wheel():
    package = os.path.join(os.environ["LOGS"], "wheel", "isaacsim")
    os.makedirs(os.path.join(package, "kit", "extscore"))
    with open(os.path.join(package, "__init__.py"), "w") as file:
        file.write("print(input('Do you accept the EULA? (Yes/No): '))")
    sys.path.insert(0, os.path.dirname(package))

def module(name):
    sys.modules[name] = types.ModuleType(name)

SCENARIOS = {
    "start": lambda: launch(physx),
    "twice": lambda: (launch(physx), launch(physx)),
    "experience": lambda: launch(physx, own={"kit_args": "--/log/level=info"}),
    "newton": lambda: launch(newton),
    "newton first": lambda: (launch(newton), launch(physx)),
    "usd first": lambda: (module("pxr"), launch(physx)),
    "ovphysx first": lambda: (module("ovphysx"), launch(physx)),
    "newton later": lambda: (launch(physx), launch(newton)),
    "camera later": lambda: (launch(physx), launch(camera)),
    "camera first": lambda: (launch(camera), launch(physx), launch(camera)),
    "other arguments": lambda: (launch(physx), launch(physx, own={"kit_args": "--/log/level=info"})),
    "other device": lambda: (launch(physx), launch(physx, own={"device": "cuda:0"})),
    "raises": lambda: fails(physx),
    "freed": lambda: (launch(physx), freed()),
    "missing": lambda: (sys.path.remove(os.environ["RIG"]), launch(physx)),
    "missing for": lambda: (sys.path.remove(os.environ["RIG"]), print(*map(kit.missing_for, *TASKS))),
    "terms": lambda: (wheel(), launch(physx)),
    "rank": lambda: (gpus(2), behind(cpus=1), print(os.environ["LOCAL_RANK"], os.environ.get("JAX_LOCAL_RANK"))),
    "needs": lambda: print([kit.needs_runtime(cfg, kit.arguments_of("cpu")) for cfg in (physx, newton, camera)]),
}

def gpus(count):
    import torch
    from isaaclab.app import sim_launcher

    torch.cuda.device_count, sim_launcher.set_cuda_device = lambda: count, lambda device: None

def behind(cpus):
    os.environ["LOCAL_RANK"] = str(cpus)
    cfg = argparse.Namespace(physics=NewtonCfg(), sim=argparse.Namespace(device="cuda:0"))
    launch(cfg, "cuda:0", world_size=2)
    print(cfg.sim.device)

def freed():
    cfg = argparse.Namespace(physics=PhysxCfg())
    launch(cfg)
    alive = weakref.ref(cfg)
    del cfg
    gc.collect()
    print("freed" if alive() is None else "alive")

def fails(cfg):
    try:
        with kit.launched(cfg, kit.arguments_of("cpu")):
            raise ValueError("no such joint")
    except ValueError as exc:
        print(f"the process goes on after: {exc}")

sys.argv[1:] = ["serve", "/tmp/pipe"]
for name, scenario in SCENARIOS.items():
    os.environ["FAKE_KIT_LOG"] = os.path.join(os.environ["LOGS"], name)
    if (child := os.fork()) == 0:
        sys.stdout.flush()
        os.dup2(os.open(os.environ["FAKE_KIT_LOG"] + ".out", os.O_WRONLY | os.O_CREAT), 1)
        try:
            scenario()
            print(f"argv {sys.argv[1:]}")
        except Exception as exc:
            print(f"{type(exc).__name__}: {exc}")
        sys.__stdout__.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run every scenario in a process of its own, which a process with Isaac Lab forks; return the logs' folder."""
    folder = tmp_path_factory.mktemp("kit")
    path = os.pathsep.join([str(RIG), *filter(None, sys.path)])
    given = {name: value for name, value in os.environ.items() if name != "OMNI_KIT_ACCEPT_EULA"}
    env = {**given, "PYTHONPATH": path, "LOGS": str(folder), "RIG": str(RIG), "FAKE_KIT_STAYS": "1"}
    subprocess.run([sys.executable, "-c", SCENARIOS], env=env, check=True, timeout=240)
    return folder


def output(logs: Path, scenario: str) -> str:
    return (logs / f"{scenario}.out").read_text()


def starts(logs: Path, scenario: str) -> list[dict[str, Any]]:
    """Return the starts of Kit in a scenario, in which it was never closed."""
    log = logs / scenario
    events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    assert [event for event in events if event["event"] == "close"] == []
    return events


class TestOnIsaacLab:
    """One test per scenario."""

    pytestmark = [
        pytest.mark.isaaclab,
        pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
    ]

    def test_kit_stays_and_gets_no_argument_of_this_process(self, logs: Path) -> None:
        (start,) = starts(logs, "start")
        assert not [argument for argument in start["argv"] if not argument.startswith("--/")]
        assert start["experience"].endswith("isaaclab.python.headless.kit")
        assert output(logs, "start") == "argv ['serve', '/tmp/pipe']\n"

    def test_a_second_env_uses_the_same_kit(self, logs: Path) -> None:
        assert len(starts(logs, "twice")) == 1

    def test_the_config_of_a_later_env_does_not_stay_in_memory(self, logs: Path) -> None:
        assert output(logs, "freed").startswith("freed\n")

    def test_a_process_goes_on_after_an_error_in_an_env(self, logs: Path) -> None:
        assert output(logs, "raises").startswith("the process goes on after: no such joint")
        assert starts(logs, "raises")

    def test_arguments_of_the_task_reach_kit(self, logs: Path) -> None:
        (start,) = starts(logs, "experience")
        assert "--/log/level=info" in start["argv"]

    def test_newton_starts_no_kit(self, logs: Path) -> None:
        assert starts(logs, "newton") == []
        assert len(starts(logs, "newton first")) == 1, "no USD was loaded by then"

    @pytest.mark.parametrize(
        ("scenario", "reason"),
        [
            ("usd first", r"cannot start in this process, because USD \(pxr\) is already loaded"),
            ("ovphysx first", "because ovphysx is already loaded"),
            ("newton later", "Isaac Sim runs in this process, but the env does not use it"),
            ("camera later", "without a renderer, but the env has cameras"),
            ("other device", "on another device or with other launcher_args"),
            ("other arguments", "on another device or with other launcher_args"),
        ],
    )
    def test_an_env_that_does_not_fit_needs_a_fresh_process(self, logs: Path, scenario: str, reason: str) -> None:
        assert re.match(f"FreshProcessError: .*{reason}", output(logs, scenario)), output(logs, scenario)

    def test_a_missing_isaac_sim_is_named_with_what_needs_it(self, logs: Path) -> None:
        text = output(logs, "missing")
        assert text.startswith("RlnbError: The env needs Isaac Sim, which is not installed in ")
        assert "PhysxCfg" in text
        assert 'physics="newton_mjwarp"' in text

    def test_a_card_names_what_needs_a_missing_isaac_sim(self, logs: Path) -> None:
        assert output(logs, "missing for").startswith("('Isaac Sim PhysX physics (`PhysxCfg`)',) () () ('")

    def test_terms_that_the_user_has_not_accepted_are_named_and_nothing_is_asked(self, logs: Path) -> None:
        assert output(logs, "terms").startswith("RlnbError: The terms of Isaac Sim are not accepted. Read them at ")
        assert "OMNI_KIT_ACCEPT_EULA" in output(logs, "terms")
        assert starts(logs, "terms") == []

    def test_a_kit_with_a_renderer_serves_envs_with_and_without_cameras(self, logs: Path) -> None:
        (start,) = starts(logs, "camera first")
        assert start["experience"].endswith("isaaclab.python.headless.rendering.kit")
        assert output(logs, "camera first").endswith("argv ['serve', '/tmp/pipe']\n")

    def test_a_rank_behind_one_on_the_cpu_keeps_its_gpu(self, logs: Path) -> None:
        assert output(logs, "rank").startswith("cuda:0\n1 None\n")

    def test_rehearsals_can_tell_which_env_would_start_it(self, logs: Path) -> None:
        assert output(logs, "needs").startswith("[True, False, True]")


def test_a_gpu_gets_what_isaac_lab_sets_for_it() -> None:
    assert arguments_of("cpu") == {"device": "cpu"}
    assert arguments_of("cuda:0") == {"device": "cuda:0", "multi_gpu": False, "distributed": False}
    assert arguments_of("cuda:1", 2) == {"device": "cuda:1", "multi_gpu": False, "distributed": True}
    assert arguments_of("cpu", 2, {"experience": "my.kit"}) == {"device": "cpu", "experience": "my.kit"}
