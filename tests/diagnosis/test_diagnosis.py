"""Tests of rlnb.diagnosis.diagnosis, with the runs of the echo library."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from rlnb_echo.event_file import EventFile

import rlnb
from rlnb.curves import progress
from rlnb.diagnosis import diagnosis
from rlnb.diagnosis.diagnosis import _from_the_start, _is_due, diagnose, line_of
from rlnb.diagnosis.symptoms import DROPPED, FLAT, LEAST, Curve, Symptom
from rlnb.hooks import plugins
from rlnb.records.incidents import Shortage, write_shortage

BAD = Symptom(name="reward <b>fell</b>", metric="reward", what="It fell from 3 to 1.", fix="Lower the learning rate.")


def trained(iterations: int) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", max_iterations=iterations).wait(60)


def test_a_sound_run_has_an_empty_diagnosis(root: Path) -> None:
    run = trained(2 * LEAST)
    found = run.diagnose()
    assert not found
    assert found.points == 2 * LEAST
    assert repr(found) == f"{run.id}: no symptoms in {2 * LEAST} logged iterations"
    assert found._repr_html_() == f"<b>{found!r}</b>"
    assert "diagnosis" not in progress.facts(run)
    assert "diagnosis" not in run._repr_html_()


def test_a_short_run_is_said_to_be_too_short(root: Path) -> None:
    run = trained(3)
    assert repr(run.diagnose()) == f"{run.id}: too early for a diagnosis, which needs 30 logged iterations; it has 3"
    assert line_of(run) == ""


def test_symptoms_are_shown_where_the_run_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(LEAST)
    calls: list[str] = []

    def find(curves: object) -> tuple[Symptom, ...]:
        calls.append("found")
        return (BAD, BAD)

    monkeypatch.setattr(diagnosis, "find", find)
    monkeypatch.setattr(diagnosis, "_lines", {})
    assert progress.facts(run).endswith("diagnosis: reward <b>fell</b>"), "once"
    assert "diagnosis: reward &lt;b&gt;fell&lt;/b&gt;" in progress.bar(run)
    assert "<td style='text-align:left'>diagnosis</td>" in run._repr_html_()
    assert len(calls) == 1, "a view that is drawn again reads no curve"
    found = diagnose(run)
    assert repr(found).splitlines()[1] == "  reward <b>fell</b>: It fell from 3 to 1. Lower the learning rate."
    page = found._repr_html_()
    assert "reward &lt;b&gt;fell&lt;/b&gt;" in page
    assert f"{run.id}: 2 symptoms in {LEAST} logged iterations" in page


def test_no_rule_judges_a_metric_whose_meaning_the_library_defines(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(LEAST)
    echo = plugins.library("echo")
    curves: list[str] = []

    def find(judged: Mapping[str, Curve]) -> tuple[Symptom, ...]:
        curves[:] = judged
        return ()

    monkeypatch.setattr(diagnosis, "find", find)
    run.diagnose()
    assert {"reward", "fps", echo.metrics["fps"]} <= {*curves}
    own = dataclasses.replace(echo, metric_names={"fps": "films per second"})
    monkeypatch.setattr(plugins, "libraries", lambda: {"echo": own})
    run.diagnose()
    assert "reward" in curves
    assert not {"fps", echo.metrics["fps"]} & {*curves}
    assert diagnosis.own_metrics(None) == frozenset()


def test_contacts_that_the_solver_drops_are_a_symptom_from_the_first_iteration_on(root: Path) -> None:
    run = trained(3)
    shortage = Shortage(limit="njmax", size=300, needed=412, envs=3, num_envs=64)
    write_shortage(run.jobs[0].folder.shortages(0), [shortage])
    assert run.diagnose().symptoms == (Symptom(name=DROPPED, metric="njmax", what=shortage.what, fix=shortage.fix),)
    assert line_of(run) == DROPPED
    assert f"diagnosis: {DROPPED}" in progress.facts(run)


def test_a_run_from_the_weights_of_another_one_may_begin_at_its_best(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = trained(3)
    second = rlnb.train("Echo", library="echo", max_iterations=3, init_from=first).wait(60)
    flat = Symptom(name=FLAT, metric="reward", what="It is 3.", fix="Wait.")
    monkeypatch.setattr(diagnosis, "find", lambda curves: (flat, BAD))
    assert diagnose(first).symptoms == (flat, BAD)
    assert diagnose(second).symptoms == (BAD,)


@pytest.mark.parametrize(
    ("at", "iteration", "ended", "due"),
    [
        (None, 29, False, True),
        (29, 48, False, False),
        (29, 49, False, True),
        (1000, 1049, False, False),
        (1000, 1053, False, True),
        (89, 90, True, True),
        (90, 90, True, False),
        (90, 40, False, True),  # a resume from an early checkpoint
    ],
)
def test_a_line_is_made_anew_as_the_training_goes_on(at: int | None, iteration: int, ended: bool, due: bool) -> None:
    assert _is_due(at, iteration, ended=ended) == due


@pytest.mark.parametrize("start", [1e-3, 1, None, True, "lin_3e-4"])
def test_the_configured_learning_rate_is_the_first_point_of_its_curve(start: object) -> None:
    logged = {"learning_rate": Curve(np.full(40, 1e-5)), "reward": Curve(np.zeros(40))}
    curves = {**logged, **_from_the_start("learning_rate", start, logged)}  # type: ignore[arg-type]
    counted = isinstance(start, int | float) and start is not True
    assert len(curves["learning_rate"]) == 40 + counted
    assert curves["learning_rate"].values[0] == (start if counted else 1e-5)
    assert _from_the_start("learning_rate", 1e-3, {}) == {}


def test_the_time_of_a_diagnosis_is_linear_in_the_number_of_tags(root: Path) -> None:
    """Quadratic time would be six times as long, and was. The shortest of some is taken: others wait for memory."""
    shortest_s = []
    for count in (2_000, 5_000):
        run = trained(2)
        EventFile(run.path / "logs" / "terms").add(1, {f"term/{number}": 1.0 for number in range(count)})
        times_s = []
        for _ in range(6):  # the first one pays for the imports
            begin_s = time.thread_time()
            rlnb.Run(run.path).diagnose()
            times_s.append(time.thread_time() - begin_s)
        shortest_s.append(min(times_s))
    assert shortest_s[1] < 4.5 * shortest_s[0], shortest_s
