"""The machine's queue: first come, first served, and a killed process leaves nothing to clean up."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from users import as_root, link

from rlnb import RlnbError
from rlnb.launch import slots as queue_slots
from rlnb.launch.slots import SlotTicket, holders, queue_folder, take_slots

POLL_S = 0.02
HOLDER = """
import os, sys, time
from rlnb.launch import slots as queue_slots
from rlnb.launch.slots import SlotTicket, take_slots

name, log, max_running = sys.argv[1:]
def say(word):
    with open(log, "a") as file:
        file.write(f"{word} {name}\\n")
slots = take_slots(SlotTicket(max_running=int(max_running), run=name), lambda: False, 0.02)
say("takes")
sys.stdin.read()
say("leaves")
for slot in slots.values():
    slot.close()
"""


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
    return tmp_path / "queue"


@pytest.fixture
def hold(tmp_path: Path, queue: Path) -> Iterator[Callable[[str, int], subprocess.Popen[bytes]]]:
    """A function that starts a process, which takes a slot and leaves once its stdin closes."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, max_running: int = 1) -> subprocess.Popen[bytes]:
        tickets = set(queue.glob("tickets/[0-9]*"))
        argv = [sys.executable, "-c", HOLDER, name, str(tmp_path / "log"), str(max_running)]
        started.append(subprocess.Popen(argv, stdin=subprocess.PIPE))
        until(lambda: set(queue.glob("tickets/[0-9]*")) - tickets or f"takes {name}" in lines(tmp_path))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def lines(folder: Path) -> list[str]:
    log = folder / "log"
    return log.read_text().splitlines() if log.exists() else []


def until(condition: Callable[[], object], timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition was never met"
        time.sleep(0.01)


def leave(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(10)


Hold = Callable[..., "subprocess.Popen[bytes]"]


def test_three_runs_take_one_slot_in_order_of_arrival(tmp_path: Path, hold: Hold) -> None:
    processes = [hold(name) for name in ("first", "second", "third")]
    for process in processes:
        leave(process)
    names, does = ("first", "second", "third"), ("takes", "leaves")
    assert lines(tmp_path) == [f"{word} {name}" for name in names for word in does]


def test_holders_returns_the_name_of_the_holder(tmp_path: Path, hold: Hold) -> None:
    assert holders() == []
    first, second = hold("first"), hold("second")
    until(lambda: "takes first" in lines(tmp_path))
    assert holders() == ["first"]
    leave(first)
    until(lambda: "takes second" in lines(tmp_path))
    assert holders() == ["second"], "not a mixture with the name of the previous holder"
    leave(second)
    assert holders() == []


def test_a_waiting_run_is_told_which_runs_hold_slots(
    tmp_path: Path, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_slots, "TELL_S", 0.0)
    hold("first")
    until(lambda: lines(tmp_path) == ["takes first"])
    rivals: list[list[str]] = []
    answers = iter([False, False, True])
    request = SlotTicket(max_running=1, run="second")
    assert take_slots(request, lambda: next(answers), POLL_S, on_wait=lambda runs: rivals.append([*runs])) is None
    assert rivals == [["first"]] * 2
    free = take_slots(SlotTicket(max_running=2), lambda: False, POLL_S, on_wait=lambda runs: rivals.append([*runs]))
    assert free is not None
    assert len(rivals) == 2, "a run that need not wait is told nothing"
    let_go(free)


def test_the_ticket_of_a_run_that_waits_never_looks_old(
    tmp_path: Path, queue: Path, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cleaners of temporary folders remove old files."""
    monkeypatch.setattr(queue_slots, "TELL_S", 0.0)
    hold("first")
    until(lambda: lines(tmp_path) == ["takes first"])
    times: list[float] = []

    def give_up() -> bool:
        (ticket,) = (queue / "tickets").iterdir()
        times.append(ticket.stat().st_mtime)
        os.utime(ticket, (1.0, 1.0))
        return len(times) == 3

    assert take_slots(SlotTicket(max_running=1), give_up, POLL_S) is None
    assert min(times) > time.time() - 60.0


def test_two_slots_are_held_at_once(tmp_path: Path, hold: Hold) -> None:
    first = hold("first", 2)
    until(lambda: lines(tmp_path) == ["takes first"])
    second = hold("second", 2)
    until(lambda: lines(tmp_path) == ["takes first", "takes second"])
    third = hold("third", 2)
    time.sleep(0.2)
    assert "takes third" not in lines(tmp_path)
    leave(second)
    until(lambda: "takes third" in lines(tmp_path))
    leave(first)
    leave(third)


def test_a_killed_holder_frees_its_slot(tmp_path: Path, hold: Hold) -> None:
    first, second = hold("first"), hold("second")
    until(lambda: lines(tmp_path) == ["takes first"])
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: "takes second" in lines(tmp_path))
    leave(second)


def test_a_killed_waiter_does_not_block_those_after_it(tmp_path: Path, queue: Path, hold: Hold) -> None:
    first, second, third = hold("first"), hold("second"), hold("third")
    os.kill(second.pid, signal.SIGKILL)
    second.wait()
    leave(first)
    until(lambda: "takes third" in lines(tmp_path))
    leave(third)
    assert list((queue / "tickets").iterdir()) == [], "the ticket of the killed process is removed too"


def test_a_stopped_waiter_does_not_block_those_after_it(tmp_path: Path, queue: Path, hold: Hold) -> None:
    first, second, third = (hold(name) for name in ("first", "second", "third"))
    second.send_signal(signal.SIGSTOP)
    leave(first)
    until(lambda: "takes third" in lines(tmp_path))
    second.send_signal(signal.SIGCONT)
    time.sleep(10 * POLL_S)
    assert "takes second" not in lines(tmp_path)
    leave(third)
    until(lambda: "takes second" in lines(tmp_path))


def test_a_run_that_is_no_longer_first_gives_a_partial_set_back(queue: Path) -> None:
    """A stopped run that continues is again ahead of those that have taken slots meanwhile."""
    folder = queue_folder()
    earlier, ahead = queue_slots._draw_ticket(folder / "tickets")
    later, behind = queue_slots._draw_ticket(folder / "tickets")
    partial = {"0": queue_slots._lock(folder / "slots" / "0")}
    request = SlotTicket(max_running=2, count=2)
    queue_slots._take_free(request, folder / "slots", later, partial)  # type: ignore[arg-type]
    assert partial == {}
    taken: dict[str, IO[str]] = {}
    queue_slots._take_free(request, folder / "slots", earlier, taken)
    assert set(taken) == {"0", "1"}
    for lock in (ahead, behind, *taken.values()):
        lock.close()


def test_a_run_that_gives_up_leaves_the_queue(queue: Path, hold: Hold) -> None:
    first = hold("first")
    until(lambda: not list((queue / "tickets").iterdir()))
    answers = iter([False, False, True])
    assert take_slots(SlotTicket(max_running=1), lambda: next(answers), POLL_S) is None
    assert list((queue / "tickets").iterdir()) == []
    leave(first)
    assert let_go(take_slots(SlotTicket(max_running=1), lambda: False, POLL_S)) == ["0"]


def let_go(slots: dict[str, IO[str]] | None) -> list[str]:
    """Leave the slots; return their names."""
    assert slots is not None
    for slot in slots.values():
        slot.close()
    return sorted(slots)


def test_slots_are_numbered_from_zero(queue: Path) -> None:
    locks = [take_slots(SlotTicket(max_running=3), lambda: False, POLL_S) for _ in range(3)]
    assert [list(slots or ()) for slots in locks] == [["0"], ["1"], ["2"]]
    assert take_slots(SlotTicket(max_running=3), iter([False, True]).__next__, POLL_S) is None
    for slots in locks:
        let_go(slots)


def test_a_run_that_needs_several_slots_waits_for_all_and_later_runs_wait_too(
    tmp_path: Path, queue: Path, hold: Hold
) -> None:
    first = hold("first", 3)
    until(lambda: lines(tmp_path) == ["takes first"])
    assert take_slots(SlotTicket(max_running=3, count=3), iter([False, False, True]).__next__, POLL_S) is None
    assert let_go(take_slots(SlotTicket(max_running=3, count=2), lambda: False, POLL_S)) == ["1", "2"], (
        "slots held while waiting were released"
    )
    leave(first)
    assert let_go(take_slots(SlotTicket(max_running=3, count=3), lambda: False, POLL_S)) == ["0", "1", "2"]


def take(max_running: int, names: list[str] | None, gpus: list[str], name: str = "") -> dict[str, IO[str]] | None:
    """Take a slot at once or not at all."""
    answers = iter([False, True])
    request = SlotTicket(max_running=max_running, run=name, names=names, gpus=gpus)
    return take_slots(request, lambda: next(answers), POLL_S)


def test_the_slots_of_gpus_are_the_same_for_every_order_of_them(queue: Path) -> None:
    first = take(2, ["c", "d"], ["c", "d"])
    second = take(4, ["d", "c"], ["d", "c"])
    assert take(2, ["c", "d"], ["c", "d"]) is None, "both GPUs are taken"
    third = take(4, [*"abcd"], [*"abcd"])
    assert (let_go(first), let_go(second), let_go(third)) == (["c"], ["d"], ["a"])


def test_max_running_counts_the_runs_on_gpus_and_numbers(queue: Path) -> None:
    gpus = [*"abcd"]
    request = SlotTicket(max_running=2, count=2, run="two GPUs", names=gpus, gpus=gpus)
    on_gpu = take_slots(request, lambda: False, POLL_S)
    on_cpu = take(2, None, gpus)
    assert on_cpu is not None, "a run on two GPUs is one run"
    assert take(2, gpus, gpus) is None
    assert take(2, None, gpus) is None
    assert holders() == ["two GPUs"]
    assert (let_go(on_gpu), let_go(on_cpu)) == (["a", "b"], ["0"])


def test_the_queue_folder_is_private_to_the_user(queue: Path) -> None:
    assert queue_folder() == queue
    assert queue.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_queue_folder_of_another_user_is_refused(queue: Path) -> None:
    queue.mkdir()
    os.chown(queue, 12345, 12345)
    with pytest.raises(RlnbError, match=r"belongs to another user. Set RLNB_QUEUE"):
        queue_folder()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
@as_root
@pytest.mark.parametrize("name", ["tickets", "slots"])
def test_a_link_of_another_user_in_the_queue_folder_is_not_followed(queue: Path, tmp_path: Path, name: str) -> None:
    """Others could make one before the folder was private."""
    queue.mkdir(exist_ok=True)
    link(queue / name, tmp_path)
    with pytest.raises(RlnbError, match=f"{name} belongs to another user"):
        queue_folder()


def test_a_link_of_another_user_in_place_of_the_queue_folder_is_not_followed(queue: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    queue.symlink_to(mine)
    os.chown(queue, 12345, 12345, follow_symlinks=False)
    with pytest.raises(RlnbError, match="belongs to another user"):
        queue_folder()
    assert not list(mine.iterdir())


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return this user's folder in an empty temporary folder, before it is made; the cache folder is empty too."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.delenv("RLNB_QUEUE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp" / f"rlnb-{os.getuid()}"


def test_the_queue_is_in_the_temporary_folder(temporary: Path) -> None:
    assert queue_folder() == temporary
    temporary.chmod(0o777)
    assert queue_folder() == temporary
    assert temporary.stat().st_mode & 0o777 == 0o700


def _taken(folder: Path) -> None:
    folder.mkdir()
    os.chown(folder, 12345, 12345)


def _link(folder: Path) -> None:
    (folder.parent / "mine").mkdir()
    folder.symlink_to("mine")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize(
    ("make", "fault"),
    [(_taken, "belongs to another user"), (_link, "is not a folder"), (Path.touch, "is not a folder")],
)
def test_if_another_user_has_taken_its_name_the_queue_is_in_the_cache_folder(
    make: Callable[[Path], None], fault: str, temporary: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make(temporary)
    cache = temporary.parents[1] / "cache" / "rlnb" / f"queue-{socket.gethostname()}"
    assert queue_folder() == cache
    assert cache.stat().st_mode & 0o077 == 0
    assert f"{temporary} {fault}. The queue of this machine is in {cache} instead." in caplog.text
    assert not list(temporary.parent.glob("*/slots"))
    assert take_slots(SlotTicket(max_running=1, run="mine"), lambda: False)
    cache.parent.rename(cache.parents[1] / "moved")
    cache.parents[1].chmod(0o500)
    cache.parent.touch()  # root may write anywhere, but makes no folder below a file
    with pytest.raises(RlnbError, match=rf"{fault}.*cannot be used: .* Set RLNB_QUEUE"):
        queue_folder()
