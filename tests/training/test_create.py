"""The folder of a new run: it appears as a whole, with its first job, or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import rlnb
from rlnb import options
from rlnb.hooks import plugins
from rlnb.launchers import DetachedLauncher, Launcher, LauncherType, LocalLauncher
from rlnb.plugin import Manifest, Problem
from rlnb.records.layout import RunDir
from rlnb.spec import Json
from rlnb.storage import files
from rlnb.storage.files import source_hash
from rlnb.storage.serial import from_json
from rlnb.training.arguments import TrainArguments
from rlnb.training.create import array_problems, create_array, create_run, train_array
from rlnb.training.plan import make_plan


class Refuses(LocalLauncher):
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
    manifest = Manifest(run_id="a-run", created="", task=gone, library="echo")
    with pytest.raises(rlnb.RlnbError, match=r"could not be made.*deleted_since\.py"):
        create_run(options.folders, manifest, LocalLauncher(), warm=False)
    assert list((root / "runs").iterdir()) == []
    with pytest.raises(rlnb.RlnbError, match=r"deleted_since\.py, which the task needs, cannot be read"):
        rlnb.train(gone, library="echo")


def test_a_source_that_was_edited_since_it_was_hashed_makes_no_run(root: Path) -> None:
    module = root / "mine.py"
    root.mkdir()
    module.write_text("TASK = 2\n")
    task = rlnb.Task(id="Echo", source=str(module), source_sha256=source_hash(b"TASK = 1\n"))
    manifest = Manifest(run_id="a-run", created="", task=task, library="echo")
    with pytest.raises(rlnb.RlnbError, match="The source of Echo was edited while the run was made"):
        create_run(options.folders, manifest, LocalLauncher(), warm=False)
    assert list((root / "runs").iterdir()) == []


def test_a_run_holds_its_manifest_its_task_and_its_first_job(root: Path) -> None:
    module = root / "tasks" / "mine.py"
    (module.parent / "meshes").mkdir(parents=True)
    module.write_text("TASK = 1\n")
    (module.parent / "meshes" / "cube.obj").write_text("v 0 0 0")
    task = rlnb.Task(id="Echo", source=str(module), files={"meshes/cube.obj": source_hash(b"v 0 0 0")})
    manifest = Manifest(run_id="a-run", created="", task=task, library="echo", max_iterations=1)
    run = create_run(options.folders, manifest, LocalLauncher(), {"trust": True}, warm=False)
    folder = RunDir(run.path)
    assert from_json(Manifest, files.read_json(folder.manifest) or {}) == manifest
    assert (folder.source / "mine.py").read_text() == "TASK = 1\n"
    assert (folder.source / "meshes" / "cube.obj").read_text() == "v 0 0 0"
    (job,) = folder.jobs()
    record = files.read_json(job.job) or {}
    assert {"kind": "train", "options": {"trust": True}, "after": ""}.items() <= record.items()
    rlnb.Run.of(run.record).wait(60)


def test_a_run_whose_job_is_refused_leaves_nothing(root: Path) -> None:
    manifest = Manifest(run_id="a-run", created="", task=rlnb.Task(id="Echo"), library="echo")
    with pytest.raises(rlnb.RlnbError, match="the queue is closed"):
        create_run(options.folders, manifest, Refuses(), warm=False)
    assert list((root / "runs").iterdir()) == []


def test_a_manifest_that_would_not_be_read_again_is_refused(root: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"manifest\.json would be larger than 1 MiB"):
        rlnb.train("Echo", library="echo", tags=["x" * (1 << 20)])
    assert list((root / "runs").iterdir()) == []


# -- array -----------------------------------------------------------------------------------------------------------


class Arrays(DetachedLauncher):
    """A launcher with arrays of at most three jobs, which no process runs."""

    name, nodes, nproc_per_node, max_running, walltime_s = "arrays", 1, None, None, None
    settings: Mapping[str, Json] = {}
    error: Exception | None = None
    job_dirs: Sequence[Path] = ()
    at_once: int | None = None

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        return ()

    def check_array(self, count: int) -> Sequence[Problem]:
        return [Problem(what=f"{count} jobs are too many.")] if count > 3 else []

    def submit_array(self, job_dirs: Sequence[Path], *, at_once: int | None) -> Sequence[Mapping[str, Json]]:
        if self.error is not None:
            raise self.error
        self.job_dirs, self.at_once = job_dirs, at_once
        return [self.own_handle()] * len(job_dirs)


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> Arrays:
    found = {**plugins.launchers(), "arrays": LauncherType(name="arrays", factory=f"{__name__}:Arrays")}
    monkeypatch.setattr(plugins, "launchers", lambda: found)
    return Arrays()


def requests(launcher: Launcher | None, count: int = 3, **arguments: object) -> list[TrainArguments]:
    return [
        TrainArguments.of("Echo", {"library": "echo", "seed": seed, "launcher": launcher, **arguments})
        for seed in range(count)
    ]


def test_the_runs_are_in_the_order_of_the_requests(root: Path, launcher: Arrays) -> None:
    runs = train_array(requests(launcher), at_once=2)
    assert [run.manifest.seed for run in runs] == [0, 1, 2]
    assert [run.jobs[0].folder.path for run in runs] == [*launcher.job_dirs]
    assert launcher.at_once == 2
    assert {run.jobs[0].handle["pid"] for run in runs} == {os.getpid()}


def test_all_problems_are_reported_at_once_and_nothing_is_written(root: Path, launcher: Arrays) -> None:
    with pytest.raises(rlnb.CheckError) as error:
        train_array(requests(launcher, 4, max_iterations=-1))
    first, _ = (problem.what for problem in error.value.problems)
    assert first == "4 jobs are too many.", "the same problem of all trainings is reported once"
    assert not root.exists() or not rlnb.runs()


def test_an_array_that_does_not_start_leaves_no_run(root: Path, launcher: Arrays) -> None:
    launcher.error = OSError("no process can be started")
    with pytest.raises(OSError, match="no process"):
        train_array(requests(launcher))
    assert [*(root / "runs").iterdir()] == []


def test_a_run_that_exists_already_survives_an_array_that_fails(
    root: Path, launcher: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = [make_plan(request) for request in requests(launcher)]
    other = root / "runs" / plans[1].manifest.run_id
    other.mkdir(parents=True)
    (other / "manifest.json").write_text("of another run")
    with pytest.raises(rlnb.RlnbError, match="could not be made"):
        create_array(plans, launcher, at_once=None)
    assert [*(root / "runs").iterdir()] == [other], "only the folders of this array are removed"
    assert (other / "manifest.json").read_text() == "of another run"


def test_the_local_launcher_has_no_arrays() -> None:
    assert [problem.what for problem in array_problems(None, 2)] == ["The launcher local has no arrays."]


def test_the_trainings_of_an_array_have_one_launcher(root: Path, launcher: Arrays) -> None:
    with pytest.raises(rlnb.CheckError, match="several launchers"):
        train_array([*requests(launcher, 1), *requests(Arrays(), 1)])
    with pytest.raises(rlnb.CheckError) as error:
        train_array(requests(None))
    assert [problem.what for problem in error.value.problems] == ["The launcher local has no arrays."]
