"""No process of a run imports from the working folder, where another user may have put modules."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb

NAMES = ("json", "secrets", "psutil", "rlnb_echo", "torch", "papermill", "ipykernel_launcher", "nbconvert")


@pytest.fixture
def executed(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the working folder that exists once a module of this folder was imported."""
    mark = tmp_path / "executed"
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(tmp_path)
    return mark


def test_a_training_imports_nothing_from_there(executed: Path) -> None:
    assert rlnb.train("Echo", library="echo", max_iterations=2).wait(60).state == "completed"
    assert not executed.exists(), executed.read_text()


@pytest.mark.slow
def test_neither_do_several_ranks_an_evaluation_and_a_report(executed: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=2, nproc_per_node=2).wait(120)
    assert run.state == "completed"
    run.evaluate()
    assert "Summary" in rlnb.report(run).read_text()
    assert not executed.exists(), executed.read_text()
