"""The scalars of one tag in memory."""

from __future__ import annotations

from rlnb.metrics.columns import Column

POINTS = [(0, 1e9, 0.5), (1, 1e9 + 1, float("inf")), (1, 1e9 + 2, -1.0)]


def column() -> Column:
    made = Column()
    for point in POINTS:
        made.append(*point)
    return made


def test_a_column_has_its_points_in_order_of_writing() -> None:
    assert list(column()) == POINTS
    assert column()[-1] == POINTS[-1]
    assert [part.tolist() for part in column().arrays(1)] == [list(part) for part in zip(*POINTS[1:], strict=True)]
    assert list(Column.of(column().arrays())) == POINTS


def test_a_column_is_extended_from_an_index_on() -> None:
    made = column()
    made.extend(column(), 2)
    assert list(made) == [*POINTS, POINTS[2]]


def test_of_two_restarts_at_one_place_the_earlier_step_counts() -> None:
    made = column()
    made.restart(7)
    made.restart(4)
    made.restart(9)
    assert made.restarts == [(3, 4)]
