"""The values behind a mean, found by the mean itself."""

from __future__ import annotations

import contextlib

import pytest

from rlnb.worker.isaac.success import Means

torch = pytest.importorskip("torch")

FLAGS = [True, False, True, True]


def test_the_values_of_a_mean_are_found_by_its_tensor_or_by_the_number_made_of_it() -> None:
    means = Means()
    with torch.inference_mode(), means.noted():
        flags = torch.tensor(FLAGS)
        method, function = flags.float().mean(), torch.mean(flags.float())
        item, number = flags.float().mean().item(), float(flags.float().mean())
    for mean in (method, function, item, number):
        values = means.values_of(mean)
        assert values is not None
        assert values.tolist() == FLAGS


def test_values_that_are_cleared_after_the_mean_are_kept() -> None:
    values = torch.ones(3)
    means = Means()
    with means.noted():
        mean = torch.mean(values[slice(None)])
        values[:] = 0.0
    kept = means.values_of(mean)
    assert kept is not None
    assert kept.tolist() == [1.0, 1.0, 1.0]


def test_an_equal_number_that_is_not_a_mean_has_no_values() -> None:
    means = Means()
    with means.noted():
        mean = torch.tensor(FLAGS).float().mean()
        rows = torch.ones(2, 3).mean(dim=1)
    assert means.values_of(mean + 0.0) is None
    assert means.values_of(mean.item()) is None, "taken after the context"
    assert means.values_of(rows) is None, "means of rows are not one mean"


def test_a_scripted_function_runs_inside_the_context() -> None:
    @torch.jit.script
    def double(values: torch.Tensor) -> torch.Tensor:
        return 2.0 * values

    means = Means()
    with means.noted():
        mean = double(torch.ones(2)).mean()
    kept = means.values_of(mean)
    assert kept is not None
    assert kept.tolist() == [2.0, 2.0]


def test_contexts_in_each_other_note_their_own_means() -> None:
    outer, inner = Means(), Means()
    with contextlib.suppress(ZeroDivisionError), outer.noted():
        with inner.noted():
            first = torch.ones(2).mean().item()
        second = torch.mean(torch.ones(2))
        raise ZeroDivisionError
    third = torch.ones(2).mean()
    assert [means.values_of(first) is not None for means in (outer, inner)] == [True, True]
    assert [means.values_of(second) is not None for means in (outer, inner)] == [True, False]
    assert [means.values_of(third) is not None for means in (outer, inner)] == [False, False]


def test_the_functions_of_torch_act_as_before() -> None:
    with Means().noted():
        pass
    values = torch.tensor([[1.0, 3.0], [5.0, 7.0]])
    assert (values.mean().item(), float(values[0].mean()), torch.mean(values).item()) == (4.0, 2.0, 4.0)
    assert values.mean(dim=1, keepdim=True).tolist() == [[2.0], [6.0]]
    assert torch.mean(values, 0).tolist() == [3.0, 5.0]
    with pytest.raises(RuntimeError, match="dtype"):
        torch.ones(2, dtype=torch.long).mean()

    @torch.jit.script
    def halves(values: torch.Tensor) -> torch.Tensor:
        return torch.mean(values, dim=1) + values.mean()

    assert halves(values).tolist() == [6.0, 10.0]
    assert torch.vmap(lambda row: row.mean())(values).tolist() == [2.0, 6.0]
    assert torch.compile(lambda x: x.mean() + torch.mean(x), backend="eager")(values).item() == 8.0
