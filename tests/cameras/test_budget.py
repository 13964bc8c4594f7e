"""Tables, limits and plots of given camera costs, without a simulator. tests/worker tests the measurement itself."""

from __future__ import annotations

import dataclasses
import math

import pytest

import rlnb
from rlnb.cameras import budget
from rlnb.cameras.budget import CameraBudget
from rlnb.configs.card import CameraCard, TaskCard
from rlnb.protocol.requests import Cost

CARD = TaskCard(task="Demo", cameras={"front": CameraCard(width=64, height=64)})


def cost(num_envs: int, ms: float, mib: float = 1.0, size: tuple[int, int] = (64, 64)) -> Cost:
    return Cost(size=size, num_envs=num_envs, times_ms=(2 * ms, ms, ms / 2), mib=mib)


MEASURED = CameraBudget(
    task="Demo",
    data_types=("rgb",),
    costs=(cost(1, 2.0), cost(4, 4.0, 4.0), cost(16, 20.0, 16.0), cost(4, 9.0, size=(128, 128))),
)


def test_the_table_compares_with_rendering_one_camera_after_another() -> None:
    rows = MEASURED.table().set_index(["width", "num_envs"])
    assert rows.loc[(64, 16), "ms"] == 20.0
    assert rows.loc[(64, 16), "ms_per_env"] == 1.25
    assert rows.loc[(64, 16), "one_by_one"] == pytest.approx(16 * 2.0 / 20.0)
    assert math.isnan(rows.loc[(128, 4), "one_by_one"])
    assert "not measured" in MEASURED._repr_html_()
    assert "1.6 times as long" in MEASURED._repr_html_()
    hostile = dataclasses.replace(MEASURED, task="<script>alert(1)</script>", data_types=("<b>",))
    assert "<script>" not in hostile._repr_html_()


@pytest.mark.parametrize(
    ("ms", "expected"),
    [(1.0, 0), (2.0, 1), (3.0, 2), (4.0, 4), (12.0, 10), (20.0, 16), (40.0, 31)],
)
def test_the_largest_number_of_envs_is_interpolated_between_measured_ones(ms: float, expected: int) -> None:
    assert MEASURED.largest((64, 64), ms=ms) == expected


def test_the_largest_number_of_envs_keeps_both_limits() -> None:
    assert MEASURED.largest((64, 64), mib=8.0) == 8
    assert MEASURED.largest((64, 64), ms=12.0, mib=8.0) == 8
    assert MEASURED.largest((64, 64), ms=3.0, mib=8.0) == 2
    assert MEASURED.largest((128, 128), ms=18.0) == 8
    with pytest.raises(rlnb.CheckError, match="Neither ms nor mib"):
        MEASURED.largest((64, 64))
    with pytest.raises(rlnb.NotFoundError, match="64 x 64, 128 x 128"):
        MEASURED.largest((32, 32), ms=1.0)


def test_the_figure_has_a_curve_for_each_size() -> None:
    figure = MEASURED.plot()
    assert [(trace.name, list(trace.x)) for trace in figure.data] == [("64 x 64", [1, 4, 16]), ("128 x 128", [4])]
    assert list(figure.data[0].error_y.array) == [2.0, 4.0, 20.0]


def test_all_problems_are_reported_at_once_before_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "task_card", lambda *_, **__: CARD)
    with pytest.raises(rlnb.CheckError) as caught:
        rlnb.camera_budget(rlnb.Task(id="Demo"), camera="back", sizes=[(0, 64)], envs=[], frames=True)
    message = str(caught.value)
    for problem in ("No camera named 'back'", "sizes: [0, 64]", "envs: []", "frames=True"):
        assert problem in message


def test_a_task_that_needs_isaac_sim_has_no_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    card = dataclasses.replace(CARD, isaac_sim=("Isaac Sim PhysX physics (`PhysxCfg`)",))
    monkeypatch.setattr(budget, "task_card", lambda *_, **__: card)
    with pytest.raises(rlnb.CheckError, match="Demo needs Isaac Sim"):
        rlnb.camera_budget("Demo")
