"""Several trainings as one array: all problems at once, and no folder of a run if the array does not start."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.spec import Json
from rlnb.training.arguments import TrainRequest
from rlnb.training.create import array_problems, create_array, train_array
from rlnb.training.plan import make_plan


class Arrays(rlnb.HostedLauncher):
    """A launcher with arrays of at most three jobs, which no process runs."""

    name, nodes, nproc_per_node, max_running, walltime_s = "arrays", 1, None, None, None
    settings: Mapping[str, Json] = {}
    error: Exception | None = None
    job_dirs: Sequence[Path] = ()
    at_once: int | None = None

    def check(self, manifest: rlnb.Manifest) -> Sequence[rlnb.Problem]:
        return ()

    def check_array(self, count: int) -> Sequence[rlnb.Problem]:
        return [rlnb.Problem(what=f"{count} jobs are too many.")] if count > 3 else []

    def submit_array(self, job_dirs: Sequence[Path], *, at_once: int | None) -> Sequence[Mapping[str, Json]]:
        if self.error is not None:
            raise self.error
        self.job_dirs, self.at_once = job_dirs, at_once
        return [self.own_handle()] * len(job_dirs)


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> Arrays:
    found = {**plugins.launchers(), "arrays": rlnb.LauncherType(name="arrays", factory=f"{__name__}:Arrays")}
    monkeypatch.setattr(plugins, "launchers", lambda: found)
    return Arrays()


def requests(launcher: rlnb.Launcher | None, count: int = 3, **arguments: object) -> list[TrainRequest]:
    return [
        TrainRequest.of("Echo", {"library": "echo", "seed": seed, "launcher": launcher, **arguments})
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
