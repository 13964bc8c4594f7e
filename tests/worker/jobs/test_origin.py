"""Libraries that ignore the checkpoint or the weights from which their training starts."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.backend import TrainContext
from rlnb.hooks.registry import registry
from rlnb.plugin import Library, Manifest, hookimpl
from rlnb.records.layout import JobDir
from rlnb.records.options import TrainOptions
from rlnb.records.record import JobRecord
from rlnb.spec import Job
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.worker.jobs.train import train

CHECKPOINT = {"iteration": 4}


class Toy:
    """A library that starts as its agent options say."""

    def train(self, env: None, agent_cfg: dict[str, Any], ctx: TrainContext) -> None:
        paths = {"checkpoint": ctx.checkpoint} if agent_cfg.get("reads_checkpoint") else {}
        paths |= {"init_from": ctx.init_from} if agent_cfg.get("reads_init_from") else {}
        if paths.get("checkpoint") and "lost" in agent_cfg:
            ctx.resumed(
                lambda path: Path(path).write_text(json.dumps(CHECKPOINT)),
                lost=agent_cfg["lost"],
                all_ranks=agent_cfg.get("all_ranks", False),
            )
        if agent_cfg.get("starts", True):
            first = agent_cfg.get("first_iteration", 0)
            horizon = agent_cfg.get("horizon", 1)
            ctx.started(horizon=horizon, frames_per_step=1, first_iteration=first, max_iterations=9, num_envs=1)


class ToyPlugin:
    @hookimpl
    def rlnb_libraries(self) -> list[Library]:
        names = {"checkpoint_glob": "model_*.json", "checkpoint_pattern": r"model_(\d+)\.json$"}
        toy = Library(name="toy", backend=f"{__name__}:Toy", simulator=False, **names)  # type: ignore[arg-type]
        finished = dataclasses.replace(toy, name="finished", checkpoint_iteration=lambda number, per: number / per - 1)
        return [toy, finished]


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    """The library toy of the package rlnb-toy 1.2."""
    rlnb.register(ToyPlugin(), "toy")
    plugin = registry().plugins["toy"]
    plugin.distribution, plugin.version = "rlnb-toy", "1.2"
    yield
    registry().manager.unregister(name="toy")
    registry.cache_clear()


def job_of(run: Path, options: TrainOptions, library: str = "toy", **agent: Any) -> JobDir:
    """Return the job of a new run, which has the checkpoints 0 and 4."""
    task = rlnb.Task(id="Echo")
    manifest = Manifest(run_id="r", created="", task=task, library=library, max_iterations=9, agent=agent)
    files.write_once(run / "manifest.json", to_json(manifest))
    (run / "logs").mkdir()
    for number in (0, 4):
        (run / "logs" / f"model_{number}.json").write_text(json.dumps(CHECKPOINT))
    job = JobDir(run / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    files.write_once(job.job, to_json(Job(kind="train", options=to_json(options))))
    return job


RESUMED = TrainOptions(checkpoint="logs/model_4.json")
FROM_WEIGHTS = TrainOptions(init_from="/elsewhere/model_7.json")
WHO = "The library 'toy' of the plugin 'toy' (rlnb-toy 1.2) "
FIX = " Update or uninstall rlnb-toy. In the code of its backend, "


@pytest.mark.parametrize(
    ("options", "agent", "what"),
    [
        (
            RESUMED,
            {},
            "does not read ctx.checkpoint. The training would start from zero instead of model_4.json."
            f"{FIX}load ctx.checkpoint in train(), or set Library.resumes=False.",
        ),
        (RESUMED, {"first_iteration": 5}, "does not read ctx.checkpoint."),
        (
            RESUMED,
            {"reads_checkpoint": True},
            "reports first_iteration=0 for a resumed training. The training would start from zero, or overwrite the "
            f"curve before model_4.json.{FIX}pass the iteration after that of ctx.checkpoint to ctx.started().",
        ),
        (TrainOptions(checkpoint="logs/model_0.json"), {"reads_checkpoint": True}, "reports first_iteration=0"),
        (
            FROM_WEIGHTS,
            {"reads_checkpoint": True},
            "does not read ctx.init_from. The training would start from fresh weights, not from "
            f"/elsewhere/model_7.json.{FIX}load the weights of ctx.init_from in train().",
        ),
        (
            TrainOptions(),
            {"starts": False},
            "never calls ctx.started(). The training would have no frames and no start",
        ),
    ],
)
def test_a_library_that_ignores_its_origin_is_named(
    tmp_path: Path, options: TrainOptions, agent: dict[str, Any], what: str
) -> None:
    job = job_of(tmp_path, options, **agent)
    with pytest.raises(rlnb.RlnbError, match=re.escape(WHO + what)):
        train(job.path)
    assert not job.started.exists()
    assert not job.result.exists()


@pytest.mark.parametrize(
    ("options", "library", "agent"),
    [
        (RESUMED, "toy", {"reads_checkpoint": True, "first_iteration": 5}),
        (FROM_WEIGHTS, "toy", {"reads_init_from": True}),
        (TrainOptions(), "toy", {}),
        (TrainOptions(checkpoint="logs/model_0.json"), "finished", {"reads_checkpoint": True}),
        (RESUMED, "finished", {"reads_checkpoint": True, "horizon": 8}),
    ],
    ids=["resumed", "from weights", "new", "from before the first iteration", "from the middle of the first iteration"],
)
def test_a_library_that_heeds_its_origin_trains(
    tmp_path: Path, options: TrainOptions, library: str, agent: dict[str, Any]
) -> None:
    job = job_of(tmp_path, options, library, **agent)
    train(job.path)
    assert JobRecord(job, "local").state() == "completed"


def started(tmp_path: Path, **agent: Any) -> rlnb.Started:
    job = job_of(tmp_path, RESUMED, reads_checkpoint=True, first_iteration=5, **agent)
    train(job.path)
    record = JobRecord(job, "local").started
    assert record is not None
    return record


def test_the_record_says_what_is_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record = started(tmp_path, lost={"replay buffer": "it is not saved"})
    assert record.restored == {"iteration": "restored: 4", "replay buffer": "NOT restored: it is not saved"}
    assert record.losses == {"replay buffer": "NOT restored: it is not saved"}
    assert [entry.message for entry in caplog.records if entry.levelname == "WARNING"] == [
        "replay buffer of model_4.json: NOT restored: it is not saved"
    ]


@pytest.mark.parametrize(
    ("world_size", "agent", "part"),
    [
        (2, {}, "random state of rank 1"),
        (4, {"lost": {}}, "random state of ranks 1 to 3"),
        (4, {"lost": {}, "all_ranks": True}, None),
    ],
)
def test_the_state_of_further_ranks_is_lost_unless_the_library_saves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world_size: int, agent: dict[str, Any], part: str | None
) -> None:
    monkeypatch.setenv("WORLD_SIZE", str(world_size))
    losses = started(tmp_path, **agent).losses
    report = "NOT restored: only rank 0's is saved; the others restart from their seeds"
    assert losses == ({} if part is None else {part: report})
