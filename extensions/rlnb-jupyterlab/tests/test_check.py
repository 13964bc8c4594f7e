"""The check of a form calls installed launchers, and nothing else that a form can name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rlnb_jupyterlab.check import FormAgent, agent, problems

import rlnb

LISTED = r"Use one of .*injected, .*local.*\."


def texts_of(launcher: str, **fields: Any) -> list[str]:
    """Return the problems of a form, each with its fix if it has one."""
    form = {"task": "Echo", "library": "echo", "launcher": launcher, **fields}
    return [f"{problem.what} {problem.fix}".strip() for problem in problems(form)]


def test_a_script_in_place_of_a_launcher_is_not_started(root: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    texts = texts_of(f"train(script={str(script)!r})")
    for run in rlnb.runs():
        run.wait(timeout_s=60)
    assert not (tmp_path / "executed").exists()
    assert not list(root.iterdir()), "the check creates nothing"
    assert re.fullmatch(rf"'train' is not a launcher\. {LISTED}", texts[0])
    assert len(texts) == 1


@pytest.mark.parametrize("name", ["options", "get_run", "Run", "LocalLauncher", "plugins", "load_ipython_extension"])
def test_only_launchers_are_called(root: Path, name: str) -> None:
    (text,) = texts_of(f"{name}()")
    assert re.fullmatch(rf"'{name}' is not a launcher\.( Did you mean '\w+'\?)? {LISTED}", text)


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        ("locl", [rf"'locl' is not a launcher\. Did you mean 'local'\? {LISTED}"]),
        (
            "local(max_runing=1, node=2)",
            [
                r"'max_runing' is not a setting of local\. Did you mean 'max_running'\? Use one of .*",
                r"'node' is not a setting of local\. Use one of max_running, walltime_s\.",
            ],
        ),
        ("local(max_running=0)", [r"max_running=0 is not a positive whole number\. Use max_running=1\."]),
        ("local(max_running=-1)", [r"max_running=-1 is not .*\. Use max_running=1\."]),
        ("local(max_running='2')", [r"max_running='2' is not .*\. Use max_running=1\."]),
        ("local(walltime_s=1e999)", [r"walltime_s=inf is not .*\. Use walltime_s=3600, .*"]),
        ("injected(nodes=0)", [r"nodes=0 is not a positive whole number\. nodes=1"]),
        ("local", []),
        ("local(max_running=2)", []),
    ],
)
def test_a_setting_that_a_launcher_refuses_is_a_problem_with_a_fix(
    root: Path, launcher: str, expected: list[str]
) -> None:
    texts = texts_of(launcher)
    assert len(texts) == len(expected), texts
    for what, pattern in zip(texts, expected, strict=True):
        assert re.fullmatch(pattern, what)


PLUGIN = """
import rlnb


class Strict:
    name, nodes, nproc_per_node, max_running, walltime_s = "strict", 1, None, None, None

    def __init__(self, **settings):
        self.settings = settings
        self.partition = settings["partition"].strip()

    def check(self, manifest):
        return self.partition + 1

    def submit(self, command, job_dir):
        raise NotImplementedError


@rlnb.plugin.hookimpl
def rlnb_launchers():
    return [rlnb.launchers.LauncherType(name=name, factory="strict:Strict") for name in ("strict",)]
"""


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        (
            "strict(partition=5)",
            r"strict\(partition=5\) could not be made: AttributeError: .* 'strip'\. Use the settings of help.*",
        ),
        ("strict(partition='gpu')", r"A field has a value of the wrong type: .* concatenate str.*\. Use .*"),
        ("strict(nodes=2)", r"strict\(nodes=2\) could not be made: KeyError: 'partition'\. Use .*"),
    ],
)
def test_a_launcher_of_a_plugin_is_called_and_may_raise(
    root: Path, tmp_path: Path, launcher: str, expected: str
) -> None:
    installed = tmp_path / "installed" / "strict-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: strict\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[rlnb]\nstrict = strict\n")
    (installed.parent / "strict.py").write_text(PLUGIN)
    done = subprocess.run(
        [sys.executable, "-m", "rlnb_jupyterlab.check"],
        input=json.dumps({"task": "Echo", "library": "echo", "launcher": launcher}),
        env={**os.environ, "PYTHONPATH": str(installed.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    (problem,) = json.loads(done.stdout)["problems"]
    assert re.fullmatch(expected, f"{problem['what']} {problem['fix']}")


def test_a_field_of_the_wrong_type_is_a_problem(root: Path) -> None:
    (text,) = texts_of("local", tags=5)
    assert text == "tags=5 is not a list. tags=['5']"


@pytest.mark.parametrize("field", ["script", "inputs", "python", "asset_root"])
def test_paths_of_code_are_no_fields_of_a_form(root: Path, field: str) -> None:
    assert texts_of("local", **{field: "/x/evil.py"}) == [f"{field!r} is not a field of the form."]


def test_agent_values_are_never_read_from_a_file(root: Path) -> None:
    assert texts_of("local", agent="/x/agent.yaml") == ["agent is not a table of names and values."]


def test_first_weights_are_those_of_a_run_and_never_of_a_file(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = rlnb.train("Echo", library="echo", max_iterations=1, tags=["a"]).wait()
    assert texts_of("local()", init_from=parent.id, tags=["paper", "seed 1"], alerts=["failed", "reward < 0"]) == []
    assert texts_of("local()", init_from="no-run")[0].startswith("No run named 'no-run'.")
    (tmp_path / "policy.pt").touch()
    assert texts_of("local()", init_from=str(tmp_path / "policy.pt")) == [
        f"{str(tmp_path / 'policy.pt')!r} is not the id of a run."
    ]
    monkeypatch.chdir(tmp_path)
    assert texts_of("local()", init_from="policy.pt")[0].startswith("No run named 'policy.pt'.")
    (text,) = texts_of("local()", alerts=["rewrd < 0"])
    assert "rewrd" in text


def test_a_form_of_a_library_without_a_simulator_has_no_agent_config(root: Path) -> None:
    assert agent({"task": "Echo", "library": "echo"}) == FormAgent()
    assert agent({"task": "", "library": ""}) == FormAgent()
