"""The part of the conformance kit that needs no simulator: a sound library passes it, and each fault is found."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rlnb
from rlnb.results import Evaluation
from rlnb.testing import LibraryConformance
from rlnb.testing.libraries import EPISODES
from rlnb.testing.training import TrainingConformance, longest_iteration_s

TINY = Path(__file__).parent / "tiny"
RESUMES = "test_a_killed_run_resumes_with_its_whole_state"
SEED = "test_the_seed_decides_what_is_learned"
CANCEL = "test_scalars_are_readable_at_once_and_cancel_ends_every_process"
CURVES = "test_every_metric_of_the_library_is_logged_once_in_each_iteration"
FAULTS = {
    "CheckpointIgnored": (RESUMES, "reports first_iteration=0 for a resumed training"),
    "WeightsLost": (RESUMES, "differs from one that was never interrupted. Save and restore the weights"),
    "OptimiserLost": (RESUMES, "differs from one that was never interrupted. .* the optimiser"),
    "RandomLost": (RESUMES, "differs from one that was never interrupted. .* the random numbers"),
    "SeedIgnored": (SEED, "seeds 42 and 7 are equal. Use ctx.seed"),
    "Unseeded": (SEED, "Two runs with one seed differ. Take every random number from a generator that ctx.seed seeds"),
    "InitIgnored": (
        "test_a_run_starts_from_the_weights_of_another",
        "fresh weights. Load the weights in ctx.init_from",
    ),
    "StepsWrong": (CURVES, r"iterations \[1.*\], not one at each of 0 to 5. Log iteration k at its own step"),
    "FramesWrong": (
        CURVES,
        r"iterations \[0.0, 0.25.* correct ctx.started: frames_per_step, or the 4 env steps of 4 envs",
    ),
    "TooLong": (
        "test_a_training_runs_the_requested_number_of_iterations",
        "6 iterations were requested, 7 reported by ctx.started, and 7 logged. End at ctx.max_iterations",
    ),
    "NamedWrong": (
        "test_a_checkpoint_is_named_after_its_last_iteration",
        "the last one was 5. .* see Library.checkpoint_iteration",
    ),
    "StopIgnored": (CANCEL, r"processes has not come within 5 s\. Call ctx.iteration_finished\(save\) after each"),
    "StopUnsaved": (CANCEL, r"its last checkpoint is of .*\. Call ctx.iteration_finished\(save\) after each"),
    "EvaluationOfFresh": (
        "test_an_evaluation_uses_its_checkpoint",
        "Different checkpoints have the same returns. Load the one that",
    ),
    "EvaluationTrains": (
        "test_an_evaluation_is_repeatable_and_changes_nothing",
        "Two evaluations with one seed have different returns. .* learn nothing: neither weights nor",
    ),
    "EvaluationLitters": (
        "test_an_evaluation_is_repeatable_and_changes_nothing",
        r"written into the working folder meanwhile: {.*rollout-\d+\.txt",
    ),
    "Unlogged": (
        CURVES,
        "not logged in 6 iterations: entropy. Correct their tags .* `iterations` higher if no episode",
    ),
}
"""The test that finds each faulty backend of ``tiny/rlnb_tiny.py``, and what it says about the fault and its fix."""
QUICK = ("StepsWrong", "FramesWrong", "TooLong", "NamedWrong", "Unlogged")
"""Faults that a single run shows."""
KIT = """
from rlnb.testing.training import TrainingConformance

class Conformance(TrainingConformance):
    task = "Tiny"
    agent = {{"iteration_s": 0.01}}
    resume_iterations = 200
"""
CLASS = """
class Test{name}(Conformance):
    library = "{library}"
"""


def run_kit(folder: Path, *tests: tuple[str, str]) -> dict[str, str]:
    """Run tests of the kit as an author does, and return the failures of each backend.

    Args:
        folder: Empty folder.
        tests: Name of a backend, and name of a test; empty for all tests.

    Returns:
        Text of the failures by backend, empty if it passed.
    """
    info = folder / "site" / "rlnb_tiny-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rlnb-tiny\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rlnb]\ntiny = rlnb_tiny_plugin\n")
    for path in TINY.glob("*.py"):
        shutil.copy(path, info.parent)
    kit = folder / "test_kit.py"
    kit.write_text(KIT.format() + "".join(CLASS.format(name=name, library=name.lower()) for name, _ in tests))
    nodes = [f"{kit}::Test{name}{f'::{test}' if test else ''}" for name, test in tests]
    search = os.pathsep.join([str(info.parent), os.environ.get("PYTHONPATH", "")])
    argv = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:dash", f"--junitxml={folder}/kit.xml", *nodes]
    done = subprocess.run(
        [sys.executable, *argv],
        env={**os.environ, "PYTHONPATH": search},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    failures = {name: "" for name, _ in tests}
    cases = [*ET.parse(folder / "kit.xml").iter("testcase")]
    assert len(cases) >= len(tests)
    for case in cases:
        assert case.find("error") is None, ET.tostring(case, encoding="unicode")
        if (failure := case.find("failure")) is not None:
            failures[case.attrib["classname"].rpartition(".Test")[2]] += f"{case.attrib['name']}: {failure.text}"
    return failures


def assert_found(folder: Path, names: list[str]) -> None:
    failures = run_kit(folder, *[(name, FAULTS[name][0]) for name in names])
    for name in names:
        assert failures[name], f"{name} was not found"
        assert re.search(FAULTS[name][1], " ".join(failures[name].split())), failures[name]


def test_a_fault_that_one_run_shows_is_found_with_its_fix(tmp_path: Path) -> None:
    assert_found(tmp_path, [*QUICK])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FAULTS if name not in QUICK])
def test_a_fault_is_found_with_its_fix(tmp_path: Path, name: str) -> None:
    assert_found(tmp_path, [name])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Tiny", "InFolders", "NeverResumes"])
def test_a_sound_library_passes(tmp_path: Path, name: str) -> None:
    assert run_kit(tmp_path, (name, "")) == {name: ""}


def test_folders_as_checkpoints_and_a_library_that_cannot_resume_are_no_faults(tmp_path: Path) -> None:
    tests = {"InFolders": FAULTS["EvaluationLitters"][0], "NeverResumes": RESUMES}
    assert run_kit(tmp_path, *tests.items()) == dict.fromkeys(tests, "")


def test_each_test_of_the_kit_finds_a_fault() -> None:
    tests = {name for name in dir(TrainingConformance) if name.startswith("test_")}
    assert tests == {test for test, _ in FAULTS.values()} | {"test_registration_is_light"}


def test_a_metric_that_needs_longer_runs_is_named_with_all_its_causes() -> None:
    class Kit(LibraryConformance):
        library = "rsl_rl"

    trained: Any = SimpleNamespace(metrics=SimpleNamespace(names=["fps"]))
    with pytest.raises(AssertionError, match=r"not logged in 6 iterations: .*set `iterations` higher if no episode"):
        Kit().test_every_metric_of_the_schema_is_logged(trained)


def test_a_cancelled_training_may_finish_its_iteration() -> None:
    assert longest_iteration_s([(0, 10.0, 1.0), (1, 12.5, 1.0), (2, 13.0, 1.0)]) == 2.5


@pytest.mark.parametrize(
    ("samples", "sampled", "fault"),
    [
        (True, 2.0, ""),
        (False, 1.0, ""),
        (True, 1.0, r"set `samples = False` if the library's policies have no noise"),
        (False, 2.0, r"Leave out `samples = False`"),
    ],
)
def test_a_library_says_whether_its_policies_have_noise(samples: bool, sampled: float, fault: str) -> None:
    def evaluation(*values: float) -> Any:
        return SimpleNamespace(returns=list(values), lengths=[1] * len(values), episodes=EPISODES)

    class Kit(LibraryConformance):
        library = "rsl_rl"

        @classmethod
        def evaluate(cls, run: rlnb.Run, **arguments: Any) -> Evaluation:
            returns: Evaluation = evaluation(3.0 if "seed" in arguments else sampled)
            return returns

    Kit.samples = samples
    with pytest.raises(AssertionError, match=fault) if fault else contextlib.nullcontext():
        Kit().test_whole_episodes_are_evaluated(SimpleNamespace(), evaluation(1.0))  # type: ignore[arg-type]
