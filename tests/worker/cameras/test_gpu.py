"""A time covers the work of a GPU. The driver is a stand-in."""

from __future__ import annotations

import pytest
import torch

from rlnb.worker.cameras import rig


def test_only_a_gpu_has_a_queue_to_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    devices: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", devices.append)
    rig.finish_gpu("cpu")
    assert devices == []
    rig.finish_gpu("cuda:1")
    rig.finish_gpu(torch.device("cuda:0"))
    assert [str(device) for device in devices] == ["cuda:1", "cuda:0"]
