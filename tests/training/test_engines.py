"""The line that names the faster physics engine, and the file that remembers the measurement."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.simulation import simulator
from rlnb.spec import Resources, Task
from rlnb.storage import files
from rlnb.tasks.card import TaskCard
from rlnb.tasks.requests import Engines, EngineSpeeds
from rlnb.training import engines
from rlnb.training.plan import Plan

NAMES = ("newton_mjwarp", "ovphysx")
FASTER = (
    "The faster physics of Ant on this machine is ovphysx (5,600 against 2,700 env steps/s with random actions, 64 "
    "envs), but this training uses newton_mjwarp, the task's default. Use rlnb.task('Ant', physics='ovphysx') for the "
    "faster one."
)


@pytest.fixture
def plan(root: Path) -> Plan:
    files.warn_once.cache_clear()
    manifest = rlnb.Manifest(run_id="r", created="", task=Task(id="Ant"), library="rsl_rl")
    return Plan(
        root=rlnb.options.folders,
        manifest=manifest,
        launcher=rlnb.LocalLauncher(),
        options={},
        card=TaskCard(task="Ant", num_envs=64),
        problems=(),
        measure_ranks=False,
        engines=NAMES,
    )


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Engines]:
    """Provide the list of measurements; a fixed answer replaces the simulator's."""
    items: list[Engines] = []

    def request(message: Engines, *_: object) -> EngineSpeeds:
        items.append(message)
        return EngineSpeeds(steps_per_s={"newton_mjwarp": 2700.0, "ovphysx": 5600.0})

    monkeypatch.setattr(simulator, "request", request)
    monkeypatch.setattr(rlnb.options, "warm", True)
    monkeypatch.setattr(rlnb.options, "compare_physics", True)
    return items


def test_the_faster_engine_is_named_once_and_measured_once(
    plan: Plan, measured: list[Engines], caplog: pytest.LogCaptureFixture
) -> None:
    engines.say_faster(plan)
    engines.say_faster(plan)
    assert [record.message for record in caplog.records] == [FASTER]
    assert measured == [Engines(task=Task(id="Ant"), names=NAMES)]
    files.warn_once.cache_clear()  # as in another process
    engines.say_faster(plan)
    assert [record.message for record in caplog.records] == [FASTER, FASTER]
    assert len(measured) == 1


def test_another_number_of_envs_and_another_version_are_measured_again(plan: Plan, measured: list[Engines]) -> None:
    engines.say_faster(plan)
    task = dataclasses.replace(plan.manifest.task, num_envs=512)
    engines.say_faster(dataclasses.replace(plan, manifest=dataclasses.replace(plan.manifest, task=task)))
    assert [message.task.num_envs for message in measured] == [None, 512]
    engines.say_faster(dataclasses.replace(plan, card=TaskCard(task="Ant", num_envs=64, versions={"newton": "2.0"})))
    assert len(measured) == 3, "another version of an engine"


@pytest.mark.parametrize("option", ["warm", "compare_physics"])
def test_nothing_is_measured_without_a_living_simulator_or_if_the_user_turns_it_off(
    option: str,
    plan: Plan,
    measured: list[Engines],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(rlnb.options, option, False)
    engines.say_faster(plan)
    assert not measured
    assert not caplog.records


@pytest.mark.parametrize(
    "values", [{"resources": Resources(nproc_per_node=2)}, {"task": Task(id="Ant", overrides={"sim.physics.x": 1})}]
)
def test_ranks_and_values_of_one_engine_cannot_be_compared(
    plan: Plan, measured: list[Engines], values: Mapping[str, Any]
) -> None:
    engines.say_faster(dataclasses.replace(plan, manifest=dataclasses.replace(plan.manifest, **values)))
    assert not measured


def test_a_measurement_that_fails_does_not_stop_the_training(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise rlnb.WorkerError("no memory")

    monkeypatch.setattr(simulator, "request", fail)
    monkeypatch.setattr(rlnb.options, "warm", True)
    monkeypatch.setattr(rlnb.options, "compare_physics", True)
    with caplog.at_level(logging.WARNING):
        engines.say_faster(plan)
    assert "The speed of newton_mjwarp and ovphysx could not be measured: no memory" in caplog.text
    assert not list(plan.root.cards.glob("engines-*")), "a failure is not remembered as a result"


def test_the_line_says_if_the_training_uses_the_faster_engine() -> None:
    line = engines.comparison_line("Ant", 4096, "newton_mjwarp", {"newton_mjwarp": 90_000.0, "ovphysx": 50_000.0})
    assert line.endswith(
        "(90,000 against 50,000 env steps/s with random actions, 4096 envs), which this training uses."
    )


def test_a_training_says_which_engine_is_faster_before_it_starts(
    plan: Plan, measured: list[Engines], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def submit(*_: object) -> None:
        raise RuntimeError("submitted")

    monkeypatch.setattr("rlnb.training.train.make_plan", lambda _: plan)
    monkeypatch.setattr(rlnb.LocalLauncher, "submit", submit)
    with pytest.raises(RuntimeError, match="submitted"):
        rlnb.train("Ant")
    assert [record.message for record in caplog.records] == [FASTER]
    files.warn_once.cache_clear()
    with pytest.raises(RuntimeError, match="submitted"):
        rlnb.train("Ant", warm=False)
    assert len(caplog.records) == 1, "a study starts its trainings like this"
