"""Records are written atomically, by the first writer only."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rlnb import RlnbError
from rlnb.storage import files
from rlnb.storage.files import builtin, has_hash, source_body, source_hash, whole

RACES = 20
RACE = """
import sys, time
from pathlib import Path
from rlnb.storage import files

me, folder, start = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
time.sleep(max(0.0, start - time.time()))
print(*[int(files.write_once(folder / f"{number}.json", {"by": me})) for number in range(int(sys.argv[4]))])
"""


def test_the_first_writer_wins_and_the_record_stays(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert files.write_once(path, {"by": "first", "ü": [1, None]})
    assert not files.write_once(path, {"by": "second"})
    assert files.read_json(path) == {"by": "first", "ü": [1, None]}


def test_exactly_one_of_two_racing_processes_wins_and_no_temporary_file_is_left(tmp_path: Path) -> None:
    start = time.time() + 0.7
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, name, str(tmp_path), str(start), str(RACES)], stdout=subprocess.PIPE, text=True
        )
        for name in ("a", "b")
    ]
    wins = [[int(word) for word in racer.communicate(timeout=30)[0].split()] for racer in racers]
    assert [a + b for a, b in zip(*wins, strict=True)] == [1] * RACES
    for number in range(RACES):
        winner = "a" if wins[0][number] else "b"
        assert files.read_json(tmp_path / f"{number}.json") == {"by": winner}
    assert sorted(os.listdir(tmp_path)) == sorted(f"{number}.json" for number in range(RACES))


def test_a_value_that_is_not_json_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(RlnbError, match="cannot be written as JSON"):
        files.write_once(tmp_path / "result.json", {"value": object()})
    assert os.listdir(tmp_path) == []


def test_a_record_fits_into_its_reserve_on_a_full_disk_that_others_write_to(
    small_disk: Callable[[int], Path],
) -> None:
    disk = small_disk(512)
    reserve, ended = disk / ".reserve", threading.Event()
    reserve.write_bytes(b"\0" * 32768)

    def write() -> None:
        with open(disk / "log", "ab", buffering=0) as log:
            while not ended.is_set():
                with contextlib.suppress(OSError):
                    log.write(b"x" * 4096)

    greedy = threading.Thread(target=write)
    greedy.start()
    try:
        while os.statvfs(disk).f_bfree:
            time.sleep(0.01)
        assert files.write_once(disk / "result.json", {"detail": "y" * 20_000}, reserve)
    finally:
        ended.set()
        greedy.join()
    assert files.read_json(disk / "result.json") == {"detail": "y" * 20_000}
    assert sorted(path.name for path in disk.iterdir()) == ["log", "result.json"]


def test_writing_to_a_missing_folder_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.write_once(tmp_path / "nowhere" / "result.json", {})


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_records_are_written_to_a_file_system_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)  # FUSE mounts raise any of these
    path = tmp_path / "result.json"
    assert files.write_once(path, {"by": "first"})
    assert not files.write_once(path, {"by": "second"})
    assert files.read_json(path) == {"by": "first"}
    assert os.listdir(tmp_path) == ["result.json"]


def test_a_record_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "waits.json"
    files.replace_json(path, {"what": "long " * 99})
    with open(path, encoding="utf-8") as before:
        files.replace_json(path, {"what": "short"})
        assert "long" in before.read(), "a reader of the old file still has all of it"
    assert files.read_json(path) == {"what": "short"}
    with pytest.raises(RlnbError, match="cannot be written as JSON"):
        files.replace_json(path, {"what": object()})
    assert [child.name for child in tmp_path.iterdir()] == ["waits.json"]


def test_a_missing_record_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert files.read_json(tmp_path / "result.json") is None
    assert files.read_json(tmp_path / "file" / "result.json") is None


@pytest.mark.parametrize("text", ['{"outcome": "comp', "", "[1, 2]", "\x00\x00"])
def test_a_half_written_record_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(RlnbError, match="is damaged") as caught:
        files.read_json(path)
    assert str(path) in str(caught.value)


def test_a_record_that_is_not_utf8_is_refused_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(b'{"error": "\xff\xfe"}')
    with pytest.raises(RlnbError, match="is damaged"):
        files.read_json(path)


def test_a_file_counts_as_missing_after_a_stale_handle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "result.json").touch()
    assert files.there(tmp_path / "result.json")

    def stumble(_: Path) -> bool:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(Path, "exists", stumble)
    assert not files.there(tmp_path / "result.json")


def test_the_tail_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "node0.log"
    log.write_bytes(b"".join(b"line %d\n" % number for number in range(10_000)) + b"torn \xff")
    assert files.tail(log, 2) == "line 9999\ntorn \N{REPLACEMENT CHARACTER}"
    assert files.tail(tmp_path / "none.log") == ""
    assert files.tail(log / "none.log") == "", "an error of the file system must not hide the error that is reported"


def test_the_tail_of_a_log_has_as_many_lines_as_asked_or_says_what_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "node0.log"
    log.write_bytes(b"".join(b"%0128d\n" % number for number in range(20_000)))
    assert len(files.tail(log, 15_000, 1 << 22, told=True).splitlines()) == 15_000
    first, *rest = files.tail(log, 15_000, 1 << 20, told=True).splitlines()
    assert first == f"... (only the last 1 MiB of {log} are shown)"
    assert rest == [f"{number:0128d}" for number in range(20_000 - len(rest), 20_000)]
    assert len(rest) == (1 << 20) // 129


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_a_file_that_is_not_regular_is_refused_with_the_fix(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "record")
    with pytest.raises(RlnbError, match=r"record is not a regular file\. Move it away\."):
        files.read_json(tmp_path / "record")


def test_a_record_that_is_too_large_is_refused_with_the_fix(tmp_path: Path) -> None:
    with open(tmp_path / "record", "wb") as file:
        file.truncate(2 * files.RECORD_BYTES)
    with pytest.raises(RlnbError, match=r"record is larger than 1 MiB\. Move it away\."):
        files.read_json(tmp_path / "record", files.RECORD_BYTES)


def test_a_link_to_a_record_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there.json").write_text('{"a": 1}')
    (tmp_path / "record").symlink_to("there.json")
    assert files.read_json(tmp_path / "record") == {"a": 1}


def test_a_record_that_is_written_anew_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    files.replace_json(path, {"time_s": 1.0})
    files.replace_json(path, {"time_s": 2.0})
    assert files.read_json(path) == {"time_s": 2.0}
    assert [child.name for child in tmp_path.iterdir()] == ["record.json"]
    with pytest.raises(RlnbError, match="cannot be written as JSON"):
        files.replace_json(path, {"time_s": object()})
    assert files.read_json(path) == {"time_s": 2.0}


def test_a_record_with_a_name_that_is_not_unicode_is_refused_with_the_fix(tmp_path: Path) -> None:
    folder = os.fsdecode("/daten/\u6570\u636e".encode()[:-1])  # cut within a character, as an ASCII locale reads all
    with pytest.raises(RlnbError, match=r"record.json would hold .*which is not Unicode.*PYTHONUTF8=1"):
        files.write_once(tmp_path / "record.json", {"root": Path(folder)})
    assert not list(tmp_path.iterdir())


# -- scalars ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [np.int64(4), np.int8(4), np.float32(4.0), np.float64(4.0), np.bool_(True), np.array(4)]
)
def test_a_numpy_scalar_becomes_a_number_of_python(value: object) -> None:
    assert type(builtin(value)) in (int, float, bool)
    assert builtin(value) == value


@pytest.mark.parametrize("value", [4, "4", None, [np.int64(4)], np.int64], ids=repr)
def test_other_values_stay_as_they_are(value: object) -> None:
    assert builtin(value) is value


@pytest.mark.parametrize("value", [9, 9.0, np.float64(9.0), np.float32(9.0), np.int64(9), np.array(9)], ids=repr)
def test_a_whole_number_becomes_an_int(value: object) -> None:
    assert type(whole(value)) is int
    assert whole(value) == 9


@pytest.mark.parametrize("value", [9.5, np.float64(9.5), float("nan"), float("inf"), "9", None, True], ids=repr)
def test_any_other_value_is_left_for_the_check_to_refuse(value: object) -> None:
    assert type(whole(value)) is not int


# -- source hash -----------------------------------------------------------------------------------------------------


BODY = b"TASK = 1\n"
CELL = b"# rlnb task 'Lift' of 'lift.ipynb'\n" + BODY


def test_the_same_cell_has_one_hash_in_every_notebook() -> None:
    copy = CELL.replace(b"lift.ipynb", b"copy.ipynb")
    assert source_hash(CELL) == source_hash(copy) == source_hash(BODY) == hashlib.sha256(BODY).hexdigest()
    assert source_body(CELL) == BODY
    assert source_hash(CELL) != source_hash(CELL + b"# changed\n")


def test_a_hash_of_an_older_version_covers_the_header_too() -> None:
    assert has_hash(CELL, source_hash(CELL))
    assert has_hash(CELL, hashlib.sha256(CELL).hexdigest())
    assert has_hash(CELL, None)
    assert not has_hash(CELL, "0" * 64)
