"""The event file of echo, read with TensorBoard's own loader."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rlnb_echo.event_file import EventFile


def test_the_first_event_is_that_of_tensorboards_writer_but_for_its_time(tmp_path: Path) -> None:
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    EventFileWriter(str(tmp_path / "theirs")).close()
    EventFile(tmp_path / "ours").close()
    theirs, ours = (next((tmp_path / name).iterdir()).read_bytes() for name in ("theirs", "ours"))
    assert ours[:13] == theirs[:13], "the length, its checksum and the key of the time"
    assert ours[21:-4] == theirs[21:-4]


def test_tensorboard_reads_each_iteration_as_soon_as_it_was_added(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    file = EventFile(tmp_path / "logs")
    (path,) = (tmp_path / "logs").glob("events.out.tfevents.*")
    for iteration in range(3):
        file.add(iteration, {"Train/mean_reward": 0.5 * iteration, "Perf/total_fps": 1000.0})
        version, *events = LegacyEventFileLoader(str(path)).Load()
        assert version.file_version == "brain.Event:2"
        assert [event.step for event in events] == list(range(iteration + 1))
        values = {value.tag: value.simple_value for value in events[-1].summary.value}
        assert values == pytest.approx({"Train/mean_reward": 0.5 * iteration, "Perf/total_fps": 1000.0})
    file.close()


def test_writing_a_file_imports_little(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from rlnb_echo.event_file import EventFile\n"
        f"EventFile(pathlib.Path({str(tmp_path)!r})).add(0, {{'a': 1.0}})\n"
        "print(*{'numpy', 'fsspec', 'tensorboard.summary'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []
