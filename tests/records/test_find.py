"""Find runs on disk: rlnb's own, and those of stock Isaac Lab."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb
from rlnb.plugin import Manifest
from rlnb.records.find import find, find_one, run_of
from rlnb.settings import Root
from rlnb.storage import files
from rlnb.storage.serial import to_json

WAIT_S = 60.0


def echo(**arguments: object) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", **arguments)  # type: ignore[arg-type]


def test_a_half_removed_run_is_not_listed(root: Path) -> None:
    run = echo(max_iterations=2).wait(WAIT_S)
    half = run.path.rename(run.path.with_name(f".{run.id}.removed"))
    assert not rlnb.runs()
    (half / "manifest.json").unlink()
    for name in ("agent.yaml", "env.yaml"):
        path = half / "logs" / "params" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert not rlnb.runs()


def test_no_run_is_found_in_folders_without_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "runs" / ".staging").mkdir(parents=True)
    (tmp_path / "runs" / "empty").mkdir()
    assert list(find(tmp_path)) == []
    assert list(find(tmp_path / "nowhere")) == []


def lay_out(root: Path, name: str) -> Path:
    run = root / "runs" / name
    run.mkdir(parents=True)
    manifest = Manifest(run_id=name, created="", task=rlnb.Task(id="Echo"), library="echo")
    files.write_once(run / "manifest.json", to_json(manifest))
    return run


def test_a_run_is_found_by_its_id_a_part_of_it_or_its_folder(tmp_path: Path) -> None:
    first, second = lay_out(tmp_path, "20260101-echo-aa"), lay_out(tmp_path, "20260102-echo-aa")
    for id in (first.name, "0101", str(first)):
        assert find_one(Root(tmp_path), id).path == first
    with pytest.raises(rlnb.NotFoundError, match=f"'echo' matches 2 runs: {first.name}, {second.name}. Use a longer"):
        find_one(Root(tmp_path), "echo")
    with pytest.raises(rlnb.NotFoundError, match=r"No run named '20260101-echo-ab'.*Did you mean '20260101-echo-aa'"):
        find_one(Root(tmp_path), "20260101-echo-ab")


def test_an_id_that_is_a_part_of_another_one_is_found(tmp_path: Path) -> None:
    short = lay_out(tmp_path, "echo-a")
    lay_out(tmp_path, "echo-ab")
    assert find_one(Root(tmp_path), "echo-a").path == short


def test_the_run_of_a_file_is_the_folder_above_it_with_a_manifest(tmp_path: Path) -> None:
    run = lay_out(tmp_path, "echo-a")
    record = run_of(run / "logs" / "deep" / "model_4.pt")
    assert record is not None
    assert record.path == run
    assert run_of(tmp_path / "runs" / "nothing") is None
