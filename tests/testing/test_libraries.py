"""The conformance kit on real Isaac Lab: it finds each fault that is planted in the library of the template."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest

from rlnb.cli.scaffold import Names, make_plugin

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

RESUMES = "test_a_killed_run_resumes_with_its_whole_state"
CURVES = "test_every_metric_of_the_library_is_logged_once_in_each_iteration"


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
    "optimiser-lost": Fault(
        'optimizer.load_state_dict(state["optimizer"])\n', "pass\n", RESUMES, "has not restored {'optimizer'"
    ),
    "restored-unsaid": Fault(
        'ctx.resumed(partial(save, state["iteration"]))\n', "pass\n", RESUMES, r"Call ctx.resumed\(save\) after loading"
    ),
    "unseeded": Fault(
        "torch.manual_seed(ctx.seed)",
        "torch.seed()",
        "test_the_seed_decides_what_is_learned",
        "Two runs with one seed differ. Take every random number from a generator that ctx.seed seeds",
    ),
    "not-synchronised": Fault(
        "dist.all_reduce(parameter.grad)",
        "pass",
        "test_ranks_learn_as_one",
        "different parameters. .* average the grad",
    ),
    "step-wrong": Fault(
        "writer.add_scalar(tag, value, iteration)",
        "writer.add_scalar(tag, value, 2 * iteration)",
        CURVES,
        "not one at each of 0 to 5. Log iteration k at its own step",
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
    "init-ignored": Fault(
        'policy.load_state_dict(_load(ctx.init_from, ctx.device, ctx.trust)["policy"])\n',
        "_load(ctx.init_from, ctx.device, ctx.trust)\n",
        "test_a_run_starts_from_the_weights_of_another",
        "The run started from fresh weights. Load the weights in ctx.init_from",
    ),
    "too-long": Fault(
        'total, horizon = 0, ctx.max_iterations or agent_cfg["max_iterations"]',
        "total, horizon = 0, (ctx.max_iterations or 1) + 1",
        "test_a_training_runs_the_requested_number_of_iterations",
        "6 iterations were requested, 7 reported by ctx.started, and 7 logged. End at ctx.max_iterations",
    ),
}
KIT = """
import pytest

import rlnb
from rlnb.simulation import simulator
from rlnb.testing import LibraryConformance


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLNB_QUEUE", str(folder / "queue"))
        patch.setattr(rlnb.options, "root", folder / "rlnb-runs")
        patch.setattr(rlnb.options, "warm", True)
        yield folder / "rlnb-runs"
        simulator.shut_down()


class Conformance(LibraryConformance):
    agent = {"save_interval": 2}

    @pytest.fixture(scope="class")
    @classmethod
    def root(cls, simulated):
        yield simulated
        for run in rlnb.runs():
            run.cancel()
"""
"""The kit with one living simulator for all libraries."""


def plant(name: str, fault: Fault, folder: Path) -> None:
    """Make a library from the template, plant a fault in it, and install it into a folder."""
    package = make_plugin(name, "library", folder / name)
    source = package / "src" / Names(name).module
    backend = source / "backend.py"
    text = backend.read_text()
    assert text.count(fault.old) == 1, fault.old
    backend.write_text(text.replace(fault.old, fault.new))
    site = folder / "site"
    source.rename(site / source.name)
    info = site / f"{source.name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: rlnb-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rlnb]\n{Names(name).key} = {source.name}.plugin\n")


def test_each_planted_fault_is_found_and_named_with_its_fix(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    kit, nodes = KIT, []
    for name, fault in FAULTS.items():
        plant(name, fault, tmp_path)
        kit += f"\n\nclass Test{Names(name).cls}(Conformance):\n    library = {Names(name).key!r}\n"
        nodes.append(f"{tmp_path}/test_kit.py::Test{Names(name).cls}::{fault.test}")
    (tmp_path / "test_kit.py").write_text(kit)
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    argv = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:dash", f"--junitxml={tmp_path}/kit.xml", *nodes]
    done = subprocess.run(
        [sys.executable, *argv],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout[-8000:] + done.stderr[-2000:]
    said = {
        case.attrib["classname"].rpartition(".Test")[2]: " ".join("".join(case.itertext()).split())
        for case in ET.parse(tmp_path / "kit.xml").iter("testcase")
    }
    lacking = {name: said[Names(name).cls][-2000:] for name, fault in FAULTS.items() if not found(fault, said, name)}
    assert not lacking, lacking


def found(fault: Fault, said: dict[str, str], name: str) -> bool:
    """Return whether the kit has named a fault."""
    return re.search(fault.message, said[Names(name).cls]) is not None
