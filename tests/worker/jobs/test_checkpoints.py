"""Writing, listing and checking the checkpoints of a library."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rlnb
import rlnb.backend
from rlnb.records.checkpoints import put_back, saves_of
from rlnb.records.layout import JobDir, RunDir
from rlnb.storage.entries import MOST_FOLDERS
from rlnb.worker.jobs.checkpoints import remove_parts, saves_recorded


def test_a_file_of_tensors_needs_no_trust_but_has_to_be_complete(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    rlnb.backend.write_tensors(tmp_path / "model_4.npz", {"weights": torch.zeros(3)})
    header = b'{"weights":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}'
    (tmp_path / "model_4.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(12))
    for name in ("model_4.safetensors", "model_4.npz"):
        path = tmp_path / name
        rlnb.backend.vet_checkpoint(path, False)
        path.write_bytes(path.read_bytes()[:-4])
        with pytest.raises(rlnb.RlnbError, match=f"{name} is not a checkpoint: it is not a complete"):
            rlnb.backend.vet_checkpoint(path, True)


def test_older_files_are_removed_and_one_that_is_gone_is_no_error(tmp_path: Path) -> None:
    paths = [tmp_path / f"agent_{number}.npz" for number in (9, 10, 11)]
    for number, path in enumerate(paths):
        path.touch()
        os.utime(path, ns=(0, number))
    rlnb.backend.remove_older([tmp_path / "gone.npz", *reversed(paths)], keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent_10.npz", "agent_11.npz"]
    rlnb.backend.remove_older(paths[1:], keep=5)
    assert len([*tmp_path.iterdir()]) == 2


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


class Driver:
    """The random number generators of a machine's GPUs, as torch.cuda reaches them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int, *, current: int = 0, in_use: bool = True) -> None:
        import torch

        self.states = [torch.tensor([index], dtype=torch.uint8) for index in range(count)]
        self._current = current
        functions = {
            "is_available": lambda: count > 0,
            "is_initialized": lambda: in_use,
            "device_count": lambda: count,
            "current_device": lambda: current,
            "get_rng_state": self._state,
            "set_rng_state": self._set,
            "get_rng_state_all": lambda: [state.clone() for state in self.states],
            "set_rng_state_all": lambda states: self.states.__setitem__(slice(None), states),
        }
        for name, function in functions.items():
            monkeypatch.setattr(torch.cuda, name, function)

    def _state(self) -> Any:
        return self.states[self._current].clone()

    def _set(self, state: Any) -> None:
        self.states[self._current] = state

    @property
    def numbers(self) -> list[int]:
        """The state of each GPU as a number."""
        return [int(state) for state in self.states]


def test_the_random_state_of_a_gpu_is_restored_where_other_gpus_are_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.delenv("RANK", raising=False)
    Driver(monkeypatch, 8, current=5)
    state = rlnb.backend.random_state()
    fewer = Driver(monkeypatch, 2, current=1)
    rlnb.backend.restore_random_state(state)
    assert fewer.numbers == [0, 5]
    assert [int(one) for one in rlnb.backend.random_state()["cuda"]] == [5]


def test_the_states_of_all_gpus_in_an_older_checkpoint_restore_that_of_the_own(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.delenv("RANK", raising=False)
    older = {
        "cpu": torch.get_rng_state(),
        "cuda": [torch.tensor([20 + index], dtype=torch.uint8) for index in range(3)],
    }
    for count, current, expected in ((2, 1, [0, 21]), (5, 4, [0, 1, 2, 3, 4])):
        driver = Driver(monkeypatch, count, current=current)
        rlnb.backend.restore_random_state(older)
        assert driver.numbers == expected


def test_a_training_on_a_cpu_leaves_the_gpus_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.delenv("RANK", raising=False)
    Driver(monkeypatch, 2)
    state = rlnb.backend.random_state()
    driver = Driver(monkeypatch, 2, in_use=False)
    assert rlnb.backend.random_state()["cuda"] == []
    driver.states[0] += 9
    torch.rand(1)
    rlnb.backend.restore_random_state(state)
    assert driver.numbers == [9, 1]
    assert torch.equal(torch.get_rng_state(), state["cpu"])


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, rename = os.fsync, os.rename

    def sync(descriptor: int) -> None:
        calls.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    def renamed(*names: str, **folders: int) -> None:
        calls.append("renamed")
        rename(*names, **folders)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "rename", renamed)
    rlnb.backend.write_whole(tmp_path / "model_3.pt", lambda part: Path(part).write_text("whole"))
    assert calls == [".part-model_3.pt", "renamed", tmp_path.name]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
@pytest.mark.parametrize("trust", [False, True])
def test_a_path_that_is_no_file_is_refused(make: Any, trust: bool, tmp_path: Path) -> None:
    make(tmp_path / "model_3.pt")
    with pytest.raises(rlnb.RlnbError, match=r"model_3\.pt is not a (regular file|checkpoint: the folder has no)"):
        rlnb.backend.vet_checkpoint(tmp_path / "model_3.pt", trust)


@pytest.mark.parametrize("glob", ["model_*.pt", "**/*.pt"])
def test_a_pipe_is_no_checkpoint(glob: str, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "model_9.pt").touch()
    os.mkfifo(tmp_path / "logs" / "model_10.pt")
    names = [path.name for path in RunDir(tmp_path).checkpoints(glob, r"model_(\d+)")]
    assert names == ["model_9.pt"]


def folder_with(files: dict[str, str]) -> Callable[[str], None]:
    def write(part: str) -> None:
        for name, text in files.items():
            path = Path(part) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


def test_a_folder_appears_under_its_name_only_when_complete_and_replaces_an_older_one(tmp_path: Path) -> None:
    path = rlnb.backend.write_whole(tmp_path / "step_3", folder_with({"a.json": "1", "only_here": ""}))
    (tmp_path / ".part-step_3").mkdir()
    (tmp_path / ".part-step_3" / "of_a_killed_process").touch()
    rlnb.backend.write_whole(path, folder_with({"a.json": "2", "nested/b.json": "3"}))
    assert {
        file.relative_to(tmp_path).as_posix(): file.read_text() for file in tmp_path.rglob("*.*") if file.is_file()
    } == {
        "step_3/a.json": "2",
        "step_3/nested/b.json": "3",
    }
    assert [child.name for child in tmp_path.iterdir()] == ["step_3"]


@pytest.mark.parametrize("by_next_write", [True, False])
def test_a_folder_that_a_killed_process_was_about_to_replace_is_kept(tmp_path: Path, by_next_write: bool) -> None:
    """The kill came between the two renames, so only the older folder is complete."""
    rlnb.backend.write_whole(tmp_path / "step_3", folder_with({"a.json": "1"}))
    (tmp_path / "step_3").rename(tmp_path / ".older-step_3")

    def fail(path: str) -> None:
        raise OSError("the disk is full")

    if by_next_write:
        with pytest.raises(OSError, match="full"):
            rlnb.backend.write_whole(tmp_path / "step_3", fail)
    else:
        remove_parts(tmp_path)
    assert (tmp_path / "step_3" / "a.json").read_text() == "1"
    assert [child.name for child in tmp_path.iterdir()] == ["step_3"]


def test_a_resumed_run_finds_the_folder_that_was_about_to_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "sub" / ".older-step_3").mkdir(parents=True)
    (tmp_path / "sub" / ".older-step_4").mkdir()
    (tmp_path / "sub" / "step_4").mkdir()
    put_back(tmp_path)
    assert sorted(path.name for path in (tmp_path / "sub").iterdir()) == ["step_3", "step_4"]


def test_the_size_of_a_folder_is_recorded(tmp_path: Path) -> None:
    job = JobDir(tmp_path / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    with saves_recorded(job):
        rlnb.backend.write_whole(tmp_path / "step_3", folder_with({"a.json": "12345", "nested/b.json": "123"}))
    (save,) = saves_of(job) or ()
    assert (save.file, save.size) == ("step_3", 8)


@pytest.mark.parametrize("trust", [False, True])
def test_links_that_lead_in_a_circle_or_to_themselves_are_refused(tmp_path: Path, trust: bool) -> None:
    folder = tmp_path / "step_3"
    folder.mkdir()
    for name in ("above", "again"):  # each doubles the number of paths at every level
        (folder / name).symlink_to(folder)
    with pytest.raises(rlnb.RlnbError, match=r"step_3 is not a checkpoint: a link leads to a folder again"):
        rlnb.backend.vet_checkpoint(folder, trust)
    for name in ("above", "again"):
        (folder / name).unlink()
    (folder / "weights.pt").symlink_to(folder / "weights.pt")
    with pytest.raises(rlnb.RlnbError, match=r"weights\.pt is not a checkpoint: Too many levels of symbolic links\."):
        rlnb.backend.vet_checkpoint(folder, trust)


@pytest.mark.parametrize("trust", [False, True])
def test_every_file_of_a_folder_is_vetted(tmp_path: Path, trust: bool) -> None:
    import torch

    folder = tmp_path / "step_3"
    (folder / "nested").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    torch.save({"weight": torch.zeros(2)}, folder / "weights.pt")
    rlnb.backend.vet_checkpoint(folder, trust)
    torch.save(Path("a"), folder / "nested" / "odd.bin")
    if trust:
        rlnb.backend.vet_checkpoint(folder, trust)
        return
    with pytest.raises(rlnb.RlnbError, match=r"odd\.bin holds more than weights"):
        rlnb.backend.vet_checkpoint(folder, trust)


def test_no_file_of_a_large_folder_is_left_out(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    folder = tmp_path / "step_3"
    for number in range(MOST_FOLDERS):
        (folder / str(number)).mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "0" / "deep").mkdir()
    torch.save(Path("a"), folder / "0" / "deep" / "odd.bin")
    with pytest.raises(rlnb.RlnbError, match=r"odd\.bin holds more than weights"):
        rlnb.backend.vet_checkpoint(folder, trust=False)


def test_a_linked_folder_is_vetted_and_a_circle_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    folder, other = tmp_path / "step_3", tmp_path / "other"
    for path in (folder, other):
        path.mkdir()
    (folder / "linked").symlink_to(other)
    torch.save({"weight": torch.zeros(2)}, other / "weights.pt")
    rlnb.backend.vet_checkpoint(folder, trust=False)
    torch.save(Path("a"), other / "odd.bin")
    with pytest.raises(rlnb.RlnbError, match=r"odd\.bin holds more than weights"):
        rlnb.backend.vet_checkpoint(folder, trust=False)
    (other / "odd.bin").unlink()
    (other / "circle").symlink_to(other)
    with pytest.raises(rlnb.RlnbError, match="a link leads to a folder again"):
        rlnb.backend.vet_checkpoint(folder, trust=False)
