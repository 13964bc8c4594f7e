"""The folder of a new run: it appears as a whole, with its first job, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb
from rlnb import options
from rlnb.records.layout import RunDir
from rlnb.spec import Json
from rlnb.storage import files
from rlnb.storage.files import source_hash
from rlnb.storage.serial import from_json
from rlnb.training.create import create_run


class Refuses(rlnb.LocalLauncher):
    """A launcher that refuses every job."""

    def submit(self, *_: object, **__: object) -> dict[str, Json]:
        raise rlnb.RlnbError("the queue is closed")


def test_a_run_folder_that_cannot_be_made_leaves_nothing(root: Path) -> None:
    root.mkdir()
    (root / "runs").touch()  # the check covers the root only, so this fails when the folder is made
    with pytest.raises(rlnb.RlnbError, match="could not be made"):
        rlnb.train("Echo", library="echo")
    assert [path.name for path in root.iterdir()] == ["runs"]


def test_a_run_folder_that_cannot_be_filled_leaves_nothing(root: Path) -> None:
    gone = rlnb.Task(id="Echo", source=str(root / "tasks" / "deleted_since.py"))
    manifest = rlnb.Manifest(run_id="a-run", created="", task=gone, library="echo")
    with pytest.raises(rlnb.RlnbError, match=r"could not be made.*deleted_since\.py"):
        create_run(options.folders, manifest, rlnb.LocalLauncher(), warm=False)
    assert list((root / "runs").iterdir()) == []
    with pytest.raises(rlnb.RlnbError, match=r"deleted_since\.py, which the task needs, cannot be read"):
        rlnb.train(gone, library="echo")


def test_a_source_that_was_edited_since_it_was_hashed_makes_no_run(root: Path) -> None:
    module = root / "mine.py"
    root.mkdir()
    module.write_text("TASK = 2\n")
    task = rlnb.Task(id="Echo", source=str(module), source_sha256=source_hash(b"TASK = 1\n"))
    manifest = rlnb.Manifest(run_id="a-run", created="", task=task, library="echo")
    with pytest.raises(rlnb.RlnbError, match="The source of Echo was edited while the run was made"):
        create_run(options.folders, manifest, rlnb.LocalLauncher(), warm=False)
    assert list((root / "runs").iterdir()) == []


def test_a_run_holds_its_manifest_its_task_and_its_first_job(root: Path) -> None:
    module = root / "tasks" / "mine.py"
    (module.parent / "meshes").mkdir(parents=True)
    module.write_text("TASK = 1\n")
    (module.parent / "meshes" / "cube.obj").write_text("v 0 0 0")
    task = rlnb.Task(id="Echo", source=str(module), files={"meshes/cube.obj": source_hash(b"v 0 0 0")})
    manifest = rlnb.Manifest(run_id="a-run", created="", task=task, library="echo", max_iterations=1)
    run = create_run(options.folders, manifest, rlnb.LocalLauncher(), {"trust": True}, warm=False)
    folder = RunDir(run.path)
    assert from_json(rlnb.Manifest, files.read_json(folder.manifest) or {}) == manifest
    assert (folder.source / "mine.py").read_text() == "TASK = 1\n"
    assert (folder.source / "meshes" / "cube.obj").read_text() == "v 0 0 0"
    (job,) = folder.jobs()
    record = files.read_json(job.job) or {}
    assert {"kind": "train", "options": {"trust": True}, "after": ""}.items() <= record.items()
    run.wait(60)


def test_a_run_whose_job_is_refused_leaves_nothing(root: Path) -> None:
    manifest = rlnb.Manifest(run_id="a-run", created="", task=rlnb.Task(id="Echo"), library="echo")
    with pytest.raises(rlnb.RlnbError, match="the queue is closed"):
        create_run(options.folders, manifest, Refuses(), warm=False)
    assert list((root / "runs").iterdir()) == []


def test_a_manifest_that_would_not_be_read_again_is_refused(root: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"manifest\.json would be larger than 1 MiB"):
        rlnb.train("Echo", library="echo", tags=["x" * (1 << 20)])
    assert list((root / "runs").iterdir()) == []
