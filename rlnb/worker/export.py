"""Export of a checkpoint for deployment."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from rlnb import plugins
from rlnb.contracts import Backend
from rlnb.records import files
from rlnb.spec import Result, to_json
from rlnb.worker.context import module_of, open_job
from rlnb.worker.train import environment


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
        written = backend.export(
            env,
            agent_cfg,
            run.path / options["checkpoint"],
            run.exports,
            formats=options["formats"],
            device=str(env.unwrapped.device),
            trust=bool(options.get("trust")),
        )
    values = {name: str(path.relative_to(run.path)) for name, path in written.items()}
    result = Result(
        outcome="completed", exit_code=0, checkpoint=options["checkpoint"], ended=files.now(), values=values
    )
    files.write_once(job.result, to_json(result))
