"""Processes, curves and ranks of a run, as the conformance kit reads them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.records.ranks import Ranks
from rlnb.studies.verify import Synchronisation
from rlnb.testing.runs import FIXES, differences_of, faults_of, first_observations, learned, lives, processes_of, until


def test_the_learned_curves_leave_out_what_depends_on_the_clock(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait()
    assert {name: len(values) for name, values in learned(run).items()} == {"reward": 2}
    assert "fps" in run.metrics.names
    with pytest.raises(AssertionError, match="no digests of its ranks"):
        first_observations(run)


# -- processes -------------------------------------------------------------------------------------------------------


def test_a_condition_that_does_not_come_is_named() -> None:
    with pytest.raises(AssertionError, match="the second checkpoint has not come within 0 s"):
        until(lambda: False, 0.01, "the second checkpoint")


def test_the_processes_of_a_run_are_its_agent_and_its_worker(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1000, agent={"iteration_s": 0.1})
    until(lambda: run.state == "running", 60.0, "the start of the run")
    agent, *below = processes_of(run)
    assert "rlnb.node" in agent.cmdline()
    assert below
    assert all(lives(process) for process in (agent, *below))
    below[-1].kill()
    until(lambda: run.state == "failed", 30.0, "the end of the killed run")
    assert not lives(below[-1])


def test_a_process_that_is_gone_does_not_live() -> None:
    done = psutil.Popen(["true"])
    done.wait()
    assert not lives(done)


# -- ranks -----------------------------------------------------------------------------------------------------------


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
