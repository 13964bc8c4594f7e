"""Names that people guess for attributes of runs, and what to use in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from rlnb.errors import did_you_mean


class _Guided:
    """A class whose missing attributes name the call that does what the name says."""

    _instead: ClassVar[Mapping[str, str]] = {}
    """Call for each name that other tools have for it."""

    if not TYPE_CHECKING:  # a checker of types would take every name for one that exists

        def __getattr__(self, name: str) -> Any:
            kind = type(self)
            if hasattr(kind, name):  # a property that failed: its own error says more
                return object.__getattribute__(self, name)
            if name.startswith("_"):
                raise AttributeError(f"{kind.__name__} has no {name!r}", name=name, obj=self)
            if call := kind._instead.get(name):
                hint = f" Use {call}."
            else:
                hint = did_you_mean(name, (one for one in dir(kind) if not one.startswith("_")))
            # Without name= and obj=, after which Python would add a guess of its own.
            raise AttributeError(f"{kind.__name__} has no {name!r}.{hint}")


class GuidedRun(_Guided):
    """The guesses for a run."""

    _instead = {
        "archive": "rlnb.runs([run]).archive().apply()",
        "clone": "run.rerun(), or rlnb.train(like=run) with other arguments",
        "compare": "run.diff(other), or rlnb.compare([run, other])",
        "delete": "rlnb.runs([run]).prune(whole=True), which shows what it would delete, and then .apply()",
        "film": "run.play()",
        "get": "run.config['env.sim.dt'] for a value of a config, or run.metrics['reward'] for a metric",
        "history": "run.metrics.frame('reward')",
        "kill": "run.cancel()",
        "rename": "run.name = 'a name'",
        "restart": "run.resume() to go on, or run.rerun() to begin anew",
        "results": "run.metrics.frame('reward') or run.evaluations",
        "status": "run.state",
        "stop": "run.cancel()",
        "tag": "run.tags.add('a tag')",
        "video": "run.play()",
        "view": "rlnb.view(run)",
    }


class GuidedRuns(_Guided):
    """The guesses for runs."""

    _instead = {
        "cancel": "a loop: [run.cancel() for run in runs]",
        "compare": "rlnb.compare(runs)",
        "delete": "runs.prune(whole=True), which shows what it would delete, and then .apply()",
        "df": "runs.table()",
        "filter": "rlnb.runs(task=..., state=..., tag=..., since='7d')",
        "first": "runs[-1], since the newest is the first",
        "frame": "runs.table()",
        "groupby": "runs.table('seed').groupby('task'), or rlnb.compare(runs, by='agent.algorithm.learning_rate')",
        "last": "runs[0], the newest",
        "metrics": "runs.table('reward'), or rlnb.compare(runs) for whole curves",
        "plot": "rlnb.compare(runs)",
        "report": "rlnb.report(runs)",
        "select": "rlnb.runs(task=..., state=..., tag=..., since='7d')",
        "sort": "runs.sorted('reward')",
        "sort_values": "runs.sorted('reward')",
        "tag": "a loop: for run in runs: run.tags.add('a tag')",
        "to_csv": "runs.table().to_csv('runs.csv')",
        "to_dataframe": "runs.table()",
        "to_pandas": "runs.table()",
        "where": "rlnb.runs(task=..., state=..., tag=..., since='7d')",
    }
