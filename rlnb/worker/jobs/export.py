"""Export of a checkpoint for deployment."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import types
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rlnb.configs.agent import choice_of
from rlnb.contracts.libraries import Backend, Exporting, Naming, Policy
from rlnb.errors import NotFiniteError, RlnbError
from rlnb.hooks import plugins
from rlnb.records import weights
from rlnb.records.options import ExportFile, ExportOptions, export_values_of, options_of
from rlnb.spec import Result
from rlnb.storage import entries, files
from rlnb.storage.entries import files_below
from rlnb.worker.actions import actions
from rlnb.worker.flight.guard import Guard, refuse_not_finite
from rlnb.worker.flight.snapshot import leaves
from rlnb.worker.isaac.env import environment, play_notes
from rlnb.worker.jobs.checkpoints import PART, write_whole
from rlnb.worker.jobs.context import open_job, plugin_differences

if TYPE_CHECKING:
    import numpy as np
    import torch


def export_module(
    actor: Any,
    example: Any,
    folder: Path,
    formats: Sequence[str],
    *,
    state: Mapping[str, torch.Tensor] = types.MappingProxyType({}),
) -> Mapping[str, Path]:
    """Write a policy as ``policy.pt`` (TorchScript, traced) and ``policy.onnx`` (opset 18).

    The policy moves to the CPU before the trace, because TorchScript keeps the device of its tensors: a file from a GPU
    would not load on a robot without one.

    Args:
        actor: A ``torch.nn.Module`` from observations, shape (n, ...), to actions, shape (n, action_dim), in eval
            mode and with its normalisers inside. A recurrent one is called with the observations and its state, one
            tensor after the other, and returns the actions and the next state.
        example: Observations to trace it with: a tensor, the input ``obs``, or a mapping with a tensor for each input,
            by name and in the order in which ``actor`` takes them.
        folder: Folder for the files.
        formats: ``"torchscript"``, ``"onnx"``.
        state: Recurrent state by name, in the order in which ``actor`` takes it, as float tensors of shape (layers, n,
            size). An episode starts with zeros.

    Returns:
        The file of each format. The ONNX file names its output ``actions``, and n is free. For a recurrent policy, the
        ONNX file has an input ``<name>_in`` and an output ``<name>_out`` for each tensor of the state. The TorchScript
        file keeps the state of one robot instead, so n is 1 there; its method ``reset`` starts an episode.
    """
    import torch

    observations = dict(example) if isinstance(example, Mapping) else {"obs": example}
    inputs = {name: tensor.cpu() for name, tensor in observations.items()}
    actor, paths = actor.cpu(), {}
    with torch.no_grad():
        # Both traces come before the first file is written: a policy that has no ONNX form leaves no TorchScript file.
        script = _script(actor, inputs, state) if "torchscript" in formats else None
        if "onnx" in formats:
            before = {f"{name}_in": torch.zeros_like(tensor, device="cpu") for name, tensor in state.items()}
            paths["onnx"] = write_whole(folder / "policy.onnx", partial(_write_onnx, actor, inputs, before))
        if script is not None:
            paths["torchscript"] = write_whole(folder / "policy.pt", script.save)
    return {name: paths[name] for name in formats if name in paths}


def _script(actor: Any, inputs: Mapping[str, torch.Tensor], state: Mapping[str, torch.Tensor]) -> Any:
    """Trace a policy. A recurrent one keeps the state of one robot in buffers."""
    import torch

    if not state:
        return torch.jit.trace(actor, tuple(inputs.values()), check_trace=False)

    class Robot(torch.nn.Module):
        """The policy of one robot, with its state."""

        def __init__(self) -> None:
            super().__init__()
            self.actor = actor
            for name, tensor in state.items():
                self.register_buffer(name, torch.zeros_like(tensor[:, :1], device="cpu"))

        def forward(self, *obs: Any) -> Any:
            before = [getattr(self, name) for name in state]
            actions, *after = self.actor(*obs, *before)
            for old, new in zip(before, after, strict=True):
                old.copy_(new)
            return actions

        def reset(self) -> Any:
            return tuple(getattr(self, name).zero_() for name in state)  # a trace has to return a value

    of_one = tuple(tensor[:1] for tensor in inputs.values())
    robot = torch.jit.trace_module(Robot().eval(), {"forward": of_one, "reset": ()}, check_trace=False)
    robot.reset()
    return robot


def _write_onnx(actor: Any, inputs: Mapping[str, torch.Tensor], state: Mapping[str, torch.Tensor], path: str) -> None:
    """Write a policy with inputs and the state as further inputs and outputs. The number of rows n is free."""
    import torch

    outputs = ["actions", *(f"{name.removesuffix('_in')}_out" for name in state)]
    rows = {**dict.fromkeys([*inputs, "actions"], 0), **dict.fromkeys([*state, *outputs[1:]], 1)}
    torch.onnx.export(
        actor,
        (*inputs.values(), *state.values()),
        path,
        input_names=[*inputs, *state],
        output_names=outputs,
        dynamic_axes={name: {axis: "n"} for name, axis in rows.items()},
        dynamo=False,  # the tracing exporter keeps n free in modules that read shapes
        opset_version=18,
    )
    actions = actor(*inputs.values(), *state.values())
    _name_size(Path(path), (actions[0] if state else actions).shape)


def _name_size(path: Path, shape: Sequence[int]) -> None:
    """Write the size of an action into an ONNX file, where the trace has lost it in an operator such as Min."""
    import onnx

    model = onnx.load(str(path))
    for dimension, size in zip(model.graph.output[0].type.tensor_type.shape.dim[1:], shape[1:], strict=False):
        dimension.dim_value = size
    onnx.save(model, str(path))


GROUP = "policy"
"""Isaac Lab's name of the observation group that policies act on."""
FORMATS = {"onnx", "torchscript"}
"""Formats that a module can be traced to."""
EXPORT_TOLERANCE = 1e-5
"""Largest difference between an exported action and the policy's own."""


def traced(policy: Policy, env: Any, folder: Path, formats: Sequence[str]) -> Mapping[str, Path]:
    """Trace a policy on observations of the env and write it, for backends that have no ``export``.

    The group ``policy`` is the input ``obs`` of the files. Other groups that the policy reads are further inputs, by
    their names and in the order of the env.

    Raises:
        RlnbError: The policy is not a feed-forward ``torch.nn.Module``.
    """
    import torch

    if not isinstance(policy, torch.nn.Module):
        raise _untraceable(f"its load_policy returns {type(policy).__qualname__}, which is not a torch.nn.Module")
    if unknown := set(formats) - FORMATS:
        raise _untraceable(f"tracing writes {' and '.join(sorted(FORMATS))}, not {', '.join(sorted(unknown))}")
    observations = _on_cpu(env.reset()[0])
    policy = policy.eval().cpu()
    with torch.no_grad():
        first, second = policy(observations), policy(observations)
        if not first.isfinite().all():
            raise _untraceable("its actions for the first observations are not finite")
        if not torch.equal(first, second):
            raise _untraceable(
                "it gives different actions for the same observations, so it keeps a state or samples. The export of "
                "a recurrent policy calls rlnb.backend.export_module with state="
            )
        groups = [group for group in observations if _reads(policy, observations, group)]
        examples = [observations[group] for group in groups]
        for group, example in zip(groups, examples, strict=True):
            if not isinstance(example, torch.Tensor):
                raise _untraceable(f"the observation group {group!r} is a {type(example).__name__}, not one tensor")

        module = _of_tensors(policy, groups)
        script = torch.jit.trace(module, tuple(examples), check_trace=False)
        for change in (lambda obs: -obs, lambda obs: 10 * obs, lambda obs: obs[:1]):
            others = [change(example) for example in examples]
            if not torch.allclose(script(*others), module(*others), atol=EXPORT_TOLERANCE):
                raise _untraceable("its computation depends on its observations in a way that a trace does not record")
    inputs = {"obs" if name == GROUP else name: example for name, example in zip(groups, examples, strict=True)}
    return export_module(module, inputs, folder, formats)


def _of_tensors(policy: Policy, groups: Sequence[str]) -> Any:
    """Return a policy as a module that takes a tensor for each group, as tracing needs, instead of Isaac Lab's dict."""
    import torch

    class OfTensors(torch.nn.Module):
        """The policy."""

        def __init__(self) -> None:
            super().__init__()
            self.policy = policy

        def forward(self, *obs: Any) -> Any:
            return self.policy(dict(zip(groups, obs, strict=True)))

    return OfTensors().eval()


def _on_cpu(observations: Any) -> Any:
    """Return observations, whose groups may be dicts of terms, on the CPU."""
    if isinstance(observations, Mapping):
        return {name: _on_cpu(value) for name, value in observations.items()}
    return observations.cpu()


def _reads(policy: Policy, observations: Mapping[str, torch.Tensor], group: str) -> bool:
    """Return whether a policy needs an observation group: without it, the policy fails or acts differently."""
    import torch

    others = {name: value for name, value in observations.items() if name != group}
    try:
        return not torch.equal(policy(others), policy(observations))
    except Exception:  # a policy that lacks a group may raise anything
        return True


def _untraceable(why: str) -> RlnbError:
    return RlnbError(f"The library's backend has no export of its own, and its policy cannot be traced: {why}.")


def export(job_dir: Path) -> None:
    """Write the policy in the formats that the job requests, and the result with the paths of the files.

    Raises:
        NotFiniteError: A weight, an action, or a value of the env is nan or infinite. There are no files then.
    """
    from rlnb.worker.isaac import isaaclab
    from rlnb.worker.jobs import policy_metadata

    job = open_job(job_dir)
    run, manifest, options = job.run, job.manifest, options_of(ExportOptions, job.folder)
    library = plugins.library(manifest.library)
    isaaclab.start(manifest.asset_root)  # first, since a backend may import isaaclab, which reads the root
    backend: Backend = plugins.new_backend(library)
    notes = (*plugin_differences(job), *play_notes(manifest.task, job.module, options.mode))
    task = dataclasses.replace(manifest.task, num_envs=1)
    checkpoint = run.path / options.checkpoint
    refuse_not_finite(checkpoint)
    with environment(
        task,
        library,
        module=job.module,
        agent=choice_of(manifest),
        device=manifest.resources.device,
        manifest=manifest,
        mode=options.mode,
    ) as (env, agent_cfg):
        name = f"the policy of {checkpoint.name}"
        observations = first_observations(env, name)
        with staged(run.exports) as folder:
            paths = _written(backend, env, agent_cfg, checkpoint, folder, options)
            refuse_not_finite_files(paths, observations, name)
            policy_metadata.attach(paths, env.unwrapped, manifest, options, _input_groups(backend, env, agent_cfg))
        paths = {name: run.exports / path.relative_to(folder) for name, path in paths.items()}
    values = export_values_of([ExportFile(format=name, path=path) for name, path in paths.items()], run)
    result = Result(
        outcome="completed",
        exit_code=0,
        checkpoint=options.checkpoint,
        ended=files.now(),
        values=values,
        warnings=notes,
    )
    files.write_once(job.folder.result, result)


def _written(
    backend: Backend, env: Any, agent_cfg: Any, checkpoint: Path, folder: Path, options: ExportOptions
) -> Mapping[str, Path]:
    """Write the files into a folder, with the backend's own export if it has one; return them by format."""
    device, trust, formats = str(env.unwrapped.device), options.trust, list(options.formats)
    if callable(getattr(backend, "export", None)):
        exporter = cast(Exporting, backend)
        return exporter.export(env, agent_cfg, checkpoint, folder, formats=formats, device=device, trust=trust)
    policy = backend.load_policy(env, agent_cfg, checkpoint, device=device, trust=trust, deterministic=True)
    return traced(policy, env, folder, formats)


def _input_groups(backend: Backend, env: Any, agent_cfg: Any) -> Mapping[str, Sequence[str]]:
    """Return the observation groups that each input of the files joins."""
    names = callable(getattr(backend, "input_groups", None))
    return cast(Naming, backend).input_groups(env, agent_cfg) if names else {"obs": [GROUP]}


# -- the files of an export ------------------------------------------------------------------------------------------


LIMITING = frozenset({"Clip", "Max", "Min"})
"""Operators of ONNX that limit actions. A limit may be infinite."""


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Yield a folder for the files of an export, which appear below ``folder`` once the block has ended.

    If it fails, there is no file, and an earlier export stays as it was.
    """
    files.make_subfolder(folder)
    with tempfile.TemporaryDirectory(prefix=PART, dir=folder) as stage:
        yield Path(stage)
        for path in [*files_below(Path(stage))]:
            final = folder / path.relative_to(stage)
            files.make_folder(final.parent)
            entries.move(path, final)


def first_observations(env: Any, policy: str) -> Mapping[str, torch.Tensor]:
    """Return the observations of an env after its reset and after one step, by name, shape (2 * num_envs, ...).

    Args:
        env: The env.
        policy: What is exported, for the error.

    Raises:
        NotFiniteError: A value of the env is nan or infinite, so nothing can be said of the policy.
    """
    import torch

    guard = Guard(env, policy)
    with torch.no_grad():
        observations, _ = env.reset()
        guard.reset(observations)
        first = {name: value.clone() for name, value in leaves(observations)}
        after, reward, *_ = env.step(actions(env.unwrapped, "zero"))
        guard.stepped(after, reward)
        return {name: torch.cat([first[name], value]) for name, value in leaves(after)}


def refuse_not_finite_files(paths: Mapping[str, Path], observations: Mapping[str, torch.Tensor], policy: str) -> None:
    """Refuse exported files that hold a number, or return an action, that is nan or infinite.

    A file is run on the env's observations, as far as they are known to be its inputs. Other inputs say nothing: a
    policy may be undefined for them, such as one that normalises a quaternion for zeros.

    Args:
        paths: File by format, or by ``"<agent>/<format>"``. Files of other formats than TorchScript and ONNX pass.
        observations: Observations of the env by name, each with the same number of rows.
        policy: What was exported, for the error, such as ``"the policy of model_3.pt"``.

    Raises:
        NotFiniteError: There is such a number. The message names the weight or the action.
    """
    checks = {"torchscript": _script_fault, "onnx": _onnx_fault}
    for name, path in paths.items():
        agent, _, format = name.rpartition("/")
        if format not in checks:
            continue
        own = {agent: observations[agent]} if agent in observations else observations
        count = min((len(value) for value in own.values()), default=0)
        rows = [{key: value[row : row + 1].float().cpu() for key, value in own.items()} for row in range(count)]
        if fault := checks[format](path, rows):
            raise NotFiniteError(f"The {format} file of {policy} is not finite: {fault}. There is no export.")


def _script_fault(path: Path, rows: Sequence[Mapping[str, torch.Tensor]]) -> str:
    """Return what is not finite in a TorchScript file, as a clause; empty if nothing is."""
    import torch

    module = torch.jit.load(str(path), map_location="cpu").eval()
    for name, value in module.state_dict().items():
        if value.is_floating_point() and weights.is_faulty(value.detach().double().numpy()):
            return f"its weight {name} has values that are nan or infinite"
    count = len(module.forward.schema.arguments) - 1
    with torch.no_grad():
        for row in rows:
            for candidate in _candidates(row, count):
                with contextlib.suppress(Exception):  # a module that takes other shapes may raise anything
                    if fault := _output_fault(module(*candidate)):
                        return fault
                    break
    return ""


def _candidates(row: Mapping[str, torch.Tensor], count: int) -> Iterator[Sequence[torch.Tensor]]:
    """Yield what may be the inputs of a module: groups of observations, in the order of the env, or all joined."""
    import torch

    groups = [*row.values()]
    yield from [groups[:count]] if count > 1 else [[group] for group in groups]
    if count == 1 and len({group.shape[:-1] for group in groups}) == 1:
        yield [torch.cat(groups, dim=-1)]


def _output_fault(output: Any) -> str:
    """Return what is not finite in an output, as a clause; empty if nothing is."""
    for name, value in leaves(output):
        if value.is_floating_point() and not bool(value.isfinite().all()):
            index = int((~value.isfinite().reshape(-1)).nonzero()[0])
            label = f"output {name!r}" if name not in ("", "actions") else "action"
            return f"its {label} (index {index}) is {float(value.reshape(-1)[index])} for the env's first observations"
    return ""


def _onnx_fault(path: Path, rows: Sequence[Mapping[str, torch.Tensor]]) -> str:
    """Return what is not finite in an ONNX file, as a clause; empty if nothing is."""
    import numpy as np
    import onnx
    import torch
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(str(path))
    for name, tensor in _constants(model.graph):
        values = onnx.numpy_helper.to_array(tensor)
        is_limit = _consumers(model.graph, name) <= LIMITING and not np.isnan(values).any()
        if weights.is_faulty(values) and not is_limit:
            return f"its weight {name} has values that are nan or infinite"
    names = [output.name for output in model.graph.output]
    with contextlib.suppress(Exception):  # an operator that ONNX's own evaluator does not know
        run = ReferenceEvaluator(model)
        for row in rows:
            inputs = {value.name: _input(value, row) for value in model.graph.input}
            outputs = zip(names, run.run(None, inputs), strict=True)
            if fault := _output_fault({name: torch.as_tensor(np.asarray(array)) for name, array in outputs}):
                return fault
    return ""


def _constants(graph: Any) -> Iterator[tuple[str, Any]]:
    """Yield the constants of an ONNX graph with their names: its initialisers, and the values of its nodes."""
    yield from ((tensor.name, tensor) for tensor in graph.initializer)
    for node in graph.node:
        if node.op_type == "Constant":
            yield from ((node.output[0], value.t) for value in node.attribute if value.name == "value")


def _consumers(graph: Any, name: str) -> set[str]:
    """Return the kinds of operators that take a value of an ONNX graph."""
    return {node.op_type for node in graph.node if name in node.input}


def _input(value: Any, row: Mapping[str, torch.Tensor]) -> np.ndarray:
    """Return the observations that an input of an ONNX file takes: a group of its name, or a group that fits.

    Raises:
        StopIteration: No observations fit.
    """
    import numpy as np
    import onnx

    kind = value.type.tensor_type
    shape = [dim.dim_value or 1 for dim in kind.shape.dim]
    named = row.get({"obs": "policy"}.get(value.name, value.name))
    candidates = [[named]] if named is not None else []
    fitting = next(one[0] for one in (*candidates, *_candidates(row, 1)) if [*one[0].shape] == shape)
    return np.asarray(fitting.numpy(), dtype=onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
