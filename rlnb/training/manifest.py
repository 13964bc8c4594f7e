"""From what a person asked for to the manifest of a run."""

from __future__ import annotations

import dataclasses
import secrets
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rlnb.contracts import Launcher
from rlnb.errors import NotFoundError, RlnbError
from rlnb.records.find import run_of
from rlnb.run.run import Run
from rlnb.settings import options
from rlnb.spec import Manifest, Resources, Task
from rlnb.storage import files
from rlnb.tasks.task import as_task
from rlnb.version import __version__


def describe(
    task: Task | str,
    library: str,
    max_iterations: int | None,
    seed: int,
    num_envs: int | None,
    agent: Mapping[str, Any],
    device: str,
    nproc_per_node: int,
    launcher: Launcher,
    python: str | None,
    asset_root: str | None,
    tags: Sequence[str],
) -> Manifest:
    """Return the manifest of a run that was asked for in these words, see :func:`train`; ``agent`` by dotted path."""
    task = as_task(task)
    if num_envs is not None:
        task = dataclasses.replace(task, num_envs=num_envs)
    now = datetime.now()
    name = "".join(c if c.isalnum() else "-" for c in task.id.removeprefix("Isaac-")).strip("-").lower()
    return Manifest(
        run_id=f"{now:%Y%m%d-%H%M%S}-{name[:40]}-{library}-{secrets.token_hex(2)}",
        created=files.now(),
        task=task,
        library=library,
        max_iterations=max_iterations,
        seed=seed,
        agent=dict(agent),
        resources=Resources(device=str(device), nodes=launcher.nodes, nproc_per_node=nproc_per_node),
        launcher=launcher.name,
        launcher_settings=launcher.settings,
        python=python or options.python,
        asset_root=asset_root or options.asset_root,
        git=_git(),
        versions={"rlnb": __version__, "python": sys.version.split()[0]},
        tags=tuple(tags),
    )


def origin_of(init_from: Run | str | Path | None, library: str) -> tuple[str | None, str | None]:
    """Return the checkpoint whose weights to start from, and the name of where they come from."""
    if init_from is None:
        return None, None
    if not isinstance(init_from, Run | str | Path):
        raise RlnbError(f"init_from={init_from!r} is neither a run nor the file of a checkpoint.")
    if not isinstance(init_from, Run) and not Path(init_from).is_file():
        from rlnb.run import find

        try:
            init_from = find.get_run(str(init_from))
        except NotFoundError as exc:
            raise NotFoundError(
                f"init_from={init_from!r} is neither a run nor the file of a checkpoint. {exc}"
            ) from exc
    if isinstance(init_from, Run):
        if init_from.library != library:
            raise RlnbError(f"{init_from.id} was trained with {init_from.library}: its weights do not fit {library}.")
        if init_from.checkpoints.last is None:
            raise RlnbError(f"{init_from.id} ({init_from.state}) has no checkpoint to start from.")
        return str(init_from.checkpoints.last), init_from.id
    path = Path(init_from).absolute()
    run = run_of(path)
    if run is not None and run.library != library:
        raise RlnbError(f"{path} is of {run.id}, trained with {run.library}: its weights do not fit {library}.")
    return str(path), str(init_from)


def _git() -> dict[str, str]:
    """Return commit and cleanliness of the working folder; nothing where it is no repository."""
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=2, check=True)
        # Its lock on the index would stay where a slow disk runs into the time limit, and nobody could commit any more.
        status = ["git", "--no-optional-locks", "status", "--porcelain"]
        changed = subprocess.run(status, capture_output=True, text=True, timeout=2, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"commit": commit.stdout.strip(), "state": "changed" if changed.stdout.strip() else "clean"}
