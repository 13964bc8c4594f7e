"""The record of a plain training script, derived from its event files and folders."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

import rlnb
from rlnb.hooks import plugins
from rlnb.launchers import Resources
from rlnb.plugin import Manifest
from rlnb.records.stock_record import ScriptRecord
from rlnb.storage import files
from rlnb.storage.serial import to_json

NUM_ENVS, HORIZON, RANKS = 8, 16, 2


@pytest.fixture
def record(tmp_path: Path) -> ScriptRecord:
    """A script's run on two ranks that has dumped its configs but logged no scalar yet."""
    manifest = Manifest(
        run_id="r",
        created="2026-01-01T00:00:00+00:00",
        task=rlnb.Task(id="My-Task"),
        library=plugins.SCRIPT.name,
        script=("train.py",),
        resources=Resources(nproc_per_node=RANKS),
    )
    files.write_once(tmp_path / "manifest.json", to_json(manifest))
    params = tmp_path / "logs" / "rsl_rl" / "params"
    params.mkdir(parents=True)
    (params / "env.yaml").write_text(f"scene:\n  num_envs: {NUM_ENVS}\n")
    (params / "agent.yaml").write_text(f"num_steps_per_env: {HORIZON}\n")
    return ScriptRecord(tmp_path)


def log(record: ScriptRecord, *tags: str) -> None:
    writer = EventFileWriter(str(record.folder.logs / "rsl_rl"))
    for step in range(3):
        values = [Summary.Value(tag=tag, simple_value=float(step)) for tag in tags]
        writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
    writer.close()


def test_the_library_is_detected_from_the_tags_that_the_script_logs(record: ScriptRecord) -> None:
    log(record, "Train/mean_reward", "Loss/value")
    assert record.library_spec is not None
    assert record.library_spec.name == "rsl_rl"
    assert record.metrics["reward"].values == [0.0, 1.0, 2.0]


def test_frames_count_the_envs_of_all_ranks(record: ScriptRecord) -> None:
    log(record, "Train/mean_reward", "Loss/value")
    per_iteration = NUM_ENVS * RANKS * HORIZON
    assert record.metrics["reward"].frames == [per_iteration, 2 * per_iteration, 3 * per_iteration]


def test_before_the_first_scalar_the_library_is_unknown(record: ScriptRecord) -> None:
    assert record.library_spec is None
    assert record.metrics.names == []


def test_tags_of_an_unknown_library_are_kept(record: ScriptRecord) -> None:
    log(record, "my/tag")
    assert record.library_spec is None
    assert record.metrics["my/tag"].values == [0.0, 1.0, 2.0]


def test_checkpoints_are_found_wherever_the_script_writes_them(record: ScriptRecord) -> None:
    for name in ("model_10.pt", "model_9.pt"):
        (record.folder.logs / "rsl_rl" / name).touch()
    assert [path.name for path in record.checkpoints] == ["model_9.pt", "model_10.pt"]


def test_checkpoints_of_stock_are_found_in_the_logs_of_a_script(record: ScriptRecord) -> None:
    log(record, "rollout/ep_rew_mean", "train/approx_kl")
    (record.folder.logs / "sb3").mkdir()
    for name in ("model.zip", "model_1000_steps.zip", "mine.pt"):
        (record.folder.logs / "sb3" / name).touch()
    assert [path.name for path in record.checkpoints] == ["mine.pt", "model_1000_steps.zip", "model.zip"]


def test_a_library_is_detected_from_the_tags_of_its_older_versions(record: ScriptRecord) -> None:
    log(record, "Loss/value_function")
    assert record.metrics["value_loss"].values == [0.0, 1.0, 2.0]
