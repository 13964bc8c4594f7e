"""Which files of a run travel, and how."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest

import rlnb
from rlnb.contracts.libraries import Library
from rlnb.hooks import plugins
from rlnb.mirror import run_files
from rlnb.records.layout import RunDir
from rlnb.storage import files

LIBRARY = Library(name="any", backend="")
WAYS = {
    "logs/events.out.tfevents.1": "grow",
    "logs/system/events.out.tfevents.2": "grow",
    "jobs/0-train/node0.log": "grow",
    "jobs/0-train/saves.jsonl": "grow",
    "jobs/0-train/started.json": "once",
    "jobs/0-train/result.json": "once",
    "jobs/0-train/job.json": "once",
    "jobs/0-train/evaluation.json": "whole",
    "jobs/0-train/node1.running": "whole",
    "jobs/0-train/alerts/1.json": "whole",
    "media/training-000050.mp4": "whole",
    "view/frame.npz": "whole",
    "logs/params/env.yaml": "whole",
    "logs/model_49.pt": "list",
    "logs/deep/model_49.pt": "list",
    "manifest.json": None,
    "remote.json": None,
    "source/task.py": None,
    "notes/1.json": None,
    "view/wanted.json": None,
    "init/model.pt": None,
    "inputs/teacher/model.pt": None,
    "jobs/0-train/handle.json": None,
    "jobs/0-train/waits.json": None,
    "jobs/0-train/summary.json": None,
    "jobs/0-train/settled.json": None,
    "jobs/0-train/order.json": None,
    "jobs/0-train/sent.json": None,
    "jobs/0-train/begun.json": None,
    "jobs/0-train/mirror.log": None,
    "jobs/0-train/host.alive": None,
    "jobs/.3/job.json": None,
    "logs/.model_50.pt": None,
    ".mirror.lock": None,
    "../other/manifest.json": None,
    "logs/../../x": None,
    "/etc/passwd": None,
    "logs//x": None,
    "logs/a\nb.yaml": None,
    "logs\\b.yaml": None,
    "": None,
}


@pytest.mark.parametrize("path", WAYS)
def test_each_file_has_its_way(path: str) -> None:
    assert run_files.way_of(path, LIBRARY) == WAYS[path]


def test_only_the_files_of_a_run_are_found_with_results_last_and_links_left_out(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for name in ("jobs/0-train/result.json", "logs/events.out.tfevents.1", "jobs/0-train/a.json", "logs/model_1.pt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
    (tmp_path / "logs" / "secret.yaml").symlink_to("/etc/passwd")
    (tmp_path / "logs" / "events.out.tfevents.2").symlink_to(tmp_path / "none")
    entries = run_files.scan(run, LIBRARY)
    assert {path: entry.way for path, entry in entries.items()} == {
        "logs/events.out.tfevents.1": "grow",
        "jobs/0-train/a.json": "whole",
        "logs/model_1.pt": "list",
        "jobs/0-train/result.json": "once",
    }
    assert [*entries][-1] == "jobs/0-train/result.json"
    assert all(entry.size == 5 for entry in entries.values())


def test_a_large_file_is_only_listed(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with open(tmp_path / "logs" / "replay.npz", "wb") as file:
        file.truncate(run_files.MOST_BYTES + 1)
    assert run_files.scan(RunDir(tmp_path), LIBRARY)["logs/replay.npz"].way == "list"


def test_the_result_of_a_job_travels_as_long_as_it_can_be_read(tmp_path: Path) -> None:
    job = tmp_path / "jobs" / "0-evaluate"
    job.mkdir(parents=True)
    for name, size in {"result.json": files.LARGEST_BYTES, "evaluation.json": files.LARGEST_BYTES + 1}.items():
        with open(job / name, "wb") as file:
            file.truncate(size)
    entries = run_files.scan(RunDir(tmp_path), LIBRARY)
    ways = {path.rpartition("/")[2]: entry.way for path, entry in entries.items()}
    assert ways == {"result.json": "once", "evaluation.json": "list"}


def test_a_digest_is_that_of_the_bytes_before_a_position(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(b"first" + b"x" * run_files.DIGEST_BYTES + b"later")
    assert run_files.digest(path, 5) == hashlib.sha256(b"first").hexdigest()
    assert (
        run_files.digest(path, 5 + run_files.DIGEST_BYTES) == hashlib.sha256(b"x" * run_files.DIGEST_BYTES).hexdigest()
    )


def test_the_parts_of_a_file_are_those_between_two_positions() -> None:
    assert [*run_files.chunks(io.BytesIO(b"0123456789"), 2, 9, 3)] == [(2, b"234"), (5, b"567"), (8, b"8")]
    assert [*run_files.chunks(io.BytesIO(b"01"), 0, 9, 3)] == [(0, b"01")], "a file that has become shorter"


@pytest.mark.parametrize("name", sorted(plugins.libraries()))
def test_the_checkpoints_of_every_library_are_listed(name: str) -> None:
    library = plugins.library(name)
    glob = library.checkpoint_glob.removeprefix("**/")
    assert run_files.way_of("logs/" + glob.replace("*", "model_7"), library) == "list"


SEVERAL_FILES = rlnb.Library(
    name="several",
    backend="a:B",
    checkpoint_glob="step_*",
    checkpoint_is_folder=True,
    checkpoint_companions=("{stem}.buffer.npz",),
)


@pytest.mark.parametrize(
    ("path", "way"),
    [
        ("logs/step_4/.metadata", "list"),
        ("logs/step_4/nested/trainer.jsonl", "list"),
        ("logs/step_4.buffer.npz", "list"),
        ("logs/.part-step_4/weights.bin", None),
        ("logs/step_4", "whole"),
        ("logs/params/agent.yaml", "whole"),
        ("media/step_4/film.mp4", "whole"),
    ],
)
def test_the_files_of_a_checkpoint_are_listed(path: str, way: str | None) -> None:
    assert run_files.way_of(path, SEVERAL_FILES) == way
