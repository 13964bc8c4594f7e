"""The export of a policy whose backend has no export of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlnb
from rlnb.worker.jobs.export import export_module, traced


class Plain:
    """A policy that is not a module."""

    def __call__(self, obs: Any) -> Any:
        return obs["policy"]

    def reset(self, dones: Any) -> None: ...


class Env:
    """An env that only returns observations."""

    def __init__(self, *groups: str) -> None:
        self._groups = groups

    def reset(self) -> Any:
        import torch

        return {group: torch.linspace(-1.0, 1.0, 12).reshape(4, 3) for group in self._groups}, {}


def network(act: Callable[[Any, Any, Any], Any]) -> Any:
    """Return a policy with a linear layer and dropout, in train mode; ``act`` computes its actions."""
    import torch

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)
            self.dropout = torch.nn.Dropout(0.5)
            self.calls = 0

        def forward(self, obs: Any) -> Any:
            self.calls += 1
            return act(self, obs.get("policy"), obs)

        def reset(self, dones: Any) -> None: ...

    torch.manual_seed(0)
    return Network().train()


def test_a_module_is_traced_in_eval_mode(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    from rlnb.testing.exports import run_export

    policy = network(lambda self, obs, _: self.dropout(self.linear(obs)))
    written = traced(policy, Env("policy", "critic"), tmp_path, ["torchscript", "onnx"])
    other = torch.randn(7, 3)  # not the number of envs of the trace
    with torch.no_grad():
        expected = policy.linear(other).numpy()
    assert set(written) == {"torchscript", "onnx"}
    for name, path in written.items():
        assert run_export(name, path, other.numpy()) == pytest.approx(expected, abs=1e-6)


def network_of_gpu() -> Any:
    """Return a policy whose weights are elsewhere until it moves to the CPU, as those of a GPU are."""
    import torch

    class Away(torch.nn.Linear):
        def __init__(self) -> None:
            super().__init__(3, 2, device="meta")
            self.values = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])

        def _apply(self, fn: Any, recurse: bool = True) -> Any:
            self.weight = torch.nn.Parameter(fn(self.values))
            self.bias = torch.nn.Parameter(fn(torch.zeros(2)))
            return self

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = Away()

        def forward(self, obs: Any) -> Any:
            return self.linear(obs["policy"] if isinstance(obs, dict) else obs)

        def reset(self, dones: Any) -> None: ...

    return Network().eval()


@pytest.mark.parametrize("has_export", [False, True])
def test_a_policy_of_a_gpu_is_written_for_a_cpu(tmp_path: Path, has_export: bool) -> None:
    torch = pytest.importorskip("torch")

    from rlnb.testing.exports import run_export

    policy, formats = network_of_gpu(), ["torchscript", "onnx"]
    if has_export:
        written = export_module(policy, torch.zeros(1, 3), tmp_path, formats)
    else:
        written = traced(policy, Env("policy"), tmp_path, formats)
    devices = {str(tensor.device) for tensor in torch.jit.load(str(written["torchscript"])).parameters()}
    assert devices == {"cpu"}
    for name, path in written.items():
        actions = run_export(name, path, torch.tensor([[1.0, 2.0, 3.0]]).numpy())
        assert actions.tolist() == [[1.0, 6.0]]


@pytest.mark.parametrize(
    ("act", "groups", "why"),
    [
        (lambda self, obs, _: self.linear(obs) * self.calls, ["policy"], "it keeps a state or samples"),
        (lambda self, obs, _: self.linear(obs) / 0.0, ["policy"], "not finite"),
        (lambda self, obs, _: self.linear(obs if obs[0, 0] < 0 else -obs), ["policy"], "a trace does not record"),
    ],
)
def test_a_module_that_cannot_be_traced_correctly_is_refused(
    tmp_path: Path, act: Any, groups: list[str], why: str
) -> None:
    pytest.importorskip("torch")
    with pytest.raises(rlnb.RlnbError, match=f"cannot be traced: .*{why}"):
        traced(network(act), Env(*groups), tmp_path, ["torchscript", "onnx"])
    assert not list(tmp_path.iterdir())


def test_an_export_that_fails_leaves_no_file(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Bessel(torch.nn.Module):
        """A policy that TorchScript can record, and ONNX cannot."""

        def forward(self, obs: Any) -> Any:
            return torch.special.bessel_j0(obs)

    with pytest.raises(Exception, match="bessel_j0"):
        export_module(Bessel().eval(), torch.zeros(1, 3), tmp_path, ["torchscript", "onnx"])
    assert not list(tmp_path.iterdir())
    assert set(export_module(Bessel().eval(), torch.zeros(1, 3), tmp_path, ["torchscript"])) == {"torchscript"}


def test_a_format_that_tracing_does_not_write_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with pytest.raises(rlnb.RlnbError, match="tracing writes onnx and torchscript, not tflite"):
        traced(network(lambda self, obs, _: self.linear(obs)), Env("policy"), tmp_path, ["onnx", "tflite"])


def test_observations_that_are_not_one_tensor_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")

    class Apart(Env):
        def reset(self) -> Any:
            return {"policy": super().reset()[0]}, {}

    with pytest.raises(rlnb.RlnbError, match="the observation group 'policy' is a dict, not one tensor"):
        traced(network(lambda self, obs, _: self.linear(obs["joints"])), Apart("joints"), tmp_path, ["onnx"])


@pytest.mark.parametrize(
    ("act", "groups", "names"),
    [
        (lambda self, obs, every: self.linear(every["camera"]), ["camera"], ["camera"]),
        (lambda self, obs, every: self.linear(obs - every["depth"]), ["depth", "critic", "policy"], ["depth", "obs"]),
        (lambda self, obs, every: self.linear(sum(every.values())), ["policy", "depth"], ["obs", "depth"]),
    ],
)
def test_the_observation_groups_that_a_policy_reads_are_inputs(
    tmp_path: Path, act: Any, groups: list[str], names: list[str]
) -> None:
    torch = pytest.importorskip("torch")
    import onnxruntime

    from rlnb.testing.exports import run_export

    policy = network(act)
    written = traced(policy, Env(*groups), tmp_path, ["torchscript", "onnx"])
    session = onnxruntime.InferenceSession(str(written["onnx"]))
    assert [source.name for source in session.get_inputs()] == names
    other = {"obs" if group == "policy" else group: torch.randn(7, 3) for group in groups}
    with torch.no_grad():
        expected = policy({"policy" if name == "obs" else name: value for name, value in other.items()}).numpy()
    for name, path in written.items():
        actions = run_export(name, path, {group: other[group].numpy() for group in names})
        assert actions == pytest.approx(expected, abs=1e-6)


def recurrent(cell: str) -> Any:
    """Return a recurrent policy of two observation groups as a module of tensors, and the names of its state."""
    import torch

    class Recurrent(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = getattr(torch.nn, cell)(4, 5, num_layers=2)
            self.out = torch.nn.Linear(5, 2)

        def forward(self, obs: Any, depth: Any, *state: Any) -> Any:
            joined = torch.cat([obs, depth], dim=-1).unsqueeze(0)
            hidden, after = self.cell(joined, state if cell == "LSTM" else state[0])
            return (self.out(hidden[0]), *(after if cell == "LSTM" else [after]))

    torch.manual_seed(0)
    return Recurrent().eval()


@pytest.mark.parametrize(("cell", "names"), [("GRU", ["h"]), ("LSTM", ["h", "c"])])
def test_a_recurrent_policy_acts_over_whole_episodes(tmp_path: Path, cell: str, names: list[str]) -> None:
    torch = pytest.importorskip("torch")
    import onnxruntime

    from rlnb.testing.exports import keeps_state, replay

    steps, envs = 12, 3
    actor, start = recurrent(cell), {name: torch.zeros(2, envs, 5) for name in names}
    example = {"obs": torch.randn(envs, 3), "depth": torch.randn(envs, 1)}
    written = export_module(actor, example, tmp_path, ["torchscript", "onnx"], state=start)
    session = onnxruntime.InferenceSession(str(written["onnx"]))
    assert [source.name for source in session.get_inputs()] == ["obs", "depth", *(f"{name}_in" for name in names)]
    assert [target.name for target in session.get_outputs()] == ["actions", *(f"{name}_out" for name in names)]

    observations = {"obs": torch.randn(steps, envs, 3), "depth": torch.randn(steps, envs, 1)}
    ended = torch.zeros(steps, envs, dtype=torch.bool)
    ended[4, 1] = ended[7, 0] = ended[7, 1] = True
    state, expected = [*start.values()], []
    with torch.no_grad():
        for step in range(steps):
            actions, *state = actor(*(values[step] for values in observations.values()), *state)
            state = [values * ~ended[step][:, None] for values in state]
            expected.append(actions.numpy())
    inputs = {name: values.numpy() for name, values in observations.items()}
    for name, path in written.items():
        assert keeps_state(name, path, len(inputs))
        assert replay(name, path, inputs, ended.numpy()) == pytest.approx(np.stack(expected), abs=1e-6)


def test_a_policy_that_is_not_a_module_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    with pytest.raises(rlnb.RlnbError, match=r"no export .* returns Plain, which is not a torch.nn.Module"):
        traced(Plain(), None, tmp_path, ["onnx"])
    assert not list(tmp_path.iterdir())
