"""Checkpoints that Stable-Baselines3 itself has saved, such as those of stock ``isaaclab train``.

They are zip archives (``stable_baselines3.common.save_util``), of which only the weights are read.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecNormalize

from rlnb import RlnbError

SUFFIX = ".zip"


def load_weights(agent: BaseAlgorithm, path: Path, trust: bool) -> None:
    """Load the weights of a policy, and the running statistics of its observations.

    Isaac Lab's script keeps the statistics of VecNormalize in a pickle beside the checkpoint.

    Raises:
        RlnbError: The file is not a checkpoint of such an agent, or the statistics are missing or not trusted.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            policy = io.BytesIO(archive.read("policy.pth"))
        agent.policy.load_state_dict(torch.load(policy, map_location="cpu", weights_only=True))
    except (KeyError, RuntimeError, zipfile.BadZipFile, pickle.UnpicklingError) as exc:
        raise RlnbError(f"{path} is not a checkpoint of PPO as this agent is configured: {exc}") from exc
    normaliser, beside = agent.get_vec_normalize_env(), path.with_name(f"{path.stem}_vecnormalize.pkl")
    if normaliser is None:
        return
    if not beside.exists():
        raise RlnbError(f"This agent has normalize_input=True, but {beside} does not exist.")
    if not trust:
        what = f"This agent has normalize_input=True, whose statistics are in {beside}, a pickle, which runs code."
        raise RlnbError(f"{what} If you know where it comes from, pass trust=True.")
    stored = VecNormalize.load(str(beside), normaliser.venv)
    for own, theirs in ((normaliser.obs_rms, stored.obs_rms), (normaliser.ret_rms, stored.ret_rms)):
        vars(own).update(vars(theirs))
