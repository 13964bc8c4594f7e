"""Values that are not finite, planted in checkpoints and envs: no success, no return and no file comes of them.

python benchmarks/not_finite.py                          # the four libraries
python benchmarks/not_finite.py --libraries rsl_rl sb3   # some of them

For each library a short training on real Isaac Lab gives sound checkpoints, which are changed with torch. The values of
the env are planted by the task itself, in one env and one step.
"""

from __future__ import annotations

import argparse
import dataclasses
import html
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from against_isaaclab import asset_root
from results import record

import rlnb
from rlnb.studies import compare_libraries

LIBRARIES = ("rsl_rl", "rl_games", "skrl", "sb3")
NUM_ENVS, ENV = 4, 2
TASK = """
import os
import torch
from pathlib import Path
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg

FAULT = Path({fault!r})

@configclass
class PlantedCfg(CartpoleEnvCfg):
    episode_length_s = 0.2
    plays = False

    def play_mode(self):
        super().play_mode()
        self.plays = True

class PlantedEnv(CartpoleEnv):
    def _is_planted(self, kind):
        kinds = (kind, f"play {{kind}}") if self.cfg.plays else (kind,)
        return FAULT.exists() and FAULT.read_text() in kinds

    def _env(self):
        return min({env}, self.num_envs - 1)

    def _get_observations(self):
        observations = super()._get_observations()
        if self._is_planted("observation"):
            observations["policy"][self._env(), 1] = float("nan")
        return observations

    def _get_rewards(self):
        reward = super()._get_rewards()
        if self._is_planted("reward"):
            reward[self._env()] = float("nan")
        if self._is_planted("state"):
            ids = torch.tensor([self._env()], device=self.device)
            position = self.cartpole.data.joint_pos.torch[ids].clone()
            position[:, 0] = float("nan")
            self.cartpole.write_joint_position_to_sim_index(position=position, env_ids=ids)
        return reward
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """One attempt to get a result."""

    library: str
    kind: str
    verb: str
    error: str
    """The error; empty if there was a result."""
    place: str
    """Text that the error must have; a sound policy has no error."""

    @property
    def holds(self) -> bool:
        return any(text in self.error for text in self.place.split("|")) if self.kind != "sound" else not self.error


def poisoned(checkpoint: Path, kind: str) -> tuple[Path, str]:
    """Change a copy of a checkpoint; return its path and the name of the first tensor that was changed."""
    import torch

    state = torch.load(checkpoint, map_location="cpu", weights_only=False)
    word = {"weights": "weight", "normaliser": "mean", "action": "weight"}[kind]
    first, changed = "", set()
    for name, tensor in tensors(state):
        if word not in name.lower() or not tensor.is_floating_point() or not tensor.numel():
            continue
        first = first or name
        if tensor.data_ptr() in changed:  # models of skrl share layers
            continue
        changed.add(tensor.data_ptr())
        with torch.no_grad():
            tensor.mul_(1e30) if kind == "action" else tensor.fill_(float("nan"))
    path = checkpoint.with_name(f"{checkpoint.stem}-{kind}{checkpoint.suffix}")
    torch.save(state, path)
    return path, first


def tensors(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the tensors in a checkpoint with the path of their keys."""
    import torch

    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from tensors(inner, f"{name}.{key}" if name else str(key))


def error_of(call: Callable[[], object]) -> str:
    """Return the error of a call; empty if it gives a result."""
    try:
        call()
    except rlnb.RlnbError as exc:
        return str(exc)
    return ""


def files_of(run: rlnb.Run) -> set[Path]:
    """Return the exports and films of a run, and its evaluations."""
    places = [*run.path.glob("exports/**/*"), *run.path.glob("media/*"), *run.path.glob("jobs/*/evaluation.json")]
    return {path for path in places if path.is_file()}


def cells_of(library: str, folder: Path, fault: Path) -> Iterator[Cell]:
    """Yield the cells of a library."""
    task = rlnb.define("Planted", TASK.format(fault=str(fault), env=ENV))
    run = rlnb.train(task, library=library, num_envs=NUM_ENVS, max_iterations=2, device="cpu")
    run.wait(600)
    sound = run.checkpoints[-1]
    verbs: dict[str, Callable[..., object]] = {
        "evaluate": lambda **options: run.evaluate(episodes=NUM_ENVS, num_envs=NUM_ENVS, **options),
        "play": lambda **options: run.play(num_envs=NUM_ENVS, **options),
        "export": run.export,
    }
    for verb in ("evaluate", "export"):
        yield Cell(library=library, kind="sound", verb=verb, error=error_of(verbs[verb]), place="")
    before = files_of(run)
    for kind, text in PLACES.items():
        checkpoint, place = sound, text
        if kind in ("weights", "normaliser", "action"):
            checkpoint, name = poisoned(sound, kind)
            if not name:
                continue  # the library has no normaliser
            place = text or name
        else:
            fault.write_text(kind)
        for verb, call in verbs.items():
            error = error_of(lambda call=call, checkpoint=checkpoint: call(checkpoint=checkpoint))
            yield Cell(library=library, kind=kind, verb=verb, error=error, place=place)
        if kind not in SWEPT:
            fault.unlink(missing_ok=True)
            continue
        objective = lambda trial, checkpoint=checkpoint: verbs["evaluate"](checkpoint=checkpoint).success_rate  # noqa: E731
        yield Cell(library=library, kind=kind, verb="sweep", error=swept(objective, kind), place="No trial")
        fault.unlink(missing_ok=True)
    left = files_of(run) - before
    yield Cell(library=library, kind="all", verb="files", error=f"{len(left)} files", place="0 files")
    yield from of_training(task, library, fault)
    yield from of_comparison(task, library, fault)


def swept(objective: Callable[[rlnb.Run], float], name: str) -> str:
    """Return the error of the best run of a sweep whose objective evaluates a policy that is not finite."""
    sweep = rlnb.sweep(
        "Echo",
        "echo",
        space={"seed": [1]},
        n_trials=1,
        max_iterations=1,
        objective=objective,
        name=f"{name}-{os.urandom(3).hex()}",
    )
    sweep.wait(600)
    return error_of(lambda: sweep.best)


def of_training(task: Any, library: str, fault: Path) -> Iterator[Cell]:
    """Yield the cells of a training that dies of a nan reward: its replay and the advice."""
    fault.write_text("reward")
    run = rlnb.train(task, library=library, num_envs=NUM_ENVS, max_iterations=8, device="cpu")
    error = error_of(lambda: run.wait(600))
    yield Cell(
        library=library, kind="reward", verb="train", error=error, place=f"next: rlnb.get_run({run.id!r}).replay()"
    )
    if run.flight is not None:
        replay = run.replay()
        replay.to()
        outcome = replay.step()
        is_named = "reward" in run.flight.what and not replay.differences
        yield Cell(library=library, kind="reward", verb="replay", error=f"{run.flight.what} {is_named}", place="True")
        replay.close()
        del outcome
    fault.unlink(missing_ok=True)


def of_comparison(task: Any, library: str, fault: Path) -> Iterator[Cell]:
    """Yield the cells of comparisons of libraries, whose evaluations meet a value that no training has met."""
    for kind in ("observation", "reward", "state"):
        fault.write_text(f"play {kind}")
        comparison = compare_libraries(
            task, [library], seeds=1, max_frames=128, num_envs=NUM_ENVS, episodes=NUM_ENVS, device="cpu"
        )
        row = comparison.table().iloc[0]
        is_empty = math.isnan(row["success"]) and math.isnan(row["return"])
        text = html.unescape(comparison._repr_html_())
        yield Cell(library=library, kind=kind, verb="compare", error=text if is_empty else "", place=PLACES[kind])
    fault.unlink()


SWEPT = ("weights", "action", "state")
"""Kinds of values with which a sweep evaluates the policy."""
PLACES = {
    "weights": "",
    "normaliser": "",
    "action": " of the actions is not finite| action",
    "observation": "The observation 'policy' (index 1) is nan in env",
    "reward": "The reward is nan in env",
    "state": "The state 'cartpole.joint_pos' of 'slider_to_cart' is nan in env",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES, help="names of libraries")
    libraries = parser.parse_args().libraries
    cells: list[Cell] = []
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    with tempfile.TemporaryDirectory(prefix="rlnb-not-finite-") as name:
        rlnb.options.root, rlnb.options.warm = Path(name) / "runs", True
        for one in libraries:
            for cell in cells_of(one, Path(name), Path(name) / "fault"):
                cells.append(cell)
                first = cell.error.partition("\n")[0]
                print(f"| {cell.library} | {cell.kind} | {cell.verb} | {cell.holds} | {first[:240]} |", flush=True)
    held = sum(cell.holds for cell in cells)
    what = f"values that are not finite, planted: {', '.join(libraries)}"
    record(what, f"{held} of {len(cells)} cells", "0 successes, 0 files, the place named", held == len(cells))


if __name__ == "__main__":
    main()
