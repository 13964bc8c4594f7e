"""The collector of reference cycles is paused for a while, and no longer."""

from __future__ import annotations

import contextlib
import gc

from rlnb.storage import cache


def test_it_is_paused_and_goes_on_even_after_an_error() -> None:
    assert gc.isenabled()
    seen = []
    with contextlib.suppress(KeyError), cache.collector_paused():
        seen.append(gc.isenabled())
        raise KeyError
    assert (seen, gc.isenabled()) == ([False], True)


def test_it_stays_off_if_it_was() -> None:
    gc.disable()
    try:
        with cache.collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
