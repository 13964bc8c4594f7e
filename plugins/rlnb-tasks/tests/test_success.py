"""Success of the stock tasks that log another rate, read from Isaac Lab's own reward term."""

import importlib.util
from types import SimpleNamespace

import pytest
from rlnb_tasks.success import reached


@pytest.mark.isaaclab
def test_reached_is_the_flag_that_the_reward_term_keeps_until_the_reset() -> None:
    if importlib.util.find_spec("isaaclab") is None:
        pytest.skip("isaaclab is not installed here")
    import torch
    from isaaclab.managers import RewardTermCfg
    from isaaclab_tasks.core.lift.mdp.rewards import success_reward

    cfg = RewardTermCfg(func=success_reward, weight=1.0)
    cfg.func = success_reward(cfg, SimpleNamespace(num_envs=3, device="cpu"))
    env = SimpleNamespace(reward_manager=SimpleNamespace(get_term_cfg={"success": cfg}.__getitem__))
    cfg.func.succeeded[1] = True
    flags = reached(env)
    cfg.func.reset(torch.tensor([0, 1, 2]))
    assert flags.tolist() == [False, True, False]
    assert not reached(env).any()
