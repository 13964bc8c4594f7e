"""Tests of rlnb.interactive.debugger."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import rlnb
from rlnb.interactive.debugger import step_of
from rlnb.protocol.requests import EnvData


def test_a_step_is_a_table_of_its_arrays() -> None:
    arrays = {"observations/policy": np.array([[1.0, 3.0]]), "terminated": np.array([], dtype=bool)}
    step = rlnb.EnvStep(arrays=arrays, log={"<height>": 0.25})
    assert repr(step).splitlines() == ["EnvStep", "observations/policy  1 x 2  1  2  3", "terminated  0"]
    page = step._repr_html_()
    assert "observations/policy" in page
    assert "&lt;height&gt;" in page
    assert step["terminated"].size == 0


def test_the_file_of_a_step_is_read_and_deleted(tmp_path: Path) -> None:
    np.savez(file := tmp_path / "1.npz", rewards=np.ones(3))
    step = step_of(EnvData(file=str(file), log={"height": 2.0}))
    assert step["rewards"].tolist() == [1.0] * 3
    assert (len(step), [*step], step.log) == (1, ["rewards"], {"height": 2.0})
    assert not file.exists()
