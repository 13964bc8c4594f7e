"""The digests of a training's ranks, as its result keeps them."""

from __future__ import annotations

import pytest

from rlnb import RlnbError
from rlnb.plugin import Result
from rlnb.records.ranks import KEY, Ranks, by_role, ranks_of
from rlnb.storage.serial import to_json

RANKS = Ranks(parameters=("a", "a"), buffers=("b", "b"), observations=("c", "d"), communication=(0.25, 0.5))


def test_digests_come_back_as_they_were_written() -> None:
    assert ranks_of(Result(outcome="completed", values={KEY: to_json(RANKS)})) == RANKS


def test_there_are_no_ranks_without_digests_or_before_the_end() -> None:
    assert ranks_of(Result(outcome="completed", values={"node": 1})) is None
    assert ranks_of(None) is None


def test_an_error_names_the_missing_digest() -> None:
    result = Result(outcome="completed", values={KEY: {"parameters": ["a"], "buffers": ["b"]}})
    with pytest.raises(RlnbError, match=r"Ranks: .*'observations'"):
        ranks_of(result)


def test_values_are_grouped_by_role() -> None:
    assert by_role(("learner", "actor", "actor"), ("a", "b", "c")) == {"learner": ("a",), "actor": ("b", "c")}
    assert by_role((), ("a", "b")) == {"": ("a", "b")}
