"""The faults of ranks that do not learn as one, in words."""

from __future__ import annotations

import dataclasses
import re

import pytest

from rlnb.studies.verify import Synchronisation
from rlnb.testing.ranks import FIXES, faults_of

SOUND = Synchronisation(parameters=("a", "a"), statistics=("b", "b"), observations=("c", "d"), control=("e", "f"))


def test_ranks_that_learn_as_one_have_no_fault() -> None:
    assert faults_of(SOUND) == []
    assert [name for name, *_ in SOUND.rows()] == [*FIXES]


@pytest.mark.parametrize(
    ("field", "digests", "text"),
    [
        ("parameters", ("a", "x"), "different parameters. .* average the gradients .* The digests are a, x."),
        ("statistics", ("b", "x"), "different buffers, .* Use ctx.pool"),
        ("observations", ("c", "c"), "collect the same data. Use ctx.seed"),
        ("control", ("e", "e"), "equal without synchronisation too, .* if ctx.synchronised is False"),
    ],
)
def test_each_fault_is_named_with_its_fix(field: str, digests: tuple[str, str], text: str) -> None:
    (fault,) = faults_of(dataclasses.replace(SOUND, **{field: digests}))
    assert re.search(text, fault)
