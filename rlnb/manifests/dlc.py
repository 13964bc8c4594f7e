"""``"dlc"``: the command that submits a job to Alibaba's PAI-DLC, and the fields of the same job in its console."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from rlnb.errors import CheckError, Problem
from rlnb.manifests.job import Request

_SIZE = ("worker_cpu", "worker_memory", "worker_shared_memory", "worker_gpu")
"""Parameters of a worker's size; the name of an instance type (``worker_spec``) replaces them."""


def render(request: Request) -> str:
    """Return a command of PAI's client ``dlc``, with the fields of the console as comments.

    Raises:
        CheckError: A value cannot be passed to the client.
    """
    parameters = _parameters(request)
    flags = " \\\n".join(f"    --{name}={shlex.quote(value)}" for name, value in parameters.items())
    size = parameters.get("worker_spec") or (
        f"{request.pod_cpus} cores, {request.pod_memory_gib} GiB, shared memory {request.shm_gib} GiB, "
        f"{request.gpus} GPUs"
    )
    return (
        "# The same job in the console of PAI-DLC:\n"
        f"#   framework: PyTorch; node image: {request.image}\n"
        f"#   dataset: {request.claim}, mounted so that {request.root} is the folder of runs\n"
        f"#   workers: {request.nodes}, each with {size}\n"
        f"#   start command: {shlex.join(request.argv)}\n"
        f"dlc submit pytorchjob \\\n{flags}\n"
    )


def _parameters(request: Request) -> Mapping[str, str]:
    problems = [
        Problem(what=f"env: {name}={value!r} has a comma or a quotation mark, which the client would misread.")
        for name, value in request.pod_env.items()
        if "," in value or '"' in value
    ]
    if not request.template.get("workspace_id"):
        problems.append(
            Problem(what="dlc needs the id of the workspace of PAI.", fix='template={"workspace_id": "12345"}')
        )
    problems += [
        Problem(what=f"template: {name}={value!r} is not text or a number.", fix='template={"workspace_id": "12345"}')
        for name, value in request.template.items()
        if isinstance(value, bool) or not isinstance(value, str | int)
    ]
    if problems:
        raise CheckError(f"dlc of {request.manifest.run_id}", problems)
    parameters = {
        "name": request.name,
        "workers": str(request.nodes),
        "worker_image": request.image,
        "worker_cpu": str(request.pod_cpus),
        "worker_memory": f"{request.pod_memory_gib}Gi",
        "worker_shared_memory": f"{request.shm_gib}Gi",
        "worker_gpu": str(request.gpus),
        "data_sources": request.claim,
        **({"resource_id": request.queue} if request.queue else {}),
        **({"job_max_running_time_minutes": str(-(-request.limit_s // 60))} if request.limit_s else {}),
        "envs": ",".join(f"{name}={value}" for name, value in request.pod_env.items()),
        **{name: str(value) for name, value in request.template.items()},
        "command": shlex.join(request.argv),
    }
    omitted = _SIZE if "worker_spec" in parameters else ()
    return {name: value for name, value in parameters.items() if name not in omitted}
