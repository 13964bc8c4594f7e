"""The sections on hyperparameters and source code, and their differences to the parent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rlnb
from rlnb.reports import sections
from rlnb.storage import files

SOURCE = "# <script>a task</script>\nSPEED = 1.0\nWEIGHT = 2.0\n"


def give_source(run: rlnb.Run, source: str, **others: str) -> rlnb.Run:
    """Give a run the source code that a run with a task from a cell keeps, and return the run as read anew."""
    folder = run.record.folder
    folder.source.mkdir()
    (folder.source / "my_task.py").write_text(source)
    for name, text in others.items():
        (folder.source / f"{name}.py").write_text(text)
    record = files.read_json(folder.manifest)
    assert record is not None
    names = {f"{name}.py": "0" * 64 for name in others}
    task = {**record["task"], "source": "/elsewhere/my_task.py", "source_sha256": "0" * 64, "files": names}
    folder.manifest.unlink()
    files.write_once(folder.manifest, {**record, "task": task})
    return rlnb.get_run(str(run.path))


def dump(run: rlnb.Run, rate: float) -> None:
    """Write an agent config as Isaac Lab does."""
    (run.path / "logs" / "params").mkdir()
    text = f"algorithm:\n  learning_rate: {rate}\n  name: <b>ppo\nseed: {run.manifest.seed}\n"
    (run.path / "logs" / "params" / "agent.yaml").write_text(text)


@pytest.fixture
def pair(root: Path) -> list[rlnb.Run]:
    """A run, and one that starts from its weights with another learning rate, source and seed."""
    parent = rlnb.train("Echo", library="echo", max_iterations=3, seed=1).wait()
    child = rlnb.train("Echo", library="echo", max_iterations=3, seed=2, init_from=parent).wait()
    dump(parent, 0.001)
    dump(child, 0.5)
    return [
        give_source(parent, SOURCE),
        give_source(child, SOURCE.replace("1.0", "3.0"), terms="def reward(): ...\n"),
    ]


def test_every_hyperparameter_is_in_a_collapsible_text(pair: list[rlnb.Run]) -> None:
    page = sections.hyperparameters(pair[:1])
    assert f"<summary>{pair[0].id}: 3 hyperparameters</summary>" in page
    assert "algorithm.learning_rate = 0.001" in page
    assert "&lt;b&gt;ppo" in page
    assert "changes since its parent" not in page


def test_hyperparameters_that_differ_from_the_parents_are_a_table(pair: list[rlnb.Run]) -> None:
    parent, child = pair
    page = sections.hyperparameters([child])
    changes = page[page.index("changes since its parent") :]
    texts = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", changes)
    assert texts[:3] == ["", parent.id, child.id]
    assert texts[texts.index("agent.algorithm.learning_rate") :][:3] == [
        "agent.algorithm.learning_rate",
        "0.001",
        "0.5",
    ]
    assert "agent.algorithm.name" not in changes


def test_the_source_is_escaped_and_collapsible(pair: list[rlnb.Run]) -> None:
    page = sections.sources(pair[:1])
    assert f"<details><summary>{pair[0].id}: my_task.py, 3 lines</summary>" in page
    assert "&lt;script&gt;a task" in page
    assert "<script" not in page
    assert "parent" not in page


def test_the_difference_to_the_parents_source_is_a_unified_diff(pair: list[rlnb.Run]) -> None:
    page = sections.sources([pair[1]])
    changes = re.sub(r"</?span[^>]*>", "", page[page.index("changes of the source") :])
    assert f"--- {pair[0].id}/my_task.py\n+++ {pair[1].id}/my_task.py\n" in changes
    assert "\n-SPEED = 1.0\n+SPEED = 3.0\n" in changes
    assert "\n+def reward(): ..." in changes, "the parent lacks this file"


def test_equal_sources_are_said_to_be_equal(root: Path) -> None:
    parent = rlnb.train("Echo", library="echo", max_iterations=3).wait()
    child = rlnb.train("Echo", library="echo", max_iterations=3, init_from=parent).wait()
    runs = [give_source(run, SOURCE) for run in (parent, child)]
    assert f"The source is that of its parent {parent.id}." in sections.sources(runs)
    assert "has written no agent config: echo dumps none" in sections.hyperparameters(runs)


def test_a_parent_that_is_not_here_is_named(pair: list[rlnb.Run], tmp_path: Path) -> None:
    pair[0].path.rename(tmp_path / "away")
    assert f"come from {pair[0].id}, whose run is not here." in sections.hyperparameters([pair[1]])
    assert "changes of the source" not in sections.sources([pair[1]])


def test_a_task_of_a_package_has_no_source_in_the_run(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=3).wait()
    assert "the task Echo belongs to a package" in sections.sources([run])


def test_a_file_outside_of_the_run_is_not_shown(pair: list[rlnb.Run], tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("SECRET")
    link = pair[0].record.folder.source / "my_task.py"
    link.unlink()
    link.symlink_to(tmp_path / "secret.py")
    assert "SECRET" not in sections.sources(pair)


def test_a_long_source_is_named_only(pair: list[rlnb.Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "SOURCE_BYTES", len(SOURCE) + 10)
    page = sections.sources([pair[1]])
    assert "SPEED = 3.0" in page
    assert "terms.py, 1 line</summary><p>Not shown: it is too long.</p>" in page
