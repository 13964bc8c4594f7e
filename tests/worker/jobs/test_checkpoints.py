"""Writing, listing and checking the checkpoints of a library."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb
import rlnb.backend
from rlnb.records.layout import RunDir


def test_a_file_appears_under_its_name_only_when_complete(tmp_path: Path) -> None:
    seen = []

    def write(part: str) -> None:
        Path(part).write_text("half")
        seen.append(sorted(path.name for path in tmp_path.iterdir()))
        Path(part).write_text("whole")

    path = rlnb.backend.write_whole(tmp_path / "model_3.pt", write)
    assert seen == [[".part-model_3.pt"]]
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_older_file(tmp_path: Path) -> None:
    (tmp_path / "model_3.pt").write_text("older")

    def write(part: str) -> None:
        Path(part).write_text("half")
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        rlnb.backend.write_whole(tmp_path / "model_3.pt", write)
    assert (tmp_path / "model_3.pt").read_text() == "older"


def test_checkpoints_are_sorted_by_iteration_and_unfinished_files_are_left_out(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("model_10.pt", "model_9.pt", "best.pt", ".part-model_11.pt"):
        (logs / name).touch()
    checkpoints = RunDir(tmp_path).checkpoints("*.pt", r"model_(\d+)\.pt$")
    assert [path.name for path in checkpoints] == ["best.pt", "model_9.pt", "model_10.pt"]


@pytest.mark.parametrize("trust", [False, True])
def test_a_file_that_is_not_a_checkpoint_is_refused_even_with_trust(tmp_path: Path, trust: bool) -> None:
    path = tmp_path / "model_1.pt"
    for text in ('{"iteration": 1}', ""):
        path.write_text(text)
        with pytest.raises(rlnb.RlnbError, match=r"model_1\.pt is not a checkpoint: torch\.save did not write it"):
            rlnb.backend.vet_checkpoint(path, trust)
