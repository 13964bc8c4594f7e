"""What a library needs of the worker's interpreter, told from what is installed."""

from __future__ import annotations

from importlib import metadata

from rlnb.worker.requests.card import _missing


def test_what_is_there_is_not_missing() -> None:
    assert _missing(("pluggy>=1", "numpy")) == ()


def test_what_is_absent_or_of_another_version_is_named_with_what_there_is() -> None:
    assert _missing(("pluggy<1", "no-such-package>=2")) == (
        f"pluggy<1 (installed: {metadata.version('pluggy')})",
        "no-such-package>=2 (not installed)",
    )
