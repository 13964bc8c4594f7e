"""CPU, memory and GPU use of a run, sampled by the agent and shown with the metrics."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

import rlnb
from rlnb.curves import figure
from rlnb.machine.threads import Spent
from rlnb.metrics.events import EventReader
from rlnb.node import usage
from rlnb.node.usage import sampling
from rlnb.records.layout import RunDir
from rlnb.reports import sections

BUSY = "while True: pass"


@pytest.fixture
def busy_rank():
    child = subprocess.Popen([sys.executable, "-c", BUSY], env={"RANK": "1"})
    yield
    child.kill()
    child.wait()


def sampled(folder):
    reader = EventReader(folder)
    reader.refresh()
    return {tag: list(column) for tag, column in reader.scalars.items()}


def test_busy_cores_and_memory_of_descendants_are_sampled(busy_rank, tmp_path, monkeypatch):
    monkeypatch.setattr(usage, "SAMPLE_S", 0.0)
    measured = usage.Usage(tmp_path, 2, [])
    time.sleep(1.0)
    measured.tick()
    measured.close()
    values = {tag: points[-1][2] for tag, points in sampled(tmp_path).items()}
    names = ("cpu_cores", "waited_cores", "memory_gib", "rank1_memory_gib")
    assert set(values) == {f"system/node2/{name}" for name in names}
    assert 0.05 < values["system/node2/cpu_cores"] < 1.5
    assert 0.001 < values["system/node2/rank1_memory_gib"] < 0.1


def test_cpu_time_before_the_first_sample_is_not_counted(busy_rank, tmp_path, monkeypatch):
    monkeypatch.setattr(usage, "SAMPLE_S", 0.0)
    time.sleep(2.0)
    measured = usage.Usage(tmp_path, 0, [])
    time.sleep(0.5)
    measured.tick()
    assert sampled(tmp_path)["system/node0/cpu_cores"][0][2] < 2.0, (
        "all 2.5 s of CPU time were counted in half a second"
    )


def test_the_time_without_a_core_counts_from_the_last_sample_on(busy_rank, tmp_path, monkeypatch):
    monkeypatch.setattr(usage, "SAMPLE_S", 0.0)
    first, second = (1, 1), (1, 2)  # which has begun in between
    spent = iter([{first: Spent(1.0, 7.0)}, {first: Spent(1.0, 9.0), second: Spent(1.0, 50.0)}])
    monkeypatch.setattr(usage.threads, "spent", lambda pids: next(spent))
    measured = usage.Usage(tmp_path, 0, [])
    time.sleep(1.0)
    measured.tick()
    measured.close()
    assert 0.5 < sampled(tmp_path)["system/node0/waited_cores"][0][2] < 2.1


def test_no_sample_is_taken_before_it_is_due(tmp_path):
    usage.Usage(tmp_path, 0, []).tick()
    assert not list(tmp_path.iterdir())


ENDED = """
import subprocess, sys, time
from pathlib import Path
import psutil
from rlnb.machine.threads import Spent
from rlnb.node import usage

usage.SAMPLE_S = 0.0
measured = usage.Usage(Path(sys.argv[1]), 0, [])
ended = subprocess.Popen(["true"])
while psutil.Process(ended.pid).status() != psutil.STATUS_ZOMBIE:  # a zombie until it is waited for
    time.sleep(0.01)
measured.tick()
ended.wait()
measured.tick()
"""


def test_a_job_that_has_just_ended_is_not_sampled(tmp_path):
    subprocess.run([sys.executable, "-c", ENDED, str(tmp_path)], check=True)  # a process with no other children
    assert not list(tmp_path.iterdir()), "the last values would be zeros"


def test_a_full_disk_does_not_end_the_job(busy_rank, tmp_path, monkeypatch):
    monkeypatch.setattr(usage, "SAMPLE_S", 0.0)
    monkeypatch.setattr(sys, "stderr", open("/dev/full", "w", buffering=1))  # noqa: SIM115
    (tmp_path / "file").write_text("in the way")
    usage.Usage(tmp_path / "file", 0, []).tick()


def test_the_folder_of_a_removed_run_is_not_recreated(busy_rank, tmp_path, monkeypatch):
    monkeypatch.setattr(usage, "SAMPLE_S", 0.0)
    run = RunDir(tmp_path / "run")
    usage.Usage(run.system, 0, []).tick()
    assert not run.path.exists()
    run.path.mkdir()
    usage.Usage(run.system, 0, []).tick()
    assert list(run.system.iterdir())


def test_a_run_shows_its_load_with_its_metrics(root):
    run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.2}, max_iterations=40).wait()
    assert not [tag for tag in run.metrics.tags if tag.startswith("system/")]
    memory = run.system["system/node0/memory_gib"]
    assert memory.last > 0.001
    frames = run.metrics["reward"].frames
    assert frames[0] < memory.frames[-1] <= frames[-1], "five of eight seconds"
    assert len(figure.figure([run], ["reward", "system/node0/cpu_cores"]).data) == 2
    data, metadata = sections.usage([run])._repr_mimebundle_()
    assert {"application/vnd.plotly.v1+json", "image/png"} <= set(data)
    assert metadata["image/png"]["alt"] == "Use of the nodes over time"
    with pytest.raises(rlnb.NotFoundError, match="Did you mean 'system/node0/cpu_cores'"):
        figure.select([run], ["system/node0/cpu_core"])


# -- sampling --------------------------------------------------------------------------------------------------------


def test_sampling_begins_when_the_training_has_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "SAMPLE_S", 0.0)
    run = RunDir(tmp_path)
    folder = run.next_job("train")
    with subprocess.Popen(["sleep", "60"]) as busy, sampling(folder, 0, (), is_script=False) as tick:
        tick()
        tick()
        assert not run.system.exists(), "the start of a training needs every core"
        folder.started.write_text("{}")
        tick()
        tick()
        busy.kill()
    assert list(run.system.rglob("*tfevents*"))


@pytest.mark.parametrize(("node", "expected"), [(0, 1), (1, 0)])
def test_the_first_node_looks_for_alerts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: int, expected: int
) -> None:
    looks: list[None] = []
    monkeypatch.setattr(usage.AlertMonitor, "tick", lambda _: looks.append(None))
    with sampling(RunDir(tmp_path).next_job("train"), node, (), is_script=True) as tick:
        tick()
        tick()
    assert len(looks) == expected


def test_other_jobs_are_not_sampled(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    with sampling(run.next_job("evaluate"), 0, (), is_script=True) as tick:
        tick()
    assert not run.system.exists()
