"""Tables, and numbers as text."""

import math

import pytest

from rlnb.display import table


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.23, "1.2 s"), (42, "42 s"), (420, "7 min"), (3900, "65 min"), (7500, "2 h 05 min")]
)
def test_a_duration_is_readable(seconds, text):
    assert table.duration(seconds) == text


def test_a_table_escapes_everything():
    shown = table.table(["<i>"], [["<script>"]], caption="<b>")
    assert all(text not in shown for text in ("<i>", "<script>", "<b><b>"))


def test_a_table_without_heads_has_no_row_for_them():
    assert "<thead>" not in table.table(["", ""], [["a", "b"]])
    assert table.table(["head"], [["a"]]).index("head") < table.table(["head"], [["a"]]).index("<tbody>")


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (0.123456, "0.1235"), (12, "12"), (True, "True"), ("a", "a"), (math.nan, "nan")]
)
def test_a_cell_has_four_digits_of_a_real_number_and_nothing_for_none(value, text):
    assert table.cell(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.05968, "0.0597"), (12.34, "12.3"), (18203.6, "18,204"), (-1500, "-1,500")]
)
def test_a_short_number_keeps_the_digits_before_its_point(value, text):
    assert table.short(value) == text


def test_one_thing_is_counted_in_the_singular():
    assert [table.counted(number, "seed") for number in (0, 1, 2, 1200)] == [
        "0 seeds",
        "1 seed",
        "2 seeds",
        "1,200 seeds",
    ]


def test_a_precise_number_has_four_digits_and_no_exponent_if_it_is_large() -> None:
    assert [table.precise(value) for value in (0.059671, -12.3456, 999.96, 11011.4, 2e6)] == [
        "0.05967",
        "-12.35",
        "1000",
        "11,011",
        "2,000,000",
    ]
    assert table.precise(float("nan")) == "nan"
