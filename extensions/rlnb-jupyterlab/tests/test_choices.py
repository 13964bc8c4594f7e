"""What a form offers, and how often a failing process is asked for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rlnb_jupyterlab import choices, subprocesses


async def test_what_failed_is_not_asked_again_at_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    async def failing(words: list[str], *_: Any, **__: Any) -> tuple[int, str]:
        started.append(words)
        return 1, "no"

    monkeypatch.setattr(subprocesses, "output", failing)
    found = choices.Choices(root)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            await found.offer()
    assert len(started) == 2
    monkeypatch.setattr(choices, "AGAIN_S", 0.0)
    with pytest.raises(RuntimeError):
        await found.offer()
    assert len(started) == 4
