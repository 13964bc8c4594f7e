"""Another user puts something else in place of each kind of name in a shared root. See also ``benchmarks``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import attacks
import pytest
from users import as_root

NUMBER = 45
"""Attacks: half of the manipulations with each verb."""

pytestmark = [as_root, pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")]


def outcomes(*arguments: str) -> list[dict[str, object]]:
    argv = [sys.executable, attacks.__file__, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_no_attack_executes_reads_or_changes_anything() -> None:
    found = outcomes(str(NUMBER), "7")
    assert len(found) == NUMBER
    assert not [one for one in found if one["violations"] or one["bare"]]
    assert sum(bool(one["skipped"]) for one in found) < NUMBER // 4


def test_the_attacker_notices_what_is_read_and_changed(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "file").write_text("mine")
    with attacks.Watch(private) as watch:
        assert not watch.seen()
        (private / "file").exists()
        assert not watch.seen(), "a look is neither"
        (private / "file").read_text()
        assert watch.seen() == ["read: private/file"]
        (private / "file").chmod(0o600)
        assert "changed: private/file" in watch.seen()
