"""The difference between the sources of two runs' tasks, as text."""

from __future__ import annotations

from pathlib import Path

import rlnb
from rlnb.records.source_diff import SourceDiff
from rlnb.storage import files

CELL = "SCALE = 1.0\n\n\nclass ENV: ...\n"


def echo() -> rlnb.Run:
    return rlnb.train("Echo", library="echo", max_iterations=1).wait(60)


def run_of(source: str) -> rlnb.Run:
    """Return a completed run with the copy of a cell that a run with a simulator keeps."""
    run = echo()
    folder = run.record.folder
    folder.source.mkdir()
    (folder.source / "puck.py").write_text(source)
    record = files.read_json(folder.manifest)
    assert record is not None
    folder.manifest.unlink()
    files.write_once(folder.manifest, {**record, "task": {**record["task"], "source": "/elsewhere/puck.py"}})
    return rlnb.get_run(str(run.path))


def test_the_change_of_a_cell_between_two_runs_is_a_unified_diff(root: Path) -> None:
    before, after = run_of(CELL), run_of(CELL.replace("1.0", "'<b>2.0</b>'"))
    diff = after.source_diff(before)
    assert diff.lines[0].startswith(f"--- {before.id}/")
    assert "-SCALE = 1.0" in diff.lines
    assert "+SCALE = '<b>2.0</b>'" in diff.lines
    assert repr(diff) == str(diff)
    assert "&lt;b&gt;2.0&lt;/b&gt;" in diff._repr_html_()
    assert "<b>" not in diff._repr_html_()


def test_equal_sources_and_those_of_packages_have_no_difference(root: Path) -> None:
    first, second = run_of(CELL), run_of(CELL)
    assert not first.source_diff(second)
    assert repr(first.source_diff(second)) == "The sources are equal."
    assert not echo().source_diff(echo())
    assert f"-{CELL.splitlines()[0]}" in echo().source_diff(first).lines, "one of them has no copy"


def test_a_very_long_difference_is_cut_and_says_so() -> None:
    page = SourceDiff([f"+{number}" for number in range(6000)])._repr_html_()
    assert "... and 1000 more lines" in page
    assert "+5999" not in page
