"""The conformance kit on real Isaac Lab: it finds each fault that is planted in the library of the template.

The faults that a training without a simulator shows as well are in test_training.py.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from rlnb.cli.plugins import Names, make_plugin

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

RANKS = "test_ranks_learn_as_one"
RESUMES = "test_a_killed_run_resumes_with_its_whole_state"


EXPORT = """
    def export(self, env, agent_cfg, checkpoint, folder, *, formats, device, trust):
        from rlnb.backend import export_module

        policy = self.load_policy(env, agent_cfg, checkpoint, device=device, trust=trust)
        squashed = nn.Sequential(policy.mean, nn.Tanh()).eval()
        return export_module(squashed, env.reset()[0]["policy"], folder, formats)
"""


class Fault(NamedTuple):
    """A change of the template's ``backend.py`` that makes it wrong."""

    old: str
    new: str
    test: str
    """Name of the test that finds it."""
    message: str
    """Regular expression of what the test says."""


FAULTS = {
    "checkpoint-ignored": Fault("if ctx.checkpoint is not None:", "if False:", RESUMES, "does not read ctx.checkpoint"),
    "weights-lost": Fault(
        'policy.load_state_dict(state["policy"])\n', "pass\n", RESUMES, "has not restored {'policy'.* Load these parts"
    ),
    "restored-unsaid": Fault(
        'ctx.resumed(partial(save, state["iteration"]))\n', "pass\n", RESUMES, r"Call ctx.resumed\(save\) after loading"
    ),
    "not-synchronised": Fault(
        "dist.all_reduce(parameter.grad)",
        "pass",
        RANKS,
        "different parameters. .* average the grad",
    ),
    "fresh-policy": Fault(
        'policy.load_state_dict(_load(checkpoint, device, trust)["policy"])\n',
        "_load(checkpoint, device, trust)\n",
        "test_a_policy_has_the_weights_of_its_checkpoint",
        "its weights were not loaded. Load them in load_policy",
    ),
    "acting-learns": Fault(
        '        mean = self.mean(obs["policy"])\n',
        '        self.log_std.data += 0.01\n        mean = self.mean(obs["policy"]) + self.log_std\n',
        "test_acting_does_not_change_a_policy",
        "the same observations give other actions. Act in eval mode, update no normaliser",
    ),
    "export-differs": Fault(
        "        return policy.eval()\n",
        "        return policy.eval()\n" + EXPORT,
        "test_exports_give_the_actions_of_the_policy",
        "differ from the policy's by up to .* Export the policy in eval mode with its normaliser",
    ),
}
TASK = """
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg

@configclass
class TASK(CartpoleEnvCfg):
    state_space = 2

class ENV(CartpoleEnv):
    def _get_observations(self):
        policy = super()._get_observations()["policy"]
        return {"policy": policy, "critic": 2.0 * policy[:, :2]}
"""
"""A task with two groups of observations."""
BOTH = 'torch.cat([{0}["policy"], {0}["critic"]], dim=-1)'
GROUPS = {
    'raw.single_observation_space["policy"].shape[0], ': "6, ",
    'self.mean(obs["policy"])': f"self.mean({BOTH.format('obs')})",
    'self.obs["policy"].clone()': BOTH.format("self.obs"),
}
"""Changes of the template after which its policy reads both groups."""
TWO_GROUPS = """

class TestTwoGroups(Conformance):
    library, task = "two_groups", "Two-Groups"

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def cell(cls, root):
        write_module(rlnb.options.folders, cls.task, {task!r}, "kit.py")

    def inputs(self, observations):
        return {{"obs": observations["policy"], "critic": observations["critic"]}}
"""
LEARNER = Path(__file__).parents[2] / "docs" / "examples" / "rlnb-actor-learner" / "src" / "rlnb_actor_learner"
ROLES = """

class TestActorLearner(Conformance):
    library = "actor_learner"
    nproc_per_node = 3
    resume_iterations = 60
    lost = frozenset({"random state of ranks 1 to 2"})

    def test_a_part_that_is_not_lost_is_named(self, root):
        self.lost = self.lost | {"model"}
        run = next(run for run in rlnb.runs() if run.started and run.started.restored)
        with pytest.raises(AssertionError, match="`lost` lists model, which the resumed training has not lost"):
            self.assert_restored(run)
        self.lost = frozenset()
        with pytest.raises(AssertionError, match="has not restored {'random state .* or list in `lost`"):
            self.assert_restored(run)
"""
KIT = """
import pytest

import rlnb
from rlnb.simulation.pool import pool
from rlnb.tasks.source import write_module
from rlnb.testing import LibraryConformance


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLNB_QUEUE", str(folder / "queue"))
        patch.setattr(rlnb.options, "root", folder / "rlnb-runs")
        patch.setattr(rlnb.options, "warm", True)
        yield folder / "rlnb-runs"
        pool.shut_down()


class Conformance(LibraryConformance):
    agent = {"save_interval": 2}

    @pytest.fixture(scope="class")
    @classmethod
    def root(cls, simulated):
        yield simulated
        for run in rlnb.runs():
            run.cancel()
"""
"""The kit with one warm simulator for all libraries."""


def plant(name: str, changes: Mapping[str, str], folder: Path) -> None:
    """Make a library from the template, change its ``backend.py``, and install it into a folder."""
    package = make_plugin(name, "library", folder / name)
    source = package / "src" / Names(name).module
    backend = source / "backend.py"
    text = backend.read_text()
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    backend.write_text(text)
    install(name, source, folder / "site")


def install(name: str, source: Path, site: Path) -> None:
    """Install the package in a folder of sources as its ``pyproject.toml`` does."""
    source.rename(site / source.name)
    info = site / f"{source.name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: rlnb-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rlnb]\n{Names(name).key} = {source.name}.plugin\n")


def run_kit(folder: Path, classes: str, *tests: str) -> dict[str, str]:
    """Run tests of the kit as an author does.

    Args:
        folder: Folder with the libraries' ``site``.
        classes: Classes of tests, one for each library.
        tests: Names of the tests, ``Class::test``.

    Returns:
        Text of the failure by the class of the test, empty if it passed.
    """
    (folder / "test_kit.py").write_text(KIT + classes)
    nodes = [f"{folder}/test_kit.py::{test}" for test in tests]
    path = os.pathsep.join([str(folder / "site"), os.environ.get("PYTHONPATH", "")])
    argv = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:dash", f"--junitxml={folder}/kit.xml", *nodes]
    done = subprocess.run(
        [sys.executable, *argv],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stdout[-8000:] + done.stderr[-2000:]
    said: dict[str, str] = {}
    for case in ET.parse(folder / "kit.xml").iter("testcase"):
        name = case.attrib["classname"].rpartition(".Test")[2]
        said[name] = said.get(name, "") + " ".join("".join(case.itertext()).split())
    return said


def test_each_planted_fault_is_found_and_named_with_its_fix(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    classes, tests = "", []
    for name, fault in FAULTS.items():
        plant(name, {fault.old: fault.new}, tmp_path)
        classes += f"\n\nclass Test{Names(name).cls}(Conformance):\n    library = {Names(name).key!r}\n"
        tests.append(f"Test{Names(name).cls}::{fault.test}")
    said = run_kit(tmp_path, classes, *tests)
    lacking = {
        name: said[Names(name).cls][-2000:]
        for name, fault in FAULTS.items()
        if not re.search(fault.message, said[Names(name).cls])
    }
    assert not lacking, lacking


def test_the_exports_of_a_policy_that_reads_two_groups_of_observations_pass(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    plant("two-groups", GROUPS, tmp_path)
    test = "TestTwoGroups::test_exports_give_the_actions_of_the_policy"
    assert run_kit(tmp_path, TWO_GROUPS.format(task=TASK), test) == {"TwoGroups": ""}


def test_a_library_with_a_learner_and_actors_passes(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    shutil.copytree(LEARNER, tmp_path / LEARNER.name)
    install("actor-learner", tmp_path / LEARNER.name, tmp_path / "site")
    names = (RESUMES, "test_a_part_that_is_not_lost_is_named", "test_the_env_has_the_requested_size", RANKS)
    assert run_kit(tmp_path, ROLES, *[f"TestActorLearner::{name}" for name in names]) == {"ActorLearner": ""}
