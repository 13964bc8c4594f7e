"""Tasks in the kernel: a name, a module on disk, and values that the kernel can check."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb import options, spec
from rlnb.configs.card import AgentCard, ConfigField, TaskCard
from rlnb.plugin import Problem
from rlnb.settings import Options
from rlnb.storage.serial import to_json
from rlnb.tasks import agent as agent_module
from rlnb.tasks import card_cache, source
from rlnb.tasks.task import as_task

BODY = "import helpers_of_mine\n\nTASK = 1\n"
NOTEBOOK = "lift.ipynb"


def whats(problems: list[Problem]) -> list[str]:
    return [problem.what for problem in problems]


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_task_of_a_cell_has_its_module_and_hash(root: Path) -> None:
    path = source.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    task = rlnb.task("Lift-Cube", num_envs=8, overrides={"sim.dt": 0.01}, presets="physx")
    assert (task.source, task.source_sha256) == (str(path), sha256(BODY)), "the header is not hashed"
    assert (task.num_envs, task.presets, task.overrides) == (8, ("physx",), {"sim.dt": 0.01})


def test_a_registered_task_has_no_module(root: Path) -> None:
    assert rlnb.task("Isaac-Cartpole-Direct") == rlnb.Task(id="Isaac-Cartpole-Direct")


@pytest.mark.parametrize("num_envs", [0, -1, 2.5, "8", True])
def test_an_invalid_number_of_envs_is_refused_with_every_other_problem(root: Path, num_envs: Any) -> None:
    with pytest.raises(rlnb.CheckError) as caught:
        rlnb.task("Echo", num_envs=num_envs, overrides={"sim.dt": object(), "fine": 1})
    assert whats(list(caught.value.problems))[0] == f"num_envs={num_envs!r} is not a positive whole number."
    assert "override 'sim.dt'" in caught.value.problems[1].what
    assert len(caught.value.problems) == 2


def test_launcher_arguments_are_checked_with_everything_else_and_kept(root: Path) -> None:
    task = rlnb.task("Echo", launcher_args={"kit_args": "--enable my.extension", "livestream": 2})
    assert task.launcher_args == {"kit_args": "--enable my.extension", "livestream": 2}
    with pytest.raises(rlnb.CheckError, match=r"2 problems[\s\S]*num_envs=0[\s\S]*Did you mean 'livestream'"):
        rlnb.task("Echo", num_envs=0, launcher_args={"livestreams": 2})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("name", ["lift_cube.py", "helpers_of_mine.py"])
def test_a_cell_of_another_user_needs_trust(name: str, root: Path) -> None:
    path = source.module_path(options.folders, "Lift-Cube")
    path.parent.mkdir(parents=True)
    path.write_text(BODY)  # by another kernel: what this one has run itself is not read from the file
    (path.parent / "helpers_of_mine.py").touch()
    own = rlnb.task("Lift-Cube")
    os.chown(path.parent / name, 65_534, 65_534)
    with pytest.raises(rlnb.RlnbError, match=rf"would execute .*/{name}, which belongs to the user 65534.*trust=True"):
        rlnb.task("Lift-Cube")
    with pytest.raises(rlnb.RlnbError, match="belongs to the user"):
        rlnb.train("Lift-Cube", library="echo")
    assert rlnb.task("Lift-Cube", trust=True) == own


def test_modules_that_register_tasks_are_arguments_or_an_option(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rlnb.task("Puck-v0", imports="mine.tasks").imports == ("mine.tasks",)
    assert rlnb.task("Puck-v0", imports=["mine.tasks", "theirs"]).imports == ("mine.tasks", "theirs")
    assert rlnb.task("Puck-v0").imports == ()
    monkeypatch.setattr(options, "imports", "mine.tasks")
    assert rlnb.task("Puck-v0").imports == as_task("Puck-v0").imports == ("mine.tasks",)
    assert rlnb.task("Puck-v0", imports=()).imports == ()
    monkeypatch.setenv("RLNB_IMPORTS", "mine.tasks, theirs")
    assert Options().imports == ("mine.tasks", "theirs")


@pytest.mark.parametrize("name", ["mine/tasks.py", "mine.", "", 3])
def test_an_import_that_is_not_the_name_of_a_module_is_refused(root: Path, name: Any) -> None:
    with pytest.raises(rlnb.CheckError) as caught:
        rlnb.task("Puck-v0", imports=[name, "fine"], num_envs=0)
    assert whats(list(caught.value.problems))[1:] == [f"imports={name!r} is not the name of a module."]


def test_a_task_with_verbs_is_equal_to_the_one_of_a_manifest_and_written_in_the_same_way(root: Path) -> None:
    task = rlnb.task("Echo", num_envs=4, overrides={"sim.dt": 0.1})
    plain = spec.Task(id="Echo", num_envs=4, overrides={"sim.dt": 0.1}, imports=task.imports)
    assert isinstance(task, rlnb.Task)
    assert type(plain) is not rlnb.Task
    assert (task == plain, plain == task, task != plain) == (True, True, False)
    assert task != dataclasses.replace(task, num_envs=5)
    assert plain != dataclasses.replace(task, num_envs=5)
    assert task != "Echo"
    assert to_json(task) == to_json(plain)
    assert isinstance(dataclasses.replace(task, num_envs=5), rlnb.Task)
    assert rlnb.Task.of(plain) == plain


def test_the_task_of_a_run_has_verbs_too(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait()
    assert isinstance(rlnb.task(run), rlnb.Task)


def test_the_verbs_of_a_task_take_the_interpreter_and_the_assets(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = AgentCard(source="cartpole.yaml of the task", fields={"lr": ConfigField(type="float", value=0.1)})
    card = TaskCard(task="Demo", agents={"rsl_rl": config})
    calls: list[tuple[object, ...]] = []

    def card_of(*arguments: object) -> TaskCard:
        calls.append(arguments[1:])
        return card

    monkeypatch.setattr(card_cache, "card_of", card_of)
    monkeypatch.setattr(agent_module, "card_of", card_of)
    task = rlnb.task("Demo", num_envs=2)
    assert task.card(python="p", asset_root="/a") == card
    assert task.agent("rsl_rl", python="p", asset_root="/a").values == {"lr": 0.1}
    assert calls == [(task, "p", "/a")] * 2
