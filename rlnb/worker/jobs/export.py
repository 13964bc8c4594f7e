"""Export of a checkpoint for deployment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from rlnb import plugins
from rlnb.contracts import Backend, Exporting, Policy
from rlnb.errors import RlnbError
from rlnb.spec import Result
from rlnb.storage import files
from rlnb.storage.serial import to_json
from rlnb.worker.isaac.env import environment
from rlnb.worker.jobs.checkpoints import write_whole
from rlnb.worker.jobs.context import module_of, open_job


def export_module(actor: Any, example: Any, folder: Path, formats: Sequence[str]) -> Mapping[str, Path]:
    """Write a policy as ``policy.pt`` (TorchScript, traced) and ``policy.onnx`` (opset 18).

    Args:
        actor: A ``torch.nn.Module`` from observations, shape (n, ...), to actions, shape (n, action_dim), in eval
            mode, normalisers inside.
        example: Observations to trace it with. The ONNX file names its input ``obs`` and its output ``actions``; n is
            free in both formats.
        folder: Where to write.
        formats: ``"torchscript"``, ``"onnx"``.

    Returns:
        Format to file.
    """
    import torch

    written = {}
    with torch.no_grad():
        if "torchscript" in formats:
            traced = torch.jit.trace(actor, example, check_trace=False)
            written["torchscript"] = write_whole(folder / "policy.pt", traced.save)
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
                    dynamo=False,  # the exporter by tracing keeps n free in modules that look at shapes
                    opset_version=18,
                )

            written["onnx"] = write_whole(folder / "policy.onnx", write)
    return written


GROUP = "policy"
"""Isaac Lab's name of the observations that policies act on."""
FORMATS = {"onnx", "torchscript"}
"""What a module can be traced to."""
EXPORT_TOLERANCE = 1e-5
"""How far an exported action may be from the policy's own."""


def traced(policy: Policy, env: Any, folder: Path, formats: Sequence[str]) -> Mapping[str, Path]:
    """Write the policy of a backend that has no ``export``: its module, traced on observations of the env.

    Raises:
        RlnbError: The policy is no feed-forward ``torch.nn.Module`` of the observation group ``policy``.
    """
    import torch

    if not isinstance(policy, torch.nn.Module):
        raise _untraceable(f"its load_policy returns {type(policy).__qualname__}, which is no torch.nn.Module")

    class OfTensor(torch.nn.Module):
        """The policy as a module of the tensor that a trace needs, instead of Isaac Lab's dict."""

        def __init__(self) -> None:
            super().__init__()
            self.policy = policy

        def forward(self, obs: Any) -> Any:
            return self.policy({GROUP: obs})

    if unknown := set(formats) - FORMATS:
        raise _untraceable(f"it would be as {' and '.join(sorted(FORMATS))}, and not as {', '.join(sorted(unknown))}")
    observations = env.reset()[0]
    if GROUP not in observations:
        raise _untraceable(f"the observations are {', '.join(map(repr, observations))}, and not {GROUP!r}")
    module, example = OfTensor().eval(), observations[GROUP]
    if not isinstance(example, torch.Tensor):
        raise _untraceable(f"the observations {GROUP!r} are a {type(example).__name__}, not one tensor")
    with torch.no_grad():
        try:
            first, second = module(example), module(example)
        except KeyError as exc:
            raise _untraceable(f"its policy needs the observations {exc} too, not only {GROUP!r}") from exc
        if not first.isfinite().all():
            raise _untraceable("its actions for the first observations are not finite")
        if not torch.equal(first, second):
            raise _untraceable("its policy gives other actions for the same observations: it keeps a state, or samples")
        script = torch.jit.trace(module, example, check_trace=False)
        for other in (-example, 10 * example, example[:1]):
            if not torch.allclose(script(other), module(other), atol=EXPORT_TOLERANCE):
                raise _untraceable("what it does depends on its observations in a way that a trace forgets")
    return export_module(module, example, folder, formats)


def _untraceable(why: str) -> RlnbError:
    return RlnbError(f"The library's backend has no export of its own, and its policy cannot be traced: {why}.")


def export(job_dir: Path) -> None:
    """Write the policy in the formats that the job asks for, and the result with their paths."""
    from rlnb.worker.isaac import isaaclab

    run, job, manifest, options = open_job(job_dir)
    library = plugins.library(manifest.library)
    backend: Backend = plugins.load(library.backend)()
    isaaclab.start(manifest.asset_root)
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
        if callable(getattr(backend, "export", None)):
            own = cast(Exporting, backend)
            written = own.export(env, agent_cfg, checkpoint, run.exports, formats=formats, **loading)
        else:
            policy = backend.load_policy(env, agent_cfg, checkpoint, **loading, deterministic=True)
            written = traced(policy, env, run.exports, formats)
    values = {name: str(path.relative_to(run.path)) for name, path in written.items()}
    result = Result(
        outcome="completed", exit_code=0, checkpoint=options["checkpoint"], ended=files.now(), values=values
    )
    files.write_once(job.result, to_json(result))
