"""What a run's folder says of its original on another machine."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb
from rlnb.records import remote
from rlnb.records.layout import RunDir
from rlnb.records.remote import Remote


def test_files_that_are_only_there_are_known_until_they_are_copied(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert remote.remote_of(run) is None
    assert remote.remote_files(run) == {}
    remote.write(run, Remote(place="gpu7", files={"logs/model_1.pt": 5, "logs/nn/last.pth": 6, "replay.npz": 7}))
    assert remote.remote_files(run) == {
        tmp_path / "logs/model_1.pt": 5,
        tmp_path / "logs/nn/last.pth": 6,
        tmp_path / "replay.npz": 7,
    }
    with pytest.raises(rlnb.RunError, match=r"model_1.pt of .* is on gpu7, and not here. Use .*fetch\('model_1.pt'\)"):
        remote.refuse_remote(run, tmp_path / "logs/model_1.pt")
    with pytest.raises(rlnb.RunError, match=r"nn of .* is on gpu7, and not here"):
        remote.refuse_remote(run, tmp_path / "logs/nn")
    run.logs.mkdir()
    (run.logs / "model_1.pt").touch()
    remote.refuse_remote(run, tmp_path / "logs/model_1.pt")
    assert tmp_path / "logs/model_1.pt" not in remote.remote_files(run)


def test_a_damaged_record_names_no_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / remote.REMOTE).write_text("[]")
    found = remote.remote_of(RunDir(tmp_path))
    assert found == Remote(place="another machine")
    assert "is damaged" in caplog.text
