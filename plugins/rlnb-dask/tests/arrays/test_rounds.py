"""One submission of an array, with commands of Slurm that answer from files."""

from __future__ import annotations

import errno
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rlnb_dask.arrays.folder import ArrayFolder
from rlnb_dask.arrays.further import FurtherJobs
from rlnb_dask.arrays.rounds import Round

import rlnb
from rlnb.launchers import DetachedJob

Commands = Callable[[str, str], None]
Jobs = list[DetachedJob]
WAITING = "0 PENDING (Resources)\n1 PENDING (Resources)\n2 PENDING (Resources)\n"

pytestmark = [pytest.mark.usefixtures("fast", "fake"), pytest.mark.timeout(30)]


class Runner:
    """A round in a thread of its own."""

    def __init__(self, folder: ArrayFolder, jobs: list[DetachedJob]) -> None:
        launcher = rlnb.slurm(walltime="01:00:00")
        self.further = FurtherJobs(launcher, str(folder.path))
        self._round = Round(folder, launcher, 1, jobs, at_once=2, further=self.further)
        self._thread = threading.Thread(target=self._round.run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def run(self) -> None:
        self.start()
        self.wait()

    def wait(self) -> None:
        self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.fixture
def runner(folder: ArrayFolder, jobs: list[DetachedJob], fake: Path) -> Iterator[Runner]:
    runner = Runner(folder, jobs)
    yield runner
    (fake / "states").write_text("")
    for job in jobs:
        if job.path.exists():
            cancel(job)
    runner.wait()


def cancel(job: DetachedJob, save_s: float = 0.0) -> None:
    (job.path / "cancel.json").write_text(json.dumps({"save_s": save_s}))


def start_agent(job: DetachedJob) -> None:
    (job.path / "node0.running").write_text(json.dumps({"host": "node1"}))


def error(job: DetachedJob) -> str:
    result = DetachedJob(job.path).result
    return result.error if result else ""


def until(fact: Callable[[], object]) -> None:
    deadline = time.monotonic() + 5.0
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def count(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_an_array_whose_id_was_lost_is_not_submitted_again(
    runner: Runner, folder: ArrayFolder, jobs: Jobs, fake: Path, commands: Commands
) -> None:
    commands("sbatch", "echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1")
    commands("squeue", 'case "$*" in *"-n rlnb-"*) echo 18; echo 18 ;; *) cat $FAKE/states ;; esac')
    (fake / "final").write_text("COMPLETED")
    runner.run()
    assert count(fake / "sbatch.log") == 1
    name = (fake / "sbatch.log").read_text().partition("--job-name=")[2].split()[0]
    assert name == f"rlnb-{folder.path.name}-1"
    assert folder.place(jobs[1].path) == ("18", 1)
    assert json.loads((jobs[1].path / "submitted.json").read_text())["jobs"] == ["18_1"]


def test_an_array_is_submitted_again_only_once_the_queue_has_none(
    runner: Runner, fake: Path, commands: Commands
) -> None:
    commands(
        "sbatch", f"[ $(wc -l < {fake}/sbatch.log) -gt 1 ] && echo 17 || {{ echo 'Socket timed out' >&2; exit 1; }}"
    )
    commands(
        "squeue",
        f'case "$*" in *" -n "*) [ $(wc -l < {fake}/squeue.log) -gt 3 ] || exit 1 ;; *) cat $FAKE/states ;; esac',
    )
    runner.run()
    assert count(fake / "sbatch.log") == 2
    assert count(fake / "squeue.log") >= 4, "a query that fails is no permission"


def test_a_refusal_ends_all_runs(runner: Runner, jobs: Jobs, commands: Commands) -> None:
    commands("sbatch", "echo 'Invalid qos specification' >&2; exit 1")
    runner.run()
    assert {error(job) for job in jobs} == {"the array could not be submitted: Invalid qos specification"}


def test_an_array_waits_until_the_queue_takes_it(runner: Runner, jobs: Jobs, fake: Path, commands: Commands) -> None:
    error = "sbatch: error: QOSMaxSubmitJobPerUserLimit\\nsbatch: error: Batch job submission failed: Job violates"
    commands("sbatch", f"[ -e {fake}/place ] && echo 17 || {{ printf '{error}\\n' >&2; exit 1; }}")
    runner.start()
    until((jobs[2].path / "waits.json").exists)
    reason = json.loads((jobs[2].path / "waits.json").read_text())["what"]
    assert reason == "Job violates: QOSMaxSubmitJobPerUserLimit"
    (fake / "place").touch()
    until((jobs[2].path / "submitted.json").exists)


def test_a_removal_that_failed_is_tried_again(runner: Runner, jobs: Jobs, fake: Path, commands: Commands) -> None:
    (fake / "states").write_text(WAITING)
    commands("scancel", f"[ $(wc -l < {fake}/scancel.log) -gt 2 ]")
    cancel(jobs[1])
    runner.start()
    until(lambda: error(jobs[1]))
    assert error(jobs[1]) == "cancelled while it waited in the queue"
    assert (fake / "scancel.log").read_text() == "-- 17_[1]\n" * 3
    assert not error(jobs[0])


def test_a_deleted_run_and_a_damaged_record_do_not_end_the_others(runner: Runner, jobs: Jobs, fake: Path) -> None:
    (fake / "states").write_text(WAITING)
    runner.start()
    until((jobs[2].path / "waits.json").exists)
    shutil.rmtree(jobs[0].path.parents[1])
    (jobs[1].path / "result.json").write_text("{")
    (fake / "states").write_text("2 RUNNING (None)\n")
    time.sleep(0.4)
    (fake / "states").write_text("")
    until(lambda: error(jobs[2]))
    assert "is FAILED" in error(jobs[2])
    (jobs[1].path / "result.json").unlink()
    runner.wait()
    assert "is FAILED" in error(jobs[1])
    assert not jobs[0].path.exists()


def test_an_error_of_the_file_system_ends_neither_the_host_nor_the_watch(
    runner: Runner, jobs: Jobs, fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake / "states").write_text(WAITING)
    exists, stale = Path.exists, jobs[0].path

    def stumble(path: Path, **options: bool) -> bool:
        if path == stale:
            raise OSError(errno.ESTALE, "Stale file handle")
        return exists(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", stumble)
        runner.start()
        until((jobs[0].path / "waits.json").exists)
        time.sleep(0.3)
    (fake / "states").write_text("")
    runner.wait()
    assert "is FAILED" in error(jobs[0])


def test_without_its_folders_a_host_ends_even_if_the_queue_does_not_answer(
    runner: Runner, jobs: Jobs, fake: Path, commands: Commands
) -> None:
    (fake / "states").write_text(WAITING)
    runner.start()
    until((jobs[2].path / "waits.json").exists)
    commands("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    for job in jobs:
        shutil.rmtree(job.path.parents[1])
    runner.wait()


def test_a_run_that_waits_for_the_further_array_can_be_cancelled(
    runner: Runner, jobs: Jobs, fake: Path, tmp_path: Path
) -> None:
    (fake / "states").write_text(WAITING)
    path = tmp_path / "runs" / "fourth" / "jobs" / "1-train"
    path.mkdir(parents=True)
    runner.further.submit(None, path)
    (job,) = runner.further.jobs
    runner.start()
    cancel(job)
    until(lambda: error(job))
    assert error(job) == "cancelled before it was submitted"
    until(lambda: not runner.further.jobs)


def test_a_cancelled_run_has_its_time_to_save(runner: Runner, jobs: Jobs, fake: Path) -> None:
    (fake / "states").write_text(WAITING.replace("PENDING (Resources)", "RUNNING (None)"))
    for job in jobs:
        start_agent(job)
    runner.start()
    cancel(jobs[0], save_s=1.0)
    cancel(jobs[1])
    until(lambda: count(fake / "scancel.log"))  # the file exists a moment before its line
    assert (fake / "scancel.log").read_text() == "-- 17_[1]\n"
    begun = time.monotonic()
    until(lambda: count(fake / "scancel.log") == 2)
    assert time.monotonic() - begun > 0.5
    assert not error(jobs[1]), "its agent may still write a result"
    (fake / "states").write_text("2 RUNNING (None)\n")
    until(lambda: error(jobs[1]))
    assert error(jobs[1]) == "cancelled; its element ended before it had saved"


def test_a_waiting_run_says_why(runner: Runner, jobs: Jobs, fake: Path) -> None:
    (fake / "states").write_text(WAITING.replace("2 PENDING (Resources)", "2 RUNNING (None)"))
    runner.start()
    until((jobs[0].path / "waits.json").exists)
    assert json.loads((jobs[0].path / "waits.json").read_text())["what"] == "PENDING (Resources)"
    assert not (jobs[2].path / "waits.json").exists()
    (fake / "states").write_text("0 RUNNING (None)\n")
    until(lambda: not (jobs[0].path / "waits.json").exists())


def test_a_run_whose_node_was_taken_away_says_so_in_words(runner: Runner, jobs: Jobs, fake: Path) -> None:
    start_agent(jobs[0])
    (fake / "final").write_text("PREEMPTED")
    runner.run()
    assert error(jobs[0]) == "node 0 (node1) is lost: Slurm's job 17_0 was preempted"
    assert error(jobs[1]) == "no agent was started: Slurm's job 17_1 was preempted, and it has printed nothing"
    assert (jobs[0].path / "closed.json").exists(), "without its manifest, the run cannot go on"
