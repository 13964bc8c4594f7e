"""The registration of the library tiny, and of each of its variants with a fault."""

from rlnb import Library, Task, hookimpl

VARIANTS = (
    "Tiny",
    "CheckpointIgnored",
    "WeightsLost",
    "OptimiserLost",
    "RandomLost",
    "SeedIgnored",
    "Unseeded",
    "InitIgnored",
    "StepsWrong",
    "FramesWrong",
    "TooLong",
    "NamedWrong",
    "StopIgnored",
    "StopUnsaved",
    "EvaluationOfFresh",
    "EvaluationTrains",
)


@hookimpl
def rlnb_libraries() -> list[Library]:
    return [
        Library(
            name=name.lower(),
            backend=f"rlnb_tiny:{name}",
            checkpoint_glob="model_*.json",
            checkpoint_pattern=r"model_(\d+)\.json$",
            saves_when_stopped=True,
            metrics={"reward": "Train/reward", "fps": "Perf/fps"},
            simulator=False,
        )
        for name in VARIANTS
    ]


@hookimpl
def rlnb_tasks() -> list[Task]:
    return [Task(id="Tiny")]
