"""Tests of rlnb.node.usage."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rlnb.node import usage
from rlnb.node import usage as module
from rlnb.node.usage import sampling
from rlnb.records.layout import RunDir


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
    monkeypatch.setattr(module.Lookout, "tick", lambda _: looks.append(None))
    with sampling(RunDir(tmp_path).next_job("train"), node, (), is_script=True) as tick:
        tick()
        tick()
    assert len(looks) == expected


def test_other_jobs_are_not_sampled(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    with sampling(run.next_job("evaluate"), 0, (), is_script=True) as tick:
        tick()
    assert not run.system.exists()
