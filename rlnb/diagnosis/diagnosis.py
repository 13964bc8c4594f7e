"""``run.diagnose()``: what the curves of a run say about how it learns."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.diagnosis.symptoms import DROPPED, FLAT, LEAST, Curve, Symptom, find
from rlnb.display.table import table
from rlnb.hooks import plugins
from rlnb.spec import ENDED

if TYPE_CHECKING:
    from rlnb.contracts.libraries import Library
    from rlnb.records.facts import RunFacts
    from rlnb.spec import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """The symptoms of a run. Shown as a table in a cell."""

    run: str
    """Id of the run."""
    points: int
    """Points of the longest curve. The rules need 30."""
    symptoms: tuple[Symptom, ...] = ()
    """What the solver's record and the curves show, the surest first."""

    @property
    def line(self) -> str:
        """The names of the symptoms in one line; empty if there are none."""
        return ", ".join(dict.fromkeys(symptom.name for symptom in self.symptoms))

    def __bool__(self) -> bool:
        """Whether there are symptoms."""
        return bool(self.symptoms)

    def __repr__(self) -> str:
        lines = [f"  {symptom.name}: {symptom.what} {symptom.fix}" for symptom in self.symptoms]
        return "\n".join([self._title, *lines])

    def _repr_html_(self) -> str:
        if not self.symptoms:
            return f"<b>{html.escape(self._title)}</b>"
        rows = [(symptom.name, symptom.what, symptom.fix) for symptom in self.symptoms]
        return table(("symptom", "what the run shows", "what to try"), rows, caption=self._title)

    @property
    def _title(self) -> str:
        if not self.symptoms and self.points < LEAST:
            return f"{self.run}: too early for a diagnosis, which needs {LEAST} logged iterations; it has {self.points}"
        count = len(self.symptoms)
        number = "1 symptom" if count == 1 else f"{count or 'no'} symptoms"
        return f"{self.run}: {number} in {self.points} logged iterations"


_lines: dict[Path, tuple[int | None, str]] = {}
"""Iteration at which each run was diagnosed for a line, and the line."""


def line_of(run: RunFacts) -> str:
    """Return the names of a run's symptoms in one line, at most twenty iterations or a twentieth of the training old.

    Views call this every second, and a diagnosis reads all curves.
    """
    iteration = run.metrics.iteration
    if iteration < 0:
        return ""
    at, line = _lines.get(run.path, (None, ""))
    if _is_due(at, iteration, ended=run.state in ENDED):
        line = diagnose(run).line
        _lines[run.path] = iteration, line
    return line


def _is_due(at: int | None, iteration: int, *, ended: bool) -> bool:
    """Return whether a run has to be diagnosed again.

    Args:
        at: Iteration of its last diagnosis; None before the first.
        iteration: Iteration of the run, which falls if the run is resumed from an early checkpoint.
        ended: Whether the training has ended.
    """
    if at is None or iteration < at:
        return True
    return iteration >= at + max(20, iteration // 20) or (ended and iteration > at)


def diagnose(run: RunFacts) -> Diagnosis:
    """Return what the curves of a run say about how it learns.

    Args:
        run: The run, which may still train.
    """
    metrics, system = run.metrics, run.system
    names = {*metrics.tags, *metrics.names} - own_metrics(plugins.libraries().get(run.manifest.library))
    curves = {name: Curve(metrics[name].array("values")) for name in sorted(names)}
    points = max(map(len, curves.values()), default=0)
    curves |= {tag: Curve(system[tag].array("values")) for tag in system.tags}
    if rates := [value for name, value in run.config.items() if name.split(".")[-1] == "learning_rate"]:
        curves |= _from_the_start("learning_rate", rates[0], curves)
    continues = run.manifest.parent is not None  # its reward may be high from the begin
    symptoms = tuple(symptom for symptom in find(curves) if not (continues and symptom.name == FLAT))
    return Diagnosis(run=run.id, points=points, symptoms=(*_of_the_solver(run), *symptoms))


def own_metrics(library: Library | None) -> frozenset[str]:
    """Return the metrics, and their tags, whose meaning a library defines itself, so that no rule knows them.

    Its ``kl`` may be the divergence from a reference policy, for example, which is large in a good training.

    Args:
        library: Description of the library; None if its plugin is not installed here.
    """
    if library is None:
        return frozenset()
    return frozenset({*library.metric_names, *(library.metrics.get(name, name) for name in library.metric_names)})


def _of_the_solver(run: RunFacts) -> Iterator[Symptom]:
    """Yield a symptom for each limit of the physics solver that the run has exceeded."""
    for shortage in run.shortages:
        yield Symptom(name=DROPPED, metric=shortage.limit, what=shortage.what, fix=shortage.fix)


def _from_the_start(name: str, start: Json, curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Return a curve with the configured value before the first logged one, which an adaptive schedule has changed."""
    import numpy as np

    if name not in curves or isinstance(start, bool) or not isinstance(start, int | float):
        return {}
    return {name: Curve(np.concatenate([[float(start)], curves[name].values]))}
