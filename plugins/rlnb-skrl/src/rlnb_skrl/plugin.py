"""The description of skrl for rlnb, which does not import skrl."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import rlnb
from rlnb import RlnbError
from rlnb.plugin import Library, Manifest, Problem, hookimpl
from rlnb_skrl.companions import BUFFER

ITERATION = "agent.experiment.write_interval"
"""Number of timesteps in an iteration of an off-policy algorithm."""
SHORTEST = 2
"""Fewest timesteps of an iteration, because skrl writes nothing after the first timestep."""
CLASS = "agent.class"
"""Name of the algorithm."""
INTERVAL = "agent.experiment.checkpoint_interval"
"""Number of timesteps between checkpoints, whose default the backend rounds to whole iterations."""


def last_iteration(number: int, horizon: int) -> float:
    """Return the last iteration, from 0, of a checkpoint. skrl names it by the number of finished timesteps."""
    return number / horizon - 1


SKRL = Library(
    name="skrl",
    backend="rlnb_skrl.backend:Skrl",
    positive={
        "agent.rollouts": None,
        "agent.learning_epochs": None,
        "agent.mini_batches": 1,
        "agent.batch_size": None,
        "agent.gradient_steps": None,
    },
    sizes="rlnb_skrl.sizes:problems",
    agent_key="skrl_cfg_entry_point",
    default_agent="rlnb_skrl:ppo.yaml",
    fitted_agent="rlnb_skrl.fitted:ppo",
    spaces="rlnb_skrl.spaces:problems",
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
    handed_over={CLASS: {"IPPO": "skrl_ippo", "MAPPO": "skrl_mappo"}},
    checkpoint_glob="checkpoints/*.pt",
    checkpoint_pattern=r"agent_(\d+)\.pt$",
    stock_checkpoints=(r"^best_agent\.pt$", r"agent_(\d+)\.pt$"),
    checkpoint_iteration=last_iteration,
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
    fitted_agent="",  # the export of Flax networks has no CNN
    metrics={**SKRL.metrics, "learning_rate": "Learning / Policy learning rate"},
    requires=("skrl>=2.1,<2.2", "jax>=0.11,<0.13", "flax>=0.12,<0.13", "optax>=0.2.8"),
)
"""The same algorithms and agent configs as ``SKRL``, with the networks in Flax."""

MULTI_AGENT = [
    dataclasses.replace(
        SKRL,
        name=f"skrl_{algorithm}",
        agent_key=f"skrl_{algorithm}_cfg_entry_point",
        default_agent=f"rlnb_skrl:{algorithm}.yaml",
        fitted_agent="",
        handed_over={},
        multi_agent=True,
    )
    for algorithm in ("ippo", "mappo")
]
"""skrl's multi-agent algorithms, each with the agent config that Isaac Lab's tasks register for it."""

OFF_POLICY = [
    dataclasses.replace(
        SKRL,
        name=f"skrl_{algorithm}",
        agent_key=f"skrl_{algorithm}_cfg_entry_point",
        default_agent=f"rlnb_skrl:{algorithm}.yaml",
        fitted_agent="",
        distributed=False,
        horizon_key="write_interval",
        overruled={path: argument for path, argument in SKRL.overruled.items() if path != ITERATION},
        adapted=(INTERVAL, "memory.memory_size"),
        checkpoint_companions=(f"{{stem}}{BUFFER}",),
        metrics={
            **{name: tag for name, tag in SKRL.metrics.items() if name not in missing},
            "critic_loss": "Loss / Critic loss",
            "buffer_size": "Memory / Transitions",
            **more,
        },
    )
    for algorithm, missing, more in (
        ("sac", {"value_loss"}, {"temperature": "Coefficient / Entropy coefficient"}),
        ("td3", {"value_loss", "entropy", "action_std"}, {}),
    )
]
"""skrl's off-policy algorithms, with the entry points that Isaac Lab's training script reads for them."""


@hookimpl
def rlnb_libraries() -> list[Library]:
    return [SKRL, JAX, *MULTI_AGENT, *OFF_POLICY]


@hookimpl
def rlnb_check(manifest: Manifest) -> list[Problem]:
    """Return the problems of agent config values that skrl itself would find late, or not at all."""
    several = manifest.library in {library.name for library in MULTI_AGENT}
    checked = {CLASS, INTERVAL, ITERATION} & manifest.agent.keys()
    if not several and not (checked and manifest.library in {library.name for library in rlnb_libraries()}):
        return []
    try:
        worker = {"python": manifest.python, "asset_root": manifest.asset_root}
        task = rlnb.Task.of(manifest.task)
        card, agent = task.card(**worker), task.agent(manifest.library, manifest.agent_name, **worker)
    except RlnbError:
        return []  # rlnb reports this error itself
    fields, field = agent.values, card.fields.get("state_space")
    state = manifest.task.overrides.get("state_space", field.value if field else None)
    problems = [*_other_algorithm(manifest, fields), *_odd_interval(manifest, fields)]
    return [*problems, *(_missing_state(manifest, state, fields) if several else [])]


def _other_algorithm(manifest: Manifest, fields: Mapping[str, object]) -> Iterator[Problem]:
    """Find an algorithm other than that of the agent config, whose networks and settings do not fit it."""
    wish, usual = str(manifest.agent.get(CLASS, fields.get(CLASS))), str(fields.get(CLASS))
    if wish.upper() != usual.upper():
        library = next((one.name for one in rlnb_libraries() if one.name == f"skrl_{wish.lower()}"), None)
        fix = f'Use library="{library}".' if library else "Use agent= with an agent config of the task for it."
        yield Problem(
            what=f"{CLASS}={wish!r} does not fit the agent config of {manifest.library}, which is for {usual}.", fix=fix
        )


def _odd_interval(manifest: Manifest, fields: Mapping[str, object]) -> Iterator[Problem]:
    """Find an iteration without a length, or an interval of checkpoints that ends within an iteration.

    A run does not resume exactly from a checkpoint within an iteration.
    """
    path = "agent.rollouts" if "agent.rollouts" in fields else ITERATION
    interval, horizon = manifest.agent.get(INTERVAL), manifest.agent.get(path, fields.get(path))
    if path == ITERATION and path in manifest.agent and (not isinstance(horizon, int) or horizon < SHORTEST):
        what = f"{path}={horizon!r} is not a number of timesteps, which are one iteration of {manifest.library}."
        yield Problem(what=what, fix=f"Use {path}={fields.get(path)}, or another number from {SHORTEST}.")
    if interval == fields.get(INTERVAL):
        return  # not a request: it appears in every dumped config file
    if isinstance(interval, int) and isinstance(horizon, int) and horizon > 0 and interval % horizon:
        what = f"{INTERVAL}={interval} is not a multiple of {path}={horizon}, the timesteps of an iteration."
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
