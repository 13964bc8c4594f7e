"""What a form offers, and how often a failing process is asked for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asking import asked
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


async def test_the_registry_knows_libraries_and_launchers(jp_fetch: Any, root: Path) -> None:
    found = await asked(jp_fetch, "registry", request_timeout=60)
    assert "echo" in [library["name"] for library in found["libraries"]]
    assert "local" in found["launchers"]
    libraries = (await asked(jp_fetch, "libraries", request_timeout=60))["libraries"]
    assert next(library["exports"] for library in libraries if library["name"] == "echo") == []
