"""Each fix that an error names is done, as it says, and the training then starts: no fix leads to another refusal."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.simulation.pool import pool

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]
CARTPOLE, CAMERA = "Isaac-Cartpole-Direct", "Isaac-Cartpole-Camera-Direct"
SHOWCASE = "IsaacContrib-Cartpole-Showcase-Direct"


@pytest.fixture(scope="module", autouse=True)
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Provide a root and a warm simulator for all tests, since each is one short training."""
    from rlnb.worker.assets.packs import build

    folder = tmp_path_factory.mktemp("fixes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
        patch.setenv("RLNB_ROOT", str(folder))
        patch.setenv("RLNB_QUEUE", str(folder / "queue"))
        patch.setattr(rlnb.options, "root", folder)
        patch.setattr(rlnb.options, "warm", True)
        yield folder
        pool.shut_down()


def done(fix: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments after a fix: its first alternative, of names in quotes, or else its numbers by path."""
    named = dict(re.findall(r"(library|agent|physics|renderer)='(\w+)'", fix.split(" or ")[0]))
    if named:
        physics = {name: named.pop(name) for name in ("physics", "renderer") if name in named}
        task = rlnb.task(arguments["task"], **physics) if physics else arguments["task"]
        return {**arguments, **named, "task": task}
    numbers = {path: int(number) for path, number in re.findall(r"([\w.]+)=(\d+)", fix)}
    values = {f"+{path}" if f"+{path}" in arguments["agent"] else path: number for path, number in numbers.items()}
    if added := re.findall(r"'\+([\w.]+)'", fix):
        values = {f"+{path}": arguments["agent"][path] for path in added}
    left = {path: value for path, value in arguments["agent"].items() if f"+{path}" not in values}
    return {**arguments, "agent": {**left, **values}}


def start(arguments: dict[str, Any]) -> None:
    run = rlnb.train(**arguments, max_iterations=1, device="cpu")
    run.wait(120)
    assert run.state == "completed"


@pytest.mark.parametrize(
    "arguments",
    [
        {"library": "rsl_rl", "agent": {"num_steps_per_env": 1, "algorithm.num_mini_batches": 4}, "num_envs": 2},
        {"library": "rl_games", "agent": {"params.config.minibatch_size": 7}, "num_envs": 8},
        {"library": "skrl", "agent": {"agent.mini_batches": 1000}, "num_envs": 2},
        {"library": "sb3", "agent": {"+n_minibatches": 10000}, "num_envs": 2},
        {"library": "skrl", "agent": {"agent.experiment.wandb": False}, "num_envs": 2},
        {"library": "skrl_mappo", "num_envs": 4},
        {"task": CAMERA, "library": "sb3", "num_envs": 4},
        {"task": SHOWCASE, "presets": "box_discrete", "library": "rsl_rl", "agent": "generic", "num_envs": 4},
        {"task": SHOWCASE, "presets": "dict_box", "library": "sb3", "agent": "generic", "num_envs": 4},
    ],
    ids=lambda arguments: "-".join(str(value) for value in arguments.values()),
)
def test_a_training_starts_after_the_fix(arguments: dict[str, Any]) -> None:
    presets = arguments.pop("presets", None)
    task = rlnb.task(arguments.pop("task", CARTPOLE), **({"presets": presets} if presets else {}))
    arguments = {"task": task, "agent": {}, **arguments}
    (problem,) = rlnb.check(**arguments)
    fixed = done(problem.fix, arguments)
    assert fixed != arguments
    assert rlnb.check(**fixed) == []
    start(fixed)


OF_ISAAC_SIM = """
from isaaclab.sim import SimulationCfg
from isaaclab.utils import configclass
from isaaclab_physx.physics import PhysxCfg
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg


@configclass
class MineCfg(CartpoleEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        self.sim.physics = PhysxCfg()


class MineEnv(CartpoleEnv):
    pass
"""


@pytest.mark.skipif(importlib.util.find_spec("isaacsim") is not None, reason="Isaac Sim is installed here")
def test_a_task_starts_with_the_physics_and_the_import_that_the_fix_names() -> None:
    rlnb.define("Of-Isaac-Sim", OF_ISAAC_SIM)
    (problem,) = rlnb.check("Of-Isaac-Sim", num_envs=2)
    with pytest.raises(rlnb.CheckError) as refused:
        rlnb.preview("Of-Isaac-Sim")
    assert problem.fix in str(refused.value), "a preview says the same"
    found = re.match(r"sim\.physics=(\w+\(\)) in the task's config, with (from [\w.]+ import \w+),", problem.fix)
    assert found, problem.fix
    physics, line = found.groups()
    rlnb.define("Of-Isaac-Sim", line + OF_ISAAC_SIM.replace("physics = PhysxCfg()", f"physics = {physics}"))
    assert rlnb.check("Of-Isaac-Sim", num_envs=2) == []
    start({"task": "Of-Isaac-Sim", "num_envs": 2})


HIDDEN = """
import torch
from isaaclab.managers import ObservationGroupCfg, ObservationTermCfg
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg import CartpoleEnvCfg


def seen(env) -> torch.Tensor:
    return torch.zeros(env.num_envs, 3, 36, 36)


@configclass
class ObservationsCfg:
    @configclass
    class PolicyCfg(ObservationGroupCfg):
        seen = ObservationTermCfg(func=seen)

    policy: PolicyCfg = PolicyCfg()


@configclass
class HiddenCfg(CartpoleEnvCfg):
    observations: ObservationsCfg = ObservationsCfg()
"""


def test_a_picture_that_only_the_env_knows_is_refused_by_the_worker_in_the_same_words() -> None:
    rlnb.define("Hidden-Picture", HIDDEN)
    assert rlnb.check("Hidden-Picture", num_envs=2) == []
    with pytest.raises(rlnb.RunError, match=r"'policy' is a picture of the shape \(3, 36, 36\), but the actor is an"):
        rlnb.train("Hidden-Picture", num_envs=2, max_iterations=1, device="cpu").wait(120)


def problem_of(**arguments: Any) -> str:
    """Return the one problem of a call with its fix, as a user reads it."""
    (problem,) = rlnb.check(**arguments)
    return f"{problem.what} {problem.fix}"


def test_a_path_that_is_corrected_leads_to_a_start(living: Path) -> None:
    robot = "scene.robot.spawn.usd_path"
    right = str(rlnb.task("Isaac-Cartpole").card().fields[robot].value)
    wrong = rlnb.task("Isaac-Cartpole", overrides={robot: f"{living}/gone.usd"})
    assert problem_of(task=wrong, num_envs=2).endswith("there is no such file. Correct the path.")
    start({"task": rlnb.task("Isaac-Cartpole", overrides={robot: right}), "num_envs": 2})


def test_the_suggested_value_the_library_of_weights_and_no_presets_lead_to_a_start() -> None:
    text = problem_of(task=CARTPOLE, library="rsl_rl", agent={"algorithm.learning_rat": 1e-3}, num_envs=2)
    path = re.findall(r"Did you mean '([\w.]+)'\?", text)[0]
    first = rlnb.train(CARTPOLE, library="rsl_rl", agent={path: 1e-3}, num_envs=2, max_iterations=1, device="cpu")
    text = problem_of(task=CARTPOLE, library="skrl", init_from=first.wait(120), num_envs=2)
    library = re.findall(r"Use library='(\w+)'\.", text)[0]
    start({"task": CARTPOLE, "library": library, "init_from": first, "num_envs": 2})
    text = problem_of(task=rlnb.task(CARTPOLE, presets="fast"), num_envs=2)
    assert text.endswith("or leave presets out.")
    start({"task": CARTPOLE, "num_envs": 2})


REGISTERS = """
import gymnasium

gymnasium.register(
    id="{id}",
    entry_point="isaaclab_tasks.core.cartpole.cartpole_direct_env:{env}",
    kwargs={{"env_cfg_entry_point": "isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg:CartpoleEnvCfg"}},
)
"""


def test_a_project_on_the_path_and_a_corrected_registration_lead_to_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_a_stranger.py").write_text(REGISTERS.format(id="Strange-v0", env="CartpoleEnvv"))
    arguments: dict[str, Any] = {"library": "rsl_rl", "agent": "generic", "num_envs": 2}
    arguments["task"] = rlnb.task("Strange-v0", imports="of_a_stranger")
    text = problem_of(**arguments)
    assert "add its folder to PYTHONPATH. Then call rlnb.simulator().restart()." in text
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    rlnb.simulator().restart()
    assert "CartpoleEnvv" in problem_of(**arguments)
    (tmp_path / "of_a_stranger.py").write_text(REGISTERS.format(id="Strange-v0", env="CartpoleEnv"))
    assert rlnb.check(**arguments) == []
    start(arguments)
