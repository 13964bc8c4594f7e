"""Types for the parts of RL-Games' agent config that this plugin uses. The keys are RL-Games' and Isaac Lab's own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NotRequired, TypedDict


class AgentConfig(TypedDict):
    """The whole agent config."""

    params: Params


class Params(TypedDict):
    """The argument of RL-Games' runner."""

    algo: Algorithm
    model: NotRequired[Model]
    config: Settings
    network: Collection[str]
    """Names of the network's parts; a recurrent network has ``"rnn"``."""
    env: NotRequired[EnvSettings]
    seed: int
    torch_threads: NotRequired[int]


class Algorithm(TypedDict):
    """The name of the algorithm."""

    name: str


class Model(TypedDict):
    """The name of the model, which decides the policy's distribution."""

    name: str


class EnvSettings(TypedDict, total=False):
    """Settings of Isaac Lab's env wrapper."""

    obs_groups: Mapping[str, Sequence[str]] | None
    concate_obs_groups: bool
    clip_observations: float
    clip_actions: float


class CentralValue(TypedDict, total=False):
    """Settings of a central value function, which all agents share."""

    minibatch_size: int


class Settings(TypedDict, total=False):
    """Settings of the training."""

    horizon_length: int
    num_steps_per_episode: int
    minibatch_size: int
    seq_length: int
    central_value_config: CentralValue | None
    max_epochs: int
    num_actors: int
    device: str
    device_name: str
    torch_compile: bool
    print_stats: bool
    lr_schedule: str | None
    train_dir: str
    full_experiment_name: str
    env_info: object
