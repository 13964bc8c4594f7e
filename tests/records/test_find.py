"""Finding runs on disk: those of rlnb, and those of stock Isaac Lab."""

from __future__ import annotations

from pathlib import Path

import rlnb
from rlnb.records.find import find

WAIT_S = 60.0


def echo(**arguments: object) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", **arguments)  # type: ignore[arg-type]


def test_half_a_run_is_not_listed(root: Path) -> None:
    run = echo(max_iterations=2).wait(WAIT_S)
    half = run.path.rename(run.path.with_name(f".{run.id}.removed"))
    assert not rlnb.runs()
    (half / "manifest.json").unlink()
    for name in ("agent.yaml", "env.yaml"):
        path = half / "logs" / "params" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert not rlnb.runs()


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "runs" / ".staging").mkdir(parents=True)
    (tmp_path / "runs" / "empty").mkdir()
    assert list(find(tmp_path)) == []
    assert list(find(tmp_path / "nowhere")) == []
