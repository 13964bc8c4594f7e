"""To act on a run of another user needs trust, since its records decide what is executed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rlnb
from rlnb.cli import app
from rlnb.records.trust import require_trusted_owner

WAIT_S = 60.0
OTHER_UID = 65_534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


@pytest.fixture
def theirs(root: Path) -> rlnb.Run:
    run = rlnb.train("Echo", library="echo", max_iterations=3).wait(WAIT_S)
    os.chown(run.path / "manifest.json", OTHER_UID, OTHER_UID)
    return run


@pytest.mark.parametrize(
    "verb",
    [
        lambda run, **trust: run.evaluate(episodes=4, **trust),
        lambda run, **trust: run.resume(max_iterations=6, **trust).wait(WAIT_S),
    ],
    ids=["evaluate", "resume"],
)
def test_a_run_of_another_user_is_acted_on_only_with_trust(theirs: rlnb.Run, verb: Callable[..., object]) -> None:
    with pytest.raises(rlnb.RunError, match=rf"belongs to the user {OTHER_UID}[\s\S]*\n  launcher: local\(") as caught:
        verb(theirs)
    assert "Use trust=True" in str(caught.value)
    assert len(theirs.jobs) == 1
    verb(theirs, trust=True)
    assert len(theirs.jobs) == 2


def test_a_preview_of_another_users_run_needs_trust_too(theirs: rlnb.Run) -> None:
    with pytest.raises(rlnb.RunError, match="belongs to the user"):
        rlnb.preview(theirs)


def test_a_folder_of_another_user_makes_the_run_theirs(theirs: rlnb.Run) -> None:
    os.chown(theirs.path / "manifest.json", 0, 0)
    require_trusted_owner(theirs.record, trust=False)
    os.chown(theirs.path, OTHER_UID, OTHER_UID)
    with pytest.raises(rlnb.RunError, match="belongs to the user"):
        require_trusted_owner(theirs.record, trust=False)


@pytest.mark.parametrize("place", ["source/package", "source/package/rewards.py", "inputs/teacher/run/source/task.py"])
def test_copied_code_that_others_can_change_makes_the_run_theirs(theirs: rlnb.Run, place: str) -> None:
    os.chown(theirs.path / "manifest.json", 0, 0)
    for name in ("source/package/rewards.py", "inputs/teacher/run/source/task.py"):
        (theirs.path / name).parent.mkdir(parents=True, exist_ok=True)
        (theirs.path / name).write_text("")
    require_trusted_owner(theirs.record, trust=False)
    path = theirs.path / place
    path.chmod(path.stat().st_mode | 0o022)
    with pytest.raises(rlnb.RunError):
        require_trusted_owner(theirs.record, trust=False)


def test_records_that_vanish_meanwhile_leave_the_run_theirs(theirs: rlnb.Run) -> None:
    """Its owner removes the manifest after it was read, so that its owner is not seen."""
    run = rlnb.get_run(theirs.id)
    assert run.manifest.library == "echo"
    os.chown(run.path, OTHER_UID, OTHER_UID)
    (run.path / "manifest.json").rename(run.path / "kept")
    with pytest.raises(rlnb.RunError, match=rf"belongs to the user {OTHER_UID}"):
        require_trusted_owner(run.record, trust=False)


def test_a_run_that_is_anothers_link_is_theirs(theirs: rlnb.Run) -> None:
    """The link could lead elsewhere a moment later."""
    os.chown(theirs.path / "manifest.json", 0, 0)
    linked = theirs.path.with_name("linked")
    linked.symlink_to(theirs.path)
    record = rlnb.Run(linked).record
    assert record.manifest.library == "echo"
    require_trusted_owner(record, trust=False)
    os.chown(linked, OTHER_UID, OTHER_UID, follow_symlinks=False)
    with pytest.raises(rlnb.RunError, match=rf"belongs to the user {OTHER_UID}"):
        require_trusted_owner(record, trust=False)


@pytest.mark.parametrize("above", [".", ".."])
def test_a_run_in_a_folder_that_others_can_rename_needs_trust(
    theirs: rlnb.Run, above: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(theirs.path / "manifest.json", 0, 0)
    folder = (theirs.path.parent / above).resolve()
    folder.chmod(0o777)
    with pytest.raises(rlnb.RunError, match=f"can be replaced by all users, who can rename what is in {folder}"):
        theirs.resume(max_iterations=6)
    monkeypatch.setattr(rlnb.options, "team", True)
    theirs.resume(max_iterations=6).wait(WAIT_S)


def test_the_message_shows_what_would_be_executed_in_plain_text(theirs: rlnb.Run) -> None:
    path = theirs.path / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["python"] = "/x/evil.sh \x1b[2K\n  launcher: local()"
    path.write_text(json.dumps(manifest))
    with pytest.raises(rlnb.RunError) as caught:
        rlnb.get_run(theirs.id).evaluate(episodes=4)
    assert "\n  interpreter: /x/evil.sh \\x1b[2K\\n  launcher: local()\n" in str(caught.value)


def test_the_command_line_names_its_own_option(theirs: rlnb.Run) -> None:
    result = CliRunner().invoke(app.app, ["evaluate", theirs.id, "--episodes=4"])
    assert "Use trust=True, or --trust in a shell" in " ".join(result.output.split())
    assert len(theirs.jobs) == 1
