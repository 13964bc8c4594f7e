"""The proofs of synchronisation and determinism."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.hooks.registry import manager
from rlnb.plugin import Input, Library, hookimpl
from rlnb.studies import verify, verify_determinism, verify_sync
from rlnb.studies.verify import _TIMED, Determinism, Synchronisation


def test_two_runs_with_the_same_seed_are_equal(root: Path) -> None:
    proof = verify_determinism("Echo", library="echo", max_iterations=6, timeout_s=30)
    assert proof.deterministic
    assert proof.tags >= 3
    assert "bit-equal" in repr(proof)


def test_the_first_difference_is_named_with_both_values(root: Path) -> None:
    proof = verify_determinism("Echo", library="echo", max_iterations=6, timeout_s=30, agent={"noise_from": 3})
    assert not proof.deterministic
    assert proof.difference is not None
    assert proof.difference.startswith("Train/mean_reward at 3: ")


def test_equal_logs_of_different_networks_are_a_difference(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_learned", lambda run: run.id)
    proof = verify_determinism("Echo", "echo", 3, timeout_s=30)
    assert proof.difference == "the trained parameters, although all logged values are equal"


@pytest.mark.parametrize(
    ("tag", "timed"),
    [
        ("Perf/total_fps", True),
        ("performance/step_time", True),
        ("Perf / Frames per second", True),
        ("Stats / Inference time (ms)", True),
        ("time/fps", True),
        ("rewards/time", True),
        ("Episode / Total timesteps (mean)", False),
        ("Episode_Termination/time_out", False),
        ("Metrics/performance", False),
    ],
)
def test_only_tags_that_measure_the_machine_are_left_out(tag: str, timed: bool) -> None:
    assert bool(_TIMED.search(tag)) == timed


def test_without_a_compared_tag_there_is_no_proof() -> None:
    assert not Determinism(tags=0, iterations=3, difference=None).deterministic


FED = Library(name="fed", backend="fed:Fed", simulator=False, distributed=True, inputs={"data": Input(kind="file")})


class Fed:
    """A plugin with a library that needs a file."""

    @staticmethod
    @hookimpl
    def rlnb_libraries() -> list[Library]:
        return [FED]


@pytest.fixture
def fed() -> Iterator[None]:
    rlnb.register(Fed, name="fed")
    yield
    manager().unregister(name="fed")


class Created(Exception):
    """A run would be created."""


@pytest.mark.usefixtures("fed")
def test_the_inputs_of_a_library_reach_its_ranks(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs: list[str] = []

    def create_run(*_: object, **arguments: Any) -> None:
        inputs.extend(arguments["inputs"])
        raise Created

    monkeypatch.setattr(verify, "create_run", create_run)
    with pytest.raises(rlnb.CheckError, match="fed needs the input 'data'"):
        verify_sync("Echo", "fed")
    path = tmp_path / "data.bin"
    path.write_bytes(b"data")
    with pytest.raises(Created):
        verify_sync("Echo", "fed", inputs={"data": path})
    assert inputs == ["data"]


SOUND = {
    "parameters": ("a", "a"),
    "statistics": ("b", "b"),
    "observations": ("c", "d"),
    "control": ("e", "f"),
}


def test_ranks_that_learn_as_one_pass() -> None:
    proof = Synchronisation(**SOUND)
    assert proof.synchronised
    assert "as one" in repr(proof)


@pytest.mark.parametrize(
    ("broken", "digests"),
    [("parameters", ("a", "x")), ("statistics", ("b", "x")), ("observations", ("c", "c")), ("control", ("e", "e"))],
)
def test_each_of_the_four_can_break_the_proof(broken: str, digests: tuple[str, str]) -> None:
    proof = Synchronisation(**{**SOUND, broken: digests})
    assert not proof.synchronised
    assert "NOT" in repr(proof)
    assert "NO</td>" in proof._repr_html_()


def test_without_a_simulator_there_are_no_observations_to_compare() -> None:
    proof = Synchronisation(**{**SOUND, "observations": ("", "")})
    assert proof.synchronised
    assert [name for name, *_ in proof.rows()] == ["parameters", "statistics", "parameters without synchronisation"]


@pytest.mark.parametrize("parameters", [None, [], ["a"], ["a", "a", "a"]])
def test_a_training_that_does_not_say_what_each_rank_has_learned_proves_nothing(
    root: Path, parameters: list[str] | None
) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(30)
    if parameters is not None:
        path = run.jobs[0].folder.result
        ranks = {"parameters": parameters, "buffers": parameters, "observations": parameters}
        record = json.loads(path.read_text()) | {"values": {"ranks": ranks}}
        path.unlink()
        path.write_text(json.dumps(record))
    again = rlnb.get_run(run.id)
    if parameters == ["a"]:
        assert verify._digests(again).parameters == ("a",)
        return
    with pytest.raises(rlnb.RlnbError, match=r"nothing to compare for the ranks of echo\. Return the"):
        verify._digests(again)


BY_ROLE = Synchronisation(
    parameters=("x", "a", "a"),
    statistics=("y", "b", "b"),
    observations=("", "c", "d"),
    control=("x", "e", "f"),
    roles=("learner", "actor", "actor"),
)


def test_only_ranks_of_one_role_are_compared() -> None:
    assert BY_ROLE.synchronised
    assert {name for name, *_ in BY_ROLE.rows()} == {
        "parameters of the role actor",
        "statistics of the role actor",
        "observations of the role actor",
        "parameters without synchronisation of the role actor",
    }
    assert not dataclasses.replace(BY_ROLE, parameters=("a", "a", "x")).synchronised
    assert not dataclasses.replace(BY_ROLE, control=("x", "e", "e")).synchronised
    assert not dataclasses.replace(BY_ROLE, roles=()).synchronised


def test_learners_without_envs_have_no_observations_to_compare() -> None:
    two = dataclasses.replace(
        BY_ROLE,
        parameters=("x", "x", "a"),
        statistics=("y", "y", "b"),
        observations=("", "", "c"),
        control=("x", "z", "a"),
        roles=("learner", "learner", "actor"),
    )
    assert two.synchronised
    assert "observations of the role learner" not in [name for name, *_ in two.rows()]


def test_the_old_name_of_an_argument_answers_with_a_warning(root: Path) -> None:
    with pytest.warns(FutureWarning, match="use max_iterations= in place of iterations="):
        proof = verify_determinism("Echo", library="echo", iterations=2, timeout_s=30)
    assert proof.iterations == 2


def test_the_table_of_digests_escapes_roles() -> None:
    digests = {name: ("a", "b") for name in ("parameters", "statistics", "observations", "control")}
    page = Synchronisation(**digests, roles=("<script>", "<script>"))._repr_html_()
    assert "&lt;script&gt;" in page
    assert "<script" not in page
