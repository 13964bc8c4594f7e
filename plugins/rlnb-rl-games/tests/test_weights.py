"""The weights of a checkpoint under the names of compiled modules and of others, on any device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from rlnb_rl_games import weights  # noqa: E402

from rlnb.testing.exports import write_as_on_gpu  # noqa: E402


def module(*, compiles: bool) -> Any:
    """Return a module that holds a network, like RL-Games' central value function."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 1))
    return torch.nn.ModuleDict({"model": torch.compile(network, backend="eager") if compiles else network})


@pytest.mark.parametrize("part", ["model", "assymetric_vf_nets"])
def test_a_checkpoint_of_a_compiled_module_on_a_gpu_is_read_with_plain_names(tmp_path: Path, part: str) -> None:
    path = tmp_path / "rlnb_ep_1.pth"
    torch.save({part: module(compiles=True).state_dict(), "epoch": 1}, path)
    write_as_on_gpu(path)
    state = weights.read(path, "cpu")
    assert (set(state), state["epoch"]) == ({part, "epoch"}, 1)
    assert list(state[part]) == ["model.0.weight", "model.0.bias"]


@pytest.mark.parametrize("compiles", [False, True])
@pytest.mark.parametrize("other", [False, True])
def test_weights_load_into_compiled_modules_and_others(compiles: bool, other: bool) -> None:
    source, target = module(compiles=compiles).state_dict(), module(compiles=other)
    target.load_state_dict(weights.with_names(target.state_dict(), {name: value + 1 for name, value in source.items()}))
    for before, after in zip(source.values(), target.state_dict().values(), strict=True):
        assert torch.equal(after, before + 1)


def test_an_unknown_name_is_left_for_the_module_to_refuse() -> None:
    target = module(compiles=True)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        target.load_state_dict(
            weights.with_names(target.state_dict(), {**target.state_dict(), "other": torch.zeros(1)})
        )


def test_a_state_takes_the_names_of_a_checkpoint_for_a_comparison(tmp_path: Path) -> None:
    path = tmp_path / "rlnb_ep_1.pth"
    torch.save({"model": module(compiles=True).state_dict()}, path)
    state = weights.with_names_in(path, {"model": module(compiles=False).state_dict(), "epoch": 1})
    assert (list(state), state["epoch"]) == (["model", "epoch"], 1)
    assert list(state["model"]) == ["model._orig_mod.0.weight", "model._orig_mod.0.bias"]
