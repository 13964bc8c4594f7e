"""Render job scripts and manifests for a cluster that starts the nodes of a run itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from rlnb.errors import CheckError, RlnbError, unknown
from rlnb.launch.injected import InjectedLauncher
from rlnb.manifests import dlc, osmo, pytorchjob, sbatch, shell, skypilot, trainjob
from rlnb.manifests.job import Document, Request
from rlnb.run.run import Run

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
    run: Run,
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
    """Return a job script, a manifest or a command that starts a run on a cluster.

    Only ``shell`` and ``sbatch`` have been tested on a live service.

    Args:
        run: Run created with ``launcher=rlnb.injected(nodes=..., nproc_per_node=...)``.
        form: ``"shell"``, the command to run on every node; ``"sbatch"``, a Slurm job script; ``"trainjob"``, a
            manifest for Kubeflow Trainer 2.2 and later; ``"pytorchjob"``, one for Kubeflow's older training operator;
            ``"osmo"``, a workflow of NVIDIA OSMO; ``"skypilot"``, a task of SkyPilot on Kubernetes; ``"dlc"``, the
            command that submits the job to PAI-DLC.
        python: Interpreter on the nodes; None is ``python`` in an image, and the current interpreter elsewhere.
        image: Container image with Isaac Lab, rlnb and the plugins; required for pods.
        claim: Volume that holds the run's folder: a persistent volume claim of Kubernetes, a volume of SkyPilot, or
            the id of a dataset of PAI.
        mount: Path at which pods mount the claim; empty is rlnb's root on this machine.
        cpus: Cores of each node; None is 8 for each GPU, or 2 for each rank without GPUs. In a Slurm script None is the
            site's default.
        memory_gib: Memory of each node, in GiB; None is 32 for each GPU, or 8 for each rank without GPUs.
        env: Further variables of the environment, such as those that accept a vendor's terms.
        secrets: Variables whose values are secrets: ``{"WANDB_API_KEY": "wandb/api-key"}`` names a secret and a key in
            it, of Kubernetes or OSMO. SkyPilot asks for the values at the launch.
        queue: Queue that admits the job: Slurm's partition, the queue of Kueue or Volcano, the pool of OSMO, or the
            resource quota of PAI.
        lines: Further lines of a Slurm script: options (``"--account=robots"``), and shell lines that run before it.
        template: Further fields, merged at any depth: into the pod template (``pytorchjob``, ``trainjob``), into the
            workflow (``osmo``), the task (``skypilot``) or the parameters of the command (``dlc``).

    Raises:
        RlnbError: The run has another launcher.
        CheckError: An argument is wrong, missing, or not used by the form.
        NotFoundError: The form does not exist.
    """
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
