"""Checkpoints of several files: folders, and files with companions."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

import rlnb
from rlnb.records import checkpoints, remote
from rlnb.records.layout import RunDir
from rlnb.records.remote import Remote

BUFFERED = rlnb.Library(
    name="buffered",
    backend="a:B",
    checkpoint_glob="model_*.npz",
    checkpoint_pattern=r"model_(\d+)\.npz$",
    checkpoint_companions=("{stem}.buffer.npz", "normaliser_{stem}.safetensors"),
)
FOLDERS = rlnb.Library(
    name="folders",
    backend="a:B",
    checkpoint_glob="saves/step_*",
    checkpoint_pattern=r"step_(\d+)$",
    checkpoint_is_folder=True,
    checkpoint_companions=("{stem}.buffer.npz",),
)


def safetensors(path: Path, size: int = 8) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(size))


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run with the checkpoints 4 and 9 of each library; the ninth has no buffer."""
    run = RunDir(tmp_path / "r")
    saves = run.logs / "saves"
    saves.mkdir(parents=True)
    for number in (4, 9):
        np.savez(run.logs / f"model_{number}.npz", a=np.arange(4))
        folder = saves / f"step_{number}"
        (folder / "nested").mkdir(parents=True)
        (folder / ".metadata").write_text("m")
        (folder / "nested" / "weights.json").write_text("{}")
    for buffer in (run.logs / "model_4.buffer.npz", saves / "step_4.buffer.npz"):
        np.savez(buffer, b=np.arange(9))
    safetensors(run.logs / "normaliser_model_4.safetensors")
    (saves / "step_12").write_text("no folder")
    (saves / ".part-step_14").mkdir()
    (run.logs / "model_12.npz").mkdir()
    return run


def names(run: RunDir, library: rlnb.Library) -> list[str]:
    return [path.name for path in checkpoints.checkpoints_of(run, library)[0]]


def test_a_companion_is_no_checkpoint_of_its_own(run: RunDir) -> None:
    assert names(run, BUFFERED) == ["model_4.npz", "model_9.npz"]


def test_a_checkpoint_may_be_a_folder(run: RunDir) -> None:
    assert names(run, FOLDERS) == ["step_4", "step_9"]


def test_the_newest_checkpoint_is_named_by_its_path_in_the_folder_of_the_run(run: RunDir, tmp_path: Path) -> None:
    assert checkpoints.newest_of(run, BUFFERED) == "logs/model_9.npz"
    assert checkpoints.newest_of(run, FOLDERS) == "logs/saves/step_9"
    assert checkpoints.newest_of(RunDir(tmp_path), BUFFERED) is None


def test_the_size_is_that_of_all_files(run: RunDir) -> None:
    def bytes_of(*paths: str) -> int:
        return sum((run.logs / path).stat().st_size for path in paths)

    sizes = (
        checkpoints.size_of(run.logs / "model_4.npz", BUFFERED),
        checkpoints.size_of(run.logs / "saves/step_4", FOLDERS),
    )
    assert sizes == (
        bytes_of("model_4.npz", "model_4.buffer.npz", "normaliser_model_4.safetensors"),
        bytes_of("saves/step_4/.metadata", "saves/step_4/nested/weights.json", "saves/step_4.buffer.npz"),
    )
    assert checkpoints.size_of(run.logs / "model_7.npz", BUFFERED) == 0, "deleted a moment ago"


def test_all_files_are_removed_together(run: RunDir) -> None:
    checkpoints.remove(run.logs / "model_4.npz", BUFFERED)
    checkpoints.remove(run.logs / "saves/step_4", FOLDERS)
    assert names(run, BUFFERED) == ["model_9.npz"]
    assert names(run, FOLDERS) == ["step_9"]
    left = {path.relative_to(run.logs).as_posix() for path in run.logs.rglob("*4*")} - {"saves/.part-step_14"}
    assert left == set()


@pytest.mark.parametrize("torn", ["model_4.npz", "model_4.buffer.npz", "normaliser_model_4.safetensors"])
def test_a_torn_file_makes_the_checkpoint_incomplete(run: RunDir, torn: str) -> None:
    checkpoint = run.logs / "model_4.npz"
    assert checkpoints.is_whole(checkpoint, BUFFERED)
    os.truncate(run.logs / torn, (run.logs / torn).stat().st_size - 3)
    assert not checkpoints.is_whole(checkpoint, BUFFERED)
    assert checkpoints.is_whole(run.logs / "model_9.npz", BUFFERED), "no companion was saved"


def test_a_folder_is_complete_if_its_files_are(run: RunDir) -> None:
    checkpoint = run.logs / "saves/step_4"
    assert checkpoints.is_whole(checkpoint, FOLDERS)
    assert not checkpoints.is_whole(run.logs / "saves/step_12", FOLDERS), "a file"
    assert not checkpoints.is_whole(run.logs / "model_12.npz", BUFFERED), "a folder"
    (checkpoint / "nested/weights.json").write_text("{")
    assert not checkpoints.is_whole(checkpoint, FOLDERS)
    empty = run.logs / "saves/step_20"
    empty.mkdir()
    assert not checkpoints.is_whole(empty, FOLDERS)


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\x02" + bytes(7) + b"[]", b"\x02" + bytes(7) + b"{}tail"])
def test_a_file_that_is_not_safetensors_is_not_whole(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    assert not checkpoints.is_whole_file(path)


@pytest.mark.parametrize(
    ("library", "path", "is_part"),
    [
        (BUFFERED, "model_4.npz", True),
        (BUFFERED, "model_4.buffer.npz", True),
        (BUFFERED, "normaliser_model_4.safetensors", True),
        (BUFFERED, "other.safetensors", False),
        (FOLDERS, "saves/step_4/nested/weights.json", True),
        (FOLDERS, "saves/step_4.buffer.npz", True),
        (FOLDERS, "saves/step_4", False),
        (FOLDERS, "saves/notes.txt", False),
        (FOLDERS, "step_4/weights.json", False),
    ],
)
def test_the_files_of_a_checkpoint_are_known_by_their_paths(library: rlnb.Library, path: str, is_part: bool) -> None:
    assert checkpoints.belongs(PurePosixPath(path), library) is is_part


def test_a_checkpoint_is_far_until_all_its_files_have_arrived(run: RunDir) -> None:
    sizes = {
        "logs/model_4.npz": 1,
        "logs/model_4.buffer.npz": 1,
        "logs/model_9.buffer.npz": 1,
        "logs/model_15.npz": 1,
        "logs/model_15.buffer.npz": 1,
        "logs/saves/step_9/shard_2.npz": 1,
        "logs/saves/step_15/nested/weights.json": 1,
        "logs/saves/step_15/.metadata": 1,
        "logs/saves/step_15.buffer.npz": 1,
        "media/model_15.npz": 1,
    }
    remote.write(run, Remote(place="gpu7", files=sizes))
    paths, far = checkpoints.checkpoints_of(run, BUFFERED)
    assert [path.name for path in paths] == ["model_4.npz", "model_9.npz", "model_15.npz"]
    assert {path.name for path in far} == {"model_9.npz", "model_15.npz"}
    assert [path.name for path in checkpoints.far_files_of(run, run.logs / "model_15.npz", BUFFERED)] == [
        "model_15.buffer.npz",
        "model_15.npz",
    ], "the checkpoint's own name is the last"
    paths, far = checkpoints.checkpoints_of(run, FOLDERS)
    assert [path.name for path in paths] == ["step_4", "step_9", "step_15"]
    assert {path.name for path in far} == {"step_9", "step_15"}
    assert [path.name for path in checkpoints.far_files_of(run, run.logs / "saves/step_15", FOLDERS)] == [
        "step_15.buffer.npz",
        ".metadata",
        "weights.json",
    ]
