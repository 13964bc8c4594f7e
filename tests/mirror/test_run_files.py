"""Which files of a run travel, and how their parts arrive."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
from pathlib import Path

import pytest

import rlnb
from rlnb.contracts.libraries import Library
from rlnb.hooks import plugins
from rlnb.mirror import run_files
from rlnb.mirror.frames import Closed, Frame
from rlnb.mirror.run_files import PartialFile, copy
from rlnb.mirror.server import send_file
from rlnb.records.layout import RunDir
from rlnb.storage import files

WISH = Frame(kind="fetch", path="logs/model.pt")
CONTENT = b"0123456789"


class Other:
    """The other end, which closes after some frames. A frame has at most four bytes."""

    def __init__(self, folder: Path, parts: int = 9) -> None:
        self.offsets: list[int] = []
        self._folder, self._parts = folder, parts
        self._frames: list[Frame] = []

    def send(self, frame: Frame) -> None:
        if frame.kind == "fetch":
            self.offsets.append(frame.offset)
            send_file(self, RunDir(self._folder), frame)  # type: ignore[arg-type]
            return
        for begin in range(0, len(frame.body), 4) or [0]:
            body = frame.body[begin : begin + 4]
            self._frames.append(dataclasses.replace(frame, offset=frame.offset + begin, body=body))

    def receive(self, timeout_s: float) -> Frame | None:
        if not self._parts:
            raise Closed("cut")
        self._parts -= 1
        return self._frames.pop(0) if self._frames else None


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Provide a run on another machine with one file."""
    folder = tmp_path / "there"
    write(folder, CONTENT, 5.0)
    return folder


def write(folder: Path, content: bytes, time_s: float) -> None:
    path = folder / WISH.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (time_s, time_s))


def test_a_file_appears_as_a_whole(tmp_path: Path, there: Path) -> None:
    copy(Other(there), RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    path = tmp_path / "logs" / "model.pt"
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mtime == 5.0
    assert os.listdir(path.parent) == ["model.pt"]


def test_a_copy_goes_on_where_it_ended(tmp_path: Path, there: Path) -> None:
    path = tmp_path / "logs" / "model.pt"
    with pytest.raises(Closed):
        copy(Other(there, parts=2), RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    assert not path.exists()
    other = Other(there)
    copy(other, RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    assert other.offsets == [8]
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("content", [b"abcdefghij", b"abcdef", b"abc", b""])
def test_the_first_part_of_an_earlier_file_is_not_used(tmp_path: Path, there: Path, content: bytes) -> None:
    with pytest.raises(Closed):
        copy(Other(there, parts=2), RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    write(there, content, 6.0)
    copy(Other(there), RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    assert (tmp_path / "logs" / "model.pt").read_bytes() == content


def test_the_error_of_the_other_end_and_its_silence_end_the_copy(tmp_path: Path, there: Path) -> None:
    other = Other(there)
    other.send = lambda wish: other._frames.append(Frame(kind="failed", data={"error": "no such file"}))  # type: ignore[method-assign]
    with pytest.raises(rlnb.RlnbError, match="no such file"):
        copy(other, RunDir(tmp_path), WISH)  # type: ignore[arg-type]
    other.send = lambda wish: None  # type: ignore[method-assign]
    with pytest.raises(Closed, match="nothing has arrived"):
        copy(other, RunDir(tmp_path), WISH)  # type: ignore[arg-type]


# -- part ------------------------------------------------------------------------------------------------------------


def frame(offset: int, body: bytes, total: int) -> Frame:
    return Frame(kind="put", path="a.bin", offset=offset, body=body, total=total)


def test_a_file_is_absent_until_its_last_bytes_have_arrived(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.bin"
    part = PartialFile(path)
    assert part.status() == (0, 0)
    assert not part.write(frame(0, b"abc", 5))
    assert (part.status()[0], path.exists()) == (3, False)
    assert part.write(frame(3, b"de", 5))
    assert (path.read_bytes(), part.path.exists()) == (b"abcde", False)
    assert PartialFile(path).write(frame(0, b"", 0))
    assert path.read_bytes() == b""


@pytest.mark.parametrize("odd", [frame(2, b"x", 5), frame(4, b"x", 5), frame(3, b"xyz", 5), frame(0, b"x", 99)])
def test_a_frame_that_does_not_follow_is_refused(tmp_path: Path, odd: Frame) -> None:
    part = PartialFile(tmp_path / "a.bin", 9)
    part.write(frame(0, b"abc", 5))
    with pytest.raises(Closed):
        part.write(odd)
    assert part.path.read_bytes() == b"abc"


def test_a_file_that_came_before_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"first")
    assert PartialFile(path).write(frame(0, b"x", 1), once=True)
    assert path.read_bytes() == b"first"
    assert [*tmp_path.iterdir()] == [path]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    part = PartialFile(tmp_path / "a.bin")
    part.path.symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic"):
        part.write(frame(0, b"x", 1))
    assert not (tmp_path / "precious").exists()


# -- tree ------------------------------------------------------------------------------------------------------------


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


SEVERAL_FILES = rlnb.plugin.Library(
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
