"""The description of skrl for rlnb, which does not import skrl."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import rlnb
from rlnb import Library, Manifest, Problem, RlnbError, hookimpl

INTERVAL = "agent.experiment.checkpoint_interval"
"""Number of timesteps between checkpoints, whose default the backend rounds to whole iterations."""

SKRL = Library(
    name="skrl",
    backend="rlnb_skrl.backend:Skrl",
    agent_key="skrl_cfg_entry_point",
    default_agent="rlnb_skrl:ppo.yaml",
    distributed=True,
    step_unit="timestep",
    logged_at_end=True,
    horizon_key="rollouts",
    overruled={
        "seed": "seed",
        "trainer.timesteps": "max_iterations",
        **dict.fromkeys((f"trainer.{name}" for name in ("close_environment_at_exit", "disable_progressbar")), ""),
        **dict.fromkeys(
            (f"agent.experiment.{name}" for name in ("directory", "experiment_name", "write_interval")), ""
        ),
    },
    adapted=(INTERVAL,),
    checkpoint_glob="checkpoints/*.pt",
    checkpoint_pattern=r"agent_(\d+)\.pt$",
    checkpoint_counts_finished=True,
    checkpoint_unit="timestep",
    saves_when_stopped=True,
    metrics={
        "reward": "Reward / Total reward (mean)",
        "episode_length": "Episode / Total timesteps (mean)",
        "success_rate": "Metrics/success_rate",
        "policy_loss": "Loss / Policy loss",
        "value_loss": "Loss / Value loss",
        "entropy": "Policy / Entropy",
        "learning_rate": "Learning / Learning rate",
        "action_std": "Policy / Standard deviation",
        "fps": "Perf / Frames per second",
        "collection_s": "Perf / Collection time (s)",
        "learning_s": "Perf / Learning time (s)",
    },
    hidden=(r"^Stats / ", r"^Reward / Instantaneous", r" \((min|max)\)$"),
    requires=("skrl>=2.1,<2.2",),
    exports=("torchscript", "onnx"),
)

JAX = dataclasses.replace(
    SKRL,
    name="skrl_jax",
    backend="rlnb_skrl.jax_backend:SkrlJax",
    metrics={**SKRL.metrics, "learning_rate": "Learning / Policy learning rate"},
    requires=("skrl>=2.1,<2.2", "jax>=0.12,<0.13", "flax>=0.12,<0.13", "optax>=0.2.8"),
)
"""The same algorithms and agent configs as ``SKRL``, with the networks in Flax."""

MULTI_AGENT = [
    dataclasses.replace(
        SKRL,
        name=f"skrl_{algorithm}",
        agent_key=f"skrl_{algorithm}_cfg_entry_point",
        default_agent=f"rlnb_skrl:{algorithm}.yaml",
        multi_agent=True,
    )
    for algorithm in ("ippo", "mappo")
]
"""skrl's multi-agent algorithms, each with the agent config that Isaac Lab's tasks register for it."""


@hookimpl
def rlnb_libraries() -> list[Library]:
    return [SKRL, JAX, *MULTI_AGENT]


@hookimpl
def rlnb_check(manifest: Manifest) -> list[Problem]:
    """Return the problems of agent config values that skrl itself would find late, or not at all."""
    several = manifest.library in {library.name for library in MULTI_AGENT}
    if not several and not (manifest.library in (SKRL.name, JAX.name) and INTERVAL in manifest.agent):
        return []
    try:
        worker = {"python": manifest.python, "asset_root": manifest.asset_root}
        card = rlnb.task_card(manifest.task, **worker)
        fields = rlnb.agent(manifest.task, manifest.library, manifest.agent_name, **worker).values
    except RlnbError:
        return []  # rlnb reports this error itself
    field = card.fields.get("state_space")
    state = manifest.task.overrides.get("state_space", field.value if field else None)
    return [*_odd_interval(manifest, fields), *(_missing_state(manifest, state, fields) if several else [])]


def _odd_interval(manifest: Manifest, fields: Mapping[str, object]) -> Iterator[Problem]:
    """Find an interval of checkpoints that ends within an iteration, from where a run does not resume exactly."""
    interval, horizon = manifest.agent.get(INTERVAL), manifest.agent.get("agent.rollouts", fields.get("agent.rollouts"))
    if interval == fields.get(INTERVAL):
        return  # not a request: it appears in every dumped config file
    if isinstance(interval, int) and isinstance(horizon, int) and horizon > 0 and interval % horizon:
        what = f"{INTERVAL}={interval} is not a multiple of agent.rollouts={horizon}, the timesteps of an iteration."
        yield Problem(what=what, fix=f"Use {INTERVAL}={max(1, round(interval / horizon)) * horizon}.")


def _missing_state(manifest: Manifest, state: object, fields: Mapping[str, object]) -> Iterator[Problem]:
    """Find a model that takes the state of a task without one; skrl fails with an unrelated error."""
    models = {path: value for path, value in fields.items() if path.startswith("models.")}
    seeing = [path for path, value in {**models, **manifest.agent}.items() if path in models and "STATES" in str(value)]
    if not seeing or state != 0:
        return
    what = f"{seeing[0]} of {manifest.library} takes the env's state, but {manifest.task.id} has none: state_space=0."
    yield Problem(
        what=what, fix='Use overrides={"state_space": -1} (all observations concatenated) or library="skrl_ippo".'
    )
