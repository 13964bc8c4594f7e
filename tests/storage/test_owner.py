"""The owner of a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlnb.storage.owner import another_owner, printable

OTHER_UID = 65_534


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_the_owner_of_a_link_counts_and_not_that_of_its_target(tmp_path: Path) -> None:
    own, link = tmp_path / "own", tmp_path / "link"
    own.touch()
    link.symlink_to("own")
    assert another_owner(own, tmp_path) is None
    os.chown(link, OTHER_UID, OTHER_UID, follow_symlinks=False)
    assert another_owner(link, tmp_path) == OTHER_UID
    assert another_owner(own, tmp_path) is None
    assert another_owner(link, tmp_path / "missing") == OTHER_UID


def test_a_text_of_another_user_stays_one_plain_line() -> None:
    assert printable("a\x1b[2J\nü\u202eb") == "a\\x1b[2J\\nü\\u202eb"
    assert printable("x" * 10, most=4) == "xxxx..."
