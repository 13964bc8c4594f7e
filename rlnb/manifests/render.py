"""Render job scripts and manifests for a cluster that starts the nodes of a run itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from rlnb.errors import CheckError, RlnbError, unknown
from rlnb.launch.injected import InjectedLauncher
from rlnb.manifests import dlc, osmo, pytorchjob, sbatch, shell, skypilot, trainjob
from rlnb.manifests.job import Request
from rlnb.records.facts import RunFacts

Form = Literal["shell", "sbatch", "pytorchjob", "trainjob", "osmo", "skypilot", "dlc"]
FORMS: Mapping[str, Callable[[Request], str]] = {
    "shell": shell.render,
    "sbatch": sbatch.render,
    "pytorchjob": pytorchjob.render,
    "trainjob": trainjob.render,
    "osmo": osmo.render,
    "skypilot": skypilot.render,
    "dlc": dlc.render,
}


def render(run: RunFacts, form: Form = "shell", **arguments: Any) -> str:
    """Return what starts a run on a cluster; :meth:`rlnb.Run.job_script` has the arguments."""
    if form not in FORMS:
        raise unknown("form", form, [*FORMS])
    manifest = run.manifest
    if manifest.launcher != InjectedLauncher.name:
        raise RlnbError(
            f"{run.id} was already started by rlnb.{manifest.launcher}(). To start a run yourself, create it with "
            "rlnb.train(..., launcher=rlnb.injected(nodes=2, nproc_per_node=8))."
        )
    given = {name: value for name, value in arguments.items() if value is not None}
    request = Request(path=run.path, manifest=manifest, form=form, **given)
    if problems := [*request.problems()]:
        raise CheckError(f"{form} of {run.id}", problems)
    return FORMS[form](request)
