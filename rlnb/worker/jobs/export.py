"""Export of a checkpoint for deployment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from rlnb import plugins
from rlnb.contracts import Backend, Exporting, Policy
from rlnb.errors import RlnbError
from rlnb.records.export import ExportFile, ExportOptions, values_of
from rlnb.records.options import options_of
from rlnb.spec import Result
from rlnb.storage import files
from rlnb.tasks.agent_config import choice_of
from rlnb.worker.isaac.env import environment
from rlnb.worker.jobs.checkpoints import write_whole
from rlnb.worker.jobs.context import open_job
from rlnb.worker.jobs.env_plugins import differences


def export_module(actor: Any, example: Any, folder: Path, formats: Sequence[str]) -> Mapping[str, Path]:
    """Write a policy as ``policy.pt`` (TorchScript, traced) and ``policy.onnx`` (opset 18).

    The policy moves to the CPU before the trace, because TorchScript keeps the device of its tensors: a file from a GPU
    would not load on a robot without one.

    Args:
        actor: A ``torch.nn.Module`` from observations, shape (n, ...), to actions, shape (n, action_dim), in eval
            mode and with its normalisers inside.
        example: Observations to trace it with. The ONNX file names its input ``obs`` and its output ``actions``; n is
            free in both formats.
        folder: Folder for the files.
        formats: ``"torchscript"``, ``"onnx"``.

    Returns:
        The file of each format.
    """
    import torch

    actor, example, paths = actor.cpu(), example.cpu(), {}
    with torch.no_grad():
        if "torchscript" in formats:
            traced = torch.jit.trace(actor, example, check_trace=False)
            paths["torchscript"] = write_whole(folder / "policy.pt", traced.save)
        if "onnx" in formats:

            def write(path: str) -> None:
                free = {"obs": {0: "n"}, "actions": {0: "n"}}
                torch.onnx.export(
                    actor,
                    (example,),
                    path,
                    input_names=["obs"],
                    output_names=["actions"],
                    dynamic_axes=free,
                    dynamo=False,  # the tracing exporter keeps n free in modules that read shapes
                    opset_version=18,
                )

            paths["onnx"] = write_whole(folder / "policy.onnx", write)
    return paths


GROUP = "policy"
"""Isaac Lab's name of the observation group that policies act on."""
FORMATS = {"onnx", "torchscript"}
"""Formats that a module can be traced to."""
EXPORT_TOLERANCE = 1e-5
"""Largest difference between an exported action and the policy's own."""


def traced(policy: Policy, env: Any, folder: Path, formats: Sequence[str]) -> Mapping[str, Path]:
    """Trace a policy on observations of the env and write it, for backends that have no ``export``.

    Raises:
        RlnbError: The policy is not a feed-forward ``torch.nn.Module`` of the observation group ``policy``.
    """
    import torch

    if not isinstance(policy, torch.nn.Module):
        raise _untraceable(f"its load_policy returns {type(policy).__qualname__}, which is not a torch.nn.Module")

    class OfTensor(torch.nn.Module):
        """The policy as a module that takes a tensor, as tracing needs, instead of Isaac Lab's dict."""

        def __init__(self) -> None:
            super().__init__()
            self.policy = policy

        def forward(self, obs: Any) -> Any:
            return self.policy({GROUP: obs})

    if unknown := set(formats) - FORMATS:
        raise _untraceable(f"tracing writes {' and '.join(sorted(FORMATS))}, not {', '.join(sorted(unknown))}")
    observations = env.reset()[0]
    if GROUP not in observations:
        raise _untraceable(f"the observation groups are {', '.join(map(repr, observations))}, without {GROUP!r}")
    example = observations[GROUP]
    if not isinstance(example, torch.Tensor):
        raise _untraceable(f"the observation group {GROUP!r} is a {type(example).__name__}, not one tensor")
    module, example = OfTensor().eval().cpu(), example.cpu()
    with torch.no_grad():
        try:
            first, second = module(example), module(example)
        except KeyError as exc:
            raise _untraceable(f"it also needs the observation group {exc}, not only {GROUP!r}") from exc
        if not first.isfinite().all():
            raise _untraceable("its actions for the first observations are not finite")
        if not torch.equal(first, second):
            raise _untraceable("it gives different actions for the same observations, so it keeps a state or samples")
        script = torch.jit.trace(module, example, check_trace=False)
        for other in (-example, 10 * example, example[:1]):
            if not torch.allclose(script(other), module(other), atol=EXPORT_TOLERANCE):
                raise _untraceable("its computation depends on its observations in a way that a trace does not record")
    return export_module(module, example, folder, formats)


def _untraceable(why: str) -> RlnbError:
    return RlnbError(f"The library's backend has no export of its own, and its policy cannot be traced: {why}.")


def export(job_dir: Path) -> None:
    """Write the policy in the formats that the job requests, and the result with the paths of the files."""
    from rlnb.worker.isaac import isaaclab

    job = open_job(job_dir)
    run, manifest, options = job.run, job.manifest, options_of(ExportOptions, job.folder)
    library = plugins.library(manifest.library)
    backend: Backend = plugins.load(library.backend)()
    isaaclab.start(manifest.asset_root)
    task = dataclasses.replace(manifest.task, num_envs=1)
    run.exports.mkdir(exist_ok=True)
    with environment(
        task,
        library,
        module=job.module,
        agent=choice_of(manifest),
        device=manifest.resources.device,
        manifest=manifest,
    ) as (env, agent_cfg):
        checkpoint, device, trust = run.path / options.checkpoint, str(env.unwrapped.device), options.trust
        formats = list(options.formats)
        if callable(getattr(backend, "export", None)):
            exporter = cast(Exporting, backend)
            paths = exporter.export(
                env, agent_cfg, checkpoint, run.exports, formats=formats, device=device, trust=trust
            )
        else:
            policy = backend.load_policy(env, agent_cfg, checkpoint, device=device, trust=trust, deterministic=True)
            paths = traced(policy, env, run.exports, formats)
    values = values_of([ExportFile(format=name, path=path) for name, path in paths.items()], run)
    result = Result(
        outcome="completed",
        exit_code=0,
        checkpoint=options.checkpoint,
        ended=files.now(),
        values=values,
        warnings=differences(job),
    )
    files.write_once(job.folder.result, result)
