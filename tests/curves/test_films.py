"""Tests of rlnb.curves.live."""

from __future__ import annotations

import json
from pathlib import Path

import rlnb
from rlnb.curves.live import newest_films


def filmed(run: rlnb.Run) -> rlnb.Run:
    """Return the run as one whose user wanted films, which the library echo cannot make."""
    manifest = run.path / "manifest.json"
    values = json.loads(manifest.read_text()) | {"film_every": 5}
    manifest.unlink()
    manifest.write_text(json.dumps(values))
    return rlnb.Run(run.path)


def test_the_newest_film_of_each_run_is_shown(root: Path) -> None:
    runs = [filmed(rlnb.train("Echo", library="echo", max_iterations=1).wait(60)) for _ in range(2)]
    assert newest_films(runs) == ""
    for run, iterations in zip(runs, ((5, 10), (15,)), strict=True):
        (run.path / "media").mkdir()
        for iteration in iterations:
            (run.path / "media" / f"training-{iteration:06d}.mp4").write_bytes(b"a film")
    (runs[0].path / "media" / "training-000020.part.mp4").write_bytes(b"half")
    (runs[0].path / "media" / "training-last.mp4").write_bytes(b"something else")
    assert [*runs[0].films] == [5, 10]
    page = newest_films(runs)
    assert page.count("<video width=320 ") == 2
    assert f"{runs[0].id}, iteration 10" in page
    assert f"{runs[1].id}, iteration 15" in page


def test_a_run_without_films_is_not_looked_at(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    (run.path / "media").mkdir()
    (run.path / "media" / "training-000005.mp4").write_bytes(b"a film")
    assert newest_films([run]) == ""
