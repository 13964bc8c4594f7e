"""One job in the worker: its kind selects a function, and a failure becomes its result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

import rlnb
from rlnb.backend import TrainContext
from rlnb.errors import FreshProcessError, NotFiniteError
from rlnb.hooks import plugins
from rlnb.plugin import Manifest, Result
from rlnb.records.layout import JobDir
from rlnb.records.record import JobRecord
from rlnb.spec import JobKind, Resources
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.version import untested
from rlnb.worker.jobs.job import JOB_FUNCTIONS, do, told, work


@pytest.fixture
def job(tmp_path: Path) -> JobDir:
    """A training of the echo library that crashes at once."""
    manifest = Manifest(
        run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo", agent={"crash_at": 0}, max_iterations=2
    )
    files.write_once(tmp_path / "manifest.json", to_json(manifest))
    folder = JobDir(tmp_path / "jobs" / "0-train")
    folder.path.mkdir(parents=True)
    return folder


def test_every_kind_of_job_has_a_function() -> None:
    assert set(JOB_FUNCTIONS) == set(get_args(JobKind))
    for function in JOB_FUNCTIONS.values():
        assert callable(plugins.load(function))


def test_the_error_for_an_unknown_kind_lists_the_known_kinds(job: JobDir) -> None:
    with pytest.raises(rlnb.NotFoundError, match=r"No kind of job named 'trian'\. Kinds: .*Did you mean 'train'\?"):
        do("trian", job.path)


def test_a_failure_is_the_result_of_the_job(job: JobDir, capsys: pytest.CaptureFixture[str]) -> None:
    assert work("train", job.path) == 1
    result = JobRecord(job, "local").result
    assert result is not None
    assert (result.outcome, result.exit_code) == ("failed", 1)
    assert result.error == "RuntimeError: echo crashes at iteration 0, as its agent option crash_at requests"
    assert "Traceback" in result.detail
    assert "rlnb_echo/backend.py" in result.detail, "the author of a plugin needs the whole of it"
    assert "Traceback" in capsys.readouterr().err, "the log has it too"


def test_only_the_first_line_of_a_long_error_is_shown() -> None:
    torch = pytest.importorskip("torch")
    try:
        torch.where(torch.zeros(1), 1, "x")
    except TypeError as exc:
        text, detail = told(exc)
    assert text.startswith(f"{__file__}, line ")
    assert "invalid combination of arguments" in text
    assert "\n" not in text
    assert detail.count("\n") <= 4


def test_an_error_of_rlnb_has_no_traceback() -> None:
    assert told(NotFiniteError("The reward is nan.")) == ("NotFiniteError: The reward is nan.", "")


def test_an_error_beside_an_untested_isaac_lab_says_so_in_the_result(
    job: JobDir, install: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise AttributeError("'Scan' object has no attribute 'launcher_types'")

    install("3.1.0")
    monkeypatch.setattr(plugins.load(plugins.library("echo").backend), "train", fails)
    assert work("train", job.path) == 1
    result = JobRecord(job, "local").result
    assert result is not None
    assert untested("3.1.0") in result.detail


@pytest.mark.parametrize("saves", [True, False])
def test_a_training_that_was_stopped_has_the_result_that_its_agent_requested(
    job: JobDir, monkeypatch: pytest.MonkeyPatch, saves: bool
) -> None:
    def stop(self: object, env: None, agent_cfg: object, ctx: TrainContext) -> None:
        ctx.iteration_finished((ctx.log_dir / "model_0.json").touch if saves else bool)

    files.write_once(job.stop, to_json(Result(outcome="timeout", error="its walltime is over")))
    monkeypatch.setattr(plugins.load(plugins.library("echo").backend), "train", stop)
    assert work("train", job.path) == 0
    result = JobRecord(job, "local").result
    assert result is not None
    assert (result.outcome, result.error) == ("timeout", "its walltime is over")
    assert result.checkpoint == ("logs/model_0.json" if saves else None), "also if the library has saved nothing"


def test_a_simulator_that_exits_is_a_failure_too(job: JobDir, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*_: object) -> None:
        raise SystemExit("Isaac Sim is not installed")

    monkeypatch.setattr(plugins.load(plugins.library("echo").backend), "train", leave)
    assert work("train", job.path) == 1
    result = JobRecord(job, "local").result
    assert result is not None
    assert result.error == "SystemExit: Isaac Sim is not installed"


def test_a_job_that_needs_a_fresh_process_has_no_result_until_it_ran_in_one(
    job: JobDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise FreshProcessError("USD (pxr) is already loaded.")

    monkeypatch.setattr(plugins.load(plugins.library("echo").backend), "train", refuse)
    with pytest.raises(FreshProcessError):
        work("train", job.path, fresh=False)
    assert not job.result.exists()
    assert work("train", job.path) == 1
    result = JobRecord(job, "local").result
    assert result is not None
    assert result.error == "FreshProcessError: USD (pxr) is already loaded."


def test_a_rank_that_only_lost_a_peer_leaves_the_report_to_that_peer(
    job: JobDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object) -> None:
        raise RuntimeError("gloo: connection closed by peer")

    monkeypatch.setattr(plugins.load(plugins.library("echo").backend), "train", lose)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("rlnb.worker.jobs.job.ECHO_S", 0.0)
    files.write_once(job.result, to_json(Result(outcome="failed", error="RuntimeError: out of memory")))
    assert work("train", job.path) == 1
    result = JobRecord(job, "local").result
    assert result is not None
    assert result.error == "RuntimeError: out of memory"


@pytest.mark.parametrize(
    ("nodes", "has_begun", "values"), [(2, True, {"interrupted": True}), (2, False, {}), (1, True, {})]
)
def test_a_training_that_lost_another_node_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: int, has_begun: bool, values: dict[str, bool]
) -> None:
    manifest = Manifest(
        run_id="r",
        created="",
        task=rlnb.Task(id="Echo"),
        library="echo",
        resources=Resources(nodes=nodes, nproc_per_node=2),
    )
    files.write_once(tmp_path / "manifest.json", to_json(manifest))
    job = JobDir(tmp_path / "jobs" / "0-train")
    job.path.mkdir(parents=True)

    def lose(*_: object) -> None:
        if has_begun:
            job.started.write_text("{}")
        raise RuntimeError("[gloo/transport/tcp/pair.cc:534] Connection closed by peer")

    monkeypatch.setattr(plugins.load(plugins.library("echo").backend), "train", lose)
    monkeypatch.setenv("WORLD_SIZE", str(2 * nodes))
    monkeypatch.setattr("rlnb.worker.jobs.job.ECHO_S", 0.0)
    assert work("train", job.path) == 1
    result = JobRecord(job, "injected").result
    assert result is not None
    assert (result.outcome, result.values) == ("failed", values)
