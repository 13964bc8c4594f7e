"""The task of a run, with the copy of its module in the run's folder."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import rlnb
from rlnb.plugin import Manifest
from rlnb.records.layout import RunDir
from rlnb.records.task_copy import edited_copies, task_of
from rlnb.storage import files
from rlnb.storage.files import source_hash

POLE = rlnb.Task(
    id="Pole",
    source="/gone/pole.py",
    files={"shape.py": source_hash(b"scale = 3.0\n")},
    imports=("mine",),
    num_envs=8,
    presets=("fast",),
    physics="newton_mjwarp",
    overrides={"sim.dt": 0.01},
    success="m:f",
)


def run_of(task: rlnb.Task, root: Path, script: tuple[str, ...] = ()) -> rlnb.Run:
    folder = RunDir(root / "runs" / "a")
    folder.source.mkdir(parents=True)
    for name in ("pole.py", "shape.py"):
        (folder.source / name).write_text("scale = 3.0\n")
    created = "2026-11-27T12:00:00+00:00"
    manifest = Manifest(run_id="a", created=created, task=task, library="echo", script=script)
    files.write_once(folder.manifest, manifest)
    return rlnb.get_run("a")


def test_the_task_of_a_run_has_the_copy_of_its_module_and_takes_changes(root: Path) -> None:
    run = run_of(POLE, root)
    task = rlnb.task(run, num_envs=16, overrides={"sim.render_interval": 2}, physics="newton_kamino")
    assert task.source == str(run.path / "source" / "pole.py")
    assert (task.num_envs, task.physics, task.presets) == (16, "newton_kamino", ("fast",))
    assert task.overrides == {"sim.dt": 0.01, "sim.render_interval": 2}
    assert (task.imports, task.success) == (("mine",), "m:f")


def test_a_copy_that_was_edited_is_named_before_its_use(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    task = dataclasses.replace(POLE, source_sha256=source_hash(b"scale = 3.0\n"))
    record = run_of(task, root).record
    assert task_of(record).source == str(record.folder.source / "pole.py")
    assert not caplog.text
    (record.folder.source / "shape.py").write_text("scale = 4.0\n")
    now, then = (source_hash(b"scale = %s" % scale)[:7] for scale in (b"4.0\n", b"3.0\n"))
    hashes = f"its sha256 is {now}, not {then}"
    told = f"{record.folder.source / 'shape.py'} was edited after the training: {hashes}."
    assert edited_copies(record) == (told,)
    task_of(record)
    assert told in caplog.text
    (record.folder.source / "shape.py").unlink()
    assert edited_copies(record) == (), "it is missing, which its import says"


def test_a_run_without_the_copy_is_refused(root: Path) -> None:
    run = run_of(POLE, root)
    (run.path / "source" / "shape.py").unlink()
    for call in (lambda: rlnb.task(run), run.rerun):
        with pytest.raises(rlnb.RunError, match=r"has no copy of shape.py, so a cannot be repeated"):
            call()


def test_what_has_no_task_is_refused_with_the_call_to_use(root: Path, tmp_path: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"7 is neither the name of a task nor a run"):
        rlnb.task(7)  # type: ignore[arg-type]
    with pytest.raises(rlnb.RunError, match=r"is the run of a script, which has no task. Use rlnb.train\(like=run\)"):
        rlnb.task(run_of(POLE, root, script=("train.py",)))
    params = tmp_path / "logs" / "rsl_rl" / "cartpole" / "2026-11-20_10-00-00" / "params"
    params.mkdir(parents=True)
    for name in ("env.yaml", "agent.yaml"):
        (params / name).write_text("seed: 1\n")
    (stock,) = rlnb.runs(tmp_path / "logs")
    with pytest.raises(rlnb.RunError, match=r"written by stock Isaac Lab.* Use rlnb.train\("):
        stock.rerun()
