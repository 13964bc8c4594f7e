"""Success of the stock tasks, computed from the env's flags."""

from types import SimpleNamespace

import pytest
from rlnb_tasks.success import balanced, survived


def test_survived_is_a_time_out_that_was_not_also_a_termination() -> None:
    torch = pytest.importorskip("torch")
    env = SimpleNamespace(
        reset_time_outs=torch.tensor([True, True, False, False]),
        reset_terminated=torch.tensor([False, True, True, False]),
    )
    assert survived(env).tolist() == [True, False, False, False]


def test_balanced_is_a_time_out_after_enough_upright_steps() -> None:
    torch = pytest.importorskip("torch")
    env = SimpleNamespace(
        possible_agents=["cart", "pendulum"],
        time_out_dict=dict.fromkeys(["cart", "pendulum"], torch.tensor([True, True, True, False])),
        terminated_dict=dict.fromkeys(["cart", "pendulum"], torch.tensor([False, False, True, False])),
        _consecutive_upright_steps=torch.tensor([60, 59, 60, 60]),
        _success_required_steps=60,
    )
    assert balanced(env).tolist() == [True, False, False, False]
