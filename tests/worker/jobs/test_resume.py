"""The report of a resumed training about its checkpoint, and the times of its envs in their episodes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from rlnb.plugin import Library
from rlnb.records.checkpoints import saves_of
from rlnb.records.layout import JobDir
from rlnb.worker.jobs.checkpoints import saves_recorded, write_tensors
from rlnb.worker.jobs.resume import restored, spread_episodes


def state(iteration: int = 24) -> dict[str, Any]:
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return {"model": layer.state_dict(), "optimizer": optimizer.state_dict(), "iteration": iteration, "none": None}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "model_24.pt"
    torch.save(state(), path)
    return path


def test_parts_that_are_bit_equal_are_reported_as_restored(checkpoint: Path) -> None:
    reports = restored(checkpoint, lambda path: torch.save(state(), path))
    assert set(reports) == {"model", "optimizer", "iteration", "none"}
    assert all(report.startswith("restored") for report in reports.values())
    assert reports["iteration"] == "restored: 24"
    assert reports["model"] == "restored: 2 values (weight, bias)"


def test_a_value_that_differs_by_one_bit_is_named(checkpoint: Path) -> None:
    other = state()
    moment = other["optimizer"]["state"][0]["exp_avg"]
    moment[0, 0] = torch.nextafter(moment[0, 0], torch.tensor(9.0))
    reports = restored(checkpoint, lambda path: torch.save(other, path))
    assert reports["optimizer"].startswith("NOT restored: 1 of ")
    assert "state.0.exp_avg" in reports["optimizer"]
    assert reports["model"].startswith("restored")


@pytest.mark.parametrize("change", [{"iteration": 0}, {"iteration": 24.0}, {"iteration": torch.tensor(24)}])
def test_a_counter_that_starts_again_is_named(checkpoint: Path, change: dict[str, Any]) -> None:
    reports = restored(checkpoint, lambda path: torch.save({**state(), **change}, path))
    assert reports["iteration"].startswith("NOT restored")


def test_a_part_that_no_longer_exists_is_named(checkpoint: Path) -> None:
    less = {name: value for name, value in state().items() if name != "optimizer"}
    reports = restored(checkpoint, lambda path: torch.save(less, path))
    assert reports["optimizer"] == "NOT restored"


def test_nan_equals_itself(tmp_path: Path) -> None:
    odd = {"best": float("nan"), "last": torch.tensor([float("nan"), float("inf")])}
    torch.save(odd, tmp_path / "odd.pt")
    reports = restored(tmp_path / "odd.pt", lambda path: torch.save(odd, path))
    assert all(report.startswith("restored") for report in reports.values())
    zeros = {"best": 0.0, "last": torch.tensor([0.0, float("inf")])}
    reports = restored(tmp_path / "odd.pt", lambda path: torch.save(zeros, path))
    assert all(report.startswith("NOT") for report in reports.values())


class Raw:
    """An env that has only the times of its envs in their episodes."""

    max_episode_length = 300

    def __init__(self) -> None:
        self.episode_length_buf = torch.zeros(64, dtype=torch.long)

    def reset(self) -> tuple[str, dict[str, Any]]:
        self.episode_length_buf[:] = 0
        return "observations", {}


def test_the_envs_of_a_resumed_training_start_at_different_times_in_their_episodes() -> None:
    raw, before = Raw(), torch.get_rng_state()
    spread_episodes(SimpleNamespace(unwrapped=raw), seed=1)
    assert raw.reset() == ("observations", {})
    passed = raw.episode_length_buf
    assert len(passed.unique()) > 32
    assert 0 <= passed.min() < passed.max() < raw.max_episode_length
    assert torch.equal(torch.get_rng_state(), before), "the training's own random numbers are not used"
    raw.reset()
    assert not raw.episode_length_buf.any(), "a later reset is a normal one"


BUFFERED = Library(name="b", backend="a:B", checkpoint_companions=("{stem}.replay_buffer.npz",))


def save_both(path: str | Path, reward: float = 1.0) -> None:
    write_tensors(Path(path).with_suffix(".replay_buffer.npz"), {"reward": torch.tensor([reward, float("nan")])})
    torch.save(state(), path)


def test_companions_are_parts_of_a_checkpoint(tmp_path: Path) -> None:
    checkpoint = tmp_path / "model_4.pt"
    save_both(checkpoint)
    assert restored(checkpoint, save_both, BUFFERED)["replay_buffer"].startswith("restored: ")
    changed = restored(checkpoint, lambda path: save_both(path, 2.0), BUFFERED)
    assert changed["replay_buffer"] == "NOT restored: 1 of 1 values differ, first reward"
    assert changed["model"].startswith("restored")
    with np.load(checkpoint.with_suffix(".replay_buffer.npz")) as arrays:
        np.savez_compressed(checkpoint.with_suffix(".replay_buffer.npz"), reward=arrays["reward"])
    assert restored(checkpoint, save_both, BUFFERED)["replay_buffer"] == "restored: 1 values (reward)"
    without = restored(checkpoint, lambda path: torch.save(state(), path), BUFFERED)
    assert without["replay_buffer"] == "NOT restored"
    checkpoint.with_suffix(".replay_buffer.npz").unlink()
    missing = restored(checkpoint, save_both, BUFFERED)
    assert missing["replay_buffer"] == "NOT restored: model_4.replay_buffer.npz does not exist"
    never = restored(checkpoint, lambda path: torch.save(state(), path), BUFFERED)
    assert set(never) == set(state()), "an algorithm without a replay buffer has lost none"


def test_a_copy_that_is_compared_is_no_checkpoint_of_the_training(tmp_path: Path) -> None:
    job, checkpoint = JobDir(tmp_path), tmp_path / "model_4.pt"
    with saves_recorded(job):
        save_both(checkpoint)
        restored(checkpoint, save_both, BUFFERED)
        assert [save.file for save in saves_of(job) or ()] == ["model_4.replay_buffer.npz"]
        save_both(tmp_path / "model_5.pt")
    assert [save.file for save in saves_of(job) or ()] == [f"model_{number}.replay_buffer.npz" for number in (4, 5)]


def test_the_parts_of_a_folder_are_its_files(tmp_path: Path) -> None:
    def save(path: str, step: int = 3) -> None:
        Path(path).mkdir()
        (Path(path) / "config.json").write_text('{"a": 1}')
        (Path(path) / "state.json").write_text(f'{{"step": {step}}}')
        write_tensors(Path(path) / "weights.npz", {"layer": torch.arange(3)})
        (Path(path) / "odd.bin").write_bytes(bytes([step]))

    checkpoint = tmp_path / "step_3"
    save(str(checkpoint))
    assert {report.split(":")[0] for report in restored(checkpoint, save).values()} == {"restored"}
    assert restored(checkpoint, lambda path: save(path, 4)) == {
        "config.json": "restored: 8 bytes",
        "odd.bin": "NOT restored: its bytes differ",
        "state.json": "NOT restored: 1 of 1 values differ, first step",
        "weights.npz": restored(checkpoint, save)["weights.npz"],
    }
