"""GPU memory between requests, with stand-ins for torch and Warp."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from rlnb.worker.requests import warmup


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
    for name, module in gpu.modules.items():
        monkeypatch.setitem(sys.modules, name, module)
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
