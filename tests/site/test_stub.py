"""The stub of ``rlnb.train`` is the one that its arguments make."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType


def test_the_stub_is_up_to_date(load_rig: Callable[[str], ModuleType]) -> None:
    stub = load_rig("stub")
    assert stub.PATH.read_text(encoding="utf-8") == stub.stub(), "python tests/rig/stub.py writes it"
