"""Agreement of rlnb's success with the success rate that the envs log, and the source of success of every task.

python benchmarks/success.py                     # the tasks of CASES whose files exist, 256 episodes each
python benchmarks/success.py --case Isaac-Ant    # one of them, without a row in RESULTS.md
python benchmarks/success.py --sources           # every registered task, from configs and source code alone

The actions are random. The configs of CASES are changed so that some episodes succeed and others do not.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from against_isaaclab import asset_root
from results import record

import rlnb

EPISODES, NUM_ENVS, SEED = 256, 64, 1
TOLERANCE = 0.02
TASKS_AT_LEAST, SOURCES_AT_LEAST = 10, 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A task with changes that let some of its episodes succeed."""

    overrides: Mapping[str, Any]
    """Changed values of the env config, by dotted path."""
    scale: float = 1.0
    """Largest size of a random action."""
    presets: tuple[str, ...] = ()
    """Isaac Lab's presets."""


SHORT = {"episode_length_s": 0.5}
RAIL = {**SHORT, "max_cart_pos": 0.8}
RAIL_TERM = {**SHORT, "terminations.cart_out_of_bounds.params.bounds": [-0.8, 0.8]}
BALANCE = {
    "episode_length_s": 0.4,
    "success_upright_angle": 1.2,
    "success_duration_s": 0.05,
    "max_cart_pos": 20.0,
    "initial_pole_angle_range": [-0.02, 0.02],
    "initial_pendulum_angle_range": [-0.02, 0.02],
}
TURN = {"episode_length_s": 0.2, "success_tolerance": 1.5}
TURN_TERM = {"episode_length_s": 0.2, "commands.object_pose.orientation_success_threshold": 1.5}
REACH = {
    "episode_length_s": 1.0,
    "commands.ee_pose.position_success_threshold": 0.3,
    "commands.ee_pose.orientation_success_threshold": 1.5,
}
WALK = {
    "episode_length_s": 0.5,
    "commands.base_velocity.vel_xy_success_threshold": 0.8,
    "commands.base_velocity.vel_yaw_success_threshold": 0.8,
}
NEWTON = ("newton_renderer",)
CASES = {
    "Isaac-Cartpole-Direct": Case(overrides=RAIL),
    "Isaac-Cartpole-Camera-Direct": Case(overrides=RAIL, presets=NEWTON),
    "Isaac-Cartpole": Case(overrides=RAIL_TERM),
    "Isaac-Cartpole-Camera": Case(overrides=RAIL_TERM, presets=NEWTON),
    "IsaacContrib-Cartpole-Showcase-Direct": Case(overrides=RAIL),
    "Isaac-Pendulum-MARL-Direct": Case(overrides=BALANCE, scale=0.3),
    "Isaac-Ant-Direct": Case(overrides={**SHORT, "termination_height": 0.44}),
    "Isaac-Ant": Case(overrides={**SHORT, "terminations.torso_height.params.minimum_height": 0.44}),
    "Isaac-Humanoid-Direct": Case(overrides=SHORT),
    "Isaac-Humanoid": Case(overrides=SHORT),
    "Isaac-Reorient-Cube-Shadow-Direct": Case(overrides=TURN),
    "Isaac-Reorient-Cube-Shadow-Camera-Direct": Case(overrides=TURN, presets=NEWTON),
    "Isaac-Reorient-Cube-Shadow": Case(overrides=TURN_TERM),
    "Isaac-Reorient-Cube-Shadow-Camera": Case(overrides=TURN_TERM, presets=NEWTON),
    "IsaacContrib-Reorient-Cube-Shadow-Camera-Benchmark-Direct": Case(overrides=TURN, presets=NEWTON),
    "IsaacContrib-Reorient-Cube-Shadow-OpenAI-FF-Direct": Case(overrides=TURN),
    "IsaacContrib-Reorient-Cube-Shadow-OpenAI-LSTM-Direct": Case(overrides=TURN),
    "Isaac-Shadow-Handover-Direct": Case(
        overrides={"episode_length_s": 0.2, "success_distance_threshold": 0.35, "success_steps_required": 3}
    ),
    "Isaac-Shadow-Handover": Case(
        overrides={"episode_length_s": 0.6, "commands.object_pose.success_distance_threshold": 0.4}
    ),
    "Isaac-Reach-Franka": Case(overrides=REACH),
    "Isaac-Reach-Franka-OSC": Case(overrides=REACH, scale=0.2),
    "Isaac-Velocity-Flat-UnitreeGo2": Case(overrides=WALK),
    "Isaac-Velocity-Rough-UnitreeGo2": Case(overrides=WALK),
}
"""The last four need the robots of ``rlnb assets build --robots``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """The success of the same episodes, as rlnb and as the env have it."""

    task: str
    source: str
    """Source that rlnb took."""
    episodes: int
    own: float | None
    """rlnb's success rate."""
    logged: float | None
    """The env's own: the mean of the logged rates, weighted with the number of envs that were reset."""
    shares: int
    """Number of episodes whose success is neither 0 nor 1."""

    @property
    def holds(self) -> bool:
        return self.own is not None and self.logged is not None and abs(self.own - self.logged) <= TOLERANCE


def agreement(name: str, case: Case, episodes: int = EPISODES, num_envs: int = NUM_ENVS) -> Agreement:
    """Run random actions until so many episodes have ended, and compare the two rates of all of them."""
    import torch

    from rlnb.worker.isaac import isaaclab
    from rlnb.worker.isaac.env import environment
    from rlnb.worker.isaac.success import Successes
    from rlnb.worker.jobs.evaluate import Episodes

    isaaclab.start()
    task = rlnb.task(name, num_envs=num_envs, overrides=case.overrides, presets=case.presets)
    with environment(task, None, seed=SEED, device="cpu") as (env, _), torch.inference_mode():
        raw = isaaclab.task_env(env)
        successes = Successes(raw, isaaclab.register(task))
        counter, log = Episodes(raw, episodes, successes), Log(raw)
        env.reset(seed=SEED)
        isaaclab.around_reset(raw, log.reading)  # inside rlnb's own, which takes the rate out of the log
        isaaclab.around_reset(raw, counter.ending)
        while log.episodes < episodes:
            env.step(random_actions(raw, case.scale))
            no_env = torch.zeros(num_envs, dtype=torch.bool)
            counter.stepped(torch.zeros(num_envs), no_env, no_env)
        values = successes.values
        return Agreement(
            task=name,
            source=successes.source,
            episodes=log.episodes,
            own=None if values is None else sum(values) / len(values),
            logged=log.rate,
            shares=sum(value not in (0.0, 1.0) for value in values or ()),
        )


class Log:
    """The success rate that an env logs, over all episodes that end."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._sum: float | None = 0.0
        self.episodes = 0

    @property
    def rate(self) -> float | None:
        return None if self._sum is None else self._sum / self.episodes

    @contextlib.contextmanager
    def reading(self, env_ids: Any) -> Iterator[None]:
        """Read the rate right after the reset, before anything else can change the log."""
        yield
        rate = self._env.extras.get("log", {}).get("Metrics/success_rate")
        self.episodes += len(env_ids)
        self._sum = None if rate is None or self._sum is None else self._sum + float(rate) * len(env_ids)


def random_actions(env: Any, scale: float) -> Any:
    """Return uniform random actions, by agent if there are several."""
    import torch

    if hasattr(env, "possible_agents"):
        return {
            agent: scale * (2 * torch.rand(env.num_envs, space.shape[-1]) - 1)
            for agent, space in env.action_spaces.items()
        }
    return scale * (2 * torch.rand(env.action_space.shape) - 1)


# -- the source of every registered task ---------------------------------------------------------------

LOGGED = "Metrics/success_rate"
OF_START_STATES = "conditional_reset"
"""Event term that logs the rate of a bank of start states under the same name, over the rate of the episodes."""


def sources() -> dict[str, str]:
    """Return the source that an evaluation of each registered task would take, without making its env.

    ``Metrics/success_rate`` means that the code of the env, or of one of the config's terms, logs it.
    """
    from rlnb.worker.isaac import env, isaaclab
    from rlnb.worker.isaac.success import source_in_config

    isaaclab.start()
    found = {}
    for name in isaaclab.task_ids():
        task = rlnb.task(name)
        try:
            registered = isaaclab.register(task)
            env_cfg = env.resolve_config(task, registered)
            logs = any(map(_logs, (*_env_classes(name), *_term_classes(env_cfg))))
            found[name] = source_in_config(registered, env_cfg) or (LOGGED if logs else "none")
        except Exception as exc:  # a task may need packages that are not installed
            found[name] = f"does not resolve: {type(exc).__name__}: {exc}".splitlines()[0]
    return found


def _env_classes(name: str) -> Iterator[type]:
    import gymnasium

    entry = gymnasium.spec(name).entry_point
    if isinstance(entry, str):
        module, _, attribute = entry.partition(":")
        entry = getattr(importlib.import_module(module), attribute)
    yield from inspect.getmro(entry)  # type: ignore[arg-type]


def _term_classes(env_cfg: Any) -> Iterator[type]:
    """Return the classes of the config's terms, without those whose thresholds of success are all None."""
    for group in ("rewards", "curriculum", "commands", "events", "terminations"):
        for term in vars(getattr(env_cfg, group, None) or object).values():
            cls = getattr(term, "class_type", None) or getattr(term, "func", None)
            if isinstance(cls, str):
                module, _, attribute = cls.partition(":")
                cls = getattr(importlib.import_module(module), attribute)
            fields = {**getattr(term, "__dict__", {}), **(getattr(term, "params", None) or {})}
            thresholds = [value for key, value in fields.items() if key.endswith("success_threshold")]
            if inspect.isclass(cls) and (not thresholds or any(value is not None for value in thresholds)):
                yield from inspect.getmro(cls)


def _logs(cls: type) -> bool:
    if cls.__name__ == OF_START_STATES or cls.__module__ == "builtins":
        return False
    try:
        return f'"{LOGGED}"' in inspect.getsource(cls)
    except (OSError, TypeError):
        return False


# -- the rows ------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--sources", action="store_true")
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    if arguments.sources:
        record_sources()
    elif arguments.case:
        print("AGREEMENT", json.dumps(asdict(agreement(arguments.case, CASES[arguments.case], arguments.episodes))))
    else:
        record_agreements()


def record_agreements() -> None:
    """Run each case in a process of its own, since a process keeps the memory of its envs."""
    count = 0
    for name in CASES:
        child = subprocess.run([sys.executable, __file__, "--case", name], capture_output=True, text=True, check=False)
        rows = [line for line in child.stdout.splitlines() if line.startswith("AGREEMENT ")]
        if not rows:
            print(f"{name}: no result. {(child.stderr.splitlines() or ['no error'])[-1]}", flush=True)
            continue
        result = Agreement(**json.loads(rows[0].partition(" ")[2]))
        count += result.holds
        record(
            f"success of {name}, {EPISODES} episodes or more of random actions",
            f"{_rate(result.own)} by {result.source or 'no source'}, {_rate(result.logged)} as the env logs it; "
            f"{result.shares} of {result.episodes} episodes between 0 and 1",
            f"within {TOLERANCE}",
            result.holds,
        )
    record(
        "tasks whose success agrees with their own rate", str(count), f">= {TASKS_AT_LEAST}", count >= TASKS_AT_LEAST
    )


def _rate(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"


def record_sources() -> None:
    table = sources()
    for name, source in table.items():
        print(f"{name}: {source}")
    kinds = Counter(
        source if source in (LOGGED, "terminations.success", "none") else source.partition(":")[0]
        for source in table.values()
    )
    known = sum(count for source, count in kinds.items() if source not in ("none", "does not resolve"))
    listed = ", ".join(f"{count} {source}" for source, count in kinds.most_common())
    record(
        f"registered tasks with a success, of {len(table)}, from configs and source code",
        f"{known}: {listed}",
        f">= {SOURCES_AT_LEAST}",
        known >= SOURCES_AT_LEAST,
    )


if __name__ == "__main__":
    main()
