"""The scene of a preview: a task, or a run that stands for its task and its policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.cameras.scene import Scene, scene_of
from rlnb.launchers import LocalLauncher
from rlnb.plugin import Manifest
from rlnb.protocol.requests import Policy
from rlnb.records import remote
from rlnb.records.facts import RunFacts
from rlnb.records.layout import RunDir
from rlnb.simulation import placement
from rlnb.storage import files
from rlnb.storage.serial import to_json


def run_of(root: Path, library: str = "rsl_rl", source: str | None = None) -> RunFacts:
    """Write the files of a run with two checkpoints from another interpreter."""
    folder = RunDir(root / "runs" / f"of-{library}")
    folder.logs.mkdir(parents=True)
    manifest = Manifest(
        run_id=folder.path.name,
        created="",
        task=rlnb.Task(id="Lift", source=source),
        library=library,
        python="/opt/python",
        asset_root="/assets",
    )
    files.write_once(folder.manifest, to_json(manifest))
    for name in ("model_5.pt", "model_20.pt"):
        (folder.logs / name).write_bytes(b"weights")
    return RunFacts(folder.path)


def of(task: Any, **arguments: Any) -> Scene:
    values = {"policy": None, "checkpoint": None, "trust": False, "mode": None, "python": None, "asset_root": None}
    return scene_of(task, **{**values, **arguments})


def test_a_task_alone_has_no_policy(root: Path) -> None:
    assert of("Lift") == Scene(task=rlnb.Task(id="Lift"), policy=None, mode="train", python=None, asset_root=None)


def test_a_run_stands_for_its_task_its_last_policy_and_its_interpreter(root: Path) -> None:
    run = run_of(root)
    scene = of(run)
    assert (scene.task.id, scene.python, scene.asset_root) == ("Lift", "/opt/python", "/assets")
    assert scene.policy == Policy(run=str(run.path), checkpoint="logs/model_20.pt", trust=False)
    assert of(run, python="/my/python").python == "/my/python"


def test_a_policy_may_act_in_another_task_and_be_named_by_its_id(root: Path) -> None:
    run = run_of(root)
    scene = of("Other", policy=run.id, checkpoint="model_5.pt", trust=True)
    assert scene.task.id == "Other"
    assert scene.policy == Policy(run=str(run.path), checkpoint="logs/model_5.pt", trust=True)


def test_the_task_of_a_run_is_its_own_copy_of_the_module(root: Path) -> None:
    run = run_of(root, source="/edited/since.py")
    assert of(run).task.source == str(run.path / "source" / "since.py")


def test_a_policy_that_cannot_act_is_refused(root: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"checkpoint='model_5.pt' belongs to no run"):
        of("Lift", checkpoint="model_5.pt")
    with pytest.raises(rlnb.NotFoundError, match=r"No checkpoint named 'model_6\.pt'"):
        of(run_of(root), checkpoint="model_6.pt")
    with pytest.raises(rlnb.NotFoundError):
        of("Lift", policy="no-such-run")


def test_a_policy_without_a_simulator_has_nothing_to_show(root: Path) -> None:
    run = run_of(root, "echo")
    (run.path / "logs" / "model_4.json").write_text("{}")
    with pytest.raises(rlnb.RlnbError, match="trained with echo, without a simulator"):
        of(run)


class Machine(LocalLauncher):
    """A launcher of another machine that has all runs."""

    def simulator_job(self, python: str | None, asset_root: str | None) -> None: ...

    def run_there(self, run: Path) -> str:
        return f"/there/{run.name}"


def test_a_checkpoint_that_is_on_another_machine_acts_in_the_simulator_there_alone(root: Path) -> None:
    run = run_of(root)
    remote.write(run.record.folder, remote.Remote(place="gpu7", files={"logs/model_30.pt": 7}))
    run = RunFacts(run.path)
    with pytest.raises(rlnb.RunError, match=r"model_30\.pt of .* is on gpu7, and not here"):
        of(run)
    with placement.on(Machine()):  # type: ignore[arg-type]
        assert of(run).policy == Policy(run=str(run.path), checkpoint="logs/model_30.pt", trust=False)
