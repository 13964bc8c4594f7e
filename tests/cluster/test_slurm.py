"""Trainings on a real Slurm with several nodes: start, refusal, cancellation, failures and interruptions."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from other_user import OTHER_UID, answer
from runs_on_nodes import LEAVE_S, echo, processes, rank, wait_until

import rlnb
from rlnb.doctor import machine

CANCEL_S, CRASH_S = 15.0, 20.0
"""Generous limits, since other tests share the cores. benchmarks/cluster.py measures an idle machine."""
REASON_S = 10.0
"""Seconds within which a run shows why it waits or stands still."""
WALLTIME = "00:10:00"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def two_nodes(**settings: Any) -> Any:
    return rlnb.slurm(nodes=2, walltime=WALLTIME, **settings)


def running(run: rlnb.Run, iterations: int = 3) -> rlnb.Run:
    """Wait until a run has trained some iterations."""
    wait_until(lambda: run.state not in ("queued", "starting"), 90)
    wait_until(lambda: run.state in ("completed", "failed") or run.progress[0] >= iterations, 60)
    assert run.state == "running", run.logs()
    return run


def steps(run: rlnb.Run) -> list[float]:
    return list(run.metrics["reward"].iterations)


def test_the_doctor_names_the_partitions(slurm: Any) -> None:
    (finding,) = machine.checks(Path.cwd())["Slurm"]()
    assert (finding.level, finding.text.partition(", ")[2]) == ("ok", "partitions: first, main")


def test_a_training_on_two_nodes_completes_and_leaves_no_process(slurm: Any, clean: Path) -> None:
    run = echo(two_nodes(), 10, nproc_per_node=2)
    assert run.wait(90).state == "completed"
    assert (run.manifest.resources.nodes, run.manifest.resources.world_size) == (2, 4)
    wait_until(lambda: not processes(run) and not slurm.jobs(), LEAVE_S)
    job = run.jobs[-1].folder
    assert len(job.hosts()) == 2
    assert len(run.started.devices) == 4
    assert {path.name for path in job.logs()} == {"node0.log", "node1.log", "host.log"}
    assert not (job.path / ".tls").exists(), "the TLS keys are deleted with the cluster"
    assert json.loads(job.submitted.read_text())["queue"] == "slurm"


def test_cancel_leaves_no_process_on_any_node(slurm: Any, clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    begun = time.monotonic()
    run = echo(two_nodes())
    assert time.monotonic() - begun < 15.0, "train() does not wait for the training"
    running(run)
    assert len(processes(run)) >= 5
    assert rank(run, 0).environ()["OMP_NUM_THREADS"] == "1", "the rank has the kernel's value"
    run.cancel()
    assert wait_until(lambda: not processes(run), 30) < CANCEL_S
    assert run.state == "cancelled"
    wait_until(lambda: not slurm.jobs(), 20)


@pytest.mark.skipif(importlib.util.find_spec("bokeh") is None, reason="Dask's dashboard needs bokeh")
def test_dasks_dashboard_is_served_on_request(slurm: Any, clean: Path) -> None:
    run = running(echo(two_nodes(dashboard=True)))
    with urllib.request.urlopen(f"http://127.0.0.1:{run.jobs[-1].submission.dashboard}/status") as page:
        assert page.status == 200
    if os.geteuid() == 0:
        assert answer(run.jobs[-1].submission.dashboard, OTHER_UID) == "", "another user gets no answer"
    run.cancel()
    wait_until(lambda: not processes(run), 30)


def test_a_run_that_waits_in_the_queue_can_be_cancelled(slurm: Any, clean: Path) -> None:
    full = echo(rlnb.slurm(nodes=4, walltime=WALLTIME, directives=["--exclusive"]))
    running(full)
    waiting = echo(two_nodes())
    wait_until(lambda: "PENDING" in waiting.logs(), 30)
    assert waiting.state == "queued"
    waiting.cancel()
    wait_until(lambda: waiting.state == "cancelled" and not processes(waiting), 20)
    assert full.state == "running"


def scontrol(verb: str, run: rlnb.Run) -> None:
    subprocess.run(["scontrol", verb, *run.jobs[-1].submission.jobs], check=True)


def test_a_suspended_training_says_so_until_it_goes_on(slurm: Any, clean: Path) -> None:
    run = running(echo(two_nodes()))
    assert run.reason == ""
    scontrol("suspend", run)
    assert wait_until(lambda: run.reason == "suspended", 30) < REASON_S
    assert repr(run).endswith(", running: suspended)")
    scontrol("resume", run)
    assert wait_until(lambda: run.reason == "", 30) < REASON_S
    done = run.progress[0]
    wait_until(lambda: run.progress[0] > done, 30)


def test_the_reason_of_a_held_job_is_shown_within_seconds(
    slurm: Any, clean: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = echo(two_nodes(directives=["--begin=now+1hour"]))
    wait_until(lambda: "BeginTime" in run.reason, 30)
    scontrol("hold", run)
    assert wait_until(lambda: run.reason == "PENDING (JobHeldAdmin)", 30) < REASON_S
    assert repr(run).endswith(", queued: PENDING (JobHeldAdmin))")
    assert ">PENDING (JobHeldAdmin)<" in run._repr_html_()
    assert ">PENDING (JobHeldAdmin)<" in rlnb.runs()._repr_html_()
    with pytest.raises(TimeoutError):
        run.wait(3)
    lines = [line for line in capsys.readouterr().err.splitlines() if run.id in line]
    assert lines == [f"{run.id} queued: PENDING (JobHeldAdmin), iteration 0 of 10000"]


def test_a_killed_rank_is_named_with_its_node(slurm: Any, clean: Path) -> None:
    run = running(echo(two_nodes()))
    begun = time.monotonic()
    rank(run, 1).kill()
    with pytest.raises(rlnb.RunError, match=r"rank 1 on node 1 .* SIGKILL"):
        run.wait(30)
    assert time.monotonic() - begun < CRASH_S
    assert wait_until(lambda: not processes(run), 30) < CANCEL_S


def test_the_traceback_of_the_rank_that_failed_reaches_the_kernel(slurm: Any, clean: Path) -> None:
    run = echo(two_nodes(), agent={"crash_at": 3})
    with pytest.raises(rlnb.RunError, match="Traceback"):
        run.wait(90)
    assert len(run.jobs) == 1, "a training that fails by itself is not restarted"


def test_a_hanging_rank_is_reported_with_its_stack(slurm: Any, clean: Path) -> None:
    run = echo(two_nodes(hang_after_s=20.0), agent={"hang_at": 3})
    with pytest.raises(rlnb.RunError, match=r"nothing was logged for 20 s: a rank hangs"):
        run.wait(150)
    wait_until(lambda: not processes(run), 20)
    for node in (0, 1):
        log = run.jobs[-1].folder.log(node).read_text()
        assert "Current thread" in log
        assert "rlnb_echo/backend.py" in log
    assert len(run.jobs) == 1


def test_a_killed_host_ends_its_agents_and_the_run_is_lost(slurm: Any, clean: Path) -> None:
    run = running(echo(two_nodes()), iterations=25)
    psutil.Process(run.jobs[-1].handle["pid"]).kill()
    wait_until(lambda: not processes(run), 20)
    wait_until(lambda: run.state == "lost", 20)
    assert len(run.jobs) == 1
    wait_until(lambda: not slurm.jobs(), 30)
    assert run.resume().jobs[-1].state() in ("queued", "starting", "running")


KERNEL = """
import os, signal, sys, rlnb
rlnb.options.root, rlnb.options.warm = sys.argv[1], False
run = rlnb.train("Echo", library="echo", max_iterations=60, agent={"iteration_s": 0.1},
                 launcher=rlnb.slurm(nodes=2, walltime="00:10:00"))
print(run.id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_outlives_its_killed_kernel(slurm: Any, clean: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KERNEL, str(clean)], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    run = rlnb.get_run(done.stdout.strip())
    assert run.wait(90).state == "completed"


def test_the_host_can_be_a_small_job_of_the_queue(slurm: Any, clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = "-m rlnb train Echo --library echo --max-iterations 5 --launcher slurm --launcher-set nodes=2"
    line = f"{shlex.quote(sys.executable)} {arguments} --launcher-set walltime={WALLTIME}"
    monkeypatch.setenv("RLNB_ROOT", str(clean))
    small = ["--cpus-per-task=1", "--mem=500M", "--time=00:20:00"]
    output = clean.parent / "host.out"
    subprocess.run(["sbatch", "--wait", *small, "-o", str(output), "--wrap", line], check=True, timeout=120)
    (run,) = rlnb.runs()
    assert run.state == "completed", output.read_text()
    assert len(run.jobs[0].folder.hosts()) == 2


def scancel(run: rlnb.Run) -> None:
    subprocess.run(["scancel", *json.loads(run.jobs[-1].folder.submitted.read_text())["jobs"]], check=True)


def test_a_preempted_training_continues_from_its_last_checkpoint(slurm: Any, clean: Path) -> None:
    run = running(echo(two_nodes(), 150), iterations=25)
    more_important = ["sbatch", "-p", "first", "--nodes=4", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 2"]
    subprocess.run(more_important, check=True, capture_output=True)
    assert run.wait(120).state == "completed", "wait() must also wait between the two jobs"
    first, second = run.jobs
    assert any(word in first.result.error for word in ("preempted", "its queue", "the queue"))
    assert second.started.first_iteration > 0
    assert len(steps(run)) == len(set(steps(run))) == 150


def test_a_training_continues_after_its_walltime(slurm: Any, clean: Path) -> None:
    run = echo(rlnb.slurm(nodes=2, walltime="00:00:35", grace_s=10), 250)
    assert run.wait(150).state == "completed", "wait() must also wait between two jobs"
    assert len(run.jobs) >= 2
    assert [job.result.outcome for job in run.jobs][:-1] == ["timeout"] * (len(run.jobs) - 1)
    assert len(steps(run)) == len(set(steps(run))) == 250


def test_a_dead_node_is_named_and_the_training_continues_without_it(slurm: Any, clean: Path) -> None:
    run = running(echo(two_nodes(), 150), iterations=25)
    victim = next(n for n in range(4) if any(p.pid == rank(run, 1).pid for p in slurm.processes(n)))
    try:
        slurm.kill_node(victim)
        wait_until(lambda: len(run.jobs) == 2, 60)
        assert "node 1" in run.jobs[0].result.error
        wait_until(lambda: run.state == "completed", 90)
    finally:
        slurm.start_node(victim)
        wait_until(lambda: slurm.idle() == 4, 60)
    assert len(steps(run)) == len(set(steps(run))) == 150


def test_a_job_cancelled_by_scancel_is_not_restarted(slurm: Any, clean: Path) -> None:
    run = running(echo(two_nodes()))
    scancel(run)
    with pytest.raises(rlnb.RunError, match=r"Slurm's job \d+ was cancelled in the queue \(scancel\)"):
        run.wait(60)
    wait_until(lambda: not processes(run), 30)
    assert len(run.jobs) == 1


def test_a_training_is_restarted_at_most_max_restarts_times(slurm: Any, clean: Path) -> None:
    run = echo(rlnb.slurm(nodes=1, walltime="00:00:25", grace_s=10, max_restarts=1))
    wait_until(lambda: len(run.jobs) == 2 and run.state == "timeout", 120)
    with pytest.raises(rlnb.RunError, match="it was restarted 1 of 1 times"):
        run.wait()
    wait_until(lambda: not processes(run), 30)
    assert len(run.jobs) == 2


def test_a_node_with_other_versions_is_named_before_anything_starts(slurm: Any, clean: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "torch-9.9.dist-info").mkdir(parents=True)
    (other / "torch-9.9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9\n")
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\n[ "$SLURM_PROCID" = 1 ] && export PYTHONPATH={other}:$PYTHONPATH\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    run = echo(rlnb.slurm(nodes=3, walltime=WALLTIME, python=str(python)))
    with pytest.raises(rlnb.RunError, match=r"node 1 \(.*\): torch 9\.9, but most nodes have"):
        run.wait(120)
    assert not list(run.jobs[-1].folder.path.glob("node*.log")), "no agent may start"


def test_a_missing_interpreter_on_the_nodes_is_reported(slurm: Any, clean: Path) -> None:
    run = echo(two_nodes(python="/nowhere/python"))
    with pytest.raises(rlnb.RunError, match="No such file"):
        run.wait(90)
    assert len(run.jobs) <= 4


def test_a_prologue_runs_on_each_node_and_a_line_that_fails_is_named(slurm: Any, clean: Path, tmp_path: Path) -> None:
    line = f'touch "{tmp_path}/$SLURMD_NODENAME"'
    assert echo(two_nodes(prologue=[line]), 5).wait(90).state == "completed"
    assert len(list(tmp_path.glob("node*"))) == 2
    run = echo(two_nodes(prologue=["module load cuda"]))
    with pytest.raises(rlnb.RunError, match=r"The prologue failed on .*, status 127: module load cuda"):
        run.wait(60)


def test_a_job_that_slurm_would_refuse_is_refused_before_anything_is_written(slurm: Any, clean: Path) -> None:
    with pytest.raises(rlnb.CheckError, match="invalid partition specified: nowhere"):
        echo(rlnb.slurm(nodes=2, walltime=WALLTIME, partition="nowhere"))
    with pytest.raises(rlnb.CheckError, match="Slurm would refuse"):
        echo(rlnb.slurm(nodes=40, walltime=WALLTIME))
    assert not list(clean.glob("runs/*"))


def test_a_training_continues_while_the_controller_is_down(slurm: Any, clean: Path) -> None:
    run = running(echo(two_nodes(), 150))
    slurm.stop_controller()
    try:
        with pytest.raises(rlnb.CheckError, match=r"Slurm would refuse this job|does not answer"):
            echo(two_nodes())
        assert run.state in ("running", "completed"), "Slurm's commands take a while to time out"
        assert run.wait(90).state == "completed"
    finally:
        slurm.start_controller()
    wait_until(lambda: slurm.idle() == 4 and not slurm.jobs(), 90)
    wait_until(lambda: not processes(run), 30)
    assert len(list(clean.glob("runs/*"))) == 1


def test_a_full_shared_disk_ends_the_training_with_a_result(
    slurm: Any, small_disk: Callable[[int], Path], clean: Path
) -> None:
    disk = rlnb.options.root = small_disk(100 * 1024)
    run = running(echo(two_nodes()))
    with contextlib.suppress(OSError), open(disk / "filler", "wb") as filler:
        while True:
            filler.write(b"\0" * 65536)
    wait_until(lambda: run.state == "failed", 60)
    with pytest.raises(rlnb.RunError, match="No space left"):
        run.wait()
    wait_until(lambda: not processes(run) and not slurm.jobs(), 60)
    assert len(run.jobs) == 1
