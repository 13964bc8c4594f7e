"""To act on a run of another user needs trust, since its records decide what is executed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import rlnb

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
    with pytest.raises(rlnb.RunError, match=rf"belongs to the user {OTHER_UID}.*\n  launcher: local\(") as caught:
        verb(theirs)
    assert "Use trust=True" in str(caught.value)
    assert len(theirs.jobs) == 1
    verb(theirs, trust=True)
    assert len(theirs.jobs) == 2


def test_a_preview_of_another_users_run_needs_trust_too(theirs: rlnb.Run) -> None:
    with pytest.raises(rlnb.RunError, match="belongs to the user"):
        rlnb.preview(theirs)


def test_the_owner_of_the_folder_makes_no_difference(theirs: rlnb.Run) -> None:
    folder = theirs.path.parent
    os.chown(folder, OTHER_UID, OTHER_UID)
    folder.chmod(0o2777)
    assert os.stat(folder).st_uid == OTHER_UID  # a new file there still belongs to this user, so this run is foreign
    with pytest.raises(rlnb.RunError, match="belongs to the user"):
        theirs.evaluate(episodes=4)
