"""The result of one check of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "fault"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The result of one check."""

    name: str
    """Name of the part that was checked, such as ``"torch"``."""
    level: Level
    """``"fault"`` if the part does not work, ``"warning"`` if it works with a limitation, else ``"ok"``."""
    text: str
    """State of that part: versions, paths, sizes."""
    fix: str = ""
    """Command or setting that fixes the fault or removes the limitation."""


def ok(name: str, text: str, fix: str = "") -> Finding:
    """Return the finding for a part that works; ``fix`` may name an improvement."""
    return Finding(name=name, level="ok", text=text, fix=fix)


def warning(name: str, text: str, fix: str = "") -> Finding:
    """Return the finding for a part that works with a limitation."""
    return Finding(name=name, level="warning", text=text, fix=fix)


def fault(name: str, text: str, fix: str) -> Finding:
    """Return the finding for a part that does not work; it always has a fix."""
    return Finding(name=name, level="fault", text=text, fix=fix)
