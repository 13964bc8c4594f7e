"""The mean load of a run, from samples of its nodes, and its size on the disk."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from rlnb.accounting import goodput
from rlnb.accounting.goodput import usage_of
from rlnb.records.layout import RunDir


def samples(folder: Path, node: int, values: dict[str, list[float]]) -> None:
    writer = EventFileWriter(str(folder / f"node{node}"))
    for at in range(max(map(len, values.values()))):
        summary = [Summary.Value(tag=f"system/node{node}/{name}", simple_value=of[at]) for name, of in values.items()]
        writer.add_event(Event(wall_time=float(at), step=at, summary=Summary(value=summary)))
    writer.close()


def test_cores_are_summed_over_nodes_and_gpus_are_averaged(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    samples(run.system, 0, {"cpu_cores": [1.0, 3.0], "gpu0_percent": [80.0, 100.0], "memory_gib": [9.0, 9.0]})
    samples(run.system, 1, {"cpu_cores": [4.0], "gpu0_percent": [50.0]})
    (tmp_path / "model.pt").write_bytes(b"0" * 10_000)
    run.media.mkdir()
    run.film(100).write_bytes(b"0" * 700)
    load = usage_of(run)
    assert (load.cpu_cores, load.gpu_percent) == (6.0, 70.0)
    assert load.media_bytes == 700
    assert load.event_bytes == sum(path.stat().st_size for path in run.system.rglob("*tfevents*")) > 0
    assert load.disk_bytes == 10_700 + load.event_bytes


def test_a_long_file_is_thinned_and_a_run_without_samples_has_no_load(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert math.isnan(usage_of(run).cpu_cores)
    samples(run.system, 0, {"cpu_cores": [float(at) for at in range(10 * goodput.SAMPLES)]})
    assert usage_of(run).cpu_cores == pytest.approx(5 * goodput.SAMPLES, rel=0.05)
