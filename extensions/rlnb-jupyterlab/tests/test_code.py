"""The code for a form is valid Python, and starts the run that the form describes."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

import pytest
from rlnb_jupyterlab.code import Malformed, code, code_of, form_of, launcher_of, read

import rlnb
from rlnb.launchers import Resources
from rlnb.plugin import Manifest

MANIFEST = Manifest(
    run_id="r",
    created="2026-01-01T00:00:00+00:00",
    task=rlnb.Task(
        id="Isaac-Ant-Direct",
        num_envs=64,
        overrides={"sim.dt": 0.005},
        launcher_args={"livestream": 2},
        imports=("mine",),
    ),
    library="skrl",
    seed=7,
    deterministic=True,
    agent={"agent.learning_rate": 3e-4},
    resources=Resources(device="cpu", nproc_per_node=2),
    launcher="slurm",
    launcher_settings={"nodes": 2, "walltime": "08:00:00", "directives": [], "python": None},
    tags=("baseline",),
)


def called(text: str, name: str) -> dict[str, Any]:
    """Return the arguments of a call in Python text; the launcher as source text."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    (only,) = [call for call in calls if ast.unparse(call.func) == name]
    return {
        str(keyword.arg): ast.unparse(keyword.value) if keyword.arg == "launcher" else ast.literal_eval(keyword.value)
        for keyword in only.keywords
    }


def test_a_run_becomes_the_lines_that_start_it_again() -> None:
    text = code_of(MANIFEST)
    assert called(text, "rlnb.task") == {
        "overrides": {"sim.dt": 0.005},
        "launcher_args": {"livestream": 2},
        "imports": ["mine"],
    }
    assert called(text, "rlnb.train") == {
        "library": "skrl",
        "num_envs": 64,
        "seed": 7,
        "deterministic": True,
        "device": "cpu",
        "nproc_per_node": 2,
        "agent": {"agent.learning_rate": 3e-4},
        "tags": ["baseline"],
        "launcher": "rlnb.slurm(nodes=2, walltime='08:00:00')",
    }


@pytest.mark.parametrize(
    ("values", "argument"),
    [({}, "generic"), ({"agent.learning_rate": 3e-4}, ["generic", {"agent.learning_rate": 3e-4}])],
)
def test_the_name_of_an_agent_config_and_its_values_become_one_argument(values: dict[str, Any], argument: Any) -> None:
    manifest = dataclasses.replace(MANIFEST, agent_name="generic", agent=values)
    assert called(code_of(manifest), "rlnb.train")["agent"] == argument


def test_a_script_becomes_the_line_that_starts_it() -> None:
    text = code_of(dataclasses.replace(MANIFEST, script=("train.py", "--task", "it's")))
    assert called(text, "rlnb.train") == {"script": "train.py", "args": ["--task", "it's"]}


@pytest.mark.parametrize("launcher", ["../elsewhere", "x\nimport os", "slurm()\u2028import os #", "'\r\nimport os"])
def test_a_launcher_that_is_none_becomes_a_comment(launcher: str) -> None:
    """The page of another user's run shows the rest of it, and no one runs what its manifest says by a copy."""
    text = code_of(dataclasses.replace(MANIFEST, launcher=launcher))
    assert "is not a launcher" in text
    assert ast.parse(text).body == []


@pytest.mark.parametrize("name", ["a b", "x=1)\nimport os", "class"])
def test_a_setting_whose_name_is_none_becomes_a_comment(name: str) -> None:
    text = code_of(dataclasses.replace(MANIFEST, launcher_settings={name: 1}))
    assert ast.parse(text).body == []


def test_a_field_with_its_default_becomes_no_argument() -> None:
    assert called(code(read({"task": "Echo", "num_envs": None, "seed": 42, "device": ""})), "rlnb.train") == {}


@pytest.mark.parametrize("value", ["');import os;('", "\n", '"""', "\\", "\u2028"])
def test_no_value_leaves_its_quotes(value: str) -> None:
    text = code(read({"task": value, "agent": {value: value}, "overrides": {value: value}}))
    assert called(text, "rlnb.train") == {"agent": {value: value}}


def test_a_launcher_is_a_name_with_literals() -> None:
    assert launcher_of("slurm(nodes=2, walltime='08:00:00')") == ("slurm", {"nodes": 2, "walltime": "08:00:00"})
    assert launcher_of("") == ("local", {})
    for text in ("slurm(x)", "a.b()", "slurm(nodes=f())", "slurm(**{})", "lambda: 1", "slurm("):
        with pytest.raises(Malformed):
            launcher_of(text)


@pytest.mark.parametrize(
    "form", [{"tasks": "x"}, {"task": 3}, {"task": "x", "agent": [1]}, {"agent": {"a": {}}, "b": 1}]
)
def test_a_malformed_form_is_refused(form: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        read(form)


def test_the_form_of_a_run_is_read_back_unchanged() -> None:
    form = form_of(MANIFEST)
    assert form["launcher"] == "slurm(nodes=2, walltime='08:00:00')"
    assert read(form) == form


def test_the_recorded_arguments_of_a_run_are_in_its_code() -> None:
    others: dict[str, Any] = {"max_iterations": 7, "keep": 3, "film_every": 50}
    manifest = dataclasses.replace(MANIFEST, **others, alerts=("failed", "function low"))
    text = called(code_of(manifest), "rlnb.train")
    assert text.items() >= others.items()
    assert text["alerts"] == ["failed"], "only the notebook that started the run has the function"


def test_the_code_of_a_run_says_where_its_weights_come_from() -> None:
    text = code_of(dataclasses.replace(MANIFEST, parent="20260101-000000-ant-skrl-0000"))
    assert called(text, "rlnb.train")["init_from"] == "20260101-000000-ant-skrl-0000"


@pytest.mark.parametrize("name", ["/etc/agent.yaml", "agent.yaml", "notes", "generic.yaml"])
def test_an_agent_config_is_a_name_and_never_a_file(name: str) -> None:
    with pytest.raises(Malformed, match="is not the name of an agent config"):
        read({"task": "Echo", "agent_config": name})
    assert read({"task": "Echo", "agent_config": "generic"})["agent_config"] == "generic"
