"""Two users of one folder of runs: what one of them makes there is data for the other, never a path or a program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from users import ANN, EVE, as_root, as_user, given, link, shared_root

import rlnb

DEFINE = (
    "from rlnb.tasks.cell import write_module\nwrite_module(rlnb.options.folders, {name!r}, {body!r}, {book!r}, print)"
)

pytestmark = as_root


@pytest.fixture
def shared(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with shared_root() as folder:
        monkeypatch.setattr(rlnb.options, "root", folder)
        yield folder


@pytest.fixture
def home(shared: Path) -> Path:
    return shared.parent / "ann"


def test_versions_of_cells_are_not_kept_where_anothers_link_leads(shared: Path, home: Path) -> None:
    link(shared / "tasks" / "history", home)
    for book in ("a.ipynb", "b.ipynb"):
        printed = as_user(ANN, DEFINE.format(name="Push", body=f"TASK = {book!r}", book=book), shared)
    assert "It replaces the version of a.ipynb" in printed
    assert (shared / "tasks" / "push.py").read_text().endswith("TASK = 'b.ipynb'\n")
    assert not list(home.iterdir())


def test_anothers_cell_is_neither_replaced_nor_copied(shared: Path) -> None:
    theirs = shared / "tasks" / "lift.py"
    theirs.write_text("# rlnb task 'Lift' of 'eve.ipynb'\nraise SystemExit\n")
    given(theirs, EVE)
    printed = as_user(ANN, DEFINE.format(name="Lift", body="TASK = 1", book="a.ipynb"), shared)
    assert f"The task 'Lift' is the user {EVE}'s: {theirs} belongs to that user. Use another name" in printed
    assert not (shared / "tasks" / "history").exists()


def test_a_cell_is_not_written_through_links(shared: Path, home: Path) -> None:
    profile = given_file(home / ".profile")
    link(shared / "tasks" / "push.py", profile)
    printed = as_user(ANN, DEFINE.format(name="Push", body="TASK = 1", book="a.ipynb"), shared)
    assert "belongs to that user" in printed
    assert profile.read_text() == "mine"


def given_file(path: Path) -> Path:
    path.write_text("mine")
    return given(path, ANN)


def test_an_agent_executes_no_command_of_another_user(shared: Path, home: Path) -> None:
    job = shared / "runs" / "r" / "jobs" / "0-train"
    job.mkdir(parents=True)
    argv = ["/bin/sh", "-c", f"touch {home}/executed"]
    (job / "command.json").write_text(json.dumps({"argv": argv, "nodes": 1}))
    given(shared / "runs" / "r", EVE)
    (shared / "runs" / "r").chmod(0o777)
    job.chmod(0o777)
    printed = as_user(ANN, f"rlnb.node.__main__.main([{str(job)!r}])", shared)
    assert f"belongs to the user {EVE}, so the user {ANN} does not execute it" in printed
    assert not (home / "executed").exists()


def test_prune_and_notes_change_nothing_outside_of_a_run(shared: Path, home: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=20).wait(60)
    logs, mine = run.path / "logs", home / "project"
    logs.rename(mine)
    given(mine, ANN)
    count = len(list(mine.rglob("*")))
    given(run.path, EVE)
    link(logs, mine)
    link(run.path / "notes", home)
    run.path.chmod(0o777)
    code = (
        f"pruning = rlnb.runs().prune(keep=1)\nprint(pruning)\npruning.apply()\nrlnb.get_run({run.id!r}).notes.add('x')"
    )
    printed = as_user(ANN, code, shared)
    assert "1 runs of other users are kept" in printed
    assert f"is a link of the user {EVE}, which is not followed" in printed
    assert len(list(mine.rglob("*"))) == count
    assert [path.name for path in home.iterdir()] == ["project"]


def test_checkpoints_are_deleted_only_below_their_run(shared: Path, home: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=20).wait(60)
    (run.path / "logs").rename(home / "logs")
    (run.path / "logs").symlink_to(home / "logs")
    with pytest.raises(rlnb.RlnbError, match=r"is in .*, which is not in "):
        rlnb.runs().prune(keep=1).apply()
    assert len(list((home / "logs").rglob("model_*"))) > 2
