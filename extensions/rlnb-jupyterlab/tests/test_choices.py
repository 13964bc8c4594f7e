"""The choices of a form, and the pause after a command that failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asking import asked
from rlnb_jupyterlab import choices, subprocesses


async def test_a_failed_command_is_not_repeated_at_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    async def failing(argv: list[str], *_: Any, **__: Any) -> tuple[int, str]:
        started.append(argv)
        return 1, "no"

    monkeypatch.setattr(subprocesses, "output", failing)
    offers = choices.Choices(root)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            await offers.offer()
    assert len(started) == 2
    monkeypatch.setattr(choices, "AGAIN_S", 0.0)
    with pytest.raises(RuntimeError):
        await offers.offer()
    assert len(started) == 4


async def test_the_registry_lists_libraries_and_launchers(jp_fetch: Any, root: Path) -> None:
    answer = await asked(jp_fetch, "registry", request_timeout=60)
    assert "echo" in [library["name"] for library in answer["libraries"]]
    assert "local" in answer["launchers"]
    libraries = (await asked(jp_fetch, "libraries", request_timeout=60))["libraries"]
    assert next(library["exports"] for library in libraries if library["name"] == "echo") == []
