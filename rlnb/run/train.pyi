from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from rlnb.configs.agent import AgentArgument
from rlnb.contracts.launchers import Launcher
from rlnb.errors import Problem
from rlnb.run.run import Run
from rlnb.spec import Task
from rlnb.training.arguments import AlertArgument

def train(
    task: Task | str | None = None,
    *,
    script: str | Path | None = None,
    args: Sequence[str] = (),
    library: str | None = None,
    max_iterations: int | None = None,
    max_frames: int | None = None,
    seed: int = 42,
    deterministic: bool = False,
    num_envs: int | None = None,
    agent: AgentArgument = None,
    device: str = "auto",
    nproc_per_node: int | Literal["auto"] | None = None,
    init_from: Run | str | Path | None = None,
    inputs: Mapping[str, Run | str | Path] | None = None,
    trust: bool = False,
    keep: int | None = None,
    film_every: int | None = None,
    alerts: AlertArgument = (),
    launcher: Launcher | None = None,
    python: str | None = None,
    asset_root: str | None = None,
    tags: Sequence[str] = (),
    warm: bool | None = None,
    like: Run | str | Path | None = None,
) -> Run: ...
def check(task: Task | str | None = None, *, deep: bool = False, **arguments: Any) -> list[Problem]: ...
