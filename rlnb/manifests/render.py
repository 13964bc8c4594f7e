"""Render job scripts and manifests for a cluster that starts the nodes of a run itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from rlnb.errors import CheckError, RlnbError, unknown
from rlnb.launch.injected import InjectedLauncher
from rlnb.manifests import dlc, osmo, pytorchjob, sbatch, shell, skypilot, trainjob
from rlnb.manifests.job import Document, Request
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


def render(
    run: RunFacts,
    form: Form = "shell",
    *,
    python: str | None = None,
    image: str = "",
    claim: str = "",
    mount: str = "",
    cpus: int | None = None,
    memory_gib: int | None = None,
    env: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    queue: str = "",
    lines: Sequence[str] = (),
    template: Document | None = None,
) -> str:
    """Return what starts a run on a cluster; see :meth:`rlnb.Run.job_script`."""
    if form not in FORMS:
        raise unknown("form", form, [*FORMS])
    manifest = run.manifest
    if manifest.launcher != InjectedLauncher.name:
        raise RlnbError(
            f"{run.id} was already started by rlnb.{manifest.launcher}(). To start a run yourself, create it with "
            "rlnb.train(..., launcher=rlnb.injected(nodes=2, nproc_per_node=8))."
        )
    request = Request(
        path=run.path,
        manifest=manifest,
        form=form,
        python=python,
        image=image,
        claim=claim,
        mount=mount,
        cpus=cpus,
        memory_gib=memory_gib,
        env=env or {},
        secrets=secrets or {},
        queue=queue,
        lines=lines,
        template=template or {},
    )
    if problems := [*request.problems()]:
        raise CheckError(f"{form} of {run.id}", problems)
    return FORMS[form](request)
