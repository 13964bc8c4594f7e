"""Tests of rlnb.worker.flight.snapshot; with whole steps: test_recorder."""

from __future__ import annotations

import pytest

from rlnb.worker.flight.snapshot import WIDEST, StateField, flat, leaves

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (StateField(kind="term", name="alive", labels=(), width=1), "The reward term 'alive'"),
        (StateField(kind="reward", name="", labels=(), width=1), "The reward"),
        (StateField(kind="action", name="", labels=(), width=3), "The action (index 1)"),
        (
            StateField(kind="state", name="robot.joint_pos", labels=("a", "b"), width=2),
            "The state 'robot.joint_pos' of 'b'",
        ),
    ],
)
def test_a_value_has_a_name_in_words(part: StateField, text: str) -> None:
    assert part.text(min(1, part.width - 1)) == text
    assert part.key == (f"{part.kind}/{part.name}" if part.name else part.kind)


def test_dicts_of_dicts_become_rows_and_pictures_are_left_out() -> None:
    values = {"policy": torch.zeros(4, 3), "hand": {"touch": torch.zeros(4), "rgb": torch.zeros(4, 40, 40, 3)}}
    rows = flat(leaves({**values, "clock": 3.0, "shared": torch.zeros(7, 2)}), 4)
    assert {name: tuple(value.shape) for name, value in rows.items()} == {"policy": (4, 3), "hand/touch": (4, 1)}
    assert flat(leaves(torch.zeros(4, WIDEST)), 4)[""].shape == (4, WIDEST)
    assert flat(leaves(torch.zeros(4, WIDEST + 1)), 4) == {}
