"""Task cards, as the worker writes and the kernel reads them."""

from __future__ import annotations

import dataclasses
import sys

import pytest

from rlnb.configs.card import AgentCard, Asset, AssetRoot, CameraCard, ConfigField, Selectors, TaskCard
from rlnb.configs.checks import NEWTON, WARP, check_task, runtime_problems
from rlnb.display.status import note_once
from rlnb.errors import CheckError, RlnbError
from rlnb.machine.packages import install_line
from rlnb.settings import options
from rlnb.spec import Task
from rlnb.storage.serial import from_json, to_json

CARD = TaskCard(
    task="Demo",
    gym_id="Demo-v0",
    workflow="direct",
    num_envs=64,
    fields={"eye": ConfigField(type="list", value=[1.0, [2, None]]), "seed": ConfigField(type="any")},
    presets=Selectors(physics=("physx",), presets=("physx",)),
    cameras={"wrist": CameraCard(data_types=("rgb", "depth"), width=64, height=48)},
    agents={"sb3": AgentCard(error="it does not load"), "skrl": AgentCard(takes_more=("", "agent"))},
    assets={"arm.usd": Asset(path="/pack/arm.usd", exists=False, fix="rlnb assets build")},
    asset_root=AssetRoot(path="/pack", reason="set for this run"),
    versions={"rlnb": "0.1.0"},
)


def test_a_card_survives_json() -> None:
    assert from_json(TaskCard, to_json(CARD)) == CARD


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"fields": {"seed": {"type": "matrix", "value": 1}}}, "type='matrix'"),
        ({"cameras": {"wrist": {"width": 64}}}, "height"),
        ({"agents": {"skrl": {"mising": []}}}, "Did you mean 'missing'"),
    ],
)
def test_a_damaged_part_is_named(damage: dict[str, object], message: str) -> None:
    with pytest.raises(RlnbError, match=message):
        from_json(TaskCard, {**to_json(CARD), **damage})


def test_a_library_is_usable_if_its_config_loads_and_nothing_is_missing() -> None:
    assert AgentCard().usable
    assert not AgentCard(error="it does not load").usable
    assert not AgentCard(missing=("jax (not installed)",)).usable


@pytest.mark.parametrize(("path", "local"), [("/pack", True), ("https://host/Assets", False), ("omniverse://x", False)])
def test_a_root_with_a_url_scheme_is_not_local(path: str, local: bool) -> None:
    assert AssetRoot(path=path, reason="").local == local


# -- runtime ---------------------------------------------------------------------------------------------------------


LIFT = Task(id="Lift")
PHYSX = "Isaac Sim PhysX physics (`PhysxCfg`)"
NAMES = ("isaacsim_physx", "newton_kamino", "newton_mjwarp", "ovphysx", "physx")


def problem(card: TaskCard, *, task: Task = LIFT, python: str | None = None) -> str:
    (one,) = runtime_problems(task, card, python)
    return f"{one.what} {one.fix}"


def test_a_task_that_needs_a_missing_isaac_sim_names_the_lines_that_do_without() -> None:
    card = TaskCard(task="Lift", isaac_sim=(PHYSX,))
    text = problem(card)
    assert f"Lift needs Isaac Sim, which {sys.executable} does not have: it uses {PHYSX}." in text
    assert (
        "sim.physics=NewtonCfg() in the task's config, with from isaaclab_newton.physics import NewtonCfg, or" in text
    )
    text = problem(dataclasses.replace(card, presets=Selectors(physics=NAMES)), python="/isaac/python.sh")
    assert "which /isaac/python.sh does not have" in text
    assert "physics='newton_mjwarp', or python= with an interpreter" in text


def test_the_interpreter_of_the_options_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "python", "/my/python")
    assert "which /my/python does not have" in problem(TaskCard(task="Lift", isaac_sim=(PHYSX,)))


def test_a_renderer_of_isaac_sim_is_named_with_one_that_does_without() -> None:
    card = TaskCard(task="Lift", isaac_sim=("a Kit-based renderer (`IsaacRtxRendererCfg`)",))
    fix = "renderer_cfg=NewtonWarpRendererCfg() in its cameras, with from isaaclab_newton.renderers import"
    assert fix in problem(card)
    text = problem(dataclasses.replace(card, presets=Selectors(renderer=("isaacsim_rtx", "newton_renderer"))))
    assert "renderer='newton_renderer', or python=" in text
    assert "physics=" not in text


def test_both_lines_are_named_at_once() -> None:
    card = TaskCard(task="Lift", isaac_sim=(PHYSX, "a Kit-based renderer (`IsaacRtxRendererCfg`)"))
    text = problem(card)
    assert (
        "sim.physics=NewtonCfg() in the task's config and renderer_cfg=NewtonWarpRendererCfg() in its cameras" in text
    )
    assert f"with {NEWTON}; {WARP}, or python=" in text


def test_a_launcher_argument_that_needs_isaac_sim_is_named() -> None:
    task = Task(id="Lift", launcher_args={"livestream": 2})
    text = problem(TaskCard(task="Lift", isaac_sim=("livestreaming",)), task=task)
    assert "fewer launcher_args than livestream, or python=" in text


def test_a_task_that_needs_a_missing_ovphysx_is_a_problem() -> None:
    card = TaskCard(task="Lift", missing=("ovphysx", "ovstage"))
    text = problem(card)
    assert f"Lift uses OvPhysX, which needs ovphysx and ovstage in {sys.executable}." in text
    assert text.endswith(install_line("rlnb[physx]"))
    selectors = Selectors(physics=NAMES)
    text = problem(dataclasses.replace(card, presets=selectors), python="/my/python")
    assert "in /my/python. physics='newton_mjwarp', or " in text
    assert text.endswith(install_line("rlnb[physx]", python="/my/python"))
    text = problem(dataclasses.replace(card, presets=selectors, versions={"isaacsim": "6.2.0.0"}))
    assert "physics='isaacsim_physx', or " in text


def test_soft_bodies_need_a_package_that_cuts_them() -> None:
    text = problem(TaskCard(task="Lift", requires=("pytetwild[all]<0.4,>=0.3.0",)), python="/my/python")
    assert "Lift has a soft body that is cut into tetrahedra, which /my/python has no package for." in text
    assert text.endswith("/my/python -m pip install 'pytetwild[all]<0.4,>=0.3.0'")


def test_a_preview_or_a_debugger_is_refused_in_the_same_words() -> None:
    with pytest.raises(CheckError) as caught:
        check_task(LIFT, TaskCard(task="Lift", isaac_sim=(PHYSX,)))
    assert "sim.physics=NewtonCfg() in the task's config" in str(caught.value)


def test_what_was_chosen_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    note_once.cache_clear()
    card = TaskCard(task="Mine", chosen=("sim.physics=NewtonCfg()", "camera.renderer_cfg=NewtonWarpRendererCfg()"))
    for _ in range(2):
        check_task(Task(id="Mine"), card)
    (record,) = caplog.records
    assert record.message == (
        "Without Isaac Sim, Mine runs with sim.physics=NewtonCfg() and camera.renderer_cfg=NewtonWarpRendererCfg()."
    )
    caplog.clear()
    check_task(Task(id="Mine"), dataclasses.replace(card, chosen=card.chosen[1:]))
    assert "Without Isaac Sim, Mine runs with camera.renderer_cfg" in caplog.text
    caplog.clear()
    check_task(LIFT, TaskCard(task="Lift"))
    assert not caplog.records
