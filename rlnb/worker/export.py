"""Export of a checkpoint for deployment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb import plugins
from rlnb.contracts import Backend, Exporting, Policy
from rlnb.errors import RlnbError
from rlnb.records import files
from rlnb.spec import Result, to_json
from rlnb.worker.context import module_of, open_job
from rlnb.worker.toolkit import export_module
from rlnb.worker.train import environment


def traced(policy: Policy, env: Any, folder: Path, formats: Sequence[str]) -> Mapping[str, Path]:
    """Write the policy of a backend that has no ``export``: its module, traced on observations of the env.

    Raises:
        RlnbError: The policy is no ``torch.nn.Module``.
    """
    import torch

    if not isinstance(policy, torch.nn.Module):
        raise RlnbError(
            f"Its backend has no export, and its load_policy returns {type(policy).__qualname__}, "
            "which is no torch.nn.Module that could be traced."
        )
    return export_module(policy, env.reset()[0]["policy"], folder, formats)


def export(job_dir: Path) -> None:
    """Write the policy in the formats that the job asks for, and the result with their paths."""
    from rlnb.worker import sim

    run, job, manifest, options = open_job(job_dir)
    library = plugins.library(manifest.library)
    backend: Backend = plugins.load(library.backend)()
    sim.start(manifest.asset_root)
    task = dataclasses.replace(manifest.task, num_envs=1)
    run.exports.mkdir(exist_ok=True)
    with environment(
        task,
        library,
        module=module_of(run, manifest),
        agent=manifest.agent,
        device=manifest.resources.device,
        manifest=manifest,
    ) as (env, agent_cfg):
        checkpoint, formats = run.path / options["checkpoint"], options["formats"]
        loading: dict[str, Any] = {"device": str(env.unwrapped.device), "trust": bool(options.get("trust"))}
        if isinstance(backend, Exporting):
            written = backend.export(env, agent_cfg, checkpoint, run.exports, formats=formats, **loading)
        else:
            written = traced(backend.load_policy(env, agent_cfg, checkpoint, **loading), env, run.exports, formats)
    values = {name: str(path.relative_to(run.path)) for name, path in written.items()}
    result = Result(
        outcome="completed", exit_code=0, checkpoint=options["checkpoint"], ended=files.now(), values=values
    )
    files.write_once(job.result, to_json(result))
