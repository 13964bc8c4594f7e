"""The faults of ranks that do not learn as one, in words."""

from __future__ import annotations

import dataclasses
import re

import pytest

from rlnb.records.ranks import Ranks
from rlnb.studies.verify import Synchronisation
from rlnb.testing.runs import FIXES, differences_of, faults_of

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
    broken = dataclasses.replace(SOUND, **{field: digests})
    for proof in (broken, dataclasses.replace(broken, roles=("actor", "actor"))):
        (fault,) = faults_of(proof)
        assert re.search(text, fault)


@pytest.mark.parametrize(
    ("parameters", "buffers", "text"),
    [
        (("a", "a"), ("b", "b"), ""),
        (("a", "x"), ("b", "b"), "different parameters. .* The digests are a, x."),
        (("a", "a"), ("b", "x"), "different buffers, .* Use ctx.pool. The digests are b, x."),
        (("a",), ("b",), "digests of 1 of 2 ranks. Leave torch's process group open"),
    ],
)
def test_ranks_of_a_training_without_a_simulator_end_as_one(
    parameters: tuple[str, ...], buffers: tuple[str, ...], text: str
) -> None:
    ranks = Ranks(parameters=parameters, buffers=buffers, observations=("",) * len(parameters))
    faults = " ".join(differences_of(ranks, 2))
    assert re.search(text, faults) if text else not faults
