"""Work between calls, without a simulator."""

from __future__ import annotations

import dataclasses
import fcntl
import gc
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from rlnb.hooks import plugins
from rlnb.launch.slots import queue_folder
from rlnb.protocol import requests
from rlnb.spec import Task
from rlnb.worker.requests import warmup
from rlnb.worker.requests.tuner import TunerEnv
from rlnb.worker.requests.warmup import Warmup

DEMO, OTHER = Task(id="Demo"), Task(id="Other")


@pytest.fixture
def warm_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> Warmup:
    """A warm-up that has no library to import, on a machine without runs."""
    monkeypatch.setattr(plugins, "libraries", dict)
    return Warmup(TunerEnv())


@pytest.fixture
def prewarmed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Tasks that were warmed."""
    ids: list[str] = []

    def prewarm(task: Task, *, any_runtime: bool) -> None:
        assert not any_runtime, "calls would have to wait for the start of Isaac Sim"
        ids.append(task.id)

    monkeypatch.setattr(warmup, "prewarm", prewarm)
    return ids


def test_a_task_is_warmed_once_its_card_was_requested(warm_up: Warmup, prewarmed: list[str]) -> None:
    assert not warm_up.do_one(), "no chore before the first request"
    warm_up.note(requests.Card(task=DEMO))
    assert warm_up.left
    assert warm_up.do_one()
    warm_up.note(requests.Card(task=DEMO))
    assert not warm_up.do_one(), "the task was warmed already"
    assert prewarmed == ["Demo"]


def test_a_task_that_was_made_for_a_request_needs_no_warm_up(warm_up: Warmup, prewarmed: list[str]) -> None:
    warm_up.note(requests.Card(task=DEMO))
    warm_up.note(requests.Card(task=OTHER))
    warm_up.note(requests.Compile(task=DEMO))
    warm_up.note(requests.Ping())
    while warm_up.do_one():
        pass
    assert prewarmed == ["Other"]


def test_a_rehearsal_that_fails_is_for_the_log_only(
    warm_up: Warmup, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(task: Task, any_runtime: bool) -> None:
        raise ValueError(f"{task.id} has no robot")

    monkeypatch.setattr(warmup, "prewarm", fail)
    warm_up.note(requests.Card(task=DEMO))
    assert warm_up.do_one()
    assert "Demo has no robot" in capsys.readouterr().err


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], SimpleNamespace]:
    """Return a function that puts a stand-in for torch in its place, with or without a GPU."""

    def install(gpu: bool) -> SimpleNamespace:
        cuda = SimpleNamespace(is_available=lambda: gpu, is_initialized=lambda: gpu, emptied=0)
        cuda.empty_cache = lambda: setattr(cuda, "emptied", cuda.emptied + 1)
        warp = SimpleNamespace(get_cuda_devices=list, synchronize=lambda: None)
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))  # type: ignore[misc]
        monkeypatch.setitem(sys.modules, "warp", warp)  # type: ignore[misc]
        return cuda

    return install


def slot_of(run: str) -> IO[str]:
    """Hold a slot of this machine as the agent of a run does."""
    lock = (queue_folder() / "slots" / "0").open("w", encoding="utf-8")
    fcntl.flock(lock, fcntl.LOCK_EX)
    lock.write(run)
    lock.flush()
    return lock


def test_no_task_is_warmed_on_a_gpu_while_a_run_holds_a_slot(
    warm_up: Warmup, prewarmed: list[str], torch: Callable[[bool], SimpleNamespace]
) -> None:
    torch(True)
    warm_up.note(requests.Card(task=DEMO))
    with slot_of("ant-0001"):
        assert not warm_up.do_one()
        assert warm_up.left
        assert prewarmed == []
    assert warm_up.do_one()
    assert prewarmed == ["Demo"]


def test_on_a_cpu_a_task_is_warmed_beside_a_run(
    warm_up: Warmup, prewarmed: list[str], torch: Callable[[bool], SimpleNamespace]
) -> None:
    torch(False)
    warm_up.note(requests.Card(task=DEMO))
    with slot_of("ant-0001"):
        assert warm_up.do_one()
    assert prewarmed == ["Demo"]


def test_a_rehearsal_leaves_no_memory_of_the_gpu_to_torch(
    warm_up: Warmup, prewarmed: list[str], torch: Callable[[bool], SimpleNamespace]
) -> None:
    cuda = torch(True)
    warm_up.note(requests.Card(task=DEMO))
    assert warm_up.do_one()
    assert cuda.emptied == 1


def test_an_env_that_is_open_while_a_library_is_imported_does_not_stay_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Env:
        def __init__(self) -> None:
            self.managers: list[Any] = [self]  # the parts of an env refer to it

    echo = dataclasses.replace(plugins.library("echo"), simulator=True)
    monkeypatch.setattr(plugins, "libraries", lambda: {"echo": echo})
    kept_env = TunerEnv()
    kept_env._env = Env()
    env = weakref.ref(kept_env._env)
    warm_up = Warmup(kept_env)
    warm_up.note(requests.Card(task=DEMO))
    assert warm_up.do_one()
    kept_env.close()
    gc.collect()
    assert env() is None


# -- memory ----------------------------------------------------------------------------------------------------------


class Gpu:
    """Stand-ins for ``torch.cuda`` and ``warp`` on a machine with three GPUs, of which a process uses the first two."""

    def __init__(self, *, used: bool, error: str = "") -> None:
        self.calls: list[Any] = []
        self.used, self.error = used, error
        self.devices = [
            SimpleNamespace(has_context=context, is_mempool_supported=pool)
            for context, pool in ((True, True), (True, False), (False, True))
        ]
        torch = SimpleNamespace(is_initialized=lambda: used, empty_cache=self._empty)
        self.modules = {
            "torch": SimpleNamespace(cuda=torch),
            "warp": SimpleNamespace(
                get_cuda_devices=lambda: self.devices,
                set_mempool_release_threshold=lambda device, size: self.calls.append((device, size)),
                synchronize=lambda: self.calls.append("synchronize"),
            ),
        }

    def _empty(self) -> None:
        if self.error:
            raise RuntimeError(self.error)
        self.calls.append("empty_cache")


def freed(monkeypatch: pytest.MonkeyPatch, gpu: Gpu) -> list[Any]:
    for name, fake in gpu.modules.items():
        monkeypatch.setitem(sys.modules, name, fake)
    warmup.free_memory()
    return gpu.calls


def test_torch_and_warp_give_back_their_memory_of_the_devices_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(used=True)
    assert freed(monkeypatch, gpu) == ["empty_cache", (gpu.devices[0], 0), "synchronize"]


def test_a_process_that_has_not_used_a_gpu_calls_nothing_of_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    assert freed(monkeypatch, Gpu(used=False)) == []
    monkeypatch.delitem(sys.modules, "torch")
    warmup.free_memory()
    assert "torch" not in sys.modules


def test_a_broken_cuda_context_does_not_end_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert freed(monkeypatch, Gpu(used=True, error="an illegal memory access was encountered")) == []
    assert "The GPU memory was not freed: an illegal memory access" in capsys.readouterr().err
