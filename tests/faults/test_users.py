"""Two users of one folder of runs: what one of them makes there is data for the other, never a path or a program."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.rig.users import ANN, EVE, as_root, as_user

import rlnb

DEFINE = "from rlnb.tasks.cell import write_module\nwrite_module(rlnb.options.folders, {name!r}, {body!r}, {book!r}, print)"
TRAIN = "print(*rlnb.check('Echo', library='echo'))"
TEAM = 54_100

pytestmark = as_root


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder as an administrator makes it for several users; each of them has a home in it."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    root = tmp_path / "shared"
    for folder in (root, root / "runs", root / "tasks"):
        folder.mkdir()
        folder.chmod(0o1777)
    home = tmp_path / "ann"
    home.mkdir()
    os.chown(home, ANN, ANN)
    return root


@pytest.fixture
def home(shared: Path) -> Path:
    return shared.parent / "ann"


def given(path: Path, uid: int) -> Path:
    """Give a file, or a folder with all that it holds, to a user."""
    for entry in (path, *(path.rglob("*") if path.is_dir() and not path.is_symlink() else ())):
        os.chown(entry, uid, uid, follow_symlinks=False)
    return path


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)
    given(path, EVE)


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
    assert f"The task 'Lift' is the user {EVE}'s" in printed and "Use another name" in printed
    assert not (shared / "tasks" / "history").exists()


def test_a_cell_is_not_written_through_links(shared: Path, home: Path) -> None:
    profile = given_file(home / ".profile")
    link(shared / "tasks" / "push.py", profile)
    printed = as_user(ANN, DEFINE.format(name="Push", body="TASK = 1", book="a.ipynb"), shared)
    assert f"belongs to that user" in printed
    assert profile.read_text() == "mine"


def given_file(path: Path) -> Path:
    path.write_text("mine")
    return given(path, ANN)


@pytest.mark.parametrize(("mode", "owner"), [(0o777, 0), (0o755, EVE), (0o2775, 0), (0o1777, EVE)])
@pytest.mark.parametrize("name", ["", "runs"])
def test_nothing_starts_where_another_user_can_replace_it(shared: Path, name: str, mode: int, owner: int) -> None:
    folder = shared / name
    os.chown(folder, owner, TEAM)
    folder.chmod(mode)
    train, define = TRAIN, DEFINE.format(name="Push", body="TASK = 1", book="a.ipynb")
    if mode == 0o755 and not name:  # nobody else can write there anyway
        assert "can replace" in as_user(ANN, define, shared)
        return
    printed = as_user(ANN, train, shared, groups=(TEAM,))
    assert f"can replace what you make in {folder}" in printed
    assert "RlnbError" in as_user(ANN, define, shared, groups=(TEAM,)) and not list((shared / "tasks").iterdir())
    printed = as_user(ANN, f"rlnb.options.team = True\n{TRAIN}", shared, groups=(TEAM,))
    assert "can replace" not in printed


def test_a_sticky_folder_of_an_administrator_is_safe(shared: Path) -> None:
    assert "can replace" not in as_user(ANN, TRAIN, shared)


def test_an_agent_executes_no_command_of_another_user(shared: Path, home: Path) -> None:
    job = shared / "runs" / "r" / "jobs" / "0-train"
    job.mkdir(parents=True)
    argv = ["/bin/sh", "-c", f"touch {home}/executed"]
    (job / "command.json").write_text(json.dumps({"argv": argv, "nodes": 1}))
    given(shared / "runs" / "r", EVE)
    (shared / "runs" / "r").chmod(0o777)
    job.chmod(0o777)
    printed = as_user(ANN, f"rlnb.node.__main__.main([{str(job)!r}])", shared)
    assert f"belongs to the user {EVE}, so it is not executed" in printed
    assert not (home / "executed").exists()


def test_prune_and_notes_change_nothing_outside_of_a_run(shared: Path, home: Path) -> None:
    rlnb.options.root = shared
    run = rlnb.train("Echo", library="echo", max_iterations=20).wait(60)
    logs, mine = run.path / "logs", home / "project"
    logs.rename(mine)
    given(mine, ANN)
    count = len(list(mine.rglob("*")))
    given(run.path, EVE)
    link(logs, mine)
    link(run.path / "notes", home)
    run.path.chmod(0o777)
    code = f"pruning = rlnb.runs().prune(keep=1)\nprint(pruning)\npruning.apply()\nrlnb.get_run({run.id!r}).notes.add('x')"
    printed = as_user(ANN, code, shared)
    assert "1 runs of other users are kept" in printed
    assert f"is a link of the user {EVE}, which is not followed" in printed
    assert len(list(mine.rglob("*"))) == count and [path.name for path in home.iterdir()] == ["project"]


def test_checkpoints_are_deleted_only_below_their_run(shared: Path, home: Path) -> None:
    rlnb.options.root = shared
    run = rlnb.train("Echo", library="echo", max_iterations=20).wait(60)
    (run.path / "logs").rename(home / "logs")
    (run.path / "logs").symlink_to(home / "logs")
    with pytest.raises(rlnb.RlnbError, match=r"is in .*, which is not in "):
        rlnb.runs().prune(keep=1).apply()
    assert len(list((home / "logs").rglob("model_*"))) > 2


def test_a_record_is_not_read_through_anothers_link(shared: Path, home: Path) -> None:
    secret = home / "secret.json"
    secret.write_text('{"text": "secret"}')
    given(secret, ANN)
    link(shared / "manifest.json", secret)
    read = "from pathlib import Path\nfrom rlnb.storage import files\nprint(files.read_json(Path('manifest.json').absolute()))"
    printed = as_user(ANN, read, shared)
    assert "which is not followed" in printed and "secret'" not in printed
    os.chown(shared / "manifest.json", ANN, ANN, follow_symlinks=False)
    assert "{'text': 'secret'}" in as_user(ANN, read, shared), "an own link is"


def test_a_group_may_write_only_in_a_teams_folder(shared: Path) -> None:
    shared.chmod(0o2775)
    os.chown(shared, ANN, TEAM)
    make = "from rlnb.storage import files\nfiles.make_folder(rlnb.options.folders.path / {name!r} / 'x')"
    as_user(ANN, make.format(name="a"), shared, groups=(TEAM,), umask=0o002)
    shared.chmod(0o2755)
    as_user(ANN, make.format(name="b"), shared, groups=(TEAM,), umask=0o002)
    modes = [(shared / name).stat().st_mode & 0o777 for name in ("a", "a/x", "b", "b/x")]
    assert modes == [0o775, 0o775, 0o755, 0o755]
