"""The hooks that need no heavy imports: the library and its task."""

from rlnb import Task
from rlnb.plugin import Library, hookimpl

ECHO = Library(
    name="echo",
    backend="rlnb_echo.backend:Echo",
    default_agent="rlnb_echo.options:defaults",
    requires=("tensorboard",),
    distributed=True,
    checkpoint_glob="model_*.json",
    checkpoint_pattern=r"model_(\d+)\.json$",
    saves_when_stopped=True,
    metrics={
        "reward": "Train/mean_reward",
        "episode_length": "Train/mean_episode_length",
        "success_rate": "Metrics/success_rate",
        "fps": "Perf/total_fps",
    },
    simulator=False,
)


@hookimpl
def rlnb_libraries() -> list[Library]:
    return [ECHO]


@hookimpl
def rlnb_tasks() -> list[Task]:
    return [Task(id="Echo")]
