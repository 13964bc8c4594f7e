"""What a task logs and how often it succeeds, as each library's curves show it, beside the task's own count.

python benchmarks/task_logs.py            # all libraries and both parts
python benchmarks/task_logs.py rsl_rl Logged  # this library and task, without rows in RESULTS.md

The task is a cart-pole with short episodes. It writes down each episode that ends, and each number that it logs.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from against_isaaclab import asset_root
from results import record

import rlnb
from rlnb.tasks import source

CODE = '''
import json
import os
from pathlib import Path

import numpy as np
import torch
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg


@configclass
class CountedCfg(CartpoleEnvCfg):
    def __post_init__(self):
        self.episode_length_s = 0.5
        self.max_cart_pos = 0.6
        self.initial_pole_angle_range = [-0.6, 0.6]


class CountedEnv(CartpoleEnv):
    """Writes down what happens. Its own log holds every kind of number, and things that are none."""

    steps = 0
    lines = None

    def note(self, **values):
        if self.lines is None:
            self.lines = open(Path(self.cfg.log_dir or "/tmp") / f"own-{os.getpid()}.jsonl", "w", buffering=1)
        self.lines.write(json.dumps(values) + "\\n")

    def step(self, action):
        if self.steps == 0:
            self.first = self.episode_length_buf.clone()
            self.age = torch.zeros_like(self.episode_length_buf)
        self.steps += 1
        self.age += 1
        return super().step(action)

    def _get_rewards(self):
        x, n = self.steps, self.num_envs
        log = self.extras.setdefault("log", {})
        log |= {
            "Kinds/float": x * 0.5, "Kinds/int": x, "Kinds/bool": x % 4 == 0,
            "Kinds/numpy_float": np.float64(x) * 0.5, "Kinds/numpy_int": np.int32(x),
            "Kinds/numpy_bool": np.bool_(x % 4 == 0),
            "Kinds/array_0d": np.array(x * 0.5), "Kinds/array_vector": np.full(n, x, dtype=np.int64),
            "Kinds/tensor_0d": torch.tensor(x * 0.5, device=self.device), "Kinds/tensor_1": torch.tensor([float(x)]),
            "Kinds/tensor_vector": torch.arange(n, device=self.device) * 2.0 * x / (n - 1),
            "Kinds/tensor_matrix": torch.full((n, 3), float(x), dtype=torch.float64),
            "Kinds/tensor_int": torch.tensor(x), "Kinds/tensor_ints": torch.full((n,), x),
            "Kinds/tensor_bool": torch.tensor(x % 4 == 0), "Kinds/tensor_bools": torch.arange(n) % 4 == x % 4,
            "Kinds/half": torch.tensor(0.5, dtype=torch.float16), "Kinds/list": [x, x + 2],
            "Kinds/empty": torch.zeros(0),
            "plain": x * 0.25, "Kinds/text": "falling", "Kinds/none": None, "Kinds/dict": {"a": 1.0},
            "Kinds/ragged": [[1.0], [1.0, 2.0]], "Kinds/object": object(), 7: float(x),
        }
        if x % 3 == 0:
            log["Kinds/sometimes"] = float(x)
        else:
            log.pop("Kinds/sometimes", None)
        return super()._get_rewards()

    def _reset_idx(self, env_ids):
        if self.steps:
            ids = env_ids.tolist()
            first = self.first[env_ids]
            self.note(
                step=self.steps, ids=ids, success=self.reset_time_outs[env_ids].tolist(),
                whole=((first == 0) & (self.episode_length_buf[env_ids] == self.age[env_ids])).tolist(),
            )
            self.first[env_ids] = 0
            self.age[env_ids] = 0
        super()._reset_idx(env_ids)


def success(env):
    return env.reset_time_outs
'''
OWN = CODE[: CODE.index("def success")]
"""The same task without a function: the success is the rate that the env logs."""
LIBRARIES: Mapping[str, Mapping[str, object]] = {
    "rsl_rl": {},
    "skrl": {},
    "rl_games": {},
    "sb3": {},
    "skrl_jax": {},
    "skrl_sac": {"agent.random_timesteps": 16, "agent.learning_starts": 16},
    "rl_games_sac": {"params.config.num_warmup_steps": 1, "params.config.batch_size": 32},
}
TASKS = ("Counted", "Logged")
NUM_ENVS, ITERATIONS, WINDOW = 16, int(os.environ.get("ITERATIONS", "25")), 100
STEPS = np.arange(1, 10_000)
KINDS = {
    **dict.fromkeys(("Kinds/float", "Kinds/numpy_float", "Kinds/array_0d", "Kinds/tensor_0d"), STEPS * 0.5),
    **dict.fromkeys(("Kinds/int", "Kinds/numpy_int", "Kinds/array_vector", "Kinds/tensor_1", "7"), STEPS * 1.0),
    **dict.fromkeys(
        ("Kinds/tensor_vector", "Kinds/tensor_matrix", "Kinds/tensor_int", "Kinds/tensor_ints"), STEPS * 1.0
    ),
    **dict.fromkeys(("Kinds/bool", "Kinds/numpy_bool", "Kinds/tensor_bool"), STEPS % 4 == 0),
    "Kinds/tensor_bools": np.full(len(STEPS), 0.25),
    "Kinds/half": np.full(len(STEPS), 0.5),
    "Kinds/list": STEPS + 1.0,
    "plain": STEPS * 0.25,
    "Kinds/sometimes": np.where(STEPS % 3 == 0, STEPS, np.nan),
}
"""What the task logs in each step, by name."""
REFUSED = ("text", "none", "dict", "ragged", "object")


def own_rates(run: rlnb.Run, first_step: int = 0) -> list[float]:
    """Return the success rate of each iteration, from the task's own notes; nan before the first whole episode."""
    (notes,) = sorted(run.path.rglob("own-*.jsonl"), key=lambda path: path.stat().st_mtime)[-1:]
    ended = [json.loads(line) for line in notes.read_text().splitlines()]
    horizon = run.started.horizon
    rates = []
    for iteration in range(ITERATIONS):
        whole = [
            success
            for one in ended
            if one["step"] <= (iteration + 1) * horizon
            for success, counts in zip(one["success"], one["whole"], strict=True)
            if counts
        ]
        rates.append(float(np.mean(whole[-WINDOW:])) if whole else float("nan"))
    return rates


def logged_rates(run: rlnb.Run) -> list[float]:
    """Return the same from the run's curve."""
    curve = run.metrics["success_rate"]
    by_iteration = dict(zip(np.round(curve.iterations).astype(int).tolist(), curve.values, strict=True))
    return [by_iteration.get(iteration, float("nan")) for iteration in range(ITERATIONS)]


def agreeing(run: rlnb.Run) -> int:
    """Return the number of iterations whose success rate is the task's own."""
    own, logged = own_rates(run), logged_rates(run)
    same = [bool(np.isclose(a, b, atol=1e-6, equal_nan=True)) for a, b in zip(own, logged, strict=True)]
    if not all(same):
        print("  own   ", np.round(own, 3), "\n  logged", np.round(logged, 3), flush=True)
    values = np.unique(np.array(own)[np.isfinite(own)])
    print(f"  {run.library}: {sum(same)} of {len(same)}, {len(values)} different rates, first {own[:4]}", flush=True)
    return sum(same)


def kinds_logged(run: rlnb.Run) -> int:
    """Return the number of names that the curves show with the right mean in each iteration."""
    horizon, right = run.started.horizon, 0
    for name, steps in KINDS.items():
        expected = np.nanmean(steps[: ITERATIONS * horizon].reshape(ITERATIONS, horizon).astype(float), axis=1)
        tag = next((tag for tag in run.metrics.tags if tag == name or tag.endswith((f"/{name}", f"/ {name}"))), None)
        values = [] if tag is None else run.metrics[tag].values
        if len(values) == len(expected) and np.allclose(values, expected, rtol=1e-5):
            right += 1
        else:
            print(f"  {run.library}: {name} is {values[:3]}, not {expected[:3]}", flush=True)
    return right


def named(run: rlnb.Run) -> int:
    """Return the number of values that are no numbers, and that the log of the run names once."""
    text = "\n".join(path.read_text(errors="replace") for path in run.path.rglob("*.log"))
    return sum(text.count(f'extras["log"]["Kinds/{name}"] is ') == 1 for name in REFUSED)


def main() -> None:
    libraries = [name for name in sys.argv[1:] if name in LIBRARIES] or [*LIBRARIES]
    tasks = [name for name in sys.argv[1:] if name in TASKS] or TASKS
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.warm = False
    source.write_module(rlnb.options.folders, "Counted", CODE, "-")
    source.write_module(rlnb.options.folders, "Logged", OWN, "-")
    rates = kinds = names = runs = 0
    for library in libraries:
        for task in tasks:
            run = rlnb.train(
                task, library=library, num_envs=NUM_ENVS, max_iterations=ITERATIONS, agent=dict(LIBRARIES[library])
            )
            run.wait(600)
            runs += 1
            rates += agreeing(run)
            kinds += kinds_logged(run)
            names += named(run)
    print(rates, runs * ITERATIONS, kinds, runs * len(KINDS), names, runs * len(REFUSED))
    if not sys.argv[1:]:
        record(
            f"success rate of a training, {len(LIBRARIES)} libraries, with a function and with the env's own rate: "
            "iterations whose value is the task's own count over the last 100 whole episodes",
            f"{rates} of {runs * ITERATIONS}",
            "all",
            rates == runs * ITERATIONS,
        )
        record(
            f'numbers in extras["log"]: {len(KINDS)} kinds, {len(LIBRARIES)} libraries, twice each: right in every '
            "iteration",
            f"{kinds} of {runs * len(KINDS)}",
            "all",
            kinds == runs * len(KINDS),
        )
        record(
            f'things in extras["log"] that are no numbers: {len(REFUSED)} kinds, {len(LIBRARIES)} libraries, twice '
            "each: named once, and the training completes",
            f"{names} of {runs * len(REFUSED)}",
            "all",
            names == runs * len(REFUSED),
        )


if __name__ == "__main__":
    main()
