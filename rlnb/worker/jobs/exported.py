"""The files of an export: complete and finite, or none."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.errors import NotFiniteError
from rlnb.records import weights
from rlnb.storage import entries, files
from rlnb.storage.entries import files_below
from rlnb.worker.acting import actions
from rlnb.worker.flight.guard import Guard
from rlnb.worker.flight.parts import leaves
from rlnb.worker.jobs.checkpoints import PART

if TYPE_CHECKING:
    import numpy as np
    import torch
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
