"""Tests of rlnb.simulation.growth."""

from __future__ import annotations

import pytest

from rlnb.simulation.growth import SETTLED_AFTER, Growth

GIB = 2**30


def test_growth_is_reported_once_for_each_step_after_the_caches_are_filled(caplog: pytest.LogCaptureFixture) -> None:
    growth = Growth()
    for number in range(SETTLED_AFTER):
        growth.observe((1 + number) * GIB)
    assert not caplog.messages, "the caches fill"
    growth.observe(int(3.7 * GIB))
    assert not caplog.messages, "less than a quarter"
    growth.observe(4 * GIB)
    growth.observe(4 * GIB)
    assert [message for message in caplog.messages if "has grown from 3.00 to 4.00 GiB over 2 requests" in message]
    assert len(caplog.messages) == 1
    growth.observe(6 * GIB)
    assert "from 4.00 to 6.00 GiB over 2 requests" in caplog.messages[1]
