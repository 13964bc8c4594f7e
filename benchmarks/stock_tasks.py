"""Compares ``rlnb.check`` with what happens: the stock tasks are previewed and trained whatever the check has said.

    python benchmarks/stock_tasks.py                    # every task, with every library for which it has a config
    python benchmarks/stock_tasks.py Cartpole Ant       # tasks with one of these words in their id

A task whose files are not on this machine is left out: the check and a start name the same files. A task that is
refused for anything else is previewed too, past the check, to see that it cannot start. Only configs that a task brings
are trained.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from results import record

import rlnb
from rlnb.cameras import preview as preview_module
from rlnb.configs.checks import check_overrides, runtime_problems
from rlnb.hooks import plugins
from rlnb.protocol import requests
from rlnb.simulation.pool import pool

NUM_ENVS = 8
ITERATIONS = 2
WAIT_S = 300.0
"""Longest time of a training of two iterations."""


def lacks_files(card: rlnb.TaskCard) -> bool:
    """Return whether a file of the task is not on this machine."""
    files = [*card.assets.values(), *card.own_assets.values()]
    return any(asset.exists is False or asset.fault or "://" in asset.path for asset in files)


def shown(task: rlnb.Task) -> str:
    """Return why a preview of a task fails, past the check; empty if it does not."""
    try:
        rlnb.preview(task, num_envs=2, steps=2)
    except rlnb.RlnbError as exc:
        return str(exc).partition("\n")[0]
    return ""


def trained(task: rlnb.Task, library: str) -> str:
    """Return why a training of two iterations fails; empty if it does not."""
    try:
        run = rlnb.train(task, library=library, max_iterations=ITERATIONS, device="cpu")
        run.wait(WAIT_S)
    except rlnb.RlnbError as exc:
        return str(exc).partition("\n")[0]
    return "" if run.metrics.names else "no curve"


def libraries_of(card: rlnb.TaskCard) -> Iterator[str]:
    """Yield the libraries for which a task has a config of its own."""
    for name, agent in card.agents.items():
        if not agent.generic and agent.usable and agent.trained_by(plugins.library(name)) == name:
            yield name


def compared(id: str) -> Iterator[tuple[str, str, str]]:
    """Yield what was started, what the check says of it, and what has happened; both empty if it works."""
    task = rlnb.task(id, num_envs=NUM_ENVS)
    card = task.card()
    if lacks_files(card):
        return
    said = [problem.what for problem in (*check_overrides(task, card), *runtime_problems(task, card))]
    yield f"{id}, preview", said[0] if said else "", shown(task)
    for library in libraries_of(card) if not card.isaac_sim else ():
        said = [problem.what for problem in rlnb.check(task, library=library)]
        yield f"{id}, {library}", said[0] if said else "", "" if said else trained(task, library)


def main(words: Sequence[str]) -> None:
    """Compare the check with a start, for every task with one of the words, and record the row."""
    preview_module.check_preview = lambda *_, **__: None  # type: ignore[assignment]
    every = pool.request(requests.Tasks(), None, None).ids
    ids = [id for id in every if not words or any(word in id for word in words)]
    counts = {"works": 0, "refused": 0, "refused although it works": 0, "passed although it fails": 0}
    here, begin_s = set(), time.monotonic()
    for id in ids:
        try:
            for what, said, happened in compared(id):
                here.add(id)
                is_start = what.endswith("preview")
                kind = "works" if not said and not happened else "passed although it fails" if not said else "refused"
                if said and is_start and not happened:
                    kind = "refused although it works"
                counts[kind] += 1
                print(f"{kind}: {what}: {said} | {happened}", flush=True)
        except rlnb.RlnbError as exc:
            print(f"no card: {id}: {str(exc).partition(chr(10))[0]}", flush=True)
    wrong = counts["refused although it works"] + counts["passed although it fails"]
    minutes = (time.monotonic() - begin_s) / 60
    measured = f"{len(ids)} tasks, {len(here)} with their files here: {counts}; {minutes:.0f} min"
    if not words:
        record("rlnb.check against a preview and 2 iterations, stock tasks", measured, "0 wrong", wrong == 0)
    else:
        print(measured)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="rlnb-stock-") as folder:
        rlnb.options.root = Path(folder)
        try:
            main(sys.argv[1:])
        finally:
            pool.shut_down()
