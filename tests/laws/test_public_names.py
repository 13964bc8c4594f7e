"""The public API, name by name. A change of the API must change these lists too."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import rlnb
import rlnb.tracking

PUBLIC = [
    "CheckError",
    "NotFoundError",
    "RlnbError",
    "Run",
    "RunError",
    "Runs",
    "Task",
    "WorkerError",
    "__version__",
    "camera_budget",
    "check",
    "compare",
    "debug",
    "define",
    "get_run",
    "libraries",
    "options",
    "preview",
    "register",
    "report",
    "runs",
    "simulator",
    "sweep",
    "task",
    "train",
    "tune",
    "view",
    "watch",
]
LAUNCHERS = [
    "ArrayLauncher",
    "DetachedJob",
    "DetachedLauncher",
    "Launcher",
    "LauncherType",
    "LocalLauncher",
    "QueueTable",
    "RemoteLauncher",
    "Resources",
    "RunIndex",
    "make_launcher",
]
PLUGIN = [
    "Argument",
    "AssetPack",
    "Command",
    "ENDED",
    "GpuFacts",
    "Input",
    "Library",
    "Manifest",
    "Panel",
    "Problem",
    "Result",
    "Role",
    "Space",
    "TRAIN_ARGUMENTS",
    "gpu_facts",
    "hookimpl",
    "recorded_arguments",
]
RESULTS = [
    "AgentConfig",
    "Alert",
    "Archiving",
    "CameraBudget",
    "CameraFeed",
    "Checkpoints",
    "Comparison",
    "Debugger",
    "Determinism",
    "Diagnosis",
    "EnvStep",
    "Evaluation",
    "Finding",
    "Flight",
    "Goodput",
    "Groups",
    "JobRecord",
    "Lineage",
    "LineageRun",
    "LiveView",
    "Manifest",
    "Metrics",
    "Notes",
    "Preview",
    "Progress",
    "Pruning",
    "Replay",
    "Restart",
    "Result",
    "RunSummary",
    "ScalingStudy",
    "Shortage",
    "Simulator",
    "SourceDiff",
    "Started",
    "Stop",
    "Sweep",
    "Symptom",
    "Synchronisation",
    "Tags",
    "TaskCard",
    "TensorBoard",
    "Tuner",
    "Video",
    "Viewer",
    "Waits",
]
STUDIES = [
    "compare_libraries",
    "get_sweep",
    "scaling_study",
    "verify_determinism",
    "verify_sync",
]
MOVED = [
    "AgentConfig",
    "Alert",
    "ArrayLauncher",
    "AssetPack",
    "CameraBudget",
    "Catalog",
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
    "Panel",
    "Preview",
    "Problem",
    "QueueTable",
    "RemoteLauncher",
    "Replay",
    "Resources",
    "Result",
    "Role",
    "ScalingStudy",
    "Simulator",
    "Space",
    "Stop",
    "Sweep",
    "Symptom",
    "TensorBoard",
    "Tuner",
    "Viewer",
    "agent",
    "compare_libraries",
    "get_sweep",
    "goodput",
    "gpu_facts",
    "hookimpl",
    "make_launcher",
    "render",
    "replay",
    "scaling_study",
    "task_card",
    "tensorboard",
    "verify_determinism",
    "verify_sync",
]
"""Names that stood at the top before."""


BACKEND = sorted(
    [
        "Backend",
        "Evaluating",
        "EvaluationResult",
        "Exporting",
        "Naming",
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


NOT_RETURNED = {"RunRecord"}
"""Types of attributes that are for rlnb itself."""
TRACKING = ["Row", "Tracker", "follow", "main", "outcome"]


def test_the_public_names_are_these_and_sorted() -> None:
    assert rlnb.__all__ == PUBLIC
    assert sorted(PUBLIC) == PUBLIC
    assert len(PUBLIC) <= 32
    assert {*PUBLIC, "local", "slurm", "plugin", "results"} <= {*dir(rlnb)}, "tab completion has launchers too"


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (rlnb.backend, BACKEND),
        (rlnb.launchers, LAUNCHERS),
        (rlnb.plugin, PLUGIN),
        (rlnb.results, RESULTS),
        (rlnb.studies, STUDIES),
        (rlnb.tracking, TRACKING),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_public_names_of_a_module_are_these(module: ModuleType, names: list[str]) -> None:
    assert module.__all__ == names
    assert [name for name in names if not getattr(module, name).__doc__] == []


@pytest.mark.parametrize("name", MOVED)
def test_an_old_name_answers_and_says_what_to_use(name: str) -> None:
    text = rf"^rlnb: use (.+) in place of rlnb\.{name}, which works until version 0\.3\.$"
    with pytest.warns(FutureWarning, match=text) as told:
        value = getattr(rlnb, name)
    assert told[0].filename == __file__
    owners = {"run": rlnb.Run, "rlnb.Runs(runs)": rlnb.Runs, "rlnb.task(...)": rlnb.Task}
    for new in re.findall(text, str(told[0].message))[0].split(" or "):
        owner, _, attribute = re.sub(r"\(\w*\)$", "", new).rpartition(".")
        if new.endswith(")"):
            assert callable(getattr(owners[owner], attribute))
        else:
            assert getattr(importlib.import_module(owner), attribute) is value


def test_an_unknown_name_of_a_module_is_an_error_with_the_closest_name() -> None:
    with pytest.raises(AttributeError, match=r"^rlnb\.plugin has no 'Libary'\. Did you mean 'Library'\?$"):
        rlnb.plugin.Libary  # noqa: B018


def test_every_type_that_a_public_call_returns_is_public() -> None:
    calls = [getattr(module, name) for module in (rlnb, rlnb.studies) for name in module.__all__ if name[0].islower()]
    for each in (rlnb.Run, rlnb.Runs, rlnb.Task):
        members = [member for name, member in inspect.getmembers(each) if not name.startswith("_")]
        calls += [member.fget if isinstance(member, property) else member for member in members]
    faces = (rlnb, rlnb.launchers, rlnb.plugin, rlnb.results)
    public = {name for module in faces for name in module.__all__} | NOT_RETURNED
    private = set()
    for call in filter(inspect.isfunction, calls):
        words = re.findall(r"\w+", str(inspect.get_annotations(call).get("return", "")))
        private |= {f"{call.__qualname__} returns {word}" for word in words if word in _classes_of_rlnb() - public}
    assert private == set(), "rlnb.results has the types that calls return"


@functools.cache
def _classes_of_rlnb() -> set[str]:
    """Return the names of the classes that rlnb defines, but for those of private names."""
    sources = Path(rlnb.__file__).parent.rglob("*.py")
    return {name for path in sources for name in re.findall(r"^class ([A-Z]\w+)", path.read_text(), re.M)}


def test_every_public_name_resolves_and_has_a_docstring() -> None:
    values = {name: getattr(rlnb, name) for name in PUBLIC}
    assert [name for name, value in values.items() if value is not getattr(rlnb, name)] == []
    assert [name for name, value in values.items() if not value.__doc__] == []


def test_an_unknown_name_is_an_error_with_the_closest_name() -> None:
    with pytest.raises(AttributeError, match=r"rlnb has no 'trian'.* Did you mean 'train'"):
        rlnb.trian  # noqa: B018
