"""The joint outcome of a step of several agents."""

from __future__ import annotations

import pytest

from rlnb.worker.acting import joint

torch = pytest.importorskip("torch")


def test_rewards_of_several_agents_add_up_and_an_episode_ends_when_all_end() -> None:
    reward = {"cart": torch.tensor([1.0, 2.0, 3.0]), "pole": torch.tensor([0.5, 0.5, 0.5])}
    terminated = {"cart": torch.tensor([True, True, False]), "pole": torch.tensor([True, False, False])}
    truncated = {"cart": torch.tensor([False, True, True]), "pole": torch.tensor([False, True, False])}
    total, ended, timed_out = joint(reward, terminated, truncated)
    assert total.tolist() == [1.5, 2.5, 3.5]
    assert ended.tolist() == [True, False, False]
    assert timed_out.tolist() == [False, True, False]
    assert (ended | timed_out).dtype == torch.bool


def test_a_step_of_one_agent_is_unchanged() -> None:
    outcome = torch.tensor([1.0]), torch.tensor([True]), torch.tensor([False])
    assert all(ours is theirs for ours, theirs in zip(joint(*outcome), outcome, strict=True))
