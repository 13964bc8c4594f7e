"""A folder that other users can write is entered through no link of theirs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from users import ANN, as_root, as_user, given, link, shared_root

import rlnb

TEAM = 54_100

pytestmark = as_root


@pytest.fixture
def shared(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with shared_root() as folder:
        monkeypatch.setattr(rlnb.options, "root", folder)
        yield folder


@pytest.fixture
def home(shared: Path) -> Path:
    return shared.parent / "ann"


def test_a_record_is_not_read_through_anothers_link(shared: Path, home: Path) -> None:
    secret = home / "secret.json"
    secret.write_text('{"text": "secret"}')
    given(secret, ANN)
    link(shared / "manifest.json", secret)
    read = "from rlnb.storage import files\nprint(files.read_json(rlnb.options.folders.path / 'manifest.json'))"
    printed = as_user(ANN, read, shared)
    assert "which is not followed" in printed
    assert "secret'" not in printed
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
