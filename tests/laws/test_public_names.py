"""The public API, name by name. A change of the API must change these lists too."""

from __future__ import annotations

import pytest

import rlnb
import rlnb.backend
import rlnb.tracking

PUBLIC = [
    "AgentConfig",
    "Alert",
    "ArrayLauncher",
    "AssetPack",
    "CameraBudget",
    "Catalog",
    "CheckError",
    "Command",
    "Comparison",
    "Debugger",
    "Diagnosis",
    "ENDED",
    "EnvStep",
    "Evaluation",
    "Finding",
    "Flight",
    "Goodput",
    "GpuFacts",
    "Groups",
    "HostedJob",
    "HostedLauncher",
    "Input",
    "Launcher",
    "LauncherType",
    "Library",
    "LocalLauncher",
    "Manifest",
    "NotFoundError",
    "Panel",
    "Preview",
    "Problem",
    "QueueTable",
    "RemoteLauncher",
    "Replay",
    "Resources",
    "Result",
    "RlnbError",
    "Role",
    "Run",
    "RunError",
    "Runs",
    "ScalingStudy",
    "Simulator",
    "Space",
    "Stop",
    "Sweep",
    "Symptom",
    "Task",
    "TensorBoard",
    "Tuner",
    "Viewer",
    "WorkerError",
    "__version__",
    "agent",
    "camera_budget",
    "check",
    "compare",
    "compare_libraries",
    "debug",
    "define",
    "get_run",
    "get_sweep",
    "goodput",
    "gpu_facts",
    "hookimpl",
    "libraries",
    "make_launcher",
    "options",
    "preview",
    "register",
    "render",
    "replay",
    "report",
    "runs",
    "scaling_study",
    "simulator",
    "sweep",
    "task",
    "task_card",
    "tensorboard",
    "train",
    "tune",
    "verify_determinism",
    "verify_sync",
    "view",
    "watch",
]


BACKEND = sorted(
    [
        "Backend",
        "Evaluating",
        "EvaluationResult",
        "Exporting",
        "Policy",
        "RandomState",
        "TrainContext",
        "export_module",
        "random_state",
        "read_tensors",
        "remove_older",
        "restore_random_state",
        "vet_checkpoint",
        "write_tensors",
        "write_whole",
    ]
)


TRACKING = ["Row", "Tracker", "follow", "main", "outcome"]


def test_the_public_names_are_these_and_sorted() -> None:
    assert rlnb.__all__ == PUBLIC
    assert sorted(PUBLIC) == PUBLIC
    assert dir(rlnb) == PUBLIC


def test_every_public_name_resolves_and_has_a_docstring() -> None:
    values = {name: getattr(rlnb, name) for name in PUBLIC}
    assert [name for name, value in values.items() if value is not getattr(rlnb, name)] == []
    assert [name for name, value in values.items() if not value.__doc__] == []


def test_an_unknown_name_is_an_error_with_the_closest_name() -> None:
    with pytest.raises(AttributeError, match=r"rlnb has no 'trian'.* Did you mean 'train'"):
        rlnb.trian  # noqa: B018


def test_the_public_names_for_backends_are_these() -> None:
    assert rlnb.backend.__all__ == BACKEND
    for name in BACKEND:
        assert getattr(rlnb.backend, name).__doc__


def test_the_public_names_for_trackers_are_these() -> None:
    assert rlnb.tracking.__all__ == TRACKING
    for name in TRACKING:
        assert getattr(rlnb.tracking, name).__doc__
