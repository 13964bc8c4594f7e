"""Two users of one folder of runs: what one of them makes there is data for the other, never a path or a program."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks import Watch
from users import ANN, EVE, RECORDED, as_root, as_user, given, link, shared_root

import rlnb

DEFINE = (
    "from rlnb.tasks.source import write_module\n"
    "write_module(rlnb.options.folders, {name!r}, {body!r}, {book!r}, print)"
)

SHOW = f"""
run = rlnb.get_run({RECORDED.name!r})
for show in (lambda: run.state, lambda: [*run.checkpoints], lambda: run.films, lambda: run.metrics.names,
        lambda: rlnb.runs()._repr_html_(), lambda: rlnb.runs().prune(keep=1), lambda: [*run.notes]):
    try:
        print(show())
    except rlnb.RlnbError as exc:
        print(exc)
"""

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


def planted(shared: Path, home: Path) -> None:
    """Put a package of Eve, which writes to Ann's home, beside the cells."""
    package = shared / "tasks" / "planted"
    package.mkdir()
    (package / "__init__.py").write_text(f"open({str(home / 'executed')!r}, 'w')\n")
    given(package, EVE)


def test_a_package_beside_a_cell_is_imported_by_no_library(shared: Path, home: Path) -> None:
    planted(shared, home)
    as_user(ANN, DEFINE.format(name="Push", body="TASK = 1", book="a.ipynb"), shared)
    code = (
        "from pathlib import Path\nfrom rlnb.worker.isaac.modules import import_file\n"
        "import_file(Path(rlnb.task('Push').source), ())\nimport planted"
    )
    printed = as_user(ANN, code, shared, before="import rlnb.worker.isaac.modules")
    assert "ModuleNotFoundError: No module named 'planted'" in printed
    assert not (home / "executed").exists()


def test_a_package_of_another_user_that_a_cell_imports_is_refused(shared: Path, home: Path) -> None:
    planted(shared, home)
    as_user(ANN, DEFINE.format(name="Push", body="import planted", book="a.ipynb"), shared)
    printed = as_user(ANN, "rlnb.task('Push')", shared)
    package = shared / "tasks" / "planted" / "__init__.py"
    assert f"The task 'Push' would execute {package}, which belongs to the user {EVE}" in printed


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


@pytest.mark.parametrize("name", ["jobs", "jobs/0-train", "logs", "notes", "media"])
def test_lists_and_figures_read_nothing_through_anothers_links(name: str, shared: Path, home: Path) -> None:
    run = shared / "runs" / RECORDED.name
    shutil.copytree(RECORDED, run)
    mine = home / Path(name).name
    if (run / name).exists():
        (run / name).rename(mine)
    else:
        (mine / "below").mkdir(parents=True)
    given(mine, ANN)
    given(run, EVE)
    link(run / name, mine)
    with Watch(home) as watch:
        printed = as_user(ANN, SHOW, shared, before=SHOW)
        assert not watch.seen()
    assert "Traceback" not in printed


def test_a_link_in_place_of_the_runs_is_not_listed(shared: Path, home: Path) -> None:
    shutil.copytree(RECORDED, home / "runs" / RECORDED.name)
    given(home / "runs", ANN)
    (shared / "runs").rmdir()
    link(shared / "runs", home / "runs")
    with Watch(home) as watch:
        assert f"is a link of the user {EVE}, which is not followed" in as_user(ANN, "rlnb.runs()", shared)
        assert not watch.seen()


def test_a_pipe_in_place_of_the_notebook_of_a_report_stops_nothing(shared: Path) -> None:
    run = shared / "runs" / RECORDED.name
    shutil.copytree(RECORDED, run)
    os.mkfifo(run / "report.ipynb")
    with pytest.raises(rlnb.RlnbError, match="which rlnb did not write"):
        rlnb.report(rlnb.get_run(run.name))


@pytest.mark.parametrize("verb", ["resume()", "evaluate(episodes=1)"])
def test_a_record_that_a_group_can_write_is_acted_on_only_in_a_team(shared: Path, home: Path, verb: str) -> None:
    """In a folder with a group of its own, the umask of many sites lets every member write every file."""
    group, run = 54_003, shared / "runs" / RECORDED.name
    shutil.copytree(RECORDED, run, symlinks=True)
    given(run, ANN)
    for path in (run, *run.rglob("*")):
        os.chown(path, -1, group)
        path.chmod(0o2775 if path.is_dir() else 0o664)
    change = f"open({str(run / 'manifest.json')!r}, 'a').write(' ')"
    assert as_user(EVE, change, shared, groups=(group,)) == "", "Eve can write it"
    act = f"print(rlnb.get_run({RECORDED.name!r}).{verb})"
    printed = as_user(ANN, act, shared, groups=(group,), umask=0o002)
    assert f"can be written by the group {group}" in printed
    assert len(list((run / "jobs").iterdir())) == len(list((RECORDED / "jobs").iterdir()))
