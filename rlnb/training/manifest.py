"""The manifest of a new run, and the origin of its first weights."""

from __future__ import annotations

import dataclasses
import itertools
import os
import secrets
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rlnb.configs.agent import AgentChoice
from rlnb.contracts.launchers import Launcher
from rlnb.errors import NotFoundError, Problem, RlnbError
from rlnb.hooks import plugins
from rlnb.hooks.registry import package_versions
from rlnb.machine.threads import OMP_THREADS
from rlnb.records import weights
from rlnb.records.facts import RunFacts, find_run
from rlnb.records.find import run_of
from rlnb.records.record import RunRecord
from rlnb.records.stock_record import StockRecord, is_stock
from rlnb.settings import options
from rlnb.spec import Manifest, Resources, Task
from rlnb.storage import files
from rlnb.training.arguments import TRAIN_ARGUMENTS, TrainArguments, split_alerts
from rlnb.training.inputs import InputFile, newest_of
from rlnb.training.lookup import Lookup
from rlnb.version import __version__


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """The origin of a training's first weights."""

    checkpoint: str | None = None
    """File of the checkpoint; None for fresh weights."""
    parent: str | None = None
    """Id of the run, or the file as the user passed it; None for fresh weights."""


def _ranks(request: TrainArguments, launcher: Launcher) -> int:
    """Return the number of worker processes on each node."""
    ranks = request.nproc_per_node
    return launcher.nproc_per_node or 1 if ranks is None or ranks == "auto" else ranks


def make_manifest(
    request: TrainArguments,
    task: Task,
    lookup: Lookup,
    launcher: Launcher,
    inputs: Mapping[str, InputFile],
    *,
    auto: bool,
    agent: AgentChoice,
    parent: str | None = None,
) -> Manifest:
    """Return the manifest of a run.

    Args:
        request: The request for the run.
        task: Task of the request.
        lookup: Library and task card of the run.
        launcher: Launcher of the run.
        inputs: Inputs of the library, by name.
        auto: Whether the number of ranks is chosen by measurement later.
        agent: Agent config, and the values to set in it.
        parent: Run or checkpoint that the first weights come from.
    """
    if request.num_envs is not None:
        task = dataclasses.replace(task, num_envs=request.num_envs)
    are_tags = isinstance(request.tags, Collection) and not isinstance(request.tags, str | bytes)
    now, git = datetime.now().astimezone(), _git()
    name = "".join(c if c.isalnum() else "-" for c in task.id.removeprefix("Isaac-")).strip("-").lower()
    given = {name: getattr(request, name) for name, one in TRAIN_ARGUMENTS.items() if one.recorded == name} | {
        "library": lookup.name,
        "alerts": split_alerts(request.alerts)[0] if request.alerts else (),
        "python": request.python or options.python,
        "asset_root": request.asset_root or options.asset_root,
        "name": "" if request.name is None else request.name,
        "tags": tuple(request.tags) if are_tags else (),
    }
    return Manifest(
        **given,
        task=task,
        run_id=f"{now:%Y%m%d-%H%M%S}-{name[:40]}-{lookup.name}-{secrets.token_hex(2)}",
        created=now.astimezone(UTC).isoformat(timespec="milliseconds"),
        agent=dict(agent.values),
        agent_name=agent.name,
        agent_source=lookup.agent.source if lookup.agent else "",
        resources=Resources(
            device=str(request.device),
            nodes=launcher.nodes,
            nproc_per_node=1 if auto else _ranks(request, launcher),
            # Their number decides the order of sums, and the next machine may have other cores.
            threads=1 if request.deterministic is True and not os.environ.get(OMP_THREADS) else None,
        ),
        parent=parent,
        inputs={name: one.origin for name, one in inputs.items()},
        script=(str(task.source), *request.args) if request.script is not None else (),
        launcher=launcher.name,
        launcher_settings=launcher.settings,
        git=git,
        versions={**package_versions(), "rlnb": __version__, "python": sys.version.split()[0]},
    )


def first_origin(init_from: RunFacts | str | Path | None, library: str) -> tuple[Origin, list[Problem]]:
    """Return the origin of a training's first weights, and a problem if they cannot be used."""
    try:
        return origin_of(init_from, library), []
    except RlnbError as exc:
        return Origin(), [Problem(what=str(exc))]


def origin_of(init_from: RunFacts | str | Path | None, library: str) -> Origin:
    """Return the origin of a training's first weights.

    Raises:
        NotFoundError: ``init_from`` is neither a run nor a file.
        RlnbError: The weights belong to another library or are not finite, or the run has no checkpoint yet.
    """
    if init_from is None:
        return Origin()
    if not isinstance(init_from, RunFacts | str | Path):
        raise RlnbError(f"init_from={init_from!r} is neither a run nor the file of a checkpoint. Use one of these.")
    if not isinstance(init_from, RunFacts) and not files.there(Path(init_from)):
        try:
            init_from = find_run(str(init_from))
        except NotFoundError as exc:
            raise NotFoundError(
                f"init_from={init_from!r} is neither a run nor the file of a checkpoint. {exc}"
            ) from exc
    if isinstance(init_from, RunFacts):
        if init_from.library != library:
            theirs = init_from.library
            raise RlnbError(
                f"{init_from.id} was trained with {theirs}: its weights do not fit {library}. Use library={theirs!r}."
            )
        return Origin(checkpoint=str(newest_of(init_from, "init_from")), parent=init_from.id)
    path = Path(init_from).absolute()
    run = _owner_of(path)
    if run is not None and run.library != library:
        what = f"{path} belongs to {run.id}, trained with {run.library}: its weights do not fit {library}."
        raise RlnbError(f"{what} Use library={run.library!r}.")
    if fault := weights.fault_of(path):
        fix = run.checkpoints.other_fix(path) if run is not None else "Use another file."
        raise RlnbError(f"init_from: {path} is not finite: {fault}. {fix}")
    return Origin(checkpoint=str(path), parent=str(init_from))


def _owner_of(path: Path) -> RunRecord | None:
    """Return the run that trained a checkpoint; None if none is known.

    The script of a run may be stock's own, which has written a run of its own below the logs. Of any other script, the
    library is unknown.
    """
    run = run_of(path)
    if run is None or run.library != plugins.SCRIPT.name:
        return run
    inside = itertools.takewhile(lambda folder: folder != run.path, path.parents)
    stock = next((StockRecord(folder) for folder in inside if is_stock(folder)), None)
    return stock if stock is not None and stock.library in plugins.libraries() else None


def _git() -> dict[str, str]:
    """Return commit and state of the working folder; empty if it is no git repository."""
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=2, check=True)
        # Without optional locks: a git that the time limit kills would leave index.lock behind and block every commit.
        status = ["git", "--no-optional-locks", "status", "--porcelain"]
        changes = subprocess.run(status, capture_output=True, text=True, timeout=2, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"commit": commit.stdout.strip(), "state": "changed" if changes.stdout.strip() else "clean"}
