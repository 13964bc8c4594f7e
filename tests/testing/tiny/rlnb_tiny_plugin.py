"""The registration of the library tiny, and of each of its variants with a fault."""

import dataclasses

from rlnb import Task
from rlnb.plugin import Library, hookimpl

SOUND = Library(
    name="tiny",
    backend="rlnb_tiny:Tiny",
    checkpoint_glob="model_*.json",
    checkpoint_pattern=r"model_(\d+)\.json$",
    saves_when_stopped=True,
    metrics={"reward": "Train/reward", "fps": "Perf/fps"},
    simulator=False,
)
VARIANTS = {
    "InFolders": {"checkpoint_glob": "step_*", "checkpoint_pattern": r"step_(\d+)$", "checkpoint_is_folder": True},
    "NeverResumes": {"resumes": False},
    "CheckpointIgnored": {},
    "WeightsLost": {},
    "OptimiserLost": {},
    "RandomLost": {},
    "SeedIgnored": {},
    "Unseeded": {},
    "InitIgnored": {},
    "StepsWrong": {},
    "FramesWrong": {},
    "TooLong": {},
    "NamedWrong": {},
    "StopIgnored": {},
    "StopUnsaved": {},
    "EvaluationOfFresh": {},
    "EvaluationTrains": {},
    "EvaluationLitters": {},
    "Unlogged": {"metrics": {**SOUND.metrics, "entropy": "Train/entropy"}},
}
"""Fields in which the registration of each variant differs from that of the sound library."""


@hookimpl
def rlnb_libraries() -> list[Library]:
    variants = (
        dataclasses.replace(SOUND, name=name.lower(), backend=f"rlnb_tiny:{name}", **fields)
        for name, fields in VARIANTS.items()
    )
    return [SOUND, *variants]


@hookimpl
def rlnb_tasks() -> list[Task]:
    return [Task(id="Tiny")]
