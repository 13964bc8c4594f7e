"""The kernel's side of the warm simulator, with a stand-in process that speaks its protocol."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.protocol import requests
from rlnb.simulation import pool as pools
from rlnb.simulation.pool import pool

PROCESS = """
import json, os, sys
replies = os.open(sys.argv[-1], os.O_WRONLY)
held = []
def fresh_is_missing():  # until a file is gone, of which each process removes one
    try:
        os.unlink(os.environ["STALE"] + sorted(os.listdir(os.environ["STALE"]))[0])
        return True
    except (KeyError, IndexError):
        return False
def send(message):
    os.write(replies, json.dumps(message).encode() + b"\\n")
for line in sys.stdin:
    request = json.loads(line)
    if request["verb"] == "close":
        print("about to crash", flush=True)
        os.abort()
    if request["verb"] == "ping" and fresh_is_missing():
        send({"id": request["id"], "error": "USD is already loaded", "kind": "FreshProcessError"})
        continue
    value = {"ids": [os.environ.get("RLNB_ASSET_ROOT", "")]}
    if request["verb"] == "compile":  # of as many MiB as the task has envs
        held.append(bytearray(os.urandom(1) * ((request["payload"]["task"]["num_envs"] or 0) << 20)))
        value = {"seconds": 0.5, "cache": "/cache", "cache_mib": 1.0}
        send({"id": request["id"], "meanwhile": value | {"cache": "first"}})
    send({"id": request["id"], "value": value})
"""


NVML = """
import os, types
NVMLError = RuntimeError
nvmlInit = lambda: None
nvmlDeviceGetCount = lambda: 1
nvmlDeviceGetHandleByIndex = lambda index: index
nvmlDeviceGetGraphicsRunningProcesses = lambda card: []
def nvmlDeviceGetComputeRunningProcesses(card):  # the worker is the child of the agent, which asks
    pids = [*map(int, open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()), 1]
    return [types.SimpleNamespace(pid=pid, usedGpuMemory=3 * 2**29) for pid in pids]
"""


def compile_of(mib: int) -> requests.Compile:
    """Return a request that makes the stand-in process grow."""
    return requests.Compile(task=rlnb.Task(id="Demo", num_envs=mib))


@pytest.fixture
def python(tmp_path: Path) -> Iterator[str]:
    """Command of an interpreter that starts the stand-in process."""
    (tmp_path / "process.py").write_text(PROCESS)
    yield f"{sys.executable} {tmp_path / 'process.py'}"
    pool.shut_down()


def test_the_warm_simulator_exists_until_it_is_closed(python: str) -> None:
    living = rlnb.simulator(python=python)
    assert living.state in ("starting", "idle")
    pid = living.wait().pid
    assert (living.state, living.requests) == ("idle", 1)
    assert rlnb.simulator(python=python).pid == pid
    assert 0 < living.memory_gib < 1
    folder = living.log.parent  # type: ignore[union-attr]
    assert living.restart().wait().pid not in (pid, None)
    assert not folder.exists(), "closing a simulator deletes its log"
    living.close()
    assert (living.state, living.pid, living.requests) == ("none", None, 0)
    assert repr(living) == "Simulator(none; the next request starts one)"


def test_interim_values_are_passed_on_before_the_answer(python: str) -> None:
    values: list[requests.Compilation] = []
    answer = pool.request(compile_of(0), python, warm=True, meanwhile=values.append)
    assert [value.cache for value in values] == ["first"]
    assert answer == requests.Compilation(seconds=0.5, cache="/cache", cache_mib=1.0)
    assert rlnb.simulator(python=python).compile("Demo") == 0.5


def test_without_the_warm_simulator_a_process_is_started_for_the_request_only(python: str) -> None:
    assert pool.request(requests.Tasks(), python, "/assets", warm=False).ids == ("/assets",)
    assert not pool.all_running()


def test_a_crashed_simulator_is_reported_with_its_last_output_and_replaced(python: str) -> None:
    living = rlnb.simulator(python=python).wait()
    with pytest.raises(rlnb.WorkerError, match="about to crash"):
        pool.request(requests.Close(), python, warm=True)
    assert living.state == "none"
    assert living.wait().state == "idle"


def test_a_request_that_needs_a_fresh_process_is_repeated_once(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = tmp_path / "stale"
    stale.mkdir()
    monkeypatch.setenv("STALE", f"{stale}/")
    living = rlnb.simulator(python=python)
    pool.request(requests.Tasks(), python, warm=True)
    pid = living.pid
    (stale / "1").touch()
    pool.request(requests.Ping(), python, warm=True)
    assert living.pid not in (pid, None)
    assert living.requests == 1
    for name in "12":
        (stale / name).touch()
    with pytest.raises(rlnb.RlnbError, match="USD is already loaded"):
        pool.request(requests.Ping(), python, warm=True)
    assert living.state == "idle"


def test_a_wrong_interpreter_is_reported_with_the_fix(root: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match="The worker's Python '/nope/python' is missing"):
        pool.request(requests.Ping(), "/nope/python")
    with pytest.raises(rlnb.WorkerError, match=r"It never answered a request\..*rlnb doctor --python /bin/true"):
        pool.request(requests.Ping(), "/bin/true")


@pytest.fixture
def short_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the warm simulator of a machine with GPUs end soon."""
    monkeypatch.setattr(pools, "IDLE_POLL_S", 0.05)
    monkeypatch.setattr(rlnb.options, "warm_idle_s", 0.5)


@pytest.mark.usefixtures("short_idle")
def test_an_idle_simulator_on_a_gpu_ends_sooner_while_a_run_trains_there(
    python: str, machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("0a")
    monkeypatch.setattr(rlnb.options, "warm_idle_s", None)
    monkeypatch.setattr(pools, "BESIDE_S", 0.5)
    living = rlnb.simulator(python=python).wait()
    time.sleep(1.5)
    assert living.state == "idle"
    monkeypatch.setattr(pools, "holders", lambda: ["a run"])
    deadline = time.monotonic() + 10
    while living.state != "none":
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.usefixtures("short_idle")
def test_an_idle_simulator_on_a_gpu_ends_and_the_next_request_starts_a_fresh_one(
    python: str, machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("0a")
    living = rlnb.simulator(python=python).wait()
    pid, log = living.pid, living.log
    assert log is not None
    deadline = time.monotonic() + 10
    while living.state != "none" or log.exists():  # a failure would keep the log
        assert time.monotonic() < deadline
        time.sleep(0.05)
    monkeypatch.setattr(rlnb.options, "warm_idle_s", None)
    assert living.wait().pid not in (pid, None)
    pid = living.pid
    time.sleep(1.0)
    assert living.pid == pid, "None means never"


@pytest.mark.usefixtures("short_idle")
def test_an_idle_simulator_on_a_cpu_lives_on(python: str) -> None:
    pid = rlnb.simulator(python=python).wait().pid
    time.sleep(1.0)
    assert rlnb.simulator(python=python).pid == pid


def test_the_gpu_memory_of_the_simulators_processes_is_shown(python: str, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "pynvml.py").write_text(NVML)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    living = rlnb.simulator(python=python).wait()
    assert living.gpu_memory_gib == 1.5
    assert "GiB and 1.50 GiB of GPU memory, 1 requests)" in repr(living)
