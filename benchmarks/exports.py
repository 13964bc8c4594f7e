"""Actions of deterministic policies and of their exports, for every library and every kind of policy.

python benchmarks/exports.py                       # all cases, and the rows in RESULTS.md
python benchmarks/exports.py --case skrl/discrete  # one of them, without a row

Each case trains for some iterations. A rollout of ``evaluate(record=...)`` holds the actions that the env got. The
files of the export have to give the same ones for its observations, and sampled actions have to spread around them.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from results import record

import rlnb
from rlnb.results import Evaluation
from rlnb.testing import run_export

ROWS, ENVS, EPISODES, SEED = 400, 4, 4, 1
TOLERANCE = 1e-5
SPREAD = 5.0
"""Largest mean difference of sampled actions from the most likely ones, in standard errors."""
MARL = "Isaac-Pendulum-MARL-Direct"
SHOWCASE = "IsaacContrib-Cartpole-Showcase-Direct"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A library and a kind of policy."""

    library: str
    task: str = "Isaac-Cartpole"
    presets: tuple[str, ...] = ()
    agent: Any = None
    iterations: int = 2
    clips: bool = False
    """Whether actions are clipped or squashed, so that their mean says nothing."""
    samples: bool = True
    """Whether the policy has a distribution."""


CLIP = {"models.policy.clip_actions": True}
FREE = {"+params.config.clip_actions": False, "params.env.clip_actions": 0.01}
TANH = {"params.model.name": "continuous_a2c_tanh"}
STATE_STD = {"actor.distribution_cfg.class_name": "HeteroscedasticGaussianDistribution"}
CASES = {
    "rsl_rl/gaussian": Case(library="rsl_rl"),
    "rsl_rl/clipped": Case(library="rsl_rl", agent={"clip_actions": 0.05}, clips=True),
    "rsl_rl/std of the state": Case(library="rsl_rl", agent=STATE_STD),
    "skrl/gaussian": Case(library="skrl"),
    "skrl/clipped": Case(library="skrl", task=SHOWCASE, agent=CLIP, clips=True),
    "skrl/discrete": Case(library="skrl", task=SHOWCASE, presets=("box_discrete",)),
    "skrl/multi-discrete": Case(library="skrl", task=SHOWCASE, presets=("box_multidiscrete",)),
    "skrl/discrete of discrete": Case(library="skrl", task=SHOWCASE, presets=("discrete_discrete",)),
    "skrl/multi-discrete of multi-discrete": Case(
        library="skrl", task=SHOWCASE, presets=("multidiscrete_multidiscrete",)
    ),
    "skrl_jax/gaussian": Case(library="skrl_jax"),
    "skrl_jax/discrete": Case(library="skrl_jax", task=SHOWCASE, presets=("box_discrete",)),
    "skrl_jax/multi-discrete": Case(library="skrl_jax", task=SHOWCASE, presets=("box_multidiscrete",)),
    "skrl_sac/squashed": Case(library="skrl_sac", iterations=8, clips=True),
    "skrl_td3/deterministic": Case(library="skrl_td3", iterations=8, clips=True),
    "skrl_mappo/gaussian": Case(library="skrl_mappo", task=MARL),
    "skrl_ippo/gaussian": Case(library="skrl_ippo", task=MARL),
    "rl_games/gaussian": Case(library="rl_games", clips=True),
    "rl_games/clipped by the env alone": Case(library="rl_games", agent=FREE, clips=True),
    "rl_games/tanh": Case(library="rl_games", agent=TANH, clips=True),
    "rl_games_sac/squashed": Case(library="rl_games_sac", iterations=8, clips=True),
    "sb3/gaussian": Case(library="sb3"),
    "sb3/squashed": Case(
        library="sb3", agent={"policy_kwargs.squash_output": True, "+use_sde": True}, clips=True, iterations=2
    ),
    "sb3/multi-discrete": Case(library="sb3", task=SHOWCASE, presets=("box_multidiscrete",), agent="generic"),
}


def problems(case: Case) -> Iterator[str]:
    """Run a case, and describe each difference."""
    task = rlnb.task(case.task, presets=case.presets) if case.presets else rlnb.task(case.task)
    run = rlnb.train(
        task, library=case.library, agent=case.agent, max_iterations=case.iterations, num_envs=64, device="cpu"
    ).wait()
    arguments: dict[str, Any] = {"num_envs": ENVS, "record": ROWS, "seed": SEED}
    taken, sampled = (_rollout(run.evaluate(EPISODES, deterministic=mode, **arguments)) for mode in (True, False))
    exports = run.export()
    expected = set(rlnb.hooks.plugins.library(case.library).exports)
    if {name.rpartition("/")[2] for name in exports} != expected:
        yield f"formats are {sorted(exports)}"
    for name, path in exports.items():
        agent, _, kind = name.rpartition("/")
        yield from _differences(name, kind, path, _of(taken, agent), _of(sampled, agent), case)


def _rollout(evaluation: Evaluation) -> Mapping[str, np.ndarray]:
    assert evaluation.rollout is not None
    with np.load(evaluation.rollout) as columns:
        return dict(columns)


def _of(rollout: Mapping[str, np.ndarray], agent: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the observations and the actions of an agent; of the only one if its name is empty."""
    return rollout[f"obs.{agent or 'policy'}"], rollout[f"actions.{agent}" if agent else "actions"]


def _differences(
    name: str,
    kind: str,
    path: Path,
    taken: tuple[np.ndarray, np.ndarray],
    sampled: tuple[np.ndarray, np.ndarray],
    case: Case,
) -> Iterator[str]:
    """Describe what an export gives for the observations of two rollouts, where it differs from their actions."""
    (obs, actions), (other, samples) = taken, sampled
    exported = run_export(kind, path, obs.reshape(len(obs), -1))
    if exported.shape != actions.shape:
        yield f"{name}: shape {exported.shape} instead of {actions.shape}"
        return
    if (worst := float(np.abs(exported - actions).max())) > TOLERANCE:
        yield f"{name}: differs by up to {worst:.3g}"
    rest = samples - run_export(kind, path, other.reshape(len(other), -1))
    if case.samples and case.library != "skrl_td3" and float(np.abs(rest).max()) < TOLERANCE:
        yield f"{name}: deterministic=False does not sample"
    if np.issubdtype(actions.dtype, np.integer) or "discrete" in "".join(case.presets).partition("_")[2]:
        choices = 1 + np.round(samples).max(axis=0)
        if ((rest == 0).mean(axis=0) < 1 / choices).any():
            yield f"{name}: sampled actions are mostly others"
    elif not case.clips:
        errors = rest.std(axis=0) / np.sqrt(len(rest))
        if (off := np.abs(rest.mean(axis=0)) / errors).max() > SPREAD:
            yield f"{name}: sampled actions are {off.max():.1f} standard errors off"


def main() -> None:
    """Run the cases, and write the row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, action="append")
    chosen = parser.parse_args().case
    rlnb.options.root = os.environ.get("RLNB_ROOT") or tempfile.mkdtemp()
    good = []
    for name in chosen or CASES:
        try:
            found = [*problems(CASES[name])]
        except Exception as exc:  # a case that fails is one that differs
            found = [f"{type(exc).__name__}: {exc}"]
        print(f"{name}: {'; '.join(found) or 'equal'}", flush=True)
        good += [name] * (not found)
    if not chosen:
        record(
            "deterministic actions are the most likely ones and those of both exports, by library and kind of policy",
            f"{len(good)} of {len(CASES)}",
            f"{len(CASES)} of {len(CASES)}, to {TOLERANCE:g}",
            len(good) == len(CASES),
        )


if __name__ == "__main__":
    main()
