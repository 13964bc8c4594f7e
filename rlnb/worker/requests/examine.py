"""Steps a task for longer than a preview, only to find its mistakes."""

from __future__ import annotations

from rlnb.protocol.requests import Examination, Examine
from rlnb.worker.acting import acting, joint
from rlnb.worker.isaac import isaaclab
from rlnb.worker.requests import endless
from rlnb.worker.requests.preview import begin


def examine(request: Examine) -> Examination:
    """Make the env of a task, step it, and return what is wrong with what it returns."""
    import torch

    with acting(request, lambda env_cfg: None) as (env, act, _):
        obs, sanity = begin(env, isaaclab.task_env(env), request.seed)
        with torch.inference_mode():
            for _ in range(request.steps):
                with endless.ends():
                    obs, *outcome, extras = env.step(act(obs))
                sanity.after_step(obs, *joint(*outcome), extras=extras)
        return Examination(findings=tuple(sanity.findings()))
