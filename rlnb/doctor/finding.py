"""What one check of the doctor found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "fault"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What one check found."""

    name: str
    """What was looked at."""
    level: Level
    """``"fault"``: something will not work; ``"warning"``: it will, with a limit."""
    found: str
    """What is there."""
    fix: str = ""
    """Command or setting that fixes it."""


def ok(name: str, found: str, fix: str = "") -> Finding:
    """Return a finding of what works; ``fix`` may say how it would be better."""
    return Finding(name=name, level="ok", found=found, fix=fix)


def warning(name: str, found: str, fix: str = "") -> Finding:
    """Return a finding of what works with a limit."""
    return Finding(name=name, level="warning", found=found, fix=fix)


def fault(name: str, found: str, fix: str) -> Finding:
    """Return a finding of what does not work. There is always a fix."""
    return Finding(name=name, level="fault", found=found, fix=fix)
