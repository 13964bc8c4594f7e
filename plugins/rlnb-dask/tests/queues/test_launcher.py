"""The settings of a queue's launcher, and the site's own settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask_jobqueue  # noqa: F401  adds its defaults to Dask's configuration
import pytest
from rlnb_dask.queues import queries

import rlnb
from rlnb.hooks import plugins

SITE = {
    "job-script-prologue": ["module load site"],
    "job-extra-directives": ["--constraint=site"],
    "resource-spec": "select=1:ncpus=99",
}


def test_an_equal_launcher_is_made_from_the_settings(settings: dict[str, object]) -> None:
    launcher = rlnb.slurm(**settings)
    copy = rlnb.slurm(**launcher.settings)
    assert copy == launcher
    assert copy.job_script() == launcher.job_script()
    assert launcher.settings["prologue"] == ["module load cuda"], "a list, for JSON"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("slurm", "sbatch: error: Unable to contact slurm controller (connect failure)"),
        ("sge", "Unable to run job: unable to send message to qmaster using port 6444 on host q: got send error."),
        ("pbs", "Connection refused\nqsub: cannot connect to server pbs (errno=111)"),
        ("lsf", "LSF is down. Please wait ..."),
    ],
)
def test_a_controller_that_is_away_is_told_from_a_refusal(name: str, error: str) -> None:
    launcher = getattr(rlnb, name)()
    assert launcher.is_away(error)
    assert not launcher.is_away("Unable to run job: unknown queue")


@pytest.mark.parametrize(
    ("name", "running", "waiting"),
    [
        ("sge", "7 r, 8 r", "7 r, 8 hqw"),
        ("pbs", "7 R (Job run at Mon Nov 23 at 04:42)", "7 R, 8 Q (Not Running: Insufficient amount of resource)"),
        ("lsf", "7 RUN", "7 PEND"),
        ("lsf", "7 RUN", "7 USUSP"),
        ("oar", "7 Running", "7 Running, 8 Waiting"),
        ("htcondor", "7.0 running", "7.0 running, 8.0 held: no disk"),
    ],
)
def test_the_states_of_jobs_that_wait_are_shown(name: str, running: str, waiting: str) -> None:
    launcher = getattr(rlnb, name)()
    assert launcher.waits(running) == launcher.waits("jobs 7") == ""
    assert launcher.waits(waiting) == waiting


def test_every_gpu_gets_a_rank() -> None:
    assert rlnb.slurm(gpus_per_node=4).nproc_per_node == 4
    assert rlnb.slurm().nproc_per_node is None


def test_a_gpu_brings_cores_and_memory_unless_they_are_set() -> None:
    launcher = rlnb.slurm(gpus_per_node=4)
    assert (launcher.cores, launcher.memory_gib) == (16, 64.0)
    launcher = rlnb.slurm(gpus_per_node=4, cpus_per_node=6, memory_gib_per_node=20)
    assert (launcher.cores, launcher.memory_gib) == (6, 20)
    assert (rlnb.slurm().cores, rlnb.slurm().memory_gib) == (1, 4.0)


def test_a_training_stops_before_its_walltime() -> None:
    assert rlnb.slurm(walltime="1-08:30:00").limit_s == 32.5 * 3600 - 60
    assert rlnb.slurm(walltime="00:30:00", grace_s=300).limit_s == 1500


def test_a_single_line_is_not_split_into_letters() -> None:
    settings = {"prologue": "module load cuda", "directives": "--constraint=h200", "account": 123}
    lines = rlnb.slurm(walltime="01:00:00", **settings).job_script().splitlines()
    assert "module load cuda" in lines, "inside srun, on each node"
    assert "#SBATCH --constraint=h200" in lines
    assert "#SBATCH -A 123" in lines


@pytest.mark.parametrize("name", ["slurm", "pbs", "sge", "lsf", "oar"])
def test_the_sites_own_lines_come_before_the_users(name: str) -> None:
    settings = {"walltime": "01:00:00", "prologue": ["module load mine"], "directives": ["--reservation=mine"]}
    with dask.config.set({f"jobqueue.{name}": {**dask.config.get(f"jobqueue.{name}"), **SITE}}):
        lines = getattr(rlnb, name)(**settings).job_script().splitlines()
        sized = getattr(rlnb, name)(**settings, cpus_per_node=3).job_script()
    assert lines.index("module load site") < lines.index("module load mine")
    text = " ".join(lines)
    assert text.index("--constraint=site") < text.index("--reservation=mine")
    if name in ("pbs", "oar"):
        assert "ncpus=99" in text, "no size of the nodes is set"
        assert "ncpus=99" not in sized


@pytest.mark.parametrize("name", ["slurm", "pbs", "sge", "lsf", "oar"])
@pytest.mark.parametrize("value", [["--constraint=site"], "--constraint=site"])
@pytest.mark.filterwarnings("ignore:.* has been renamed:FutureWarning")  # of dask-jobqueue
def test_the_sites_lines_may_have_their_former_names(name: str, value: object) -> None:
    former = {"job-extra": value, "env-extra": ["module load site"]}
    with dask.config.set({f"jobqueue.{name}": {**dask.config.get(f"jobqueue.{name}"), **former}}):
        script = getattr(rlnb, name)(walltime="01:00:00", directives=["--reservation=mine"]).job_script()
    lines = script.splitlines()
    assert "module load site" in lines
    assert [line.split()[1] for line in lines if "=site" in line] == ["--constraint=site"]
    both = {**former, "job-extra-directives": ["--constraint=now"]}
    with dask.config.set({f"jobqueue.{name}": {**dask.config.get(f"jobqueue.{name}"), **both}}):
        script = getattr(rlnb, name)(walltime="01:00:00").job_script()
    assert "--constraint=now" in script
    assert "--constraint=site" not in script


def test_the_walltime_is_in_each_schedulers_format() -> None:
    texts = {name: getattr(rlnb, name)(walltime="1-08:30:05").walltime_text() for name in ("slurm", "pbs", "lsf")}
    assert texts == {"slurm": "1-08:30:05", "pbs": "32:30:05", "lsf": "32:30"}


def test_a_job_whose_host_is_gone_leaves_the_queue_with_its_keys(
    tmp_path: Path, commands: Callable[[str, str], None]
) -> None:
    (tmp_path / ".tls").mkdir()
    commands("scancel", f"echo $* >> {tmp_path}/calls")
    rlnb.slurm().withdraw(tmp_path, ["7", "8"])
    assert (tmp_path / "calls").read_text() == "-- 7\n-- 8\n"
    assert not (tmp_path / ".tls").exists()


def test_a_queue_that_does_not_answer_a_withdrawal_is_an_error_and_the_keys_are_gone(
    tmp_path: Path, commands: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "ANSWER_S", 0.3)
    (tmp_path / ".tls").mkdir()
    commands("scancel", "exec sleep 20")
    with pytest.raises(rlnb.RlnbError, match=r"so 7 8 may still be in the queue\. Use it later: scancel -- 7 8"):
        rlnb.slurm().withdraw(tmp_path, ["7", "8"])
    assert not (tmp_path / ".tls").exists()


IDS = {
    "slurm": ["7", "17_3"],
    "sge": ["7", "17.4"],
    "pbs": ["7"],
    "lsf": ["7"],
    "oar": ["7"],
    "htcondor": ["7.0"],
}
"""Ids of each queue's jobs."""


@pytest.mark.parametrize("name", IDS)
def test_only_what_looks_like_an_id_of_the_queue_is_an_argument_of_its_commands(name: str, tmp_path: Path) -> None:
    launcher: Any = plugins.make_launcher(name, {})
    assert [launcher.checked_id(number, tmp_path) for number in IDS[name]] == IDS[name]
    for text in ("--user=ann", "-u", "7 8", "7,8", "7\n", "\u0667", "all", "", "../7", "$(id)", None, ["7"]):
        with pytest.raises(rlnb.RlnbError, match=rf"is not the id of a job of {name}\."):
            launcher.checked_id(text, tmp_path)


def test_a_job_cannot_leave_the_queue_from_a_machine_without_its_commands(tmp_path: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"There is no bkill here. Use it on a login node, for 7\."):
        rlnb.lsf().withdraw(tmp_path, ["7"])
