"""Tests see a GPU only if they are marked ``gpu``, and all tests in tests/gpu are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlnb.machine.gpus import visible_gpus

GPU_TESTS = sorted((Path(__file__).parents[1] / "gpu").glob("test_*.py"))


def test_a_test_sees_no_gpu() -> None:
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    assert visible_gpus() == ()


@pytest.mark.parametrize("path", GPU_TESTS, ids=lambda path: path.name)
def test_a_test_on_gpus_has_the_marker(path: Path) -> None:
    assert "pytestmark = [pytest.mark.gpu" in path.read_text()
