"""Tests of rlnb.training.arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb
from rlnb.training.arguments import AlertArgument, split_alerts


def low(run: rlnb.Run) -> bool:
    return False


@pytest.mark.parametrize(
    ("alerts", "texts", "functions"),
    [
        ((), (), {}),
        (False, (), {}),
        (True, ("diagnosis", "failed"), {}),
        ("ended", ("ended",), {}),
        (low, ("function low",), {"function low": low}),
        (["ended", low], ("ended", "function low"), {"function low": low}),
        ([low, low], ("function low", "function low #2"), {"function low": low, "function low #2": low}),
        (5, ("5",), {}),
        ([5], ("5",), {}),
    ],
)
def test_texts_and_functions_are_separated(
    alerts: AlertArgument, texts: tuple[str, ...], functions: dict[str, object]
) -> None:
    assert split_alerts(alerts) == (texts, functions)


def test_all_wrong_rules_are_refused_at_once_and_nothing_is_written(root: Path) -> None:
    with pytest.raises(rlnb.CheckError) as raised:
        rlnb.train("Echo", library="echo", alerts=["rewrd < 5", "KL spike", "ended"], keep=0)
    assert len(raised.value.problems) == 3
    assert not list(root.glob("runs/*"))
