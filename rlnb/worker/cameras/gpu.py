"""Wait for queued GPU work before a time is measured."""

from __future__ import annotations

from typing import Any


def finish(device: Any) -> None:
    """Wait until the work that is queued on a GPU is done, so that a measured time covers all of its own work.

    Args:
        device: ``"cpu"``, which has no queue, or ``"cuda:N"``.
    """
    import torch

    if str(device).startswith("cuda"):
        torch.cuda.synchronize(device)
